"""The claims of ID tokens: OpenID Connect Core 3.1.3.7 and Google's additions."""

from base64 import urlsafe_b64encode
from hashlib import sha256

import pytest

from services.auth.domain.errors import IdTokenInvalid
from services.auth.domain.identity import GOOGLE, Identity, ProviderRules, identify, sign_in_nonce

NOW = 1_800_000_000.0
KEY, CHALLENGE = bytes(range(32)), b"c" * 32
NONCE = sign_in_nonce(KEY, CHALLENGE)
RULES = ProviderRules(GOOGLE, frozenset({"web", "android"}), skew_s=30.0)
GOOD = {"iss": GOOGLE, "aud": "web", "azp": "web", "sub": "123", "nonce": NONCE, "iat": NOW - 10, "exp": NOW + 3590}


def test_the_nonce_binds_key_and_challenge():
    assert urlsafe_b64encode(sha256(b"koikoi-signin/v1" + KEY + CHALLENGE).digest()).decode().rstrip("=") == NONCE
    assert len({NONCE, sign_in_nonce(KEY, b"d" * 32), sign_in_nonce(b"k" * 32, CHALLENGE)}) == 3


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"iss": "accounts.google.com"},
        {"azp": None},
        {"azp": "android"},
        {"aud": ["web"]},
        {"aud": ["web", "android"], "azp": "android"},
        {"exp": NOW - 29, "iat": NOW - 3629},  # within the skew
        {"iat": NOW + 30},
        {"nbf": NOW + 30},
        {"email": None, "hd": "example.org"},
    ],
)
def test_a_token_meant_for_us_names_the_person(changes: dict[str, object]):
    assert identify(_claims(changes), RULES, NONCE, NOW) == Identity(GOOGLE, "123")


@pytest.mark.parametrize(
    ("claim", "value"),
    [
        *(("iss", value) for value in (None, "", "https://accounts.google.com/", "http://accounts.google.com",
                                       "https://evil.example", 1, True, [], {}, [GOOGLE])),
        *(("aud", value) for value in (None, "", "other", [], ["other"], ["web", "other"],
                                       ["web", 1], [["web"]], {"web": 1}, 1)),
        *(("azp", value) for value in ("other", "", 1, False, [], {}, ["web"])),
        *(("exp", value) for value in (None, NOW - 30, 0, "9999999999", True, float("nan"), float("inf"),
                                       10**400, -(10**400), [], {})),
        *(("iat", value) for value in (None, NOW + 31, "0", False, float("nan"), NOW + 3590)),
        *(("nbf", value) for value in (NOW + 31, "0", None)),
        *(("nonce", value) for value in (None, "", NONCE[:-1], NONCE + "=", NONCE.lower(), 1, "é" * 43, [NONCE])),
        *(("sub", value) for value in (None, "", 123, "x" * 256, "é", "a\nb", ["123"])),
    ],
)  # fmt: skip
def test_a_wrong_claim_is_named(claim: str, value: object):
    changed = {**GOOD, claim: value}
    with pytest.raises(IdTokenInvalid) as refusal:
        identify(changed, RULES, NONCE, NOW)
    assert refusal.value.metadata == {"claim": claim}
    assert "123" not in refusal.value.message


@pytest.mark.parametrize("claim", ["iss", "aud", "exp", "iat", "nonce", "sub"])
def test_a_missing_claim_is_named(claim: str):
    with pytest.raises(IdTokenInvalid) as refusal:
        identify(_claims({claim: None}), RULES, NONCE, NOW)
    assert refusal.value.metadata == {"claim": claim}


def test_several_audiences_need_an_authorized_party():
    with pytest.raises(IdTokenInvalid):
        identify(_claims({"aud": ["web"], "azp": None}), RULES, NONCE, NOW)


def test_googles_second_name_is_google_only():
    local = ProviderRules("http://127.0.0.1:1", frozenset({"web"}))
    with pytest.raises(IdTokenInvalid):
        identify({**GOOD, "iss": "accounts.google.com"}, local, NONCE, NOW)
    assert identify({**GOOD, "iss": local.issuer}, local, NONCE, NOW) == Identity(local.issuer, "123")


def _claims(changes: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in {**GOOD, **changes}.items() if value is not None}
