"""The local OpenID provider keeps the rules a client relies on."""

import asyncio
import json
import re
import secrets
import shutil
from base64 import b64encode, urlsafe_b64decode
from collections.abc import AsyncIterator
from hashlib import sha256
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

from services.kit.settings import SettingsError
from tests.harness import FakeClock
from tests.integration.auth.device import base64url
from tools.oidc_provider import Faults, Provider, ProviderSettings, open_provider
from tools.oidc_provider.settings import read_settings

CALLBACK = "http://127.0.0.1:39999/callback"
REGISTERED = "https://koikoi.example/auth/callback"
VERIFIER = "v" * 43
CHALLENGE = base64url(sha256(VERIFIER.encode()).digest())


class Browser:
    """A client of the provider that follows nothing by itself."""

    def __init__(self, provider: Provider, http: aiohttp.ClientSession) -> None:
        self.provider, self.http = provider, http

    async def authorize(self, **changes: str | None) -> Any:
        parameters = {
            "response_type": "code",
            "client_id": "public",
            "redirect_uri": CALLBACK,
            "scope": "openid email profile",
            "state": "st&te",
            "nonce": "n-1",
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "prompt": "none",
            "login_hint": "bot-a",
            **changes,
        }
        query = {name: value for name, value in parameters.items() if value is not None}
        return await self.http.get(f"{self.provider.issuer}/authorize", params=query, allow_redirects=False)

    async def code(self, **changes: str | None) -> str:
        return str(answer(await self.authorize(**changes))["code"])

    async def token(self, code: str, headers: dict[str, str] | None = None, **changes: str | None) -> Any:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": "public",
            "redirect_uri": CALLBACK,
            "code_verifier": VERIFIER,
            **changes,
        }
        data = {name: value for name, value in form.items() if value is not None}
        response = await self.http.post(f"{self.provider.issuer}/token", data=data, headers=headers)
        return response.status, await response.json()


def answer(response: aiohttp.ClientResponse) -> dict[str, str]:
    assert response.status == 303
    return {name: value[0] for name, value in parse_qs(urlsplit(response.headers["Location"]).query).items()}


@pytest.fixture
async def browser(provider_keys: Path, tmp_path: Path, fake_clock: FakeClock) -> AsyncIterator[Browser]:
    shutil.copytree(provider_keys, tmp_path / "keys")
    settings = ProviderSettings(
        address="127.0.0.1:0",
        directory=tmp_path / "keys",
        clients=("public", "confidential:s3cr3t:with+odd chars"),
        redirect_uris=(REGISTERED,),
    )
    async with open_provider(settings, fake_clock) as provider, aiohttp.ClientSession() as http:
        yield Browser(provider, http)


async def test_a_bot_gets_an_id_token_that_verifies(browser: Browser):
    provider = browser.provider
    async with browser.http.get(f"{provider.issuer}/.well-known/openid-configuration") as response:
        found = await response.json()
    assert found["issuer"] == provider.issuer
    assert found["authorization_endpoint"] == f"{provider.issuer}/authorize"
    redirected = await browser.authorize()
    assert redirected.headers["Location"].startswith(f"{CALLBACK}?")
    arrived = answer(redirected)
    assert (arrived["state"], arrived["iss"]) == ("st&te", provider.issuer)
    status, body = await browser.token(arrived["code"])
    assert status == 200
    async with browser.http.get(found["jwks_uri"]) as response:
        keys = KeySet.import_key_set(await response.json())
        assert response.headers["Cache-Control"] == "public, max-age=300"
    token = jwt.decode(body["id_token"], keys, algorithms=["RS256"])
    assert token.header["alg"] == "RS256"
    claims = token.claims
    assert (claims["iss"], claims["aud"], claims["azp"]) == (provider.issuer, "public", "public")
    assert (claims["email"], claims["name"], claims["nonce"]) == ("bot-a@localhost", "bot-a", "n-1")
    assert claims["exp"] - claims["iat"] == 3600
    again = json.loads(urlsafe_b64decode(provider.id_token("BOT-A@localhost", "x").split(".")[1] + "=="))
    assert again["sub"] == claims["sub"], "one address is one person"
    assert not any("d" in key for key in json.loads(await _text(browser, "/jwks"))["keys"])


async def test_a_person_takes_an_account_from_the_page(browser: Browser):
    page = await browser.authorize(prompt="select_account", login_hint=None)
    link = re.search(r'<a href="(/authorize[^"]+)">tsuru@example.test</a>', await page.text())
    assert link is not None
    url = browser.provider.issuer + unescape(link[1])
    taken = answer(await browser.http.get(url, allow_redirects=False))
    assert taken["state"] == "st&te"
    status, body = await browser.token(taken["code"])
    assert status == 200
    assert json.loads(urlsafe_b64decode(body["id_token"].split(".")[1] + "=="))["email"] == "tsuru@example.test"


