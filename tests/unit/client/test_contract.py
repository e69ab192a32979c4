"""The lobby's signature: forged, re-typed, re-issued and unsigned contracts are refused before anything is believed."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from joserfc import jws
from joserfc.jwk import OctKey, OKPKey, RSAKey
from koikoi_sdk.client.contract import MAX_CONTRACT_LENGTH, verify_contract
from koikoi_sdk.client.errors import ServerError

ISSUER = "https://lobby.koikoi/test"
KEY = OKPKey.generate_key("Ed25519", {"kid": "k1"})
OTHER = OKPKey.generate_key("Ed25519", {"kid": "k1"})
JWKS = json.dumps({"keys": [KEY.as_dict(private=False)]})
MATCH_ID = "01890a5d-ac96-774b-bcce-b302099a8057"
PAYLOAD = {"iss": ISSUER, "jti": MATCH_ID, "rules": "r"}
HEADER = {"alg": "EdDSA", "typ": "koikoi-contract+jws", "kid": "k1"}


def signed(header: dict[str, Any] | None = None, payload: Any = None, key: Any = KEY, drop: str = "") -> str:
    members = {name: value for name, value in {**HEADER, **(header or {})}.items() if name != drop}
    content = json.dumps(PAYLOAD if payload is None else payload).encode()
    registry = jws.JWSRegistry(algorithms=["EdDSA", "HS256", "RS256", "none"], strict_check_header=False)
    return jws.serialize_compact(members, content, key, registry=registry)


def test_good_contract_gives_the_exact_payload() -> None:
    token = signed()
    contract = verify_contract(token, jwks=JWKS, issuer=ISSUER)
    assert (contract.token, contract.match_id) == (token, MATCH_ID)
    assert contract.payload == json.dumps(PAYLOAD).encode()


def unsigned() -> str:
    head = base64.urlsafe_b64encode(json.dumps({**HEADER, "alg": "none"}).encode()).rstrip(b"=").decode()
    return f"{head}.{signed().split('.')[1]}."


def flipped(part: int) -> str:
    parts = signed().split(".")
    parts[part] = ("A" if parts[part][0] != "A" else "B") + parts[part][1:]
    return ".".join(parts)


FORGERIES = {
    "another key": signed(key=OTHER),
    "its own key in the header": signed({"jwk": OTHER.as_dict(private=False)}, key=OTHER),
    "a right one with a key in the header": signed({"jwk": KEY.as_dict(private=False)}),
    "a key elsewhere": signed({"jku": "https://x.test"}),
    "a certificate": signed({"x5u": "https://x.test"}),
    "critical": signed({"b64": True, "crit": ["b64"]}),
    "unsigned": unsigned(),
    "another type": signed({"typ": "at+jwt"}),
    "no type": signed(drop="typ"),
    "unknown key id": signed({"kid": "k2"}),
    "another issuer": signed(payload={**PAYLOAD, "iss": "https://lobby.koikoi/other"}),
    "no issuer": signed(payload={"jti": MATCH_ID}),
    "no match": signed(payload={"iss": ISSUER}),
    "a match in another directory": signed(payload={**PAYLOAD, "jti": "/../" + MATCH_ID}),
    "a match id of another kind": signed(payload={**PAYLOAD, "jti": [MATCH_ID]}),
    "a match id and more": signed(payload={**PAYLOAD, "jti": MATCH_ID + "\n"}),
    "a list": signed(payload=[1]),
    "a text": signed(payload="x"),
    "shared secret": signed({"alg": "HS256"}, key=OctKey.import_key(KEY.as_dict(private=False)["x"])),
    "RSA": signed({"alg": "RS256"}, key=RSAKey.generate_key(2048)),
    "changed header": flipped(0),
    "changed payload": flipped(1),
    "changed signature": flipped(2),
    "too long": signed(payload={**PAYLOAD, "x": "x" * MAX_CONTRACT_LENGTH}),
    "empty": "",
    "two parts": "a.b",
    "four parts": signed() + ".x",
    "not base64": "!.!.!",
    "not ascii": "é.é.é",
}


@pytest.mark.parametrize("token", FORGERIES.values(), ids=FORGERIES.keys())
def test_forged_contract(token: str) -> None:
    with pytest.raises(ServerError) as error:
        verify_contract(token, jwks=JWKS, issuer=ISSUER)
    assert error.value.reason == "CONTRACT_INVALID"


@pytest.mark.parametrize("jwks", ["", "{", "[]", "{}", '{"keys": 5}', '{"keys": [5]}', '{"keys": []}'])
def test_bad_key_set(jwks: str) -> None:
    with pytest.raises(ServerError) as error:
        verify_contract(signed(), jwks=jwks, issuer=ISSUER)
    assert error.value.reason == "CONTRACT_INVALID"
