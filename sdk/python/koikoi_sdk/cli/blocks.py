"""`koikoi blocks`: whom one does not want to meet."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from koikoi_sdk.cli.options import device_options, open_device


@click.command("blocks")
@device_options
@click.argument("action", type=click.Choice(["list", "add", "remove"]), default="list")
@click.argument("account_id", required=False)
def command(gateway: str, home: Path | None, action: str, account_id: str | None) -> None:
    """List the accounts that see none of your rooms, add one, or take one back (by ACCOUNT_ID)."""
    if (account_id is None) != (action == "list"):
        raise click.UsageError("`list` takes no account id; `add` and `remove` take one.")
    asyncio.run(_run(gateway, home, action, account_id or ""))


async def _run(gateway: str, home: Path | None, action: str, account_id: str) -> None:
    async with open_device(gateway, home) as device:
        if action == "add":
            await device.lobby.block_account(account_id)
        elif action == "remove":
            await device.lobby.unblock_account(account_id)
        for block in await device.lobby.list_blocks():
            click.echo(f"{block.account_id}  since {block.create_time.ToDatetime():%Y-%m-%d}")
