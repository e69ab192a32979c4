"""`koikoi join`: take the second seat of a room and play."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from koikoi_sdk.cli.options import device_options, open_device, relay_option
from koikoi_sdk.cli.playing import make_player, play_contract
from koikoi_sdk.cli.rooms import describe_room


@click.command("join")
@device_options
@relay_option
@click.argument("code")
@click.option("--password", default="", help="The room's password.")
@click.option("--bot", is_flag=True, help="Let the simple bot play.")
def command(gateway: str, home: Path | None, relay: str, code: str, password: str, bot: bool) -> None:
    """Take the second seat of the room with this CODE and play."""
    asyncio.run(join(gateway, home, relay, code, password=password, is_bot=bot))


async def join(gateway: str, home: Path | None, relay: str, code: str, *, password: str, is_bot: bool) -> None:
    """Show a room's rules, take its second seat, and play."""
    async with open_device(gateway, home) as device:
        click.echo(f"room {describe_room(await device.lobby.get_room(code))}")
        contract = await device.lobby.join_room(code, password=password)
        await play_contract(device, contract, relay, make_player(is_bot=is_bot))
