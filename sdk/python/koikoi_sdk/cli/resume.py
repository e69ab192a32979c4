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
        await _take_up_new(device)
        stored = [outbox for outbox in Outbox.stored(device.home.matches) if outbox.is_pending]
        if not stored:
            click.echo("no unfinished match on this device")
        failures = [outbox for outbox in stored if not await _go_on(device, outbox, relay, is_bot=is_bot)]
    if failures:
        raise click.exceptions.Exit(1)


async def _take_up_new(device: Device) -> None:
    """Sit down at the match that this device died before storing: the lobby still has its contract.

    Only while it can be begun: an older one that is not on disk has ended, here or for good. What was stored goes on
    also while nobody answers here.
    """
    from koikoi_sdk.client.errors import KoikoiError
    from koikoi_sdk.client.match import is_young, sit_down
    from koikoi_sdk.client.outbox import Outbox
    from koikoi_sdk.table import ContractError

    try:
        contracts = await device.lobby.list_my_matches() if device.account.issuer else []
    except KoikoiError as error:
        click.echo(f"koikoi: the lobby's list of matches cannot be read: {error}", err=True)
        return
    for contract in contracts:
        if is_young(contract.payload) and not Outbox.knows(device.home.matches, contract.match_id):
            try:
                sit_down(device.home, contract, device.account.key)
            except ContractError as error:  # another device of this account plays it
                click.echo(f"match {contract.match_id} is not this device's: {error}", err=True)


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