async def test_a_person_types_a_name(browser: Browser):
    page = await browser.authorize(prompt=None, login_hint='"><script>', state="<&>")
    text = await page.text()
    assert page.status == 200
    assert "For development only" in text
    assert "<script>" not in text
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    form = {
        "response_type": "code", "client_id": "public", "redirect_uri": CALLBACK, "scope": "openid", "state": "s",
        "code_challenge": CHALLENGE, "code_challenge_method": "S256", "email": "花@例え.jp", "name": "花子",
    }  # fmt: skip
    url = f"{browser.provider.issuer}/authorize"
    response = await browser.http.post(url, data=form, allow_redirects=False)
    status, body = await browser.token(answer(response)["code"])
    assert status == 200
    claims = json.loads(urlsafe_b64decode(body["id_token"].split(".")[1] + "=="))
    assert (claims["email"], claims["name"]) == ("花@例え.jp", "花子")
    assert "nonce" not in claims
    for bad in ({"email": "nobody"}, {"email": ""}):
        response = await browser.http.post(url, data={**form, **bad}, allow_redirects=False)
        assert answer(response)["error"] == "access_denied"
    response = await browser.http.post(
        url, data={**form, "redirect_uri": "https://evil.example"}, allow_redirects=False
    )
    assert response.status == 400


@pytest.mark.parametrize(
    "uri",
    [
        None, "", "https://koikoi.example/auth/callback/", "https://koikoi.example/auth/callback?x=1",
        "https://koikoi.example.evil.example/auth/callback", "https://evil.example/", "http://localhost:39999/callback",
        "http://127.0.0.1@evil.example/", "http://127.0.0.1:1@evil.example/", "http://127.0.0.1.evil.example/",
        "https://127.0.0.1/callback", "http://127.0.0.1:39999/a#b", "http://127.0.0.1:39999/a b", "javascript:alert(1)",
    ],
)  # fmt: skip
async def test_foreign_redirect_addresses_are_never_followed(browser: Browser, uri: str | None):
    response = await browser.authorize(redirect_uri=uri)
    assert response.status == 400
    assert "Location" not in response.headers


@pytest.mark.parametrize("uri", [REGISTERED, "http://127.0.0.1/", "http://127.0.0.1:8/x?y=1", "http://[::1]:80/cb"])
async def test_registered_and_loopback_addresses_are(browser: Browser, uri: str):
    response = await browser.authorize(redirect_uri=uri)
    assert response.headers["Location"].startswith(uri)
    assert answer(response)["code"]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"scope": "email"}, "invalid_scope"),
        ({"state": None}, "invalid_request"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"nonce": "n" * 513}, "invalid_request"),
        ({"login_hint": None}, "login_required"),
        ({"login_hint": "a b"}, "access_denied"),
    ],
)
async def test_wrong_requests_are_told_to_the_client(browser: Browser, changes: dict[str, str | None], error: str):
    arrived = answer(await browser.authorize(**changes))
    assert arrived["error"] == error
    assert "code" not in arrived


async def test_a_repeated_parameter_counts_as_missing(browser: Browser):
    url = f"{browser.provider.issuer}/authorize?client_id=public&client_id=public&redirect_uri={CALLBACK}"
    assert (await browser.http.get(url, allow_redirects=False)).status == 400


async def test_an_unknown_client_is_told_nothing(browser: Browser):
    response = await browser.authorize(client_id="other")
    assert (response.status, "Location" in response.headers) == (400, False)


async def test_a_code_is_good_for_one_use_within_a_minute(browser: Browser, fake_clock: FakeClock):
    code = await browser.code()
    assert (await browser.token(code))[0] == 200
    assert await browser.token(code) == (400, _oauth("invalid_grant", "the code is unknown, used or expired"))
    code = await browser.code()
    fake_clock.advance(60)
    assert (await browser.token(code))[1]["error"] == "invalid_grant"
    statuses = await asyncio.gather(*(browser.token(shared) for shared in [await browser.code()] * 10))
    assert sorted(status for status, _ in statuses) == [200] + [400] * 9


@pytest.mark.parametrize(
    "changes",
    [
        {"code_verifier": "w" * 43},
        {"code_verifier": "v" * 42},
        {"code_verifier": "v" * 44},
        {"code_verifier": None},
        {"code_verifier": CHALLENGE},
        {"redirect_uri": "http://127.0.0.1:39998/callback"},
        {"redirect_uri": None},
        {"code": secrets.token_urlsafe(32)},
        {"code": None},
    ],
)
async def test_a_code_fits_its_request_only_and_a_wrong_guess_uses_it_up(
    browser: Browser, changes: dict[str, str | None]
):
    code = await browser.code()
    status, body = await browser.token(**{"code": code, **changes})  # type: ignore[arg-type]
    assert (status, body["error"]) == (400, "invalid_grant")
    expected = 200 if "code" in changes else 400
    assert (await browser.token(code))[0] == expected


