"""`koikoi receipts`: what the relay signed about slow and dishonest opponents."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import click

from koikoi_sdk.cli.options import home_option


@click.command("receipts")
@home_option
@click.argument("match_id", required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per receipt, with the signed token.")
def command(home: Path | None, match_id: str | None, as_json: bool) -> None:
    """Show the relay's signed receipts on this device, of all matches or of MATCH_ID.

    They were verified when they came. Whom they accuse, and of what, is the relay's word alone.
    """
    from koikoi_sdk.client.home import Home, default_directory
    from koikoi_sdk.client.match import payload_of
    from koikoi_sdk.client.outbox import Outbox

    kept = Outbox.stored(Home(home or default_directory()).matches)
    tokens = [token for outbox in kept if match_id in (None, outbox.match_id) for token in outbox.receipts]
    if not tokens:
        click.echo("受領証がありません。 No receipt on this device.", err=True)
    for token in tokens:
        claims = json.loads(payload_of(token))
        click.echo(json.dumps({**claims, "token": token}) if as_json else _describe(claims))


def _describe(claims: dict[str, str | int | None]) -> str:
    owing, since = claims["owing_seat"], claims["owing_since_ms"]
    owes = "nobody owed" if owing is None or since is None else f"seat {owing} owed for {_seconds(claims, since)} s"
    return f"{_time(claims['now_ms'])}  {claims['match_id']}  after {claims['counter']} messages {owes}"


def _seconds(claims: dict[str, str | int | None], since: str | int) -> int:
    return (int(claims["now_ms"] or 0) - int(since)) // 1000


def _time(ms: str | int | None) -> str:
    return datetime.fromtimestamp(int(ms or 0) / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
