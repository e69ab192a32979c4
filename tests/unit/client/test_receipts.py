"""The relay's receipts: asked for when the opponent is slow, verified, and kept."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from joserfc import jws
from joserfc.jwk import OKPKey
from koikoi.match.v1 import match_service_pb2 as wire
from koikoi_sdk.client.outbox import MAX_RECEIPTS, Outbox
from koikoi_sdk.client.receipts import Receipt, ReceiptInvalid, Witness, read_receipt

ISSUER, MATCH_ID, CONTRACT_HASH = "https://match.koikoi/test", "m", b"c" * 32
EPOCH, COUNTER = b"epoch--0", 7
KEY, OTHER = (OKPKey.generate_key("Ed25519", {"kid": "k"}) for _ in range(2))
JWKS = json.dumps({"keys": [KEY.as_dict(private=False)]})
CLAIMS = {
    "iss": ISSUER,
    "match_id": MATCH_ID,
    "contract_hash": CONTRACT_HASH.hex(),
    "epoch": EPOCH.hex(),
    "counter": COUNTER,
    "owing_seat": 1,
    "owing_since_ms": 1_000,
    "now_ms": 31_000,
}


def signed(typ: str = "koikoi-receipt+jws", key: OKPKey = KEY, **changes: Any) -> str:
    registry = jws.JWSRegistry(algorithms=["EdDSA"])
    header = {"alg": "EdDSA", "typ": typ, "kid": "k"}
    return jws.serialize_compact(header, json.dumps({**CLAIMS, **changes}).encode(), key, registry=registry)


def read(token: str) -> Receipt:
    return read_receipt(token, jwks=JWKS, issuer=ISSUER, match_id=MATCH_ID, contract_hash=CONTRACT_HASH)


async def verify(token: str) -> Receipt:
    return read(token)


def status(owing: int | None = 1, deadline_ms: int | None = 40) -> wire.Status:
    return wire.Status(owing_seat=owing, deadline_ms=deadline_ms, is_connected=[True, True])


@pytest.fixture
def outbox(tmp_path: Path) -> Outbox:
    return Outbox.create(tmp_path, MATCH_ID, "a.contract.s", b"state")


def test_a_receipt_is_read() -> None:
    token = signed()
    assert read(token) == Receipt(token, "m", CONTRACT_HASH.hex(), EPOCH.hex(), COUNTER, 1, 1_000, 31_000)
    assert read(signed(owing_seat=None, owing_since_ms=None)).owing_seat is None


@pytest.mark.parametrize(
    "token",
    [
        signed(key=OTHER),
        signed(typ="koikoi-contract+jws"),
        signed(iss="https://match.koikoi/other"),
        signed(match_id="n"),
        signed(contract_hash="00" * 32),
        signed(counter="7"),
        signed(counter=True),
        signed(counter=None),
        signed(epoch=5),
        signed(owing_seat="1"),
        signed()[:-4] + "AAAA",
        "a.b.c",
        "",
        "x" * 5000,
    ],
)
def test_a_forged_receipt_is_refused(token: str) -> None:
    with pytest.raises(ReceiptInvalid):
        read(token)


async def test_half_of_the_opponents_time_is_awaited_once(outbox: Outbox) -> None:
    witness = Witness(outbox, 0, verify)
    witness.heed(status(), EPOCH, COUNTER)
    first = witness.alarm
    assert first is not None
    assert not witness.ask()
    witness.heed(status(deadline_ms=30), EPOCH, COUNTER)  # told again: the first half goes on
    assert witness.alarm is first
    await asyncio.wait_for(first, 2)
    assert witness.ask()
    witness.heed(status(), EPOCH, COUNTER)
    assert witness.alarm is None
    witness.heed(status(), EPOCH, COUNTER + 2)
    assert witness.alarm is not None
    await witness.settle()
    assert witness.alarm is None


@pytest.mark.parametrize("told", [status(owing=0), status(owing=None), status(deadline_ms=None)])
async def test_nothing_is_awaited_while_the_opponent_does_not_owe(outbox: Outbox, told: wire.Status) -> None:
    witness = Witness(outbox, 0, verify)
    witness.heed(status(), EPOCH, COUNTER)
    witness.heed(told, EPOCH, COUNTER)
    assert witness.alarm is None


async def test_a_lost_connection_does_not_use_up_the_question(outbox: Outbox) -> None:
    witness = Witness(outbox, 0, verify)
    for _ in range(2):
        witness.heed(status(), EPOCH, COUNTER)
        assert witness.alarm is not None
        witness.rest()


async def test_who_cannot_verify_never_asks(outbox: Outbox) -> None:
    witness = Witness(outbox, 0, None)
    witness.heed(status(), EPOCH, COUNTER)
    witness.take(wire.Receipt(receipt=signed()), EPOCH, COUNTER)
    await witness.settle()
    assert not witness.can_verify
    assert witness.alarm is None
    assert outbox.receipts == []


async def test_what_verifies_and_fits_is_kept(outbox: Outbox) -> None:
    witness = Witness(outbox, 0, verify)
    good = signed()
    for token, epoch, position in (
        (good, EPOCH, COUNTER),
        (signed(key=OTHER), EPOCH, COUNTER),
        (signed(now_ms=1), b"epoch--1", COUNTER),
        (signed(now_ms=2), EPOCH, COUNTER + 2),
    ):
        witness.take(wire.Receipt(receipt=token), epoch, position)
    await witness.settle()
    assert outbox.receipts == [good]


async def test_a_key_set_that_never_comes_does_not_hold_up_the_end(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(token: str) -> Receipt:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr("koikoi_sdk.client.receipts.SETTLE_S", 0.05)
    witness = Witness(outbox, 0, never)
    witness.take(wire.Receipt(receipt=signed()), EPOCH, COUNTER)
    await asyncio.wait_for(witness.settle(), 5)
    assert outbox.receipts == []


def test_receipts_are_bounded_and_outlive_a_match_without_result(outbox: Outbox) -> None:
    for number in range(MAX_RECEIPTS + 3):
        outbox.save_receipt(f"a.{number}.b")
    assert outbox.receipts == [f"a.{number}.b" for number in range(3, MAX_RECEIPTS + 3)]
    outbox.remove()
    assert len(Outbox(outbox.directory).receipts) == MAX_RECEIPTS
    assert not outbox.is_pending
    outbox.remove(is_recorded=True)
    assert not outbox.directory.exists()
