"""What dashboards see of the relay: a small fixed label set, never an id."""

from services.kit.metrics import Metrics
from services.match.domain.envelope import PHASES
from services.match.domain.match import Match
from services.match.domain.outcomes import Ending, Outcome

__all__ = ["RelayMetrics"]


class RelayMetrics:
    """Counts what happens to matches, without content."""

    def __init__(self, metrics: Metrics) -> None:
        self._envelopes = metrics.counter("envelopes_total", "Envelopes by what became of them.", ["outcome"])
        self._phases = metrics.counter("phases_total", "Accepted envelopes by phase: the funnel.", ["phase"])
        self._outcomes = metrics.counter("outcomes_total", "Ended matches by outcome.", ["outcome"])
        self._created = metrics.counter("begun_total", "Matches whose state was created.", ["kind"])
        self._stalls = metrics.counter("stalls_total", "Stalled and abandoned matches by the phase before.", ["phase"])
        self._disputes = metrics.counter("disputes_total", "Disputes by reason byte.", ["reason"])
        self._joins = metrics.counter("joins_total", "Joins by result.", ["result"])
        self._resumes = metrics.counter(
            "resumes_total", "Joins that came back, by whether the epoch was known.", ["ok"]
        )
        self._connections = metrics.gauge("connections", "Open connections by door.", ["door"])
        self._matches_here = metrics.gauge(
            "matches", "Matches with a connection here, by seats connected here.", ["seats"]
        )
        self._both = metrics.gauge("both_connected_ratio", "Share of the matches here whose two seats are connected.")
        self.commit_seconds = metrics.histogram("commit_seconds", "Time of one append or other change in the store.")
        self._gap = metrics.counter("unserved_seconds_total", "Time that was not charged because nobody swept.")

    def joined(self, result: str) -> None:
        """Count a join: ok, or the reason it was refused."""
        self._joins.labels(result).inc()

    def resumed(self, *, is_known: bool) -> None:
        """Count a seat that came back."""
        self._resumes.labels("yes" if is_known else "no").inc()

    def created(self, *, is_recovery: bool) -> None:
        """Count a new match, or one that begins again because the store lost it."""
        self._created.labels("recovery" if is_recovery else "new").inc()

    def envelope(self, outcome: str, phase: int | None = None) -> None:
        """Count an envelope: accepted, repeated, or the reason it was refused."""
        self._envelopes.labels(outcome).inc()
        if phase is not None:
            self._phases.labels(PHASES[phase]).inc()

    def ended(self, match: Match, ending: Ending) -> None:
        """Count the end of a match."""
        self._outcomes.labels(ending.outcome.value).inc()
        if ending.outcome in (Outcome.STALLED, Outcome.ABANDONED):
            self._stalls.labels("none" if match.phase is None else PHASES[match.phase]).inc()
        if ending.outcome is Outcome.DISPUTED:
            self._disputes.labels(str(ending.dispute_reason)).inc()

    def connected(self, door: str, change: int) -> None:
        """Count a connection that opened (1) or closed (-1)."""
        self._connections.labels(door).inc(change)

    def served(self, one_seat: int, two_seats: int, both_connected: int) -> None:
        """Tell how many matches have one or two seats here, and how many have both seats connected anywhere."""
        self._matches_here.labels("1").set(one_seat)
        self._matches_here.labels("2").set(two_seats)
        total = one_seat + two_seats
        self._both.set(both_connected / total if total else 0.0)

    def unserved(self, gap_ms: int) -> None:
        """Count time that was not charged."""
        self._gap.inc(gap_ms / 1000)
