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
@click.option("--leave-other", is_flag=True, help="Leave the room you are in, if any.")
def command(
    gateway: str, home: Path | None, relay: str, code: str, password: str, bot: bool, leave_other: bool
) -> None:
    """Take the second seat of a room and play: CODE is its code, or the link of an invitation."""
    asyncio.run(join(gateway, home, relay, code, password=password, is_bot=bot, leave_other=leave_other))


async def join(
    gateway: str, home: Path | None, relay: str, code: str, *, password: str, is_bot: bool, leave_other: bool = False
) -> None:
    """Show a room's rules, take its second seat (or knock where the host approves), and play."""
    from koikoi_sdk.client.invites import parse_invite

    invite = parse_invite(code) if "://" in code else None
    async with open_device(gateway, home) as device:
        room = await device.lobby.get_room(invite.code if invite else code, invite=invite)
        click.echo(f"room {describe_room(room)}")
        if room.needs_approval:
            click.echo("waiting for the host to let you in")
            contract = await device.lobby.wait_for_contract(
                room.code, password=password, invite=invite, leave_other=leave_other
            )
        else:
            contract = await device.lobby.join_room(
                room.code, password=password, invite=invite, leave_other=leave_other
            )
        await play_contract(device, contract, relay, make_player(is_bot=is_bot))
