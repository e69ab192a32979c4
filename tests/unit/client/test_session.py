"""A session between its disk and a relay that drops, forgets, refuses and delivers nonsense."""

import asyncio
import base64
import json
from pathlib import Path

import pytest
from koikoi.match.v1 import match_service_pb2 as wire
from koikoi_sdk.client.errors import LocalProtocolError, RelayClosed, RemoteProtocolError
from koikoi_sdk.client.session import MatchEnd
from koikoi_sdk.table import Ending, Kind, Outgoing, Reason, Seat

from services.match.domain import relay
from tests.unit.client.devices import Device, Player, Tables
from tests.unit.client.relay import LIMITS
from tests.unit.table.pair import DEVICES, Pair, audited, reached

RESIGNS = Player(lambda view: True)


def tables(directory: Path, pair: Pair) -> Tables:
    return Tables(directory, pair.contract, pair)


def ending(directory: Path) -> Tables:
    """The first RESULT_SIGN is in flight."""
    return tables(directory, audited(Kind.RESULT_SIGN))


def playing(directory: Path) -> Tables:
    """The dealer's first play is due; who is asked next resigns, so that the match is short."""
    return tables(directory, reached(Kind.T1))


def check_finished(table: Tables, ends: list[MatchEnd]) -> None:
    assert ends[0].result == ends[1].result is not None
    for device in table.devices:
        assert not device.outbox.is_open
        assert device.outbox.load_result() == (ends[0].result.statement.encode(), ends[0].result.signatures)


def claims(table: Tables) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {0: set(), 1: set()}
    for seat, close in table.relay.claims:
        found[seat].add(close.outcome.name)
    return found


async def test_both_signers_show_both_signatures(tmp_path: Path):
    table = ending(tmp_path)
    ends = await table.play()
    check_finished(table, ends)
    assert {end.outcome for end in ends} == {wire.OUTCOME_FINISHED}
    assert set().union(*claims(table).values()) == {"FINISHED"}


async def test_the_second_signer_is_finished_only_when_the_relay_acknowledged_it(tmp_path: Path):
    """Until then it sends its signature again, also after a reconnect."""
    table = ending(tmp_path)
    drops = 0
    for device in table.devices:

        def drop(frame: wire.ClientFrame, device: Device = device) -> None:
            nonlocal drops
            is_second = frame.WhichOneof("frame") == "envelope" and device.seat is not None and device.seat.result
            if is_second and drops < 3:
                drops += 1
                for connection in list(table.relay.connections):
                    if connection._transport is device.transport:
                        connection.drop()

        device.transport.before_send = drop
    ends = await table.play()
    check_finished(table, ends)
    assert drops == 3


async def test_a_resignation_is_said_to_the_relay_by_the_one_who_resigned(tmp_path: Path):
    table = playing(tmp_path)
    ends = await table.play(RESIGNS, RESIGNS)
    check_finished(table, ends)
    assert ends[0].result.statement.ending is Ending.RESIGNED
    loser = 1 - ends[0].result.statement.winner
    assert {(end.outcome, end.seat) for end in ends} == {(wire.OUTCOME_RESIGNED, loser)}
    assert "RESIGNED" in claims(table)[loser]
    assert "RESIGNED" not in claims(table)[1 - loser]


async def test_a_lost_store_is_repaired_by_the_devices(tmp_path: Path):
    """After the total loss of the relay's memory both join again, and the last message is sent under a new epoch."""
    table = playing(tmp_path)
    seen: set[bytes] = set()
    lost = 0

    def lose(frame: wire.ServerFrame) -> None:
        nonlocal lost
        if frame.WhichOneof("frame") == "welcome":
            seen.add(frame.welcome.epoch)
        if frame.WhichOneof("frame") == "envelope" and not lost:
            lost += 1
            table.relay.lose_everything()

    for device in table.devices:
        device.transport.before_receive = lose
    check_finished(table, await table.play(RESIGNS, RESIGNS))
    assert lost == 1
    assert len(seen) > 1


async def test_broken_connections_lose_nothing(tmp_path: Path):
    table = ending(tmp_path)
    frames = 0

    def drop(frame: wire.ServerFrame) -> None:
        nonlocal frames
        frames += 1
        if frames % 4 == 0 and frames < 40:
            table.relay.drop_all()

    for device in table.devices:
        device.transport.before_receive = drop
    check_finished(table, await table.play())
    assert sum(device.transport.connects for device in table.devices) > 4


