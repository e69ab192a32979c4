"""A device killed at every point of a match goes on from its disk: same cards, same result, nothing said twice anew.

Each point is tried: in the middle of a write, after it, before and after each frame that is sent, and on each frame
that is received. Random bytes are a function of their use, but for the nonces of envelopes: so results can be compared
byte by byte, while whatever is sealed anew after it was sent is refused by the relay and fails the test.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from koikoi.match.v1 import match_service_pb2 as match
from koikoi_sdk.client.errors import RemoteProtocolError
from koikoi_sdk.client.session import MatchEnd
from koikoi_sdk.table import Kind, Phase, Reason, View

from services.match.domain.outcomes import Outcome
from tests.unit.client.devices import POINTS, Device, Player, Tables
from tests.unit.table.pair import Pair, contract_payload, started

AUDIT = (Kind.AU1, Kind.AU2, Kind.AU3, Kind.AU4)
PRESET = "boardgameland"
Make = Callable[[Path], Tables]


def first_deal(directory: Path) -> Tables:
    """Nothing has been said yet."""
    return Tables(directory, contract_payload(PRESET))


def last_round(directory: Path) -> Tables:
    """The NEXT before the last round is in flight: deal, play, audit and both signatures follow."""
    pair = started(PRESET).skip(2)
    return Tables(directory, pair.contract, pair)


def last_audit(directory: Path) -> Tables:
    """The last turned card is in flight."""
    pair = _last_card().copy()
    return Tables(directory, pair.contract, pair)


@cache
def _last_card() -> Pair:
    turns = started(PRESET).skip(2).run_to(Kind.AU1).kinds.count(Kind.T3)
    return started(PRESET).skip(2).run_to(Kind.T3, turns)


def resigns_in_turn(turn: int) -> Player:
    def resigns(view: View) -> bool:
        return view.round is not None and view.round.turn >= turn

    return Player(resigns)


PLAYERS = {
    first_deal: (Player(), resigns_in_turn(3)),
    last_round: (Player(), Player()),
    last_audit: (Player(), Player()),
}
_calm: dict[Make, list[MatchEnd]] = {}


async def calm(make: Make, directory: Path) -> list[MatchEnd]:
    """The match as it goes when nobody crashes."""
    if make not in _calm:
        _calm[make] = await make(directory / "calm").play(*PLAYERS[make])
    return _calm[make]


def is_auditing(device: Device) -> bool:
    """A device killed inside its audit starts that over, and has two tries: those are tested one by one."""
    assert device.seat is not None
    state = device.seat._state
    return state.due in AUDIT or (state.outbox is not None and state.outbox.phase is Phase.AUDIT)


def check_disks(table: Tables) -> None:
    for device in table.devices:
        assert not device.outbox.is_open
        assert device.outbox.load_result() is not None


@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize("point", POINTS)
async def test_killed_at_every_message_of_a_deal_and_of_a_resignation(point: str, victim: int, tmp_path: Path) -> None:
    await check_killed_at_every_message(first_deal, point, (victim,), 8, tmp_path)


@pytest.mark.parametrize("point", POINTS)
async def test_killed_at_every_message_of_a_round_and_of_the_end(point: str, tmp_path: Path) -> None:
    await check_killed_at_every_message(last_round, point, (0, 1), 20, tmp_path)


async def check_killed_at_every_message(
    make: Make, point: str, victims: tuple[int, ...], at_least: int, directory: Path
) -> None:
    expected = await calm(make, directory)
    table = make(directory / "troubled")
    for index in victims:
        device = table.devices[index]
        device.may_crash = lambda at, device=device: at == point and not is_auditing(device)

    ends = await table.play(*PLAYERS[make])

    assert [end.result for end in ends] == [end.result for end in expected]
    assert ends[0].outcome == ends[1].outcome
    # A resigner killed just before it said so to the relay is heard to have finished by the other's word.
    assert ends[0].outcome in {expected[0].outcome, match.OUTCOME_FINISHED}
    assert all(len(table.devices[index].crashes) >= at_least for index in victims)
    check_disks(table)


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("index", [0, 1])
async def test_killed_twice_in_an_audit(index: int, point: str, tmp_path: Path) -> None:
    """The audit's master is never on disk: it is begun anew, which changes heads, but no card and no point."""
    expected = await calm(last_audit, tmp_path)
    table = last_audit(tmp_path / "troubled")
    device, occasions, first = table.devices[index], itertools.count(), POINTS.index(point) % 2
    device.may_crash = lambda at: at == point and is_auditing(device) and next(occasions) in {first, first + 2}

    ends = await table.play(*PLAYERS[last_audit])

    assert 1 <= len(device.crashes) <= 2
    for end, wanted in zip(ends, expected, strict=True):
        assert end.outcome == wanted.outcome
        assert end.result is not None
        assert wanted.result is not None
        assert replace(end.result.statement, head=b"") == replace(wanted.result.statement, head=b"")
    assert ends[0].result == ends[1].result
    check_disks(table)


@pytest.mark.parametrize("index", [0, 1])
async def test_who_loses_the_audit_three_times_is_refused(index: int, tmp_path: Path) -> None:
    table = last_audit(tmp_path)
    device = table.devices[index]

    def forgets(point: str) -> bool:
        assert device.seat is not None
        return point == "after send" and device.seat._table.commitment is not None

    device.may_crash = forgets
    with pytest.raises(ExceptionGroup) as failure:
        await table.play(*PLAYERS[last_audit])
    assert {type(error) for error in failure.value.exceptions} == {RemoteProtocolError}
    assert table.relay.match.ending is not None
    assert table.relay.match.ending.outcome is Outcome.DISPUTED
    assert table.relay.match.ending.dispute_reason == Reason.ATTEMPTS
    assert len(device.crashes) == 3
