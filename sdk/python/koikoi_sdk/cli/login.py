"""`koikoi login`: sign this device in."""

from __future__ import annotations

import asyncio
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
@click.option("--begin", is_flag=True, help="Print the nonce an ID token must carry, for --id-token-file later.")
@click.option("--id-token-file", type=click.File("r"), help="Complete a begun sign-in with an ID token (- for stdin).")
def command(
    gateway: str,
    home: Path | None,
    name: str,
    provider: str | None,
    client_id: str,
    login_hint: str | None,
    begin: bool,
    id_token_file: TextIO | None,
) -> None:
    """Sign this device in.

    Either at the local provider (--provider and --as), or with an ID token of your own: first --begin, get an ID token
    that carries the printed nonce, then --id-token-file.
    """
    if begin:
        asyncio.run(_begin(gateway, home))
    elif id_token_file is not None:
        asyncio.run(_complete(gateway, home, id_token_file.read(16_384).strip(), name))
    elif provider and login_hint:
        asyncio.run(_sign_in(gateway, home, provider, client_id, login_hint, name))
    else:
        raise click.UsageError("give --provider and --as, or --begin, or --id-token-file")


async def _begin(gateway: str, home: Path | None) -> None:
    async with open_device(gateway, home) as device:
        begun = await device.account.begin_sign_in()
    click.echo(begun.nonce)


async def _complete(gateway: str, home: Path | None, id_token: str, name: str) -> None:
    async with open_device(gateway, home) as device:
        answer = await device.account.sign_in(id_token, display_name=name)
    click.echo(f"signed in as {answer.profile.display_name}")


async def _sign_in(gateway: str, home: Path | None, provider: str, client_id: str, login_hint: str, name: str) -> None:
    from koikoi_sdk.client.openid import fetch_id_token

    async with open_device(gateway, home) as device:
        answer = await device.account.sign_in_with(
            lambda nonce: fetch_id_token(provider, client_id=client_id, login_hint=login_hint, nonce=nonce),
            display_name=name,
        )
    click.echo(f"signed in as {answer.profile.display_name}")
