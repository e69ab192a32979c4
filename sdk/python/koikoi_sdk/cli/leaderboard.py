"""`koikoi leaderboard`: the best rated players, or those around oneself."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from koikoi_sdk.cli.options import device_options, open_device

MOST_ON_ONE_SIDE = 100
"""What the service shows above or below an account."""


@click.command("leaderboard")
@device_options
@click.option("--rows", type=click.IntRange(1, 200), default=20, show_default=True)
@click.option("--around", is_flag=True, help="Show the players around you instead of the best.")
def command(gateway: str, home: Path | None, rows: int, around: bool) -> None:
    """Show the best rated players, or those around you."""
    asyncio.run(_show(gateway, home, rows, around=around))


async def _show(gateway: str, home: Path | None, rows: int, *, around: bool) -> None:
    async with open_device(gateway, home) as device:
        own = device.account.account_id if around else ""
        if around:
            side = min(rows // 2, MOST_ON_ONE_SIDE)
            entries = (await device.ranking.get_leaderboard_around(own, above=side, below=side)).entries
        else:
            entries = (await device.ranking.get_leaderboard(page_size=rows)).entries
    if not entries:
        click.echo("まだ記録がありません。 No rated match yet.")
    for entry in entries:
        place = f"{entry.rank:4}" if entry.rank else "   -"
        mark = "  *" if entry.account_id == own else ""
        click.echo(f"{place}  {entry.rating:7.1f}  {entry.wins:4}/{entry.matches:<4}  {entry.display_name}{mark}")
