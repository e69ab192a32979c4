"""`koikoi leaderboard`: the best rated players."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from koikoi_sdk.cli.options import device_options, open_device


@click.command("leaderboard")
@device_options
@click.option("--rows", type=click.IntRange(1, 200), default=20, show_default=True)
def command(gateway: str, home: Path | None, rows: int) -> None:
    """Show the best rated players."""
    asyncio.run(_show(gateway, home, rows))


async def _show(gateway: str, home: Path | None, rows: int) -> None:
    async with open_device(gateway, home) as device:
        board = await device.ranking.get_leaderboard(page_size=rows)
    if not board.entries:
        click.echo("まだ記録がありません。 No rated match yet.")
    for entry in board.entries:
        click.echo(f"{entry.rank:4}  {entry.rating:7.1f}  {entry.wins:4}/{entry.matches:<4}  {entry.display_name}")