def damage(table: Tables, times: int) -> None:
    """Let the relay deliver the next envelope damaged so many times."""
    left = times

    def spoil(frame: wire.ServerFrame) -> None:
        nonlocal left
        if frame.WhichOneof("frame") == "envelope" and left:
            left -= 1
            frame.envelope.sealed = frame.envelope.sealed[:-1] + bytes([frame.envelope.sealed[-1] ^ 1])

    for device in table.devices:
        device.transport.before_receive = spoil


async def test_an_envelope_that_does_not_open_is_asked_for_once_more(tmp_path: Path):
    table = ending(tmp_path)
    damage(table, 1)
    check_finished(table, await table.play())
    assert all("DISPUTED" not in said for said in claims(table).values())


async def test_an_envelope_that_never_opens_ends_the_match(tmp_path: Path):
    """Reason 13, and nobody is accused: there is no evidence."""
    table = ending(tmp_path)
    damage(table, 100)
    ends = await table.play()
    assert {end.outcome for end in ends} == {wire.OUTCOME_DISPUTED}
    assert {end.result for end in ends} == {None}
    assert [close.dispute_reason for _, close in table.relay.claims] == [Reason.UNREADABLE]
    assert not any((device.outbox.directory / "evidence").exists() for device in table.devices)
    assert not any(device.outbox.is_open for device in table.devices)


def cheating(directory: Path) -> tuple[Tables, int]:
    """The dealer's play, in flight, has a forged proof. Gives the cheater's seat too."""
    pair = reached(Kind.T1)
    forged = pair.forge(lambda payload: payload[:10] + bytes([payload[10] ^ 1]) + payload[11:])
    pair.sender._state.outbox = Outgoing(forged.counter, forged.phase, forged.envelope)
    return tables(directory, pair), pair.sender.seat


async def test_a_refused_message_is_kept_as_evidence(tmp_path: Path):
    table, cheater = cheating(tmp_path)
    honest = table.devices[1 - cheater]
    results = await asyncio.gather(*(device.play(Player()) for device in table.devices), return_exceptions=True)
    error = results[honest.index]
    assert isinstance(error, RemoteProtocolError)
    assert error.evidence.reason is Reason.PROOF
    assert str(error).startswith("the opponent broke the protocol: ")
    assert results[cheater] == MatchEnd(wire.OUTCOME_DISPUTED, None, None)
    assert [(seat, close.dispute_reason) for seat, close in table.relay.claims] == [(honest.index, Reason.PROOF)]
    evidence = json.loads((honest.outbox.directory / "evidence").read_bytes())
    assert evidence["reason"] == Reason.PROOF
    assert bytes.fromhex(evidence["session_id"]) == error.evidence.session_id != b""
    assert base64.b64decode(evidence["answered"]) == error.evidence.answered != b""
    assert not honest.outbox.is_open


async def test_nobody_is_accused_of_this_devices_own_restarts(tmp_path: Path):
    """The third restart of its audit ends the match; the opponent signed nothing wrong, so nothing is kept of it."""
    pair = audited(Kind.AU2)
    device = pair.other(pair.sender)
    device._table.round.restarts[device.seat] = 2
    table = tables(tmp_path, pair)
    results = await asyncio.gather(*(device.play(Player()) for device in table.devices), return_exceptions=True)
    error = results[device.seat]
    assert isinstance(error, RemoteProtocolError)
    assert str(error) == "the match cannot go on: the audit was begun anew too often (reason 12)"
    assert table.relay.claims[-1][1].dispute_reason == Reason.ATTEMPTS
    assert not (table.devices[device.seat].outbox.directory / "evidence").exists()


async def test_a_refusal_outlives_a_crash(tmp_path: Path):
    """The state was stored before the match was closed: a restarted device closes it, and plays on never."""
    table, cheater = cheating(tmp_path)
    honest = table.devices[1 - cheater]
    honest.may_crash = lambda point: (
        point in ("after save", "before send") and honest.seat is not None and honest.seat._state.evidence is not None
    )
    results = await asyncio.gather(*(device.play(Player()) for device in table.devices), return_exceptions=True)
    assert isinstance(results[honest.index], RemoteProtocolError)
    assert {place[0] for place in honest.crashes} == {"after save", "before send"}
    assert table.relay.claims[-1][1].dispute_reason == Reason.PROOF


