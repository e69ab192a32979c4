"""RESULT_SIGN and RESIGN: both devices sign one statement of the match (docs/protocol.md section 18)."""

from __future__ import annotations

from koikoi_sdk.poker import verify
from koikoi_sdk.rules import EndReason
from koikoi_sdk.table.codec import Kind
from koikoi_sdk.table.errors import Reason, require
from koikoi_sdk.table.memory import MAX_ATTEMPTS, Table
from koikoi_sdk.table.statement import Ending, SignedResult, Statement


def build_result(table: Table) -> bytes:
    """Make RESULT_SIGN."""
    return _sign(table, _statement(table))


def accept_result(table: Table, payload: bytes) -> None:
    """Accept RESULT_SIGN."""
    _accept_signature(table, _statement(table), payload)


def after_result(table: Table) -> Kind | None:
    """Wait for the other signature, or end."""
    return Kind.RESULT_SIGN if len(table.state.signatures) == 1 else None


def build_resignation(table: Table) -> bytes:
    """Make RESIGN: the own signature over a statement in which the other seat wins."""
    return _sign(table, _resigned(table, table.seat))


def accept_resignation(table: Table, payload: bytes) -> None:
    """Accept RESIGN."""
    _accept_signature(table, _resigned(table, table.peer), payload)


def after_resignation(table: Table) -> Kind:
    """Name what is due now; no audit runs any more."""
    return Kind.RESULT_SIGN


def may_resign(table: Table) -> bool:
    """Tell whether RESIGN may take the place of the message that is due now (section 18)."""
    state = table.state
    if state.due in (None, Kind.HELLO, Kind.RESULT_SIGN):
        return False
    if state.round is None:
        return True
    if state.due is Kind.S1:
        return state.round.attempts < MAX_ATTEMPTS
    return not (_is_decided(table) and _is_audit_begun(table))


def signed_result(table: Table) -> SignedResult | None:
    """Give the result once both devices signed it."""
    state = table.state
    if state.statement is None or len(state.signatures) < 2:
        return None
    return SignedResult(state.statement, (state.signatures[0], state.signatures[1]))


def _is_decided(table: Table) -> bool:
    """Tell whether the present round, once over, ends the match."""
    board = table.round.board
    if board is None or board.result is None:
        return False
    return table.match.record(board.result).final is not None


def _is_audit_begun(table: Table) -> bool:
    due, playing = table.state.due, table.round
    if due is Kind.AU1:
        return len(playing.deals) < playing.attempts
    return due in (Kind.AU2, Kind.AU3, Kind.AU4)


def _statement(table: Table) -> Statement:
    """Give the statement that is being signed; without RESIGN the match's own end makes it."""
    state = table.state
    if state.statement is None:
        final = table.match.final
        assert final is not None
        ending = Ending.BUST if final.reason is EndReason.BUST else Ending.PLAYED
        state.statement = _state(table, ending, final.winner)
    return state.statement


def _resigned(table: Table, seat: int) -> Statement:
    return _state(table, Ending.RESIGNED, 1 - seat)


def _state(table: Table, ending: Ending, winner: int | None) -> Statement:
    state = table.state
    return Statement(
        contract_hash=table.contract.hash,
        session_id=table.channel.session_id,
        ending=ending,
        winner=winner,
        points=table.points,
        rounds=state.results,
        head=state.head,
    )


def _sign(table: Table, statement: Statement) -> bytes:
    signature = table.device.sign("match-result", statement.encode())
    table.state.statement = statement
    table.state.signatures[table.seat] = signature
    return signature


def _accept_signature(table: Table, statement: Statement, signature: bytes) -> None:
    key = table.contract.keys[table.peer]
    valid = verify(key, signature, "match-result", statement.encode())
    require(valid, Reason.RESULT, "the signature is not over the result of this match")
    table.state.statement = statement
    table.state.signatures[table.peer] = signature
