from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import pytest
from koikoi_sdk.table import Kind, Seat, SnapshotError
from koikoi_sdk.table.snapshot import dump, load

from tests.unit.table.pair import DEVICES, contract_payload, reached


class Colour(StrEnum):
    RED = "red"


@dataclass
class Sample:
    number: int
    text: str
    raw: bytes
    buffer: bytearray
    flag: bool
    maybe: int | None
    pair: tuple[int, bytes]
    many: tuple[int, ...]
    names: list[str]
    table: dict[int, bytes]
    cards: frozenset[int]
    colour: Colour
    role: Literal[0, 1]


SAMPLE = Sample(
    -7,
    "é",
    b"\x00\xff",
    bytearray(b"s"),
    True,
    None,
    (1, b"x"),
    (3, 4),
    ["a"],
    {5: b"y"},
    frozenset({9, 2}),
    Colour.RED,
    1,
)


def test_what_is_read_equals_what_was_written():
    again = load(Sample, dump(SAMPLE, {}), {})
    assert again == SAMPLE
    assert isinstance(again.buffer, bytearray)


def test_constants_are_not_written():
    data = dump(SAMPLE, {Colour: Colour.RED})
    assert b"red" not in data
    assert load(Sample, data, {Colour: Colour.RED}) == SAMPLE


@pytest.mark.parametrize(
    "change",
    [
        (b"-7", b'"x"'),
        (b"true", b"1"),
        (b'"red"', b'"blue"'),
        (b",1]", b",2]"),
        (b"[-7,", b"["),
        (b'"AP8="', b'"*"'),
        (b"]", b""),
    ],
)
def test_damaged_data_is_refused(change: tuple[bytes, bytes]):
    data = dump(SAMPLE, {})
    assert change[0] in data
    with pytest.raises(SnapshotError):
        load(Sample, data.replace(*change), {})


@pytest.mark.parametrize("kind", [Kind.HELLO, Kind.S1, Kind.T1, Kind.T3])
def test_a_seats_state_is_read_exactly(kind: Kind):
    pair = reached(kind) if kind is not Kind.HELLO else None
    seats = pair.seats if pair else [Seat.start(contract_payload(), device) for device in DEVICES]
    for seat, device in zip(seats, DEVICES, strict=True):
        again = Seat.load(contract_payload(), seat.dump(), device)
        assert again.dump() == seat.dump()
        assert again.view() == seat.view()
        assert again.step == seat.step


def test_a_stored_state_is_small():
    """It grows by 7 KB with each void attempt; see the test of five deals."""
    assert max(len(seat.dump()) for seat in reached(Kind.T3).seats) < 10_000
