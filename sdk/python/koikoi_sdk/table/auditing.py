"""AU1 to AU4: both devices prove both shuffles of each attempt once more (docs/protocol.md section 7).

The seat that owes the next message begins. A commitment answers one nonce, ever, and exists in
memory only; a device that owes its answer after a restart begins anew with an unscheduled AU1, and
everything of the interrupted run is void. Each side may do that twice for one attempt.
"""

from __future__ import annotations

from koikoi_sdk.poker import Deal
from koikoi_sdk.table.codec import Answered, Committed, Kind
from koikoi_sdk.table.errors import Reason, require
from koikoi_sdk.table.memory import Table
from koikoi_sdk.table.opening import begin_round
from koikoi_sdk.table.statement import encode_round, hash_round

MAX_RESTARTS = 2
"""Restarts of one device in the audit of one attempt."""


def build_commitment(table: Table) -> bytes:
    """Make AU1, which begins a run."""
    return Committed(_commit(table), b"", _result_hash(table)).join()


def accept_commitment(table: Table, payload: bytes) -> None:
    """Accept AU1. Whatever was left of an earlier run is void."""
    part = Committed.cut(payload)
    _require_result(table, part)
    table.commitment = None
    _challenge(table, part)


def after_commitment(table: Table) -> Kind:
    """Name what is due now."""
    return Kind.AU2


def build_counter_commitment(table: Table) -> bytes:
    """Make AU2: the own commitment, and a nonce drawn after the peer's was received."""
    return Committed(_commit(table), _given(table), _result_hash(table)).join()


def accept_counter_commitment(table: Table, payload: bytes) -> None:
    """Accept AU2."""
    part = Committed.cut(payload)
    _require_result(table, part)
    _challenge(table, part)
    table.round.asked = part.nonce


def after_counter_commitment(table: Table) -> Kind:
    """Name what is due now."""
    return Kind.AU3


def build_answer(table: Table) -> bytes:
    """Make AU3: a nonce drawn after the peer's commitment was received, and the own response."""
    return Answered(_given(table), _respond(table)).join()


def accept_answer(table: Table, payload: bytes) -> None:
    """Accept AU3."""
    part = Answered.cut(payload)
    _audited(table).accept_audit(part.response)
    table.round.asked = part.nonce


def after_answer(table: Table) -> Kind:
    """Name what is due now."""
    return Kind.AU4


def build_last_answer(table: Table) -> bytes:
    """Make AU4."""
    return _respond(table)


def accept_last_answer(table: Table, payload: bytes) -> None:
    """Accept AU4."""
    _audited(table).accept_audit(payload)


def after_last_answer(table: Table) -> Kind:
    """Go on with the next attempt's audit, the next round, or the end of the match."""
    deal, playing = table.deals.pop(0), table.round
    playing.deals.pop(0)
    deal.erase()
    playing.asked, playing.restarts = b"", [0, 0]
    if playing.deals:
        return Kind.AU1
    result = table.board.result
    assert result is not None
    table.state.match = table.match.record(result)
    table.state.results = (*table.state.results, encode_round(result))
    if table.match.final is None:
        return begin_round(table)
    return Kind.RESULT_SIGN


def count_restart(table: Table, seat: int) -> None:
    """Count an AU1 in the place of an answer.

    Raises:
        RemoteProtocolError: ATTEMPTS, it is the third of this seat for this attempt.
    """
    restarts = table.round.restarts
    require(restarts[seat] < MAX_RESTARTS, Reason.ATTEMPTS, "the audit was begun anew too often")
    restarts[seat] += 1


def _audited(table: Table) -> Deal:
    """Give the deal whose audit runs: the oldest not audited."""
    return table.deals[0]


def _commit(table: Table) -> bytes:
    table.commitment = _audited(table).commit_audit(table.state.head, table.draw("fresh"))
    return table.commitment.value


def _challenge(table: Table, part: Committed) -> None:
    """Draw the nonce for the peer's commitment; it travels in the message that answers."""
    nonce = table.draw("challenge", table.state.counter + 1)
    _audited(table).challenge_audit(table.state.head, part.commitment, nonce)


def _given(table: Table) -> bytes:
    return _audited(table).state.nonces[-1]


def _respond(table: Table) -> bytes:
    commitment, table.commitment = table.commitment, None
    assert commitment is not None
    return commitment.respond(table.round.asked)


def _result_hash(table: Table) -> bytes:
    result = table.board.result
    assert result is not None
    return hash_round(table.channel.session_id, table.round.number, encode_round(result))


def _require_result(table: Table, part: Committed) -> None:
    same = part.result_hash == _result_hash(table)
    require(same, Reason.RESULT, "the devices disagree about the round's result")
