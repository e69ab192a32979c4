"""Settlement of a round: who gets how many points, and who deals next (docs/rules.md sections 4, 8, 9)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from koikoi_sdk.rules.errors import Reason, RulesError
from koikoi_sdk.rules.variants import KoikoiFactor, Scoring, Variant
from koikoi_sdk.rules.yaku import Yaku, total

Player = int
"""A seat, 0 or 1."""
Pair = tuple[int, int]
"""One number for each player, player 0 first."""


class ResultKind(StrEnum):
    """How a round ended."""

    SHOBU = "shobu"
    EXHAUSTED = "exhausted"
    TEYAKU = "teyaku"
    REDEAL = "redeal"


@dataclass(frozen=True, slots=True)
class RoundResult:
    """What a round changed.

    `base` is before the multipliers, `score` after them, `payment` what the winner really gets:
    at most the loser's points where the loser pays. `teyaku` is set for hand yaku only, `why`
    for redeals only.
    """

    kind: ResultKind
    winner: Player | None
    yaku: Yaku
    koikoi: Pair
    base: int
    threshold_mult: int
    koikoi_mult: int
    score: int
    payment: int
    delta: Pair
    points_after: Pair
    next_dealer: Player
    teyaku: tuple[str | None, str | None] | None = None
    why: tuple[str, ...] = ()


def settle_shobu(variant: Variant, points: Pair, koikoi: Pair, winner: Player, yaku: Yaku) -> RoundResult:
    """Settle a round that its winner stopped; the opponent's yaku are worth nothing."""
    base = total(yaku)
    threshold = 2 if variant.double_at is not None and base >= variant.double_at else 1
    factor = _koikoi_factor(variant.koikoi_factor, koikoi, winner)
    score = base * threshold * factor
    payment, delta, after = _pay(variant, points, winner, score)
    return RoundResult(
        kind=ResultKind.SHOBU,
        winner=winner,
        yaku=yaku,
        koikoi=koikoi,
        base=base,
        threshold_mult=threshold,
        koikoi_mult=factor,
        score=score,
        payment=payment,
        delta=delta,
        points_after=after,
        next_dealer=winner,
    )


def settle_exhausted(variant: Variant, points: Pair, koikoi: Pair, dealer: Player) -> RoundResult:
    """Settle a round that nobody stopped; some variants give the dealer a point for it."""
    award = variant.exhausted_award
    payment, delta, after = _pay(variant, points, dealer, award)
    return RoundResult(
        kind=ResultKind.EXHAUSTED,
        winner=dealer if award else None,
        yaku=(),
        koikoi=koikoi,
        base=0,
        threshold_mult=1,
        koikoi_mult=1,
        score=award,
        payment=payment,
        delta=delta,
        points_after=after,
        next_dealer=1 - dealer if variant.exhausted_passes_deal else dealer,
    )


def settle_teyaku(variant: Variant, points: Pair, dealer: Player, names: tuple[str | None, str | None]) -> RoundResult:
    """Settle a hand yaku; of two, the dealer's counts.

    Raises:
        RulesError: ILLEGAL_ACTION, nobody has one or the variant knows none.
    """
    winner = dealer if names[dealer] is not None else 1 - dealer
    name = names[winner]
    if name is None or not variant.teyaku:
        raise RulesError(Reason.ILLEGAL_ACTION, "names", "a hand yaku, in a variant that has them")
    payment, delta, after = _pay(variant, points, winner, variant.teyaku)
    return RoundResult(
        kind=ResultKind.TEYAKU,
        winner=winner,
        yaku=((name, variant.teyaku),),
        koikoi=(0, 0),
        base=variant.teyaku,
        threshold_mult=1,
        koikoi_mult=1,
        score=variant.teyaku,
        payment=payment,
        delta=delta,
        points_after=after,
        next_dealer=winner,
        teyaku=names,
    )


def settle_redeal(points: Pair, dealer: Player, why: tuple[str, ...]) -> RoundResult:
    """Void a deal: nothing changes, the same dealer deals again, no round is counted."""
    return RoundResult(
        kind=ResultKind.REDEAL,
        winner=None,
        yaku=(),
        koikoi=(0, 0),
        base=0,
        threshold_mult=1,
        koikoi_mult=1,
        score=0,
        payment=0,
        delta=(0, 0),
        points_after=points,
        next_dealer=dealer,
        why=why,
    )


def _koikoi_factor(rule: KoikoiFactor, koikoi: Pair, winner: Player) -> int:
    if rule is KoikoiFactor.ONE_PLUS_ALL:
        return 1 + sum(koikoi)
    if rule is KoikoiFactor.LOSER_DECLARED:
        return 2 if koikoi[1 - winner] else 1
    if rule is KoikoiFactor.ANYONE_DECLARED:
        return 2 if any(koikoi) else 1
    return 1


def _pay(variant: Variant, points: Pair, winner: Player, score: int) -> tuple[int, Pair, Pair]:
    """Give the payment, what it changes, and the points after it."""
    transfer = variant.scoring is Scoring.TRANSFER
    payment = min(score, points[1 - winner]) if transfer else score
    lost = -payment if transfer else 0
    delta = (payment, lost) if winner == 0 else (lost, payment)
    return payment, delta, (points[0] + delta[0], points[1] + delta[1])
