"""Cheating by saying too little or too much: silence, two answers, results of one's own making."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from koikoi.match.v1 import match_service_pb2 as match_pb
from koikoi_sdk.client.connect import ConnectClient
from koikoi_sdk.client.home import Home
from koikoi_sdk.client.match import hand_in, payload_of
from koikoi_sdk.client.ranking import Ranking
from koikoi_sdk.client.session import MatchEnd
from koikoi_sdk.poker import verify
from koikoi_sdk.table import Ending, Kind, Outgoing, Reason, SignedResult
from koikoi_sdk.table.envelope import Signed

from tests.e2e.cheaters import Affair, Cheater, Crooked, Lie, Opponents, Resigning, play, refusal_of
from tests.e2e.lies import LIES, noise, says
from tests.e2e.verdicts import claimed, leaderboard, record, refused, results
from tests.harness import running_app
from tests.unit.ranking.cases import add_order
from tests.unit.table.pair import forge, has_teshi, put
from tools.plan import free_ports
from tools.stack import Stack

pytestmark = [pytest.mark.xdist_group("e2e-refusing"), pytest.mark.usefixtures("no_fault")]


def mute(seat: Cheater, message: Outgoing) -> Outgoing:
    """Says nothing more, and stays connected."""
    seat.is_mute = True
    return message


@asynccontextmanager
async def hasty_relay(stack: Stack) -> AsyncIterator[tuple[str, str]]:
    """A second relay process on the same stores that waits for an answer 5 s only; gives its doors' URLs."""
    names = ("KOIKOI_MATCH_WEBSOCKET_ADDRESS", "KOIKOI_MATCH_GRPC_ADDRESS")
    doors = [f"127.0.0.1:{port}" for port in (free_ports()[name] for name in names)]
    settings = {
        "database_url": stack.postgres.url("match"),
        "redis_url": stack.valkey.url,
        "key_directory": str(stack.directory / "keys" / "match"),
        "lobby_target": stack.plan.addresses["KOIKOI_LOBBY_GRPC_ADDRESS"],
        "websocket_address": doors[0],
        "grpc_address": doors[1],
        "door_names": ",".join(doors),
        "turn_s": "4.5",
        "step_s": "4.5",
        "grace_s": "0.5",
        "sweep_s": "0.25",
    }
    async with running_app("match", **settings):
        yield f"ws://{doors[0]}", f"grpc://{doors[1]}"


async def test_who_refuses_by_silence_is_charged(stack: Stack, opponents: list[Opponents]):
    """The audit, its answer, and the signature under a lost match."""
    silences = (
        Lie("the audit", Kind.AU1, mute, Reason.FORM, wish=has_teshi),
        Lie("the audit's answer", Kind.AU4, mute, Reason.FORM, is_dealer=False, wish=has_teshi),
        Lie("the signature", Kind.RESULT_SIGN, mute, Reason.FORM, is_dealer=False, honest=Resigning),
    )
    before = await leaderboard(stack)
    async with hasty_relay(stack) as doors:
        affairs = await asyncio.gather(*(play(pair, lie, doors) for pair, lie in zip(opponents, silences, strict=True)))
    *audits, signature = affairs
    for affair in audits:
        seat = affair.cheater.seat
        assert affair.honest_end == MatchEnd(match_pb.OUTCOME_STALLED, seat, None)
        assert await record(stack, affair.contract.match_id) == f"stalled|{seat}|0"
    resigned = 1 - signature.cheater.seat
    assert signature.honest_end == MatchEnd(match_pb.OUTCOME_RESIGNED, resigned, None)
    assert await record(stack, signature.contract.match_id) == f"resigned|{resigned}|0"
    assert await leaderboard(stack) == before
    for affair in affairs:
        assert await results(stack, affair.contract.match_id) == 0
        claims = [json.loads(payload_of(token)) for token in affair.honest_outbox.receipts]
        assert affair.cheater.seat in {claim["owing_seat"] for claim in claims}, "the relay's word in writing"


