"""The relay's clock: the store's, so that all processes agree on it whatever their machines' clocks say."""

from redis.asyncio import Redis

from services.kit.clock import Clock
from services.match.store.redis import translated

__all__ = ["RedisClock"]

_LONGEST_ANSWER_S = 0.5  # a slower answer says too little about when it was given


class RedisClock:
    """The machine's clock, corrected. Without it a clock 5 s off stops all deadlines, and a jump can charge a seat.

    Args:
        client: Redis.
        clock: The machine's clock.
    """

    def __init__(self, client: Redis, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._correction_s = 0.0

    def now(self) -> float:
        """Return the store's time as unix seconds, as far as `adjust` knows it."""
        return self._clock.now() + self._correction_s

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
        took_s = self._clock.monotonic() - started
        if took_s <= _LONGEST_ANSWER_S:
            self._correction_s = seconds + microseconds / 1e6 + took_s / 2 - self._clock.now()
