"""Time that tests move by hand."""


class FakeClock:
    """Stands still until `advance`. `now` and `monotonic` move together; `set_back` moves only `now`."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self._now = now
        self._monotonic = 1000.0

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        self._now += seconds
        self._monotonic += seconds

    def set_back(self, seconds: float) -> None:
        self._now -= seconds
