"""The options that choose a room's rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
from koikoi.lobby.v1 import lobby_service_pb2 as lobby

from koikoi_sdk.rules import PRESETS

Function = TypeVar("Function", bound=Callable[..., Any])


def rules_options(function: Function) -> Function:
    """Add --preset, --rounds, --doubling, --password and --unlisted."""
    for option in (
        click.option("--preset", type=click.Choice(sorted(PRESETS)), default="house", show_default=True),
        click.option("--rounds", type=click.IntRange(0, 12), default=0, help="House: 6 or 12. Default: the preset's."),
        click.option("--doubling/--no-doubling", default=True, help="House: double scores from 8 points on."),
        click.option("--password", default="", help="Joining then needs this password."),
        click.option("--unlisted", is_flag=True, help="Keep the room out of the list; it is found by its code only."),
    ):
        function = option(function)
    return function


def make_rules(preset: str, rounds: int, *, doubling: bool) -> lobby.Rules:
    """Give the rules for the lobby; without doubling a match is not rated."""
    rules = lobby.Rules(preset=preset, rounds=rounds)
    if not doubling:
        rules.double_at = 0
    return rules
