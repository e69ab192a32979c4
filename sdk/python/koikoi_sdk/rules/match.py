"""A match: rounds until somebody has nothing left or all are played (docs/rules.md section 10)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from koikoi_sdk.rules.errors import Reason, RulesError
from koikoi_sdk.rules.scoring import Pair, Player, ResultKind, RoundResult
from koikoi_sdk.rules.variants import Scoring, Variant


class EndReason(StrEnum):
    """Why a match is over."""

    ROUNDS = "rounds"
    BUST = "bust"


@dataclass(frozen=True, slots=True)
class Final:
    """The end of a match; `winner` is None for a draw."""

    points: Pair
    winner: Player | None
    reason: EndReason
    rounds_played: int


@dataclass(frozen=True, slots=True)
class Match:
    """A match between rounds. Made by `start_match`; `record` gives the next one.

    `dealer` deals the next round; `results` are those of the rounds that counted, so redeals are
    not among them; `final` is there once the match is over.
    """

    variant: Variant
    points: Pair
    dealer: Player
    results: tuple[RoundResult, ...] = ()
    final: Final | None = None

    @property
    def round_no(self) -> int:
        """Give the number of the round to be played next, from 1."""
        return len(self.results) + 1

    def record(self, result: RoundResult) -> Match:
        """Take the result of the round just played; a redeal changes nothing.

        Raises:
            RulesError: MATCH_OVER, or BAD_RULES when the result does not start from the points
                the match stands at.
        """
        if self.final is not None:
            raise RulesError(Reason.MATCH_OVER, "rounds", "nothing more, the match is over")
        before = tuple(a - d for a, d in zip(result.points_after, result.delta, strict=True))
        if before != self.points:
            raise RulesError(Reason.BAD_RULES, "result", "a round begun at the match's points")
        if result.kind is ResultKind.REDEAL:
            return self
        results = (*self.results, result)
        played = replace(self, points=result.points_after, dealer=result.next_dealer, results=results)
        return replace(played, final=_final(played))


def start_match(variant: Variant, first_dealer: Player) -> Match:
    """Begin a match of `variant.rounds` rounds."""
    return Match(variant, (variant.stake, variant.stake), first_dealer)


def _final(match: Match) -> Final | None:
    """Decide whether the match is over: a stake of nothing ends it at once, also in the last round."""
    played = len(match.results)
    bust = match.variant.scoring is Scoring.TRANSFER and 0 in match.points
    if not bust and played < match.variant.rounds:
        return None
    mine, yours = match.points
    winner = None if mine == yours else int(yours > mine)
    return Final(match.points, winner, EndReason.BUST if bust else EndReason.ROUNDS, played)
