"""What the relay reads of a contract."""

import hashlib
import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest

from services.match.domain.contract import read_contract
from services.match.domain.errors import ContractInvalid

NOW = 1_800_000_000
KEYS = (bytes([1]) * 32, bytes([255]) * 32)


def text(key: bytes) -> str:
    return urlsafe_b64encode(key).rstrip(b"=").decode()


def claims(**changes: Any) -> dict[str, Any]:
    members: dict[str, Any] = {
        "iss": "https://lobby.koikoi/development",
        "jti": "01980000-0000-7000-8000-000000000000",
        "iat": NOW,
        "exp": NOW + 10_800,
        "ranked": True,
        "rules": "{}",
        "seats": [{"account": f"a{i}", "avatar": "", "key": text(KEYS[i]), "name": "n"} for i in (0, 1)],
    }
    members.update(changes)
    return members


def seat(**changes: Any) -> dict[str, Any]:
    return {"account": "a1", "avatar": "", "key": text(KEYS[1]), "name": "n", **changes}


def read(members: dict[str, Any], now: float = NOW) -> Any:
    return read_contract(json.dumps(members).encode(), members, now)


def test_a_contract_is_read():
    contract = read(claims())
    assert contract.keys == KEYS
    assert contract.accounts == ("a0", "a1")
    assert contract.contract_hash == hashlib.sha256(json.dumps(claims()).encode()).digest()
    assert (contract.issued_s, contract.expires_s) == (NOW, NOW + 10_800)
    assert contract.first_seat == 0


def test_device_a_has_the_smaller_key_by_unsigned_bytes():
    first, second = claims()["seats"]
    assert read(claims(seats=[{**second, "account": "x"}, first])).first_seat == 1


@pytest.mark.parametrize("now", [NOW - 5, NOW, NOW + 10_799.9])
def test_a_contract_is_valid_between_its_times(now: float):
    assert read(claims(), now)


@pytest.mark.parametrize("now", [NOW - 6, NOW + 10_800, NOW + 10**6])
def test_a_contract_is_not_valid_outside_its_times(now: float):
    with pytest.raises(ContractInvalid, match="not valid now"):
        read(claims(), now)


@pytest.mark.parametrize(
    "changes",
    [
        {"extra": 1},
        {"iat": str(NOW)},
        {"iat": True},
        {"exp": None},
        {"exp": NOW - 1},
        {"exp": NOW + 10_801},
        {"exp": float(NOW + 5)},
        {"jti": "x"},
        {"jti": 7},
        {"jti": "01980000-0000-4000-8000-000000000000"},
        {"jti": "01980000-0000-7000-8000-00000000000A"},
        {"ranked": 1},
        {"rules": {}},
        {"seats": None},
        {"seats": [seat()]},
        {"seats": [seat(), seat(), seat()]},
        {"seats": [seat(), seat(account="other")]},
        {"seats": [seat(key=text(KEYS[0])), seat()]},
        {"seats": [seat(account="other", key=text(KEYS[0]), extra=""), seat()]},
        {"seats": ["seat", seat()]},
        {"seats": [seat(account=""), seat()]},
        {"seats": [seat(account=1), seat()]},
        {"seats": [seat(account="o", key=text(KEYS[0])[:-1]), seat()]},
        {"seats": [seat(account="o", key=text(KEYS[0]) + "="), seat()]},
        {"seats": [seat(account="o", key="+" * 43), seat()]},
        {"seats": [seat(account="o", key="é" * 43), seat()]},
        {"seats": [seat(account="o", key="_" * 43), seat()]},
        {"seats": [seat(account="o", key=""), seat()]},
    ],
)
def test_anything_else_is_refused(changes: dict[str, Any]):
    with pytest.raises(ContractInvalid):
        read(claims(**changes))


@pytest.mark.parametrize("member", sorted(claims()))
def test_every_member_is_needed(member: str):
    members = claims()
    del members[member]
    with pytest.raises(ContractInvalid):
        read(members)
