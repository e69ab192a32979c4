"""A modified client against an honest one, over the real relay and services.

Each lie is refused by the honest device with its reason; from then on the device says nothing more, and it has given
away nothing that was not due; the relay records the dispute; the ranking takes nothing from the cheater.
"""

from __future__ import annotations

import json

import pytest
from koikoi.match.v1 import match_service_pb2 as match_pb
from koikoi_sdk.client.session import MatchEnd
from koikoi_sdk.poker import group
from koikoi_sdk.poker.layout import HANDS, PILE, S1_SIZE, SECOND_TOKENS
from koikoi_sdk.poker.statement import Layer
from koikoi_sdk.table import Kind, Reason
from koikoi_sdk.table.envelope import Signed

from tests.e2e.cheaters import Affair, Lie, Opponents, play, refusal_of
from tests.e2e.lies import LIES
from tests.e2e.verdicts import claimed, leaderboard, record, refused, results
from tools.stack import Stack

pytestmark = [pytest.mark.xdist_group("e2e-cheating"), pytest.mark.usefixtures("no_fault")]


@pytest.mark.parametrize(("number", "lie"), list(enumerate(LIES)), ids=[lie.name for lie in LIES])
async def test_a_lie_is_refused_and_gains_nothing(stack: Stack, opponents: list[Opponents], number: int, lie: Lie):
    urls = stack.plan.websocket_url, stack.plan.grpc_url
    before = await leaderboard(stack)
    pair = opponents[number % len(opponents)]
    affair = await play(pair, lie, (urls[number % 2], urls[number // 2 % 2]), host=number // len(opponents) % 2)
    assert affair.cheater.told is not None, "the lie was never told"
    if lie.reason is Reason.UNREADABLE:
        assert affair.honest_end == MatchEnd(match_pb.OUTCOME_DISPUTED, None, None)
        assert not (affair.honest_outbox.directory / "evidence").exists(), "a server could have made it"
    else:
        assert refusal_of(affair).evidence.reason is lie.reason
        assert_evidence(affair)
    assert affair.cheater_end == MatchEnd(match_pb.OUTCOME_DISPUTED, None, None)
    assert_silent(affair, lie.reason)
    assert_nothing_given_away(affair)
    assert not affair.honest_outbox.is_pending
    assert await record(stack, affair.contract.match_id) == f"disputed||{int(lie.reason)}"
    await assert_nothing_rated(stack, affair, number)
    assert await leaderboard(stack) == before


# What the honest device keeps and says


def assert_evidence(affair: Affair) -> None:
    """The file holds what the cheater signed; whoever knows session and keys can check it."""
    evidence = refusal_of(affair).evidence
    file = affair.honest_outbox.directory / "evidence"
    assert file.stat().st_mode & 0o077 == 0
    members = json.loads(file.read_bytes())
    assert members["reason"] == int(evidence.reason)
    assert members["check"] == evidence.check
    channel = affair.cheater._state.channel
    if evidence.signature and channel is not None and evidence.reason is not Reason.CHAIN:
        fields = (channel.session_id, channel.own_key, channel.peer_key, evidence.body)
        assert affair.cheater_key.sign("msg", *fields) == evidence.signature


def assert_silent(affair: Affair, reason: Reason) -> None:
    """After the refused envelope comes only the dispute and a request for a receipt (or what was said, asked again)."""
    tap = affair.tap
    refused, said = tap.envelopes("in")[-1][0], tap.envelopes("out")
    assert all(number < refused for number, _, _ in said)
    assert len({number for number, _, _ in said}) == len(said), "nothing is said in two ways"
    closes = [frame.close for frame in tap.after_last_envelope() if frame.WhichOneof("frame") == "close"]
    assert closes
    assert {(close.outcome, close.dispute_reason) for close in closes} == {(match_pb.OUTCOME_DISPUTED, int(reason))}
    assert not any(close.result_digest or close.result_signatures for close in closes)
    others = {frame.WhichOneof("frame") for frame in tap.after_last_envelope()} - {"close", "receipt_request"}
    assert others <= ({"join", "envelope"} if reason is Reason.UNREADABLE else set())


def messages(affair: Affair) -> list[Signed]:
    """Everything the honest device sent after its greeting, opened with the cheater's keys."""
    channel = affair.cheater._state.channel
    sealed = [envelope for number, _, envelope in affair.tap.envelopes("out") if number >= 2]
    assert channel is not None or not sealed
    return [Signed.cut(channel.decrypt(envelope)) for envelope in sealed if channel is not None]


def assert_nothing_given_away(affair: Affair) -> None:
    """No seed, no key, and of the tokens only those that were due: never one of the own hand or of the coming pile."""
    honest = 1 - affair.cheater.seat
    said = messages(affair)
    payloads = b"".join(message.payload for message in said)
    kinds = [Kind(message.body[0]) for message in said]
    for (seat, label, _, _), value in affair.dice.drawn.items():
        if seat == honest and label in ("seed", "x25519", "fresh"):
            assert value not in payloads, label
    if not affair.cheater._table.deals:
        return
    state = affair.cheater._table.deals[-1].state
    seeds = [value for (seat, label, _, _), value in affair.dice.drawn.items() if (seat, label) == (honest, "seed")]
    if not seeds:  # the cheater's S1 is still to be answered
        return
    layer = Layer.derive(seeds[-1], state.did)
    assert layer.secret not in payloads
    assert layer.inverse not in payloads
    is_dealer = state.role == 1
    due = set(HANDS[1]) if is_dealer and Kind.S3 in kinds else set()
    if not is_dealer and Kind.S2 in kinds:
        due = set(SECOND_TOKENS)
    due |= set(PILE[is_dealer::2][: kinds.count(Kind.T2)])  # for the cards that the cheater turned
    tokens = {place: group.multiply(layer.inverse, image) for place, image in enumerate(state.deck)}
    assert {place for place, token in tokens.items() if token in _tokens_of(said)} == due


def _tokens_of(said: list[Signed]) -> set[bytes]:
    where = {Kind.S2: slice(S1_SIZE, S1_SIZE + 512), Kind.S3: slice(256), Kind.T2: slice(32)}
    parts = [message.payload[where[Kind(message.body[0])]] for message in said if message.body[0] in where]
    return {part[at : at + 32] for part in parts for at in range(0, len(part), 32)}


# The ranking


async def assert_nothing_rated(stack: Stack, affair: Affair, number: int) -> None:
    """The cheater alone can make no result, whatever it signs."""
    statement = claimed(affair).encode()
    own = affair.cheater_key.sign("match-result", statement)
    address = f"10.1.0.{number}"
    answer = await refused(stack, affair.contract.token, statement, [own, own], address)
    assert answer == ("SIGNATURE_INVALID", str(1 - affair.cheater.seat))
    assert await results(stack, affair.contract.match_id) == 0
