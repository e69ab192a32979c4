"""What tests of streams share: a reader that waits for what it wants, and requests with the usual content."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from koikoi.lobby.v1 import lobby_service_pb2 as pb

LIMIT_S = 10.0
HOUSE = pb.Rules(preset="house")


class Tape:
    """Everything a stream said so far."""

    def __init__(self, call: Any) -> None:
        self.call = call
        self.said: list[Any] = []
        self._news = asyncio.Event()
        self._task = asyncio.create_task(self._read())
        self.error: grpc.aio.AioRpcError | None = None

    async def until(self, wanted: Callable[[Any], Any]) -> Any:
        """Wait for a message that was not looked at yet; drops all before it."""
        async with asyncio.timeout(LIMIT_S):
            while True:
                while self.said:
                    message = self.said.pop(0)
                    if wanted(message):
                        return message
                assert not self._task.done(), f"the stream ended: {self.error}"
                self._news.clear()
                await self._news.wait()

    async def view(self, wanted: Callable[[pb.RoomView], Any] = lambda view: True) -> pb.RoomView:
        return (await self.until(lambda message: message.HasField("view") and wanted(message.view))).view

    async def closed(self) -> str:
        """Wait for the message that the room is closed, which is the last."""
        message = await self.until(lambda message: message.HasField("closed"))
        assert await self.end() is None
        return pb.CloseReason.Name(message.closed).removeprefix("CLOSE_REASON_")

    async def end(self) -> grpc.aio.AioRpcError | None:
        """Wait for the end; gives the error, or None where it ended well."""
        async with asyncio.timeout(LIMIT_S):
            await asyncio.wait([self._task])
        return self.error

    async def stop(self) -> None:
        self.call.cancel()
        await asyncio.wait([self._task])

    async def _read(self) -> None:
        try:
            async for message in self.call:
                self.said.append(message)
                self._news.set()
        except grpc.aio.AioRpcError as error:
            self.error = error
        except asyncio.CancelledError:
            pass
        finally:
            self._news.set()


@asynccontextmanager
async def watching(process: Any, metadata: Any, code: str, **fields: Any) -> AsyncIterator[Tape]:
    """Watch a room."""
    tape = Tape(process.stub.WatchRoom(pb.WatchRoomRequest(code=code, **fields), metadata=metadata))
    try:
        yield tape
    finally:
        await tape.stop()


@asynccontextmanager
async def watching_list(process: Any, metadata: Any, **fields: Any) -> AsyncIterator[Tape]:
    """Watch the list."""
    tape = Tape(process.stub.WatchRooms(pb.WatchRoomsRequest(**fields), metadata=metadata))
    try:
        yield tape
    finally:
        await tape.stop()


async def opened(process: Any, metadata: Any, **changes: Any) -> pb.CreateRoomResponse:
    fields = {"visibility": pb.VISIBILITY_PUBLIC, "rules": HOUSE, "request_id": secrets.token_hex(8), **changes}
    answer: pb.CreateRoomResponse = await process.stub.CreateRoom(pb.CreateRoomRequest(**fields), metadata=metadata)
    return answer


async def joined(process: Any, metadata: Any, code: str, **changes: Any) -> pb.JoinRoomResponse:
    request = pb.JoinRoomRequest(code=code, **{"request_id": secrets.token_hex(8), **changes})
    answer: pb.JoinRoomResponse = await process.stub.JoinRoom(request, metadata=metadata)
    return answer


def reason_of(error: grpc.aio.AioRpcError | None) -> tuple[str, dict[str, str], float | None]:
    """Give reason, metadata and retry delay of an error."""
    assert error is not None, "it ended well"
    info, retry = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo()
    delay = None
    for detail in rpc_status.from_call(error).details:
        detail.Unpack(info)
        if detail.Unpack(retry):
            delay = retry.retry_delay.ToTimedelta().total_seconds()
    return info.reason, dict(info.metadata), delay


async def refused(call: Any) -> str:
    """Give the reason of a call, or of the first message of a stream, that must fail."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        if hasattr(call, "read"):
            await call.read()
            pytest.fail("the stream said something")
        await call
    return reason_of(caught.value)[0]


async def eventually(question: Callable[[], Any], wanted: Any = True) -> None:
    """Ask until the answer is as wanted."""
    async with asyncio.timeout(LIMIT_S):
        while await question() != wanted:
            await asyncio.sleep(0.05)
