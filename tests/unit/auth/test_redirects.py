"""Sign-in by redirect: addresses, secrets, browsers, grants, and what goes back to the client."""

import base64
import dataclasses
from hashlib import sha256

import pytest

from services.auth.domain import redirects
from services.auth.domain.challenges import Challenge
from services.auth.domain.errors import FieldInvalid, RedirectInvalid, RedirectUriInvalid, SignInCodeInvalid
from services.auth.domain.identity import Identity
from services.auth.domain.redirects import Grant, Journey, ProviderAnswer, Ticket

NOW = 1_800_000_000.0
ISSUERS = {"https://provider.example"}
COOKIE = redirects.secret_text(b"c" * 32)
TICKET = Ticket(bytes(32), b"c" * 32, "http://127.0.0.1:1/x", "s" * 16, "h" * 43, NOW + 600)
JOURNEY = Journey(TICKET, redirects.secret_hash(COOKIE), "v" * 43)
ANSWER = ProviderAnswer(state="s", code="4/0Ab-c_d.e", error="", issuer="", cookie=COOKIE)


@pytest.mark.parametrize(
    "uri",
    [
        "https://play.example/done", "http://127.0.0.1", "http://127.0.0.1/", "http://127.0.0.1:1/a/b-c_d.e~f",
        "http://[::1]:65535/", "http://[::1]",
    ],
)  # fmt: skip
def test_a_registered_or_loopback_address_is_taken(uri: str):
    redirects.check_redirect_uri(uri, {"https://play.example/done"})


@pytest.mark.parametrize(
    "uri",
    [
        "", "https://play.example/done/", "https://play.example/done?x", "https://play.example", "http://127.0.0.1:0/",
        "http://127.0.0.1:65536/", "http://127.0.0.1:99999999/", "http://127.0.0.1:1?x", "http://127.0.0.1:1/?code=x",
        "http://127.0.0.1:1/#", "http://127.1/", "http://127.0.0.1:1/\n", "http://127.0.0.1/%0d", "http://[::1]x/",
        "http://user@127.0.0.1/", "http://localhost/", "http://2130706433/", "http://127.0.0.1:1" + "/a" * 300,
    ],
)  # fmt: skip
def test_any_other_address_is_refused(uri: str):
    with pytest.raises(RedirectUriInvalid) as refusal:
        redirects.check_redirect_uri(uri, {"https://play.example/done"})
    assert refusal.value.field == "redirect_uri"
    assert uri not in refusal.value.message or not uri


def test_forms_are_checked():
    redirects.check_client_state("A" * 16)
    redirects.check_code_challenge("A" * 43)
    redirects.check_code_verifier("~" * 128)
    for check, text, field in (
        (redirects.check_client_state, "A" * 15, "client_state"),
        (redirects.check_client_state, "A" * 15 + "&", "client_state"),
        (redirects.check_client_state, "A" * 16 + "\n", "client_state"),
        (redirects.check_code_challenge, "A" * 42, "code_challenge"),
        (redirects.check_code_challenge, "A" * 43 + "=", "code_challenge"),
        (redirects.check_code_verifier, "A" * 42, "code_verifier"),
        (redirects.check_code_verifier, "A" * 129, "code_verifier"),
        (redirects.check_code_verifier, "A" * 42 + "é", "code_verifier"),
    ):
        with pytest.raises(FieldInvalid) as refusal:
            check(text)
        assert refusal.value.metadata["field"] == field


def test_pkce_is_s256_as_in_rfc_7636_appendix_b():
    verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    assert redirects.pkce_challenge(verifier) == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


def test_secrets_are_43_characters_and_stored_as_hashes():
    secret = redirects.secret_text(b"\xff" * 32)
    assert base64.urlsafe_b64decode(secret + "=") == b"\xff" * 32
    assert redirects.is_secret(secret)
    assert not redirects.is_secret(secret + "=")
    assert not redirects.is_secret(secret[:-1])
    assert redirects.secret_hash(secret) == sha256(secret.encode()).digest()


def test_only_the_browser_that_began_goes_on():
    assert redirects.check_browser(JOURNEY, COOKIE, NOW + 599) is JOURNEY
    for journey, cookie, now in (
        (None, COOKIE, NOW),
        (JOURNEY, COOKIE, NOW + 600),
        (JOURNEY, "", NOW),
        (JOURNEY, redirects.secret_text(b"d" * 32), NOW),
    ):
        with pytest.raises(RedirectInvalid):
            redirects.check_browser(journey, cookie, now)


def test_only_who_holds_the_verifier_takes_the_grant():
    verifier = "v" * 43
    challenge = Challenge(b"c" * 32, bytes(32), NOW + 60)
    grant = Grant(Identity("i", "s"), challenge, redirects.pkce_challenge(verifier))
    assert redirects.check_grant(grant, verifier) is grant
    for known, shown in ((None, verifier), (grant, "w" * 43), (grant, redirects.pkce_challenge(verifier))):
        with pytest.raises(SignInCodeInvalid):
            redirects.check_grant(known, shown)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({}, ""),
        ({"issuer": "https://provider.example"}, ""),
        ({"issuer": "https://other.example"}, "server_error"),
        ({"error": "access_denied"}, "access_denied"),
        ({"error": "access_denied", "code": ""}, "access_denied"),
        ({"error": "temporarily_unavailable"}, "temporarily_unavailable"),
        ({"error": "invalid_scope"}, "server_error"),
        ({"error": "access_denied", "issuer": "https://other.example"}, "server_error"),
        ({"code": ""}, "server_error"),
        ({"code": "a b"}, "server_error"),
        ({"code": "x" * 2049}, "server_error"),
    ],
)
def test_what_the_provider_says_becomes_one_of_three_errors(changes: dict[str, str], error: str):
    assert redirects.provider_refusal(dataclasses.replace(ANSWER, **changes), ISSUERS) == error


def test_the_client_gets_state_and_issuer_with_code_or_error():
    code = redirects.success_uri(TICKET, "k" * 43, "https://auth.koikoi/x")
    assert code == f"http://127.0.0.1:1/x?code={'k' * 43}&state={'s' * 16}&iss=https%3A%2F%2Fauth.koikoi%2Fx"
    with_query = dataclasses.replace(TICKET, redirect_uri="https://play.example/done?from=us")
    error = redirects.error_uri(with_query, "access_denied", "i")
    assert error.startswith("https://play.example/done?from=us&error=access_denied&error_description=")
    assert error.endswith(f"&state={'s' * 16}&iss=i")
