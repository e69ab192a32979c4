"""`koikoi rooms`: open rooms, and the rules of one before joining it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click
from koikoi.lobby.v1 import lobby_service_pb2 as lobby

from koikoi_sdk.cli.options import device_options, open_device


@click.command("rooms")
@device_options
@click.argument("code", required=False)
@click.option("--preset", default="", help="Only rooms of this rule set.")
def command(gateway: str, home: Path | None, code: str | None, preset: str) -> None:
    """List open rooms, or show the room with this CODE."""
    asyncio.run(_show(gateway, home, code, preset))


async def _show(gateway: str, home: Path | None, code: str | None, preset: str) -> None:
    async with open_device(gateway, home) as device:
        rooms = [await device.lobby.get_room(code)] if code else await device.lobby.list_rooms(preset=preset)
    if not rooms:
        click.echo("部屋がありません。 No open room; open one with `koikoi host`.")
    for room in rooms:
        click.echo(describe_room(room))


def describe_room(room: lobby.Room) -> str:
    """Give one line about a room: code, host, rules, and what to know before joining."""
    marks = [f"{room.rules.preset}, {room.rules.rounds} rounds"]
    if not (room.rules.HasField("double_at") and room.rules.double_at):
        marks.append("no doubling")
    if room.has_password:
        marks.append("password")
    marks.append("rated" if room.is_ranked else "not rated")
    return f"{room.code}  {room.host.display_name}  ({'; '.join(marks)})"
