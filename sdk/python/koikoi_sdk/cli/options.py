"""Options that several subcommands share, and what they open."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from koikoi_sdk.client.account import Account
    from koikoi_sdk.client.connect import ConnectClient
    from koikoi_sdk.client.home import Home
    from koikoi_sdk.client.lobby import Lobby
    from koikoi_sdk.client.ranking import Ranking

USAGE_EXIT_CODE = 2
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Device:
    """Everything a subcommand needs of this device."""

    home: Home
    client: ConnectClient
    account: Account
    lobby: Lobby
    ranking: Ranking


def device_options(function: Function) -> Function:
    """Add --gateway and --home."""
    function = click.option(
        "--gateway",
        envvar="KOIKOI_GATEWAY",
        default="http://127.0.0.1:8080",
        show_default=True,
        help="The service's public address (or KOIKOI_GATEWAY).",
    )(function)
    return home_option(function)


def home_option(function: Function) -> Function:
    """Add --home."""
    return click.option(
        "--home",
        envvar="KOIKOI_HOME",
        type=click.Path(path_type=Path, file_okay=False),
        default=None,
        help="Where this device keeps its key, session and matches (or KOIKOI_HOME).",
    )(function)


def relay_option(function: Function) -> Function:
    """Add --relay."""
    return click.option(
        "--relay",
        envvar="KOIKOI_RELAY",
        default="ws://127.0.0.1:8090",
        show_default=True,
        help="The relay's door: ws://, wss://, grpc:// or grpcs:// (or KOIKOI_RELAY).",
    )(function)


@asynccontextmanager
async def open_device(gateway: str, home: Path | None) -> AsyncIterator[Device]:
    """Open this device's home and a client of the gateway."""
    from koikoi_sdk.client.account import Account
    from koikoi_sdk.client.connect import ConnectClient
    from koikoi_sdk.client.home import Home, default_directory
    from koikoi_sdk.client.lobby import Lobby
    from koikoi_sdk.client.ranking import Ranking

    opened = Home(home or default_directory())
    async with ConnectClient(gateway) as client:
        account = Account(client, opened)
        yield Device(opened, client, account, Lobby(client, account), Ranking(client))
