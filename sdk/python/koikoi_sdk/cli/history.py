"""`koikoi history`: the recorded matches of one account."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click
from google.protobuf.json_format import MessageToJson
from koikoi.ranking.v1 import ranking_service_pb2 as ranking

from koikoi_sdk.cli.options import device_options, open_device

OUTCOMES = {
    "won": ranking.SEAT_OUTCOME_WON,
    "lost": ranking.SEAT_OUTCOME_LOST,
    "drawn": ranking.SEAT_OUTCOME_DRAWN,
}
PAGE_SIZE = 200


@click.command("history")
@device_options
@click.option("--account", default="", help="Whose matches, by account id; your own when not given.")
@click.option("--opponent", default="", help="Only against this account id.")
@click.option("--outcome", type=click.Choice(sorted(OUTCOMES)), help="Only those that ended so for the account.")
@click.option("--rated", is_flag=True, help="Only those that changed ratings.")
@click.option("--rows", type=click.IntRange(1, 10_000), default=20, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One MatchResult of the API in JSON on each line.")
def command(
    gateway: str,
    home: Path | None,
    account: str,
    opponent: str,
    outcome: str | None,
    rated: bool,
    rows: int,
    as_json: bool,
) -> None:
    """List recorded matches, newest first."""
    request = ranking.ListMatchResultsRequest(
        account_id=account,
        opponent_id=opponent,
        rated_only=rated,
        outcome=OUTCOMES[outcome] if outcome else ranking.SEAT_OUTCOME_UNSPECIFIED,
    )
    asyncio.run(_show(gateway, home, request, rows, as_json=as_json))


async def _show(
    gateway: str, home: Path | None, request: ranking.ListMatchResultsRequest, rows: int, *, as_json: bool
) -> None:
    async with open_device(gateway, home) as device:
        request.account_id = request.account_id or device.account.account_id
        shown = 0
        while shown < rows:
            request.page_size = min(rows - shown, PAGE_SIZE)
            page = await device.ranking.list_match_results(request)
            for result in page.results:
                click.echo(_json(result) if as_json else describe(result, request.account_id))
            shown += len(page.results)
            request.page_token = page.next_page_token
            if not page.next_page_token:
                break
    if not shown and not as_json:
        click.echo("まだ記録がありません。 No recorded match.")


def _json(result: ranking.MatchResult) -> str:
    return MessageToJson(result, indent=None, ensure_ascii=False)


def describe(result: ranking.MatchResult, account_id: str) -> str:
    """Give one line about a result as the account saw it; times are UTC."""
    number = next(index for index, seat in enumerate(result.seats) if seat.account_id == account_id)
    own, other = result.seats[number], result.seats[1 - number]
    outcome = "drawn"
    if result.HasField("winner_seat"):
        outcome = "won" if result.winner_seat == number else "lost"
    rating = f"{own.rating_before:.0f} -> {own.rating_after:.0f}" if result.is_rated else "not rated"
    when = result.create_time.ToDatetime().strftime("%Y-%m-%d %H:%M")
    resigned = ", resigned" if result.ending == ranking.ENDING_RESIGNED else ""
    return f"{when}  {outcome:5}  {own.points:3}-{other.points:<3}  {other.display_name}  ({rating}{resigned})"
