"""`koikoi conduct`: how one behaved in one's last matches."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime
from pathlib import Path

import click
from koikoi.lobby.v1 import lobby_service_pb2 as lobby

from koikoi_sdk.cli.options import device_options, open_device


@click.command("conduct")
@device_options
def command(gateway: str, home: Path | None) -> None:
    """Show how many of your last matches you played to the end, and whether ranked rooms are closed to you."""
    asyncio.run(_run(gateway, home))


async def _run(gateway: str, home: Path | None) -> None:
    async with open_device(gateway, home) as device:
        conduct = await device.lobby.get_my_conduct()
    for line in describe_conduct(conduct, time.time()):
        click.echo(line)


def describe_conduct(conduct: lobby.GetMyConductResponse, now: float) -> list[str]:
    """Give the lines about one's conduct; `now` is in unix seconds."""
    if not conduct.HasField("completion_percent"):
        return ["対局なし  No match counts yet."]
    lines = [
        f"完了率 {conduct.completion_percent}%  "
        f"({conduct.completed} completed, {conduct.charged} left or held up, {conduct.disputed} in dispute; "
        f"the last {conduct.window} count)"
    ]
    until = conduct.cool_down_end_time.seconds + 1
    if conduct.HasField("cool_down_end_time") and until > now:
        lines.append(
            f"Ranked rooms are closed to you until {datetime.fromtimestamp(until).astimezone():%Y-%m-%d %H:%M:%S %Z}."
        )
    return lines
