"""`koikoi host`: open a room, wait for an opponent and play."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import click
from koikoi.lobby.v1 import lobby_service_pb2 as lobby

from koikoi_sdk.cli.options import Device, device_options, open_device, relay_option
from koikoi_sdk.cli.playing import make_player, play_contract
from koikoi_sdk.cli.rooms import describe_room
from koikoi_sdk.cli.rules_options import make_rules, rules_options


@click.command("host")
@device_options
@relay_option
@rules_options
@click.option("--bot", is_flag=True, help="Let the simple bot play.")
@click.option("--wait-s", type=click.FloatRange(1), default=600.0, show_default=True, help="How long to wait.")
@click.option("--invite", is_flag=True, help="Make a link that opens the room without its password.")
@click.option("--approve", is_flag=True, help="Ask before somebody takes the seat.")
@click.option("--leave-other", is_flag=True, help="Leave the room you are in, if any.")
def command(
    gateway: str,
    home: Path | None,
    relay: str,
    preset: str,
    rounds: int,
    doubling: bool,
    password: str,
    unlisted: bool,
    bot: bool,
    wait_s: float,
    invite: bool,
    approve: bool,
    leave_other: bool,
) -> None:
    """Open a room, wait for an opponent and play."""
    rules = make_rules(preset, rounds, doubling=doubling)
    asyncio.run(
        host(
            gateway, home, relay, rules, password=password, is_public=not unlisted, is_bot=bot, wait_s=wait_s,
            with_invite=invite, needs_approval=approve, leave_other=leave_other,
        )
    )  # fmt: skip


async def host(
    gateway: str,
    home: Path | None,
    relay: str,
    rules: lobby.Rules,
    *,
    password: str,
    is_public: bool,
    is_bot: bool,
    wait_s: float,
    with_invite: bool = False,
    needs_approval: bool = False,
    leave_other: bool = False,
) -> None:
    """Open a room and play the match that comes of it; the room is closed when nobody comes."""
    from koikoi_sdk.client.errors import KoikoiError

    async with open_device(gateway, home) as device:
        room = await device.lobby.create_room(
            rules,
            is_public=is_public,
            password=password,
            with_invite=with_invite,
            needs_approval=needs_approval,
            leave_other=leave_other,
        )
        try:
            for difference in (await device.lobby.preview_rules(rules)).differences:
                click.echo(f"  {difference.text_ja}\n  {difference.text_en}")
            click.echo(f"room {describe_room(room)}\nwaiting; the other player runs: koikoi join {room.code}")
            if with_invite:
                click.echo(f"or opens the link: {await device.lobby.invite_link(room.code)}")
            doorkeeper = Doorkeeper(device, room.code)
            contract = await device.lobby.wait_for_contract(room.code, timeout_s=wait_s, on_view=doorkeeper.look)
        except BaseException:
            with contextlib.suppress(KoikoiError):  # a room that nobody looks after closes by itself
                await device.lobby.leave_room(room.code)
            raise
        await play_contract(device, contract, relay, make_player(is_bot=is_bot))


class Doorkeeper:
    """Asks the person at the terminal about everybody who knocks, one after the other."""

    def __init__(self, device: Device, code: str) -> None:
        self._device = device
        self._code = code
        self._asked: set[str] = set()

    async def look(self, view: lobby.RoomView) -> None:
        """Ask about the first who was not asked about yet; who is not let in is kept out."""
        from koikoi_sdk.client.errors import ServerError

        for knock in view.knocks:
            if knock.account_id in self._asked:
                continue
            self._asked.add(knock.account_id)
            question = f"{knock.display_name} wants to play. 入れますか。 Let them in?"
            try:
                if await asyncio.to_thread(click.confirm, question, default=True):
                    await self._device.lobby.accept_guest(self._code, knock.account_id)
                    return
                await self._device.lobby.kick_guest(self._code, knock.account_id)
            except ServerError as error:
                if error.reason not in ("GUEST_NOT_FOUND", "ROOM_NOT_FOUND"):
                    raise
                click.echo(f"{knock.display_name} is not there any more", err=True)