async def test_noise_in_answer_to_a_resignation(stack: Stack, opponents: list[Opponents]):
    """The resignation stands; the evidence is kept; the cheater has no result."""
    for doors in ((stack.plan.websocket_url, stack.plan.grpc_url), (stack.plan.grpc_url, stack.plan.websocket_url)):
        lie = Lie(
            "noise", Kind.RESULT_SIGN, says(lambda p: noise(64)), Reason.RESULT, is_dealer=False, honest=Resigning
        )
        affair = await play(opponents[0], lie, doors)
        assert refusal_of(affair).evidence.reason is Reason.RESULT
        assert (affair.honest_outbox.directory / "evidence").exists()
        assert not affair.honest_outbox.is_pending
        resigned = 1 - affair.cheater.seat
        assert await record(stack, affair.contract.match_id) == f"resigned|{resigned}|0"
        assert await results(stack, affair.contract.match_id) == 0


# With a relay in league


async def test_two_nonces_for_one_audit_commitment(stack: Stack, opponents: list[Opponents]):
    """Two answers would disclose the key: the second question is equivocation and stays without an answer."""
    questions: list[Outgoing] = []

    def ask_twice(seat: Cheater, message: Outgoing) -> Outgoing:
        questions.append(forge(seat, message, lambda payload: put(payload, 32, b"n" * 32)))
        return message

    def deliver_both(frame: match_pb.ServerFrame) -> list[match_pb.ServerFrame]:
        if not questions or frame.WhichOneof("frame") != "envelope" or frame.envelope.counter != questions[0].counter:
            return [frame]
        second = match_pb.ServerFrame(envelope=frame.envelope)
        second.envelope.sealed = questions[0].envelope
        return [frame, second]

    lie = Lie("two nonces", Kind.AU2, ask_twice, Reason.EQUIVOCATION, is_dealer=False, wish=has_teshi)
    affair = await play(
        opponents[1], lie, (stack.plan.grpc_url, stack.plan.websocket_url), behind=Crooked(deliver_both).before
    )
    assert refusal_of(affair).evidence.reason is Reason.EQUIVOCATION
    assert affair.cheater_end == MatchEnd(match_pb.OUTCOME_DISPUTED, None, None)
    assert await record(stack, affair.contract.match_id) == f"disputed||{int(Reason.EQUIVOCATION)}"
    said = [number for number, _, _ in affair.tap.envelopes("out")]
    assert affair.cheater.told is not None
    assert said.count(affair.cheater.told.counter + 1) == 1, "one answer"
    assert max(said) == affair.cheater.told.counter + 1


async def test_every_audit_gets_a_fresh_nonce(stack: Stack, opponents: list[Opponents]):
    """Who begins an audit anew to grind at a known nonce is given another one each time, and not for ever."""
    lie = next(lie for lie in LIES if lie.reason is Reason.ATTEMPTS)
    affair = await play(opponents[2], lie, (stack.plan.websocket_url, stack.plan.grpc_url))
    assert refusal_of(affair).evidence.reason is Reason.ATTEMPTS
    channel = affair.cheater._state.channel
    assert channel is not None
    said = [Signed.cut(channel.decrypt(sealed)) for number, _, sealed in affair.tap.envelopes("out") if number >= 2]
    nonces = [message.payload[32:64] for message in said if message.body[0] == Kind.AU2]
    assert len(set(nonces)) == len(nonces) == 3


# Results of one's own making


def kept(affair: Affair) -> SignedResult:
    """The result that both devices signed."""
    assert isinstance(affair.honest_end, MatchEnd) and affair.honest_end.result is not None
    return affair.honest_end.result


