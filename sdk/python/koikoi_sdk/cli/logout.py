"""`koikoi logout`: sign this device out."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from koikoi_sdk.cli.options import device_options, open_device


@click.command("logout")
@device_options
@click.option("--all-devices", is_flag=True, help="End the sessions of every device of the account.")
def command(gateway: str, home: Path | None, all_devices: bool) -> None:
    """Sign this device out."""
    asyncio.run(_sign_out(gateway, home, all_devices))
    click.echo("signed out")


async def _sign_out(gateway: str, home: Path | None, all_devices: bool) -> None:
    async with open_device(gateway, home) as device:
        await device.account.sign_out(all_devices=all_devices)
