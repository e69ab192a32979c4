"""Ratings as a pure function of the accepted results in their order.

The model is Plackett-Luce of Weng and Lin, "A Bayesian Approximation Method for Online Ranking"
(JMLR 12, 2011), by the library openskill: a skill is believed to be normal with mean `mu` and
deviation `sigma`. What people see is a cautious number that begins at 1500 for everybody.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from openskill.models import PlackettLuce

INITIAL_MU = 25.0
INITIAL_SIGMA = 25.0 / 3
_SHOWN_START = 1500
_SHOWN_SCALE = 24.0
_CAUTION = 3
_MODEL = PlackettLuce(mu=INITIAL_MU, sigma=INITIAL_SIGMA)


@dataclass(frozen=True, slots=True)
class Rating:
    """What is believed of one account, and how many rated matches and wins that rests on."""

    mu: float = INITIAL_MU
    sigma: float = INITIAL_SIGMA
    matches: int = 0
    wins: int = 0

    @property
    def shown(self) -> int:
        """Give the number people see: 1500 + 24 (mu - 3 sigma), so 99.9 % sure to be earned."""
        return round(_SHOWN_START + _SHOWN_SCALE * (self.mu - _CAUTION * self.sigma))


Ratings = tuple[Rating, Rating]
"""The ratings of both seats, seat 0 first."""


@dataclass(frozen=True, slots=True)
class RatedMatch:
    """What a rating needs to know of a result; `winner` is a seat, or None for a draw."""

    account_ids: tuple[str, str]
    winner: int | None
    is_rated: bool


def rate(before: Ratings, winner: int | None) -> Ratings:
    """Give both ratings after a rated match; a draw brings them together."""
    ranks = [1.0, 1.0] if winner is None else [float(seat != winner) for seat in (0, 1)]
    teams = [[_MODEL.rating(mu=rating.mu, sigma=rating.sigma)] for rating in before]
    (first,), (second,) = _MODEL.rate(teams, ranks=ranks)
    return (
        _after(before[0], first.mu, first.sigma, has_won=winner == 0),
        _after(before[1], second.mu, second.sigma, has_won=winner == 1),
    )


class History:
    """Rates results from the first to the last; gives what the live service must have come to."""

    def __init__(self) -> None:
        self.ratings: dict[str, Rating] = {}

    def apply(self, match: RatedMatch) -> tuple[Ratings, Ratings]:
        """Take the next result in order; give the ratings of both seats before and after it."""
        first, second = (self.ratings.setdefault(account_id, Rating()) for account_id in match.account_ids)
        before = (first, second)
        after = rate(before, match.winner) if match.is_rated else before
        self.ratings.update(zip(match.account_ids, after, strict=True))
        return before, after


def _after(before: Rating, mu: float, sigma: float, *, has_won: bool) -> Rating:
    return replace(before, mu=mu, sigma=sigma, matches=before.matches + 1, wins=before.wins + has_won)