def doctored(result: SignedResult, other: bytes) -> Iterator[tuple[str, bytes]]:
    """Statements that a cheater would like better, and why each is refused."""
    statement = result.statement
    winner = statement.winner
    assert winner is not None
    yield "SIGNATURE_INVALID", replace(statement, winner=1 - winner).encode()
    yield "SIGNATURE_INVALID", replace(statement, head=bytes(32)).encode()
    yield "SIGNATURE_INVALID", replace(statement, session_id=bytes(32)).encode()
    yield "CONTRACT_MISMATCH", replace(statement, contract_hash=other).encode()
    yield "STATEMENT_IMPOSSIBLE", replace(statement, points=(50, 0)).encode()
    yield "STATEMENT_IMPOSSIBLE", replace(statement, ending=Ending.BUST).encode()
    yield "STATEMENT_IMPOSSIBLE", replace(statement, winner=None).encode()
    yield "STATEMENT_MALFORMED", statement.encode()[:-1]
    yield "STATEMENT_MALFORMED", b"\2" + statement.encode()[1:]


async def test_only_the_result_that_both_signed_is_rated(stack: Stack, opponents: list[Opponents]):
    """The cheater gives up and would rather not have; then the other hands the true result in."""
    never = Lie("none", Kind.NEXT, mute, Reason.FORM, count=99, cheater=Resigning)
    pair = opponents[0]
    affair = await play(pair, never, (stack.plan.websocket_url, stack.plan.grpc_url))
    other = await pair.agree(0)
    result, seat, key = kept(affair), affair.cheater.seat, affair.cheater_key
    true, token = result.statement.encode(), affair.contract.token
    before = await leaderboard(stack)
    assert claimed(affair).encode() == true

    async def try_in(reason: str, statement: bytes, signatures: list[bytes], contract: str = token) -> None:
        answer = await refused(stack, contract, statement, signatures, "10.2.0.1")
        assert answer[0] == reason, (reason, answer)

    for reason, statement in doctored(result, affair.cheater.contract.hash[::-1]):
        own, signatures = key.sign("match-result", statement), list(result.signatures)
        await try_in(reason, statement, signatures)
        signatures[seat] = own  # the own one may follow the change
        await try_in(reason, statement, signatures)
    first, second = result.signatures
    mine, theirs = result.signatures[seat], result.signatures[1 - seat]
    assert verify(affair.cheater.contract.keys[seat], mine, "match-result", true)
    for reason, signatures in (
        ("FIELD_INVALID", [first]),
        ("FIELD_INVALID", [first, second, first]),
        ("FIELD_INVALID", [first, b""]),
        ("FIELD_INVALID", []),
        ("SIGNATURE_INVALID", [second, first]),
        ("SIGNATURE_INVALID", [mine, mine]),
        ("SIGNATURE_INVALID", [theirs, theirs]),
        ("SIGNATURE_INVALID", [first, add_order(second)]),
        ("SIGNATURE_INVALID", [first, bytes(64)]),
    ):
        await try_in(reason, true, signatures)
    await try_in("CONTRACT_MISMATCH", true, [first, second], other.token)
    header, payload, signature = token.split(".")
    await try_in("CONTRACT_INVALID", true, [first, second], f"{header}.{payload[:-2]}AA.{signature}")
    await try_in("CONTRACT_INVALID", true, [first, second], f"{header}.{payload}.{'A' * len(signature)}")
    session = Home(pair.homes[0]).load("session")
    assert session is not None
    await try_in("CONTRACT_INVALID", true, [first, second], session["access_token"])
    assert await leaderboard(stack) == before
    assert await results(stack, affair.contract.match_id) == 0
    async with ConnectClient(stack.plan.gateway_url) as client:
        receipt = await hand_in(affair.honest_outbox, Ranking(client))
    assert receipt is not None and receipt.is_rated and receipt.winner_seat == 1 - seat
    after = await leaderboard(stack)
    assert after != before
    for reason, statement in doctored(result, affair.cheater.contract.hash[::-1]):
        await try_in(reason, statement, [first, second])
    assert await leaderboard(stack) == after
    assert await results(stack, affair.contract.match_id) == 1