async def test_clients_authenticate(browser: Browser):
    secret = "s3cr3t:with+odd chars"
    basic = {"Authorization": "Basic " + b64encode(b"confidential:s3cr3t%3Awith%2Bodd+chars").decode()}

    async def code() -> str:
        return await browser.code(client_id="confidential")

    assert (await browser.token(await code(), basic, client_id=None))[0] == 200
    assert (await browser.token(await code(), client_id="confidential", client_secret=secret))[0] == 200
    for headers, changes in (
        (None, {"client_id": "confidential"}),
        (None, {"client_id": "confidential", "client_secret": "wrong"}),
        (None, {"client_id": "other"}),
        (None, {"client_id": "public", "client_secret": "x"}),
        (basic, {"client_secret": secret}),
        ({"Authorization": "Basic !!!"}, {}),
        ({"Authorization": "Bearer x"}, {}),
    ):
        status, body = await browser.token(await code(), headers, **changes)
        assert (status, body["error"]) == (401, "invalid_client")
    assert (await browser.token(await code()))[1]["error"] == "invalid_grant", "another client's code"
    assert (await browser.token(await code(), grant_type="password"))[1]["error"] == "unsupported_grant_type"


async def test_keys_rotate_and_old_ones_stay_for_a_while(browser: Browser):
    provider = browser.provider
    first = provider.keys.current_kid
    async with browser.http.post(f"{provider.issuer}/admin/rotate", json={}) as response:
        second = (await response.json())["kid"]
    assert provider.keys.current_kid == second != first
    kids = [key["kid"] for key in json.loads(await _text(browser, "/jwks"))["keys"]]
    assert kids == [first, second]
    async with browser.http.post(f"{provider.issuer}/admin/rotate", json={"forget_old": True}) as response:
        third = (await response.json())["kid"]
    assert [key["kid"] for key in json.loads(await _text(browser, "/jwks"))["keys"]] == [third]


async def test_keys_survive_a_restart(provider_keys: Path, tmp_path: Path):
    shutil.copytree(provider_keys, tmp_path / "keys")
    settings = ProviderSettings(address="127.0.0.1:0", directory=tmp_path / "keys")
    async with open_provider(settings) as provider:
        second = provider.keys.rotate()
    async with open_provider(settings) as provider:
        assert provider.keys.current_kid == second
        assert len(provider.keys.key_set(Faults())["keys"]) == 2
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "keys").glob("*.json")} == {0o600}


async def test_faults_are_set_over_http_and_checked(browser: Browser):
    url = f"{browser.provider.issuer}/admin/faults"
    async with browser.http.post(url, json={"key_set": "outage"}) as response:
        assert response.status == 200
    async with browser.http.get(browser.provider.key_set_url) as response:
        assert response.status == 503
    for bad in (
        {"key_set": "x"}, {"signing": "x"}, {"other": 1}, [], "x", {"key_set_delay_s": -1}, {"key_set_delay_s": "1"},
        {"key_set_delay_s": 1e9}, {"claims": []}, {"cache_control": "a\nb"},
    ):  # fmt: skip
        async with browser.http.post(url, json=bad) as response:
            assert response.status == 400
    async with browser.http.post(url, data={"key_set": ""}) as response:
        assert response.status == 415, "a foreign page's form cannot do it"
    assert browser.provider.faults == Faults(key_set="outage")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("KOIKOI_ENVIRONMENT", "production", "does not run in production"),
        ("KOIKOI_PROVIDER_ADDRESS", "0.0.0.0:8085", "loopback"),
        ("KOIKOI_PROVIDER_ADDRESS", "192.0.2.1:8085", "loopback"),
        ("KOIKOI_PROVIDER_ADDRESS", "example.org:8085", "loopback"),
        ("KOIKOI_PROVIDER_ADDRESS", "8085", "host:port"),
        ("KOIKOI_PROVIDER_CLIENTS", ",", "at least one client"),
    ],
)
def test_it_serves_development_on_this_machine_only(name: str, value: str, words: str):
    with pytest.raises(SettingsError, match=words):
        read_settings({name: value})


async def _text(browser: Browser, path: str) -> str:
    async with browser.http.get(f"{browser.provider.issuer}{path}") as response:
        return await response.text()


def _oauth(error: str, description: str) -> dict[str, str]:
    return {"error": error, "error_description": description}
