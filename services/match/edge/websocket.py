"""The WebSocket door: `/m/{match_id}`, subprotocol `koikoi.match.v1`, one frame per binary message."""

import asyncio
import contextlib
import logging
import re
import secrets
import socket
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from picows import (
    WSAutoPingStrategy,
    WSCloseCode,
    WSFrame,
    WSListener,
    WSMsgType,
    WSTransport,
    WSUpgradeRequest,
    WSUpgradeResponse,
    WSUpgradeResponseWithListener,
    ws_create_server,
)

from services.kit import log, trace
from services.kit.settings import host_port
from services.match.domain.errors import FrameInvalid, RelayError, SlowConsumer
from services.match.edge.codec import FRAME_MAX_BYTES, write_frame
from services.match.edge.limits import DoorLimits, Gate
from services.match.edge.visit import Porter
from services.match.ports import Outgoing

__all__ = ["SUBPROTOCOL", "serve_websocket"]

SUBPROTOCOL = "koikoi.match.v1"
_PATH = re.compile(rb"/m/([0-9a-f-]{36})")
_HARD_FRAME_LIMIT = 2 * FRAME_MAX_BYTES  # between the two the client still gets the reason
_INBOX_PAUSE, _INBOX_RESUME = 16, 4
_READ_BUFFER_BYTES = 2048
_ABORT_AFTER_S = 2.0
_INTERNAL_ERROR = 1011


