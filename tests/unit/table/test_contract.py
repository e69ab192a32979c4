import base64
import json

import pytest
from koikoi_sdk.poker import DeviceKey
from koikoi_sdk.table import ContractError, Seat, parse_contract

from tests.unit.table.pair import DEVICES, contract_payload, encode_key


def changed(**members: object) -> bytes:
    return json.dumps({**json.loads(contract_payload()), **members}).encode()


def test_a_contract_names_seats_keys_and_rules():
    contract = parse_contract(contract_payload("boardgameland", 3, {"double_at": None}))
    assert contract.keys == (DEVICES[0].public, DEVICES[1].public)
    assert [contract.seat_of(device.public) for device in DEVICES] == [0, 1]
    assert contract.rules.preset == "boardgameland"
    assert contract.rules.rounds == 3
    assert contract.rules.variant.double_at is None


def test_device_a_is_the_one_with_the_smaller_key():
    for devices in (DEVICES, (DEVICES[1], DEVICES[0])):
        contract = parse_contract(contract_payload(devices=devices))
        assert contract.keys[contract.seat_a] == min(contract.keys)


def test_a_device_without_a_seat_is_told():
    with pytest.raises(ContractError, match="not among"):
        Seat.start(contract_payload(), DeviceKey(b"x" * 32))


KEY = encode_key(DEVICES[0].public)
OTHER = encode_key(DEVICES[1].public)
SMALL_ORDER = encode_key((1).to_bytes(32, "little"))


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xff",
        b"[]",
        b"[" * 4000,
        b" " * 5000,
        b'{"rules": "x", "rules": "y"}',
        changed(rules=7),
        changed(rules=None),
        changed(rules="{}"),
        changed(rules='{"overrides":{},"preset":"unknown","rounds":6,"version":1}'),
        changed(rules='{"overrides":{},"preset":"house","rounds":7,"version":1}'),
        changed(rules='{"overrides":{"x":1},"preset":"house","rounds":6,"version":1}'),
        changed(rules='{"overrides":{},"preset":"house","rounds":6,"version":2}'),
        changed(rules='{"overrides": {},"preset":"house","rounds":6,"version":1}'),
        changed(rules="\ud800"),
        changed(seats=None),
        changed(seats=[]),
        changed(seats=[{"key": KEY}]),
        changed(seats=[{"key": KEY}, {"key": OTHER}, {"key": OTHER}]),
        changed(seats={"0": {"key": KEY}, "1": {"key": OTHER}}),
        changed(seats=[{"key": KEY}, {"key": KEY}]),
        changed(seats=[{"key": KEY}, OTHER]),
        changed(seats=[{"key": KEY}, {}]),
        changed(seats=[{"key": KEY}, {"key": 5}]),
        changed(seats=[{"key": KEY}, {"key": OTHER + "="}]),
        changed(seats=[{"key": KEY}, {"key": OTHER[:-1]}]),
        changed(seats=[{"key": KEY}, {"key": " " + OTHER}]),
        changed(seats=[{"key": KEY}, {"key": "é" * 43}]),
        changed(seats=[{"key": KEY}, {"key": encode_key(b"short")}]),
        changed(seats=[{"key": KEY}, {"key": encode_key(bytes(32))}]),
        changed(seats=[{"key": KEY}, {"key": SMALL_ORDER}]),
    ],
)
def test_a_contract_that_breaks_the_protocol_is_refused(payload: bytes):
    with pytest.raises(ContractError):
        parse_contract(payload)


def test_a_key_has_one_spelling():
    """43 base64 characters carry two bits too many, which must be zero."""
    loose = KEY[:-1] + chr(ord(KEY[-1]) + 1)
    assert base64.urlsafe_b64decode(loose + "=") == DEVICES[0].public
    with pytest.raises(ContractError):
        parse_contract(changed(seats=[{"key": loose}, {"key": OTHER}]))
