"""`koikoi resume`: go on with the matches that are not finished."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from koikoi_sdk.cli.failures import describe
from koikoi_sdk.cli.options import Device, device_options, open_device, relay_option
from koikoi_sdk.cli.playing import make_player, play_stored

if TYPE_CHECKING:
    from koikoi_sdk.client.outbox import Outbox


@click.command("resume")
@device_options
@relay_option
@click.option("--bot", is_flag=True, help="Let the simple bot play.")
def command(gateway: str, home: Path | None, relay: str, bot: bool) -> None:
    """Go on with every match on this device that is not finished, oldest first; hand in what was not handed in."""
    asyncio.run(_resume(gateway, home, relay, is_bot=bot))


async def _resume(gateway: str, home: Path | None, relay: str, *, is_bot: bool) -> None:
    from koikoi_sdk.client.outbox import Outbox

    async with open_device(gateway, home) as device:
        stored = [outbox for outbox in Outbox.stored(device.home.matches) if outbox.is_pending]
        if not stored:
            click.echo("no unfinished match on this device")
        failures = [outbox for outbox in stored if not await _go_on(device, outbox, relay, is_bot=is_bot)]
    if failures:
        raise click.exceptions.Exit(1)


async def _go_on(device: Device, outbox: Outbox, relay: str, *, is_bot: bool) -> bool:
    """Go on with one match; tell whether that worked, so that one that cannot go on does not hold up the others."""
    try:
        await play_stored(device, outbox, relay, make_player(is_bot=is_bot))
    except Exception as error:
        sentence = describe(error)
        if sentence is None:
            raise
        click.echo(f"koikoi: {sentence}", err=True)
        return False
    return True
