"""`koikoi rooms`: open rooms, as they are or as they come and go, and the rules of one before joining it."""

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
@click.option("--watch", is_flag=True, help="Go on and show rooms as they come and go.")
def command(gateway: str, home: Path | None, code: str | None, preset: str, watch: bool) -> None:
    """List open rooms, or show the room with this CODE and where its rules differ from house."""
    asyncio.run(_watch(gateway, home, preset) if watch else _show(gateway, home, code, preset))


async def _show(gateway: str, home: Path | None, code: str | None, preset: str) -> None:
    async with open_device(gateway, home) as device:
        rooms = [await device.lobby.get_room(code)] if code else await device.lobby.list_rooms(preset=preset)
        differences = (await device.lobby.preview_rules(rooms[0].rules)).differences if code else ()
    if not rooms:
        click.echo("部屋がありません。 No open room; open one with `koikoi host`.")
    for room in rooms:
        click.echo(describe_room(room))
    for difference in differences:
        click.echo(f"  {difference.text_ja}\n  {difference.text_en}")


async def _watch(gateway: str, home: Path | None, preset: str) -> None:
    """Show the list and then every change, until the user stops it."""
    async with open_device(gateway, home) as device:
        async for message in device.lobby.watch_rooms(preset=preset):
            for line in describe_change(message):
                click.echo(line)


def describe_change(message: lobby.WatchRoomsResponse) -> list[str]:
    """Give the lines about one message: the whole list, what came (+), changed (~) and went (-), or a notice."""
    change, bulletin = message.change, message.bulletin
    lines = [f"  {describe_room(room)}" for room in message.snapshot.rooms]
    if message.HasField("snapshot"):
        lines = [f"{len(lines)} 部屋 open rooms", *lines]
    lines += [f"+ {describe_room(room)}" for room in change.added]
    lines += [f"~ {describe_room(room)}" for room in change.changed]
    lines += [f"- {code}" for code in change.removed_codes]
    return lines + [f"! {notice}" for notice in (bulletin.notice_ja, bulletin.notice_en) if notice]


def describe_room(room: lobby.Room) -> str:
    """Give one line about a room: code, host, rules, and what to know before joining."""
    marks = [f"{room.rules.preset}, {room.rules.rounds} rounds"]
    if not (room.rules.HasField("double_at") and room.rules.double_at):
        marks.append("no doubling")
    if room.has_password:
        marks.append("password")
    if room.needs_approval:
        marks.append("the host lets you in")
    marks.append("rated" if room.is_ranked else "not rated")
    if room.HasField("host_completion_percent"):
        marks.append(f"host completes {room.host_completion_percent}%")
    if not room.is_host_present:
        marks.append("host away")
    return f"{room.code}  {room.host.display_name}  ({'; '.join(marks)})"
