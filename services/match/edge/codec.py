"""Frames as bytes: the only place that knows the protobuf messages of both doors."""

from collections.abc import Callable

from google.protobuf.message import DecodeError
from koikoi.match.v1 import envelope_pb2, match_service_pb2

from services.match.domain.envelope import Envelope
from services.match.domain.errors import FrameInvalid
from services.match.domain.outcomes import Outcome
from services.match.ports import (
    Close,
    Ended,
    Incoming,
    Join,
    Outgoing,
    Receipt,
    ReceiptRequest,
    Refusal,
    Status,
    Welcome,
)

__all__ = ["FRAME_MAX_BYTES", "JOIN_MAX_BYTES", "read_frame", "write_challenge", "write_frame"]

FRAME_MAX_BYTES = 16 * 1024
JOIN_MAX_BYTES = 4 * 1024

_OUTCOMES = {outcome: match_service_pb2.Outcome.Value(f"OUTCOME_{outcome.name}") for outcome in Outcome}
_OUTCOMES_BY_NUMBER = {number: outcome for outcome, number in _OUTCOMES.items()}


def read_frame(data: bytes, *, is_first: bool) -> Incoming:
    """Read one frame of a client; its size is checked first.

    Raises:
        FrameInvalid: It is too large, malformed or empty, or a join where none may be, or no join where one must be.
    """
    limit = JOIN_MAX_BYTES if is_first else FRAME_MAX_BYTES
    if len(data) > limit:
        raise FrameInvalid(f"This frame has at most {limit} bytes.", metadata={"limit": str(limit)})
    try:
        frame = match_service_pb2.ClientFrame.FromString(data)
    except DecodeError:
        raise FrameInvalid("The frame is not a ClientFrame.") from None
    kind = frame.WhichOneof("frame")
    if kind is None:
        raise FrameInvalid("The frame holds nothing that this relay knows.")
    if (kind == "join") != is_first:
        raise FrameInvalid("The first frame is a join, and no other is.", field=kind)
    return _READERS[kind](frame)


def _read_join(frame: match_service_pb2.ClientFrame) -> Join:
    join = frame.join
    return Join(
        join.contract, join.seat, join.signature, join.door, join.epoch, join.position, join.client_version
    )  # fmt: skip


def _read_envelope(frame: match_service_pb2.ClientFrame) -> Envelope:
    return Envelope(frame.envelope.counter, frame.envelope.phase, frame.envelope.sealed)


def _read_close(frame: match_service_pb2.ClientFrame) -> Close:
    close = frame.close
    outcome = _OUTCOMES_BY_NUMBER.get(close.outcome)
    if outcome is None:
        raise FrameInvalid("The close names no outcome.", field="close.outcome")
    return Close(outcome, close.dispute_reason, close.result_digest, tuple(close.result_signatures))


def _read_receipt_request(_frame: match_service_pb2.ClientFrame) -> ReceiptRequest:
    return ReceiptRequest()


_READERS: dict[str, Callable[[match_service_pb2.ClientFrame], Incoming]] = {
    "join": _read_join,
    "envelope": _read_envelope,
    "close": _read_close,
    "receipt_request": _read_receipt_request,
}


def write_challenge(challenge: bytes) -> bytes:
    """Write the first frame of the server."""
    return match_service_pb2.ServerFrame(challenge=match_service_pb2.Challenge(challenge=challenge)).SerializeToString()


def write_frame(acknowledged: int | None, frame: Outgoing | None) -> bytes:
    """Write a frame with the acknowledgement that rides on it."""
    server = match_service_pb2.ServerFrame(acknowledged=acknowledged)
    match frame:
        case Envelope():
            server.envelope.CopyFrom(
                envelope_pb2.Envelope(counter=frame.counter, phase=frame.phase, sealed=frame.sealed)
            )
        case Status():
            server.status.CopyFrom(_status(frame))
        case Welcome():
            server.welcome.CopyFrom(_welcome(frame))
        case Ended():
            server.ended.CopyFrom(_ended(frame))
        case Receipt():
            server.receipt.CopyFrom(match_service_pb2.Receipt(receipt=frame.receipt))
        case Refusal():
            server.refusal.CopyFrom(_refusal(frame))
        case None:
            pass
    return server.SerializeToString()


def _status(status: Status) -> match_service_pb2.Status:
    return match_service_pb2.Status(
        owing_seat=status.owing, deadline_ms=status.deadline_ms, is_connected=status.connected
    )  # fmt: skip


def _welcome(welcome: Welcome) -> match_service_pb2.Welcome:
    return match_service_pb2.Welcome(
        epoch=welcome.epoch,
        counter=welcome.counter,
        is_recovered=welcome.is_recovered,
        status=_status(welcome.status),
        min_client_version=welcome.min_client_version,
        notices=welcome.notices,
        is_recovering=welcome.is_recovering,
    )


def _ended(ended: Ended) -> match_service_pb2.Ended:
    message = match_service_pb2.Ended(outcome=_OUTCOMES[ended.ending.outcome], seat=ended.ending.seat)
    message.end_time.FromMilliseconds(ended.ending.time_ms)
    return message


def _refusal(refusal: Refusal) -> match_service_pb2.Refusal:
    reason = match_service_pb2.Reason.Value(f"REASON_{refusal.error.reason}")
    return match_service_pb2.Refusal(reason=reason, message=refusal.error.message, counter=refusal.counter)
