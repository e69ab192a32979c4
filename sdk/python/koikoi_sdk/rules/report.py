"""Checks what two players report of a match without seeing a card (docs/protocol.md section 18).

A match result statement lists for each round only how it ended and the points. Whoever rates
matches replays that list here: it must be one that play under the contract's rules can produce.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from koikoi_sdk.rules.board import LAST_TURN
from koikoi_sdk.rules.cards import ALL
from koikoi_sdk.rules.errors import Reason, RulesError
from koikoi_sdk.rules.match import Match, start_match
from koikoi_sdk.rules.scoring import (
    Pair,
    Player,
    ResultKind,
    RoundResult,
    settle_exhausted,
    settle_shobu,
    settle_teyaku,
)
from koikoi_sdk.rules.variants import Variant
from koikoi_sdk.rules.yaku import evaluate, total


@dataclass(frozen=True, slots=True)
class ReportedRound:
    """One canonical round result; `winner` is None when nobody got anything."""

    kind: ResultKind
    winner: Player | None
    score: int
    payment: int
    points_after: Pair


def replay(variant: Variant, reported: Sequence[ReportedRound]) -> Match:
    """Replay reported rounds; the match given tells the points and, if it is over, how it ended.

    The first dealer is not reported, so both are tried; `dealer` of the answer is one that fits.
    That the cards allow a score is not checked, only that some set of yaku is worth it.

    Raises:
        RulesError: BAD_RULES, a round that cannot follow from the ones before it, or MATCH_OVER.
    """
    try:
        return _replay(start_match(variant, 0), reported)
    except RulesError:
        return _replay(start_match(variant, 1), reported)


def _replay(match: Match, reported: Sequence[ReportedRound]) -> Match:
    for index, report in enumerate(reported):
        try:
            match = match.record(_settle(match, report))
        except RulesError as error:
            raise error.within(f"rounds[{index}]") from None
    return match


def _settle(match: Match, report: ReportedRound) -> RoundResult:
    """Settle a round anew from its kind, winner and score; everything else must come out equal."""
    result = _candidate(match, report)
    told = (report.winner, report.score, report.payment, report.points_after)
    if result is None or told != (result.winner, result.score, result.payment, result.points_after):
        raise RulesError(Reason.BAD_RULES, "result", "a result that play from these points can have")
    return result


def _candidate(match: Match, report: ReportedRound) -> RoundResult | None:
    variant, points, winner = match.variant, match.points, report.winner
    if report.kind is ResultKind.EXHAUSTED:
        return settle_exhausted(variant, points, (0, 0), match.dealer)
    if winner is None:
        return None
    if report.kind is ResultKind.TEYAKU and variant.teyaku:
        return settle_teyaku(variant, points, winner, ("teshi", "teshi"))
    if report.kind is ResultKind.SHOBU and report.score in _shobu_scores(variant):
        base, declared = _shobu_scores(variant)[report.score]
        return _reported_shobu(variant, points, winner, base, declared)
    return None


@lru_cache(maxsize=64)
def _shobu_scores(variant: Variant) -> Mapping[int, tuple[int, int]]:
    """Map every score a stopped round can have to a base and a number of declarations for it."""
    most = total(evaluate(variant, ALL))
    return {
        _reported_shobu(variant, (0, 0), 0, base, declared).score: (base, declared)
        for base in range(1, most + 1)
        for declared in range(_most_declared(base) + 1)
    }


def _most_declared(base: int) -> int:
    """Give the largest number of declarations of both players before a stop with this base.

    The loser may declare on each of eight turns. The winner stops on one of eight, and each
    declaration before it needed fewer points than the next, so there are fewer than `base`.
    """
    turns = LAST_TURN // 2
    return turns + min(base, turns) - 1


def _reported_shobu(variant: Variant, points: Pair, winner: Player, base: int, declared: int) -> RoundResult:
    """Settle a round whose declarations were all the loser's: the factor that any mix can reach."""
    koikoi = (0, declared) if winner == 0 else (declared, 0)
    return settle_shobu(variant, points, koikoi, winner, (("reported", base),))
