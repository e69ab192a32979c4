"""The self-check of `make run`: one encrypted, dual-signed match between two bots, through the public API only.

It plays three rounds of a rule set that is not rated, so that the leaderboard holds people only.
"""

from __future__ import annotations

from pathlib import Path

from koikoi.lobby.v1 import lobby_service_pb2 as lobby
from koikoi_sdk.client.errors import KoikoiError

from tools.bots import play_one_match as play
from tools.plan import Plan

__all__ = ["SelfCheckError", "play_one_match"]

RULES = lobby.Rules(preset="boardgameland", rounds=3)


class SelfCheckError(Exception):
    """The match did not come to a recorded result; the text is one sentence."""


async def play_one_match(plan: Plan, directory: Path) -> str:
    """Play the match and give one line about it.

    Raises:
        SelfCheckError: Something between sign-in and the recorded result does not work.
    """
    try:
        played = await play(plan, directory / "bots", plan.websocket_url, rules=RULES, say=lambda line: None)
    except (KoikoiError, TimeoutError) as error:
        raise SelfCheckError(f"the self-check failed: {error}; the logs are in {directory / 'log'}") from error
    if played.receipt is None:
        raise SelfCheckError(f"the self-check's match ended {played.outcome}, without a recorded result")
    points = " : ".join(str(seat.points) for seat in played.receipt.seats)
    return (
        f"self-check passed: {played.receipt.rounds} rounds, points {points}, recorded as number "
        f"{played.receipt.order_number} (a deal {played.deal_ms:.0f} ms, a turn {played.move_ms_p50:.1f} ms)"
    )
