"""What `host`, `join`, `bot` and `resume` share: play a stored match and hand in its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from koikoi.match.v1 import match_service_pb2 as match

if TYPE_CHECKING:
    from koikoi.ranking.v1 import ranking_service_pb2 as ranking

    from koikoi_sdk.cli.options import Device
    from koikoi_sdk.client.contract import SignedContract
    from koikoi_sdk.client.errors import RelayClosed
    from koikoi_sdk.client.outbox import Outbox
    from koikoi_sdk.client.players import Player


def make_player(*, is_bot: bool) -> Player:
    """Give the player: a person at this terminal, or the simple bot."""
    if is_bot:
        from koikoi_sdk.client.players import SimpleBot

        return SimpleBot()
    from koikoi_sdk.cli.prompt import Prompt

    return Prompt()


async def play_contract(device: Device, contract: SignedContract, relay_url: str, player: Player) -> None:
    """Sit down at a new match and play it to its end."""
    from koikoi_sdk.client.match import sit_down

    await play_stored(device, sit_down(device.home, contract, device.account.key), relay_url, player)


async def play_stored(device: Device, outbox: Outbox, relay_url: str, player: Player) -> None:
    """Play a stored match to its end, and hand in the result if both devices signed one."""
    from koikoi_sdk.client.match import hand_in, play_match
    from koikoi_sdk.client.receipts import ReceiptVerifier
    from koikoi_sdk.client.transport import open_transport

    click.echo(f"match {outbox.match_id}")
    if outbox.is_open:
        transport, receipts = open_transport(relay_url), ReceiptVerifier(device.client, device.account.issuer)
        end = await play_match(outbox, device.account.key, transport, player, lament=_lament, receipts=receipts)
        outcome = match.Outcome.Name(end.outcome).removeprefix("OUTCOME_").lower()
        click.echo(f"outcome: {outcome}" + (f" (seat {end.seat})" if end.seat is not None else ""))
        if outbox.receipts:
            click.echo(f"the relay signed {len(outbox.receipts)} receipt(s) about a slow opponent: koikoi receipts")
    receipt = await hand_in(outbox, device.ranking)
    click.echo(_describe(receipt) if receipt else "no result was signed by both; nothing is recorded")


def _lament(closed: RelayClosed) -> None:
    click.echo(f"{closed}; trying again", err=True)


def _describe(receipt: ranking.MatchResult) -> str:
    seats = (
        f"{seat.display_name} {seat.points}"
        + (f" ({seat.rating_before:.0f} -> {seat.rating_after:.0f})" if receipt.is_rated else "")
        for seat in receipt.seats
    )
    return f"recorded after {receipt.rounds} rounds: " + ", ".join(seats)
