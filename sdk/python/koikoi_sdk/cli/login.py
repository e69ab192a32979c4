"""`koikoi login`: sign this device in."""

from __future__ import annotations

import asyncio
import platform
import re
import threading
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

import click

from koikoi_sdk.cli.options import device_options, open_device


@click.command("login")
@device_options
@click.option("--name", default="", help="Display name of a new account, 1-20 characters.")
@click.option("--provider", envvar="KOIKOI_PROVIDER", help="Address of the local OpenID provider (development).")
@click.option("--client-id", default="koikoi-development", show_default=True, help="Our name at the provider.")
@click.option("--as", "login_hint", help="The account at the local provider, for example alice@example.test.")
@click.option("--no-browser", is_flag=True, help="Only print the address to open; do not open a browser.")
@click.option("--wait", "wait_s", default=300, show_default=True, help="Seconds to wait for the browser to come back.")
@click.option("--device-name", default=None, help="What this device is called in `koikoi devices` (its host name).")
@click.option("--begin", is_flag=True, help="Print the nonce an ID token must carry, for --id-token-file later.")
@click.option("--id-token-file", type=click.File("r"), help="Complete a begun sign-in with an ID token (- for stdin).")
def command(
    gateway: str,
    home: Path | None,
    name: str,
    provider: str | None,
    client_id: str,
    login_hint: str | None,
    no_browser: bool,
    wait_s: int,
    device_name: str | None,
    begin: bool,
    id_token_file: TextIO | None,
) -> None:
    """Sign this device in, in your browser.

    Without a browser: at the local provider (--provider and --as), or with an ID token of your own: first --begin, get
    an ID token that carries the printed nonce, then --id-token-file.
    """
    names = {"display_name": name, "device_name": _host_name() if device_name is None else device_name}
    if begin:
        asyncio.run(_begin(gateway, home))
    elif id_token_file is not None:
        asyncio.run(_complete(gateway, home, id_token_file.read(16_384).strip(), names))
    elif login_hint and not provider:
        raise click.UsageError("give --provider with --as; without both you sign in in your browser")
    elif provider and login_hint:
        asyncio.run(_sign_in(gateway, home, provider, client_id, login_hint, names))
    else:
        asyncio.run(_sign_in_by_redirect(gateway, home, not no_browser, wait_s, names))


async def _begin(gateway: str, home: Path | None) -> None:
    async with open_device(gateway, home) as device:
        begun = await device.account.begin_sign_in()
    click.echo(begun.nonce)


async def _complete(gateway: str, home: Path | None, id_token: str, names: Mapping[str, str]) -> None:
    async with open_device(gateway, home) as device:
        answer = await device.account.sign_in(id_token, **names)
    click.echo(f"signed in as {answer.profile.display_name}")


async def _sign_in(
    gateway: str, home: Path | None, provider: str, client_id: str, login_hint: str, names: Mapping[str, str]
) -> None:
    from koikoi_sdk.client.openid import fetch_id_token

    async with open_device(gateway, home) as device:
        answer = await device.account.sign_in_with(
            lambda nonce: fetch_id_token(provider, client_id=client_id, login_hint=login_hint, nonce=nonce), **names
        )
    click.echo(f"signed in as {answer.profile.display_name}")


async def _sign_in_by_redirect(
    gateway: str, home: Path | None, opens_browser: bool, wait_s: float, names: Mapping[str, str]
) -> None:
    def show(url: str) -> None:
        click.echo(f"ブラウザーで開いてください。 Open this address in your browser:\n{url}")
        if opens_browser:
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()  # a browser in text mode blocks

    async with open_device(gateway, home) as device:
        answer = await device.account.sign_in_by_redirect(show, timeout_s=wait_s, **names)
    click.echo(f"signed in as {answer.profile.display_name}")


def _host_name() -> str:
    """Give this machine's name as a device name: short, and nothing in it that the service could refuse."""
    return re.sub(r"[^A-Za-z0-9.-]", "", platform.node())[:40]
