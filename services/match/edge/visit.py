"""One connection from challenge to leave, the same for both doors."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable

from services.kit import trace
from services.kit.clock import Clock
from services.match.domain.errors import JoinTimeout
from services.match.edge.codec import read_frame, write_challenge
from services.match.edge.limits import Budget, DoorLimits
from services.match.metrics import RelayMetrics
from services.match.ports import Join, Outlet
from services.match.service import Relay

__all__ = ["Porter"]

_OPENING = "koikoi.match.v1.MatchService/Relay"
"""What a join is called in traces; nothing after it is traced."""
Receive = Callable[[float], Awaitable[bytes | None]]


class Porter:
    """Leads connections to the relay.

    Args:
        relay: The relay.
        limits: Bounds per connection.
        clock: Time.
        metrics: Counts.
    """

    def __init__(self, relay: Relay, limits: DoorLimits, clock: Clock, metrics: RelayMetrics) -> None:
        self._relay, self._limits, self._clock, self._metrics = relay, limits, clock, metrics

    async def lead(
        self, door: str, match_id: str | None, receive: Receive, send: Callable[[bytes], None], outlet: Outlet
    ) -> None:
        """Serve one connection until it ends.

        Args:
            door: `websocket` or `grpc`, for the gauges.
            match_id: The match that was dialed, if the door knows.
            receive: Gives the next frame, not before so many seconds; None (at once) when the client is gone.
            send: Sends raw bytes, for the challenge.
            outlet: For everything after.

        Raises:
            RelayError: The connection must close with this error.
        """
        self._metrics.connected(door, 1)
        try:
            challenge = secrets.token_bytes(32)
            send(write_challenge(challenge))
            join = await self._receive_join(receive)
            if join is not None:
                await self._stay(join, challenge, match_id, receive, outlet)
        finally:
            self._metrics.connected(door, -1)

    async def _receive_join(self, receive: Receive) -> Join | None:
        try:
            async with asyncio.timeout(self._limits.join_within_s):
                data = await receive(0.0)
        except TimeoutError:
            raise JoinTimeout(
                f"The join did not come within {self._limits.join_within_s:g} s.", retry_after_s=1.0
            ) from None
        if data is None:
            return None
        join = read_frame(data, is_first=True)
        assert isinstance(join, Join)
        return join

    async def _stay(self, join: Join, challenge: bytes, match_id: str | None, receive: Receive, outlet: Outlet) -> None:
        with trace.current().opening(_OPENING):
            connection = await self._relay.join(join, challenge, match_id, outlet)
        if connection is None:
            return
        budget, pause_s = Budget(self._limits, self._clock), 0.0
        try:
            while (data := await receive(pause_s)) is not None:
                pause_s = budget.spend(len(data))  # nothing is read meanwhile, so the client feels it
                await self._relay.handle(connection, read_frame(data, is_first=False))
        finally:
            await asyncio.shield(self._relay.leave(connection))
