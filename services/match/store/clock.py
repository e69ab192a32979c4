"""The relay's clock: the store's, so that all processes agree on it whatever their machines' clocks say.

Between two looks at the store's time it goes by the machine's monotonic clock, which nobody sets.
"""

from redis.asyncio import Redis

from services.kit.clock import Clock
from services.match.store.redis import translated

__all__ = ["RedisClock"]

_LONGEST_ANSWER_S = 0.5  # a slower answer says too little about when it was given


class RedisClock:
    """The store's time. By the machine's, a clock 5 s off would stop all deadlines, and one that is set charge a seat.

    Args:
        client: Redis.
        clock: The machine's clock.
    """

    def __init__(self, client: Redis, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._ahead_s = clock.now() - clock.monotonic()  # of the monotonic clock; the machine's idea until `adjust`

    def now(self) -> float:
        """Return the store's time as unix seconds, as far as `adjust` knows it."""
        return self._clock.monotonic() + self._ahead_s

    def monotonic(self) -> float:
        """Return seconds since an arbitrary start."""
        return self._clock.monotonic()

    async def adjust(self) -> None:
        """Ask the store for its time.

        Raises:
            StoreUnavailable: It does not answer.
        """
        started = self._clock.monotonic()
        async with translated():
            seconds, microseconds = await self._client.time()
        ended = self._clock.monotonic()
        if ended - started <= _LONGEST_ANSWER_S:
            self._ahead_s = seconds + microseconds / 1e6 - (started + ended) / 2