async def test_a_newer_connection_of_the_same_seat_wins(tmp_path: Path):
    """Superseded is final: two processes of one seat must not fight, and the match stays on this disk."""
    table = ending(tmp_path)
    device = table.devices[0]

    def supersede(frame: wire.ServerFrame) -> None:
        if frame.WhichOneof("frame") == "welcome":
            raise RelayClosed(4500, "SUPERSEDED")

    device.transport.before_receive = supersede
    with pytest.raises(RelayClosed, match="SUPERSEDED"):
        await device.play(Player())
    assert device.outbox.is_open


@pytest.mark.parametrize("reason", [wire.REASON_ENVELOPE_CONFLICT, 99])
async def test_a_relay_that_keeps_refusing_is_left(tmp_path: Path, reason: int):
    """Our own fault, so no accusation: the match stays on disk."""
    table = ending(tmp_path)
    device = table.devices[0]

    def refuse(frame: wire.ServerFrame) -> None:
        if frame.WhichOneof("frame") == "welcome":
            frame.refusal.CopyFrom(wire.Refusal(reason=reason, message="no", counter=3))

    device.transport.before_receive = refuse
    with pytest.raises(LocalProtocolError, match="refuses"):
        await device.play(Player())
    assert device.transport.connects == 4
    assert device.outbox.is_open


async def test_an_opponent_that_lies_to_the_relay_at_every_send_drives_nobody_away(tmp_path: Path):
    """While the repair lasts that a lie began, the relay refuses envelopes: no fault of the device that sends."""
    table = ending(tmp_path)
    owing = table.relay.match.owing
    assert owing is not None
    lies, taken_back = 0, asyncio.Event()

    def say(position: int) -> None:
        match, speaker = table.relay.match, (f"liar {lies} {position}", "p")
        table.relay.change(relay.join(match, 1 - owing, speaker, position, 0, bytes(8), LIMITS))

    def lie(frame: wire.ClientFrame) -> None:
        nonlocal lies
        if frame.WhichOneof("frame") == "envelope" and lies < 6:
            lies += 1
            say(table.relay.match.counter + 30)

    def take_back(frame: wire.ClientFrame) -> None:
        if frame.WhichOneof("frame") == "envelope" and table.relay.match.is_recovering:
            say(table.relay.match.counter)
            if lies == 6:
                taken_back.set()

    honest, liar = table.devices[owing], table.devices[1 - owing]
    honest.transport.before_send, honest.transport.after_send = lie, take_back
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        ends = [group.create_task(honest.play(Player()))]
        await taken_back.wait()
        ends.append(group.create_task(liar.play(Player())))
    check_finished(table, [task.result() for task in ends])
    assert honest.transport.connects == 1


async def test_the_join_proves_possession_and_tells_the_position(tmp_path: Path):
    """An own envelope counts only once it was acknowledged or answered."""
    table = ending(tmp_path)
    joins: list[wire.Join] = []
    for device in table.devices:
        device.transport.before_send = lambda frame: (
            joins.append(frame.join) if frame.WhichOneof("frame") == "join" else None
        )
    positions = [Seat.load(table.payload, device.outbox.load(), DEVICES[device.index]) for device in table.devices]
    first = max(positions, key=lambda seat: seat.position)
    check_finished(table, await table.play())
    by_seat = {join.seat: join for join in reversed(joins)}
    assert by_seat[first.seat].position == first.position - 1
    assert by_seat[1 - first.seat].position == first.position - 2
    assert {join.door for join in joins} == {"relay.test"}
    assert all(len(join.signature) == 64 and join.contract == table.token for join in joins)


async def test_no_challenge_no_join(tmp_path: Path):
    table = ending(tmp_path)
    device = table.devices[0]
    joined: list[str] = []
    short = 0

    def shorten(frame: wire.ServerFrame) -> None:
        nonlocal short
        if frame.WhichOneof("frame") == "challenge" and short < 2:
            short += 1
            frame.challenge.challenge = b"short"

    device.transport.before_receive = shorten
    device.transport.before_send = lambda frame: joined.append(str(frame.WhichOneof("frame")))
    check_finished(table, await table.play())
    assert short == 2
    assert joined[0] == "join"
    assert joined.count("join") == device.transport.connects - short
