"""S1 to S4: a deal, its claims and its redeal (docs/protocol.md sections 4 and 18)."""

from __future__ import annotations

from koikoi_sdk.poker import Deal, DealState, Role, deal_id
from koikoi_sdk.poker.layout import DEALER, OTHER, S3_SIZE
from koikoi_sdk.rules import Board, Phase, ResultKind, hand_redeal, start, teyaku
from koikoi_sdk.table.codec import Dealt, Kind
from koikoi_sdk.table.errors import Reason, require
from koikoi_sdk.table.memory import MAX_ATTEMPTS, Table


def require_attempt(table: Table) -> None:
    """Refuse to deal a round for the sixth time."""
    require(table.round.attempts < MAX_ATTEMPTS, Reason.ATTEMPTS, "this round was dealt too often")


def build_first(table: Table) -> bytes:
    """Make S1: begin an attempt and shuffle first."""
    deal = _begin(table, DEALER, table.draw("seed"))
    return deal.shuffle_first(table.state.head, table.draw("fresh"))


def accept_first(table: Table, payload: bytes) -> None:
    """Accept S1. The own seed is drawn before, for the number of the S2 that answers."""
    deal = _begin(table, OTHER, table.draw("seed", table.state.counter + 1))
    deal.accept_first(payload, table.state.head)


def after_first(table: Table) -> Kind:
    """Name what is due now."""
    return Kind.S2


def build_second(table: Table) -> bytes:
    """Make S2: shuffle second and give the tokens of the dealer's hand and the field."""
    return table.deal.shuffle_second(table.state.head, table.draw("fresh"), table.draw("fresh"))


def accept_second(table: Table, payload: bytes) -> None:
    """Accept S2."""
    table.deal.accept_second(payload, table.state.head)


def after_second(table: Table) -> Kind:
    """Name what is due now."""
    return Kind.S3


def build_third(table: Table) -> bytes:
    """Make S3: give the other hand's tokens, show the field, and claim the own hand if it must be."""
    deal = table.deal
    payload = deal.show_field(table.state.head, table.draw("fresh"), table.draw("fresh"))
    _lay_out(table)
    return payload + _build_claim(table)


def accept_third(table: Table, payload: bytes) -> None:
    """Accept S3 and the claim it may carry."""
    part = Dealt.cut(payload, S3_SIZE)
    table.deal.accept_field(part.fixed, table.state.head)
    _lay_out(table)
    _accept_claim(table, part.claim)


def after_third(table: Table) -> Kind:
    """Name what is due now."""
    return Kind.S4


def build_fourth(table: Table) -> bytes:
    """Make S4: say whether the deal is void, and claim the own hand if it must be."""
    claim = _build_claim(table)
    return bytes([_is_void(table.board)]) + claim


def accept_fourth(table: Table, payload: bytes) -> None:
    """Accept S4, whose flag both devices compute."""
    part = Dealt.cut(payload, 1)
    _accept_claim(table, part.claim)
    require(part.fixed == bytes([_is_void(table.board)]), Reason.DECISION, "the redeal flag is wrong")


def after_fourth(table: Table) -> Kind:
    """Deal again, play, or settle a hand yaku."""
    if _is_void(table.board):
        table.round.board = None
        return Kind.S1
    return Kind.AU1 if table.board.phase is Phase.OVER else Kind.T1


def require_claimed(table: Table, hand: frozenset[int]) -> None:
    """Refuse a play that shows a hand the sender should have claimed (late detection, section 18).

    `hand` are the sender's hand cards opened so far. Play is reached only where neither hand was
    claimed, so any such hand is an unclaimed one.
    """
    variant = table.match.variant
    hidden = hand_redeal(variant, hand) or teyaku(variant, hand)
    require(not hidden, Reason.DECISION, "a hand that had to be claimed was not")


def _begin(table: Table, role: Role, seed: bytes) -> Deal:
    playing, keys = table.round, table.contract.keys
    did = deal_id(
        table.channel.session_id,
        round_number=playing.number,
        attempt=playing.attempts,
        dealer_key=keys[playing.dealer],
        other_key=keys[1 - playing.dealer],
        head=table.state.head,
    )
    stored = DealState(role, did, bytearray(seed))
    playing.deals.append(stored)
    playing.attempts += 1
    table.deals.append(Deal(stored))
    return table.deal


def _lay_out(table: Table) -> None:
    match = table.match
    table.round.board = start(match.variant, match.dealer, match.points, frozenset(table.deal.field))


def _is_void(board: Board) -> bool:
    return board.result is not None and board.result.kind is ResultKind.REDEAL


def _claimed(board: Board, seat: int, hand: frozenset[int]) -> Board | None:
    """Give the board after a seat showed its hand, or None if there is nothing to claim."""
    if hand_redeal(board.variant, hand):
        return board.void("hand")
    name = teyaku(board.variant, hand)
    if name is None:
        return None
    return board.claim((name, None) if seat == 0 else (None, name))


def _build_claim(table: Table) -> bytes:
    """Claim the own hand unless the round is decided already; the hand is then shown to the peer."""
    if table.board.phase is Phase.OVER:
        return b""
    board = _claimed(table.board, table.seat, frozenset(table.deal.hand))
    if board is None:
        return b""
    table.round.board = board
    return table.deal.claim_hand(table.state.head, table.draw("fresh"))


def _accept_claim(table: Table, claim: bytes) -> None:
    if not claim:
        return
    hand = frozenset(table.deal.accept_claim(claim, table.state.head))
    require(table.board.phase is not Phase.OVER, Reason.DECISION, "the claim comes too late")
    board = _claimed(table.board, table.peer, hand)
    require(board, Reason.DECISION, "the claimed hand is nothing")
    table.round.board = board
