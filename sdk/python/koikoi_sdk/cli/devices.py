"""`koikoi devices`: the devices of the account."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import click
from koikoi.auth.v1 import auth_service_pb2 as auth

from koikoi_sdk.cli.options import device_options, open_device


@click.group("devices", invoke_without_command=True)
@device_options
@click.pass_context
def command(context: click.Context, gateway: str, home: Path | None) -> None:
    """List the devices of your account, name one, or sign one out."""
    context.obj = (gateway, home)
    if context.invoked_subcommand is None:
        asyncio.run(_list(gateway, home))


@command.command("list")
@click.pass_obj
def list_command(where: tuple[str, Path | None]) -> None:
    """List the devices, this one first."""
    asyncio.run(_list(*where))


@command.command("rename")
@click.argument("device")
@click.argument("name")
@click.pass_obj
def rename_command(where: tuple[str, Path | None], device: str, name: str) -> None:
    """Call a DEVICE (its id or the beginning of it) NAME; an empty name gives it back its own."""
    asyncio.run(_rename(*where, device, name))


@command.command("revoke")
@click.argument("device")
@click.pass_obj
def revoke_command(where: tuple[str, Path | None], device: str) -> None:
    """Sign a DEVICE (its id or the beginning of it) out; its running matches end."""
    asyncio.run(_revoke(*where, device))


async def _list(gateway: str, home: Path | None) -> None:
    async with open_device(gateway, home) as opened:
        devices = await opened.account.devices()
    for one in devices:
        click.echo(describe_device(one))


async def _rename(gateway: str, home: Path | None, device: str, name: str) -> None:
    async with open_device(gateway, home) as opened:
        meant = find_device(await opened.account.devices(), device)
        click.echo(describe_device(await opened.account.rename_device(meant.device_id, name)))


async def _revoke(gateway: str, home: Path | None, device: str) -> None:
    async with open_device(gateway, home) as opened:
        meant = find_device(await opened.account.devices(), device)
        has_ended = await opened.account.revoke_device(meant)
    click.echo("signed out" if has_ended else "it was signed out already")


def find_device(devices: list[auth.Device], text: str) -> auth.Device:
    """Give the one device whose id begins so.

    Raises:
        UsageError: There is none, or more than one.
    """
    meant = [one for one in devices if text and one.device_id.startswith(text.lower())]
    if len(meant) != 1:
        how_many = "more than one" if meant else "no"
        raise click.UsageError(f"{how_many} device of yours has an id that begins with {text!r}; see `koikoi devices`")
    return meant[0]


def describe_device(device: auth.Device) -> str:
    """Give one line about a device: id, name, since when, last use."""
    marks = ["this device"] if device.is_current else []
    if not device.is_signed_in:
        marks.append("signed out")
    marks.append(f"since {_day(device.create_time.seconds)}, last used {_day(device.last_use_time.seconds)}")
    return f"{device.device_id}  {device.device_name or '-'}  ({'; '.join(marks)})"


def _day(seconds: int) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(seconds))
