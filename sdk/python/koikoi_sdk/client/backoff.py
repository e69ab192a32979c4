"""How long to wait before trying again: exponential, with full jitter, never less than the server asked for."""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass(slots=True)
class Backoff:
    """Counts failures and gives the next delay in seconds (Brooker, "Exponential Backoff And Jitter", 2015)."""

    base_s: float = 0.2
    limit_s: float = 10.0
    failures: int = 0
    _random: random.Random = field(default_factory=random.SystemRandom, repr=False)

    def next_delay_s(self, retry_after_s: float | None = None) -> float:
        """Count one more failure and give the delay before the next try."""
        ceiling = min(self.limit_s, self.base_s * 2 ** min(self.failures, 16))
        self.failures += 1
        return max(retry_after_s or 0.0, self._random.uniform(self.base_s / 2, ceiling + self.base_s / 2))

    def reset(self) -> None:
        """Forget the failures after a success."""
        self.failures = 0
