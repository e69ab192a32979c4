"""A relay that cheats two honest devices: what it changes, replays or makes up changes nothing, or ends the match.

Nobody is accused (reason 13: the server could have made it), nothing is given away, nothing is rated.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from koikoi.match.v1 import match_service_pb2 as pb
from koikoi_sdk.client.session import MatchEnd
from koikoi_sdk.table import Reason

from tests.e2e.cheaters import Affair, Crooked, Opponents, play
from tests.e2e.lies import HONEST, noise
from tests.e2e.verdicts import leaderboard, record, results
from tools.stack import Stack

pytestmark = [pytest.mark.xdist_group("e2e-refusing"), pytest.mark.usefixtures("no_fault")]

Change = Callable[[pb.ServerFrame], list[pb.ServerFrame]]
FROM = 9
"""The changes begin with this number: in play."""


def changed(**fields: object) -> Callable[[], Change]:
    """Deliver every envelope with other fields from a number on; a function gets the old value."""

    def change(frame: pb.ServerFrame) -> list[pb.ServerFrame]:
        if frame.WhichOneof("frame") != "envelope" or frame.envelope.counter < FROM:
            return [frame]
        copy = pb.ServerFrame()
        copy.CopyFrom(frame)
        for name, value in fields.items():
            setattr(copy.envelope, name, value(getattr(frame.envelope, name)) if callable(value) else value)
        return [copy]

    return lambda: change


def once(made: Callable[[], Change]) -> Callable[[], Change]:
    """Only the first change is made; asked again, the relay delivers what was sent."""

    def make() -> Change:
        change, done = made(), []

        def first(frame: pb.ServerFrame) -> list[pb.ServerFrame]:
            if done:
                return [frame]
            frames = change(frame)
            done.extend(frames if frames != [frame] else ())
            return frames

        return first

    return make


def repeating() -> Change:
    """Everything that was delivered is delivered again with each frame."""
    old: list[pb.ServerFrame] = []

    def change(frame: pb.ServerFrame) -> list[pb.ServerFrame]:
        if frame.WhichOneof("frame") != "envelope":
            return [frame]
        old.append(frame)
        return [*old, *reversed(old)]

    return change


def flip(sealed: bytes) -> bytes:
    return sealed[:-1] + bytes([sealed[-1] ^ 1])


async def meet(stack: Stack, pair: Opponents, change: Change, number: int) -> Affair:
    urls = stack.plan.websocket_url, stack.plan.grpc_url
    doors = (urls[number % 2], urls[1 - number % 2])
    return await play(pair, HONEST, doors, host=number % 2, behind=Crooked(change).before)


CHANGES: dict[str, Callable[[], Change]] = {
    "a flipped bit": changed(sealed=flip),
    "another phase": changed(phase=5),
    "a number ahead": changed(counter=lambda counter: counter + 2),
    "the other's number": changed(counter=lambda counter: counter + 1),
    "the largest number": changed(counter=2**32 - 1),
    **{f"{size} bytes of noise": changed(sealed=noise(size)) for size in (0, 1, 23, 24, 39, 40, 131, 653, 700, 9357)},
}


@pytest.mark.parametrize(("number", "name"), list(enumerate(CHANGES)), ids=list(CHANGES))
async def test_what_does_not_open_ends_the_match(stack: Stack, opponents: list[Opponents], number: int, name: str):
    before = await leaderboard(stack)
    affair = await meet(stack, opponents[number % len(opponents)], CHANGES[name](), number)
    ended = MatchEnd(pb.OUTCOME_DISPUTED, None, None)
    assert (affair.honest_end, affair.cheater_end) == (ended, ended)
    assert not (affair.honest_outbox.directory / "evidence").exists()
    assert await record(stack, affair.contract.match_id) == f"disputed||{int(Reason.UNREADABLE)}"
    assert await results(stack, affair.contract.match_id) == 0
    assert await leaderboard(stack) == before
    said = affair.tap.envelopes("out")
    assert max(number for number, _, _ in said) < FROM + 2, "nothing is said after what does not open"
    joins = sum(way == "out" and frame.WhichOneof("frame") == "join" for way, frame in affair.tap.frames)
    assert joins == 2, "the relay was asked once more"


@pytest.mark.parametrize("number", [0, 1], ids=["websocket", "grpc"])
@pytest.mark.parametrize(
    "made", [once(changed(sealed=flip)), once(changed(phase=5)), once(changed(sealed=b"")), repeating],
    ids=["a flipped bit once", "another phase once", "nothing once", "everything again and again"],
)  # fmt: skip
async def test_a_fault_that_passes_changes_nothing(
    stack: Stack, opponents: list[Opponents], number: int, made: Callable[[], Change]
):
    affair = await meet(stack, opponents[number], made(), number)
    for end in (affair.honest_end, affair.cheater_end):
        assert isinstance(end, MatchEnd)
        assert end.outcome == pb.OUTCOME_RESIGNED
        assert end.result is not None
    assert affair.honest_end == affair.cheater_end
