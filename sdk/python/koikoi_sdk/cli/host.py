"""`koikoi host`: open a room, wait for an opponent and play."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import click
from koikoi.lobby.v1 import lobby_service_pb2 as lobby

from koikoi_sdk.cli.options import device_options, open_device, relay_option
from koikoi_sdk.cli.playing import make_player, play_contract
from koikoi_sdk.cli.rooms import describe_room
from koikoi_sdk.cli.rules_options import make_rules, rules_options


@click.command("host")
@device_options
@relay_option
@rules_options
@click.option("--bot", is_flag=True, help="Let the simple bot play.")
@click.option("--wait-s", type=click.FloatRange(1), default=600.0, show_default=True, help="How long to wait.")
def command(
    gateway: str,
    home: Path | None,
    relay: str,
    preset: str,
    rounds: int,
    doubling: bool,
    password: str,
    unlisted: bool,
    bot: bool,
    wait_s: float,
) -> None:
    """Open a room, wait for an opponent and play."""
    rules = make_rules(preset, rounds, doubling=doubling)
    asyncio.run(host(gateway, home, relay, rules, password=password, is_public=not unlisted, is_bot=bot, wait_s=wait_s))


async def host(
    gateway: str,
    home: Path | None,
    relay: str,
    rules: lobby.Rules,
    *,
    password: str,
    is_public: bool,
    is_bot: bool,
    wait_s: float,
) -> None:
    """Open a room and play the match that comes of it; the room is closed when nobody comes."""
    from koikoi_sdk.client.errors import KoikoiError

    async with open_device(gateway, home) as device:
        room = await device.lobby.create_room(rules, is_public=is_public, password=password)
        click.echo(f"room {describe_room(room)}\nwaiting; the other player runs: koikoi join {room.code}")
        try:
            contract = await device.lobby.wait_for_contract(room.code, timeout_s=wait_s)
        except BaseException:
            with contextlib.suppress(KoikoiError):  # a room that nobody looks after closes by itself
                await device.lobby.leave_room(room.code)
            raise
        await play_contract(device, contract, relay, make_player(is_bot=is_bot))