class _OwnFaults(logging.Handler):
    """Passes on what picows says with an exception: our fault. A client's faults must not fill the log."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            logging.getLogger().handle(record)


def _log_own_faults_only() -> None:
    logger = logging.getLogger("picows")  # it uses one child of this for each connection
    logger.propagate, logger.handlers = False, [_OwnFaults()]


@asynccontextmanager
async def serve_websocket(address: str, porter: Porter, gate: Gate, limits: DoorLimits) -> AsyncIterator[int]:
    """Serve WebSocket on host:port; gives the bound port. Leaving closes what is still open."""
    visits: set[_Visit] = set()

    def admit(request: WSUpgradeRequest) -> WSUpgradeResponseWithListener:
        path = _PATH.fullmatch(request.path)
        if path is None:
            return _refused(404, b"The path is /m/{match_id}.")
        offered = request.headers.get("Sec-WebSocket-Protocol", "")
        if SUBPROTOCOL not in (name.strip() for name in offered.split(",")):
            return _refused(400, f"The subprotocol is {SUBPROTOCOL}.".encode())
        caller = request.headers.get("Traceparent", "")
        visit = _Visit(path[1].decode(), caller, porter, gate, limits, visits)
        response = WSUpgradeResponse.create_101_response({"Sec-WebSocket-Protocol": SUBPROTOCOL})
        return WSUpgradeResponseWithListener(response, visit)

    _log_own_faults_only()
    host, port = host_port(address, "the WebSocket address")
    server = await ws_create_server(
        admit,
        host,
        port,
        websocket_handshake_timeout=limits.join_within_s,
        enable_auto_pong=False,
        enable_auto_ping=True,
        auto_ping_idle_timeout=limits.ping_every_s,
        auto_ping_reply_timeout=max(0.1, limits.silent_for_s - limits.ping_every_s),
        auto_ping_strategy=WSAutoPingStrategy.PING_WHEN_IDLE,
        max_frame_size=_HARD_FRAME_LIMIT,
        read_buffer_init_size=_READ_BUFFER_BYTES,
    )
    for listening in server.sockets:  # inherited by every connection: what is unread must not hide in the kernel
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, limits.most_unsent_bytes)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for visit in list(visits):
            visit.hang_up()
        await asyncio.gather(*(visit.done() for visit in list(visits)))


def _too_slow() -> SlowConsumer:
    return SlowConsumer("The connection reads too slowly; connect again.", retry_after_s=1.0)


def _refused(status: int, body: bytes) -> WSUpgradeResponseWithListener:
    return WSUpgradeResponseWithListener(WSUpgradeResponse.create_error_response(status, body), None)


class _Visit(WSListener):
    """One WebSocket: picows' callbacks on one side, the porter's `receive` and the relay's `Outlet` on the other."""

    def __init__(
        self, match_id: str, caller: str, porter: Porter, gate: Gate, limits: DoorLimits, visits: set["_Visit"]
    ) -> None:
        super().__init__()
        self._caller = caller  # its traceparent
        self._match_id, self._porter, self._gate, self._limits, self._visits = match_id, porter, gate, limits, visits
        self._transport: WSTransport | None = None
        self._inbox: deque[bytes] = deque()
        self._news, self._gone = asyncio.Event(), asyncio.Event()
        self._is_open = False
        self._is_paused = False
        self._is_admitted = False
        self._control = gate.budget()
        self._task: asyncio.Task[None] | None = None

    # --- picows ------------------------------------------------------------------------------------------------------

    def on_ws_connected(self, transport: WSTransport) -> None:
        self._transport, self._is_open = transport, True
        try:
            self._gate.enter()
        except RelayError as error:
            self.close(error)
            return
        self._is_admitted = True
        self._visits.add(self)
        self._task = asyncio.get_running_loop().create_task(self._run())

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        if frame.msg_type == WSMsgType.CLOSE:
            self._say_bye(WSCloseCode.OK.value, "")  # an echo could be a code that must not be sent
        elif frame.msg_type == WSMsgType.BINARY and frame.fin and not (frame.rsv1 or frame.rsv2 or frame.rsv3):
            self._inbox.append(frame.get_payload_as_bytes())
            self._news.set()
            if len(self._inbox) >= _INBOX_PAUSE and not self._is_paused:
                self._is_paused = True
                transport.underlying_transport.pause_reading()
        elif frame.msg_type in (WSMsgType.PING, WSMsgType.PONG):
            self._answer(frame)
        else:
            self.close(FrameInvalid("Messages are binary, whole and not compressed."))

    def on_ws_disconnected(self, transport: WSTransport) -> None:
        self._stop_reading()
        if self._is_admitted:
            self._is_admitted = False
            self._gate.exit()

    # --- the porter's side -------------------------------------------------------------------------------------------

    async def receive(self, pause_s: float) -> bytes | None:
        if pause_s:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._gone.wait()
        while self._is_open and not self._inbox:
            self._news.clear()
            await self._news.wait()
        if not self._inbox:
            return None
        data = self._inbox.popleft()  # also what came before the client hung up
        if self._is_open and self._is_paused and len(self._inbox) <= _INBOX_RESUME:
            self._is_paused = False
            self._socket().resume_reading()
        return data

    def put(self, data: bytes) -> None:
        if not self._is_open or self._transport is None:
            return
        if self._socket().get_write_buffer_size() + len(data) > self._limits.most_unsent_bytes:
            self.close(_too_slow())
            return
        self._transport.send(WSMsgType.BINARY, data)

    # --- the relay's side --------------------------------------------------------------------------------------------

    def send(self, acknowledged: int | None, frame: Outgoing | None) -> None:
        self.put(write_frame(acknowledged, frame))

    def close(self, error: RelayError) -> None:
        hint = "" if error.retry_after_s is None else f" retry_after_ms={round(error.retry_after_s * 1000)}"
        self._close(error.close_code, error.reason + hint)

    # --- own ---------------------------------------------------------------------------------------------------------

    def _answer(self, frame: WSFrame) -> None:
        """Answer a ping; they have a budget, and a client that reads no answer must not pile them up here."""
        if not self._is_open or self._transport is None:
            return
        if self._control.spend(0) > 0:
            self.close(FrameInvalid("Too many pings."))
        elif self._socket().get_write_buffer_size() > self._limits.most_unsent_bytes:
            self.close(_too_slow())
        elif frame.msg_type == WSMsgType.PING:
            self._transport.send_pong(frame.get_payload_as_bytes())

    async def _run(self) -> None:
        trace.begin(self._caller)
        try:
            await self._porter.lead("websocket", self._match_id, self.receive, self.put, self)
            self._hang_up_quietly()
        except RelayError as error:
            self.close(error)
        except Exception as error:  # noqa: BLE001 - the edge is where every error ends
            error_id = secrets.token_hex(8)
            log.get().error("match.websocket.failed", error=type(error).__name__, error_id=error_id)
            self._close(_INTERNAL_ERROR, f"INTERNAL {error_id}")
        finally:
            self._visits.discard(self)

    def _close(self, code: int, reason: str) -> None:
        if self._is_open:
            self._inbox.clear()
            self._say_bye(code, reason)

    def _say_bye(self, code: int, reason: str) -> None:
        """Close; what is in the inbox is still done."""
        if not self._is_open or self._transport is None:
            return
        self._stop_reading()
        self._transport.send_close(cast("WSCloseCode", code), reason.encode())
        self._transport.disconnect()
        asyncio.get_running_loop().call_later(_ABORT_AFTER_S, self._socket().abort)

    def _hang_up_quietly(self) -> None:
        if self._transport is not None:
            self._transport.disconnect()

    def hang_up(self) -> None:
        """End the connection now: the process closes."""
        self._close(WSCloseCode.GOING_AWAY.value, "DRAINING")

    async def done(self) -> None:
        """Return when the relay knows that the connection ended."""
        if self._task is not None:
            await asyncio.wait([self._task])

    def _stop_reading(self) -> None:
        self._is_open = False
        self._news.set()
        self._gone.set()

    def _socket(self) -> Any:
        assert self._transport is not None
        return self._transport.underlying_transport
