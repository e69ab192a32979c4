"""`koikoi bot`: play one match without a person."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from koikoi_sdk.cli.host import host
from koikoi_sdk.cli.join import join
from koikoi_sdk.cli.options import device_options, relay_option
from koikoi_sdk.cli.rules_options import make_rules, rules_options


@click.command("bot")
@device_options
@relay_option
@rules_options
@click.option("--join", "code", default=None, help="Join the room with this code instead of opening one.")
@click.option("--wait-s", type=click.FloatRange(1), default=600.0, show_default=True, help="How long to wait as host.")
def command(
    gateway: str,
    home: Path | None,
    relay: str,
    preset: str,
    rounds: int,
    doubling: bool,
    password: str,
    unlisted: bool,
    code: str | None,
    wait_s: float,
) -> None:
    """Play one match by itself: host a room or join one."""
    if code is not None:
        asyncio.run(join(gateway, home, relay, code, password=password, is_bot=True))
        return
    rules = make_rules(preset, rounds, doubling=doubling)
    asyncio.run(
        host(gateway, home, relay, rules, password=password, is_public=not unlisted, is_bot=True, wait_s=wait_s)
    )
