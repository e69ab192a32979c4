"""Compares what two devices were told with what the stores hold: nothing acknowledged is lost, nothing counts twice."""

from __future__ import annotations

import asyncio
import json
import re
from itertools import pairwise
from pathlib import Path

from koikoi.match.v1 import match_service_pb2 as match
from koikoi_sdk.table import Ending
from redis import Redis

from tests.crash.players import Player, Seen
from tests.crash.scenario import Result, Stroke, results_of
from tools.stack import Stack

_RECORD_LIMIT_S = 15.0
_ERRORS = Path(__file__).parents[2] / "docs" / "errors.md"
_TO_REPEAT = {"UNREACHABLE", "deadline_exceeded"} | {
    reason
    for reason, again in re.findall(r"^\| `(\w+)` \|.*\| (yes|no) \|[^|]*\|$", _ERRORS.read_text(), re.MULTILINE)
    if again == "yes"
}
"""Refusals that the page marks `again: yes`, and no answer at all."""
_RESIGNED = int(Ending.RESIGNED)
_ANEW = {"CHALLENGE_INVALID", "ROOM_NOT_FOUND"}


def rows(stack: Stack, query: str) -> list[dict[str, object]]:
    text = stack.postgres.execute(f"SELECT coalesce(json_agg(found), '[]') FROM ({query}) AS found")
    found: list[dict[str, object]] = json.loads(text)
    return found


async def check(stack: Stack, players: list[Player], strokes: list[Stroke], *, is_rated: bool) -> None:
    """Fail unless all that was observed fits together."""
    for player in players:
        for seen in player.seen:
            check_documented(seen, strokes)
    matches = {match_id for player in players for match_id in (*player.journals, *player.ends)}
    finished = {match_id for match_id in matches if any(match_id in player.ends for player in players)}
    assert finished, "no match was played to its end"
    for match_id in sorted(matches):
        await check_match(stack, players, match_id, is_finished=match_id in finished, is_rated=is_rated)
    check_ratings(stack, players)
    check_accounts(stack, players)
    check_outcomes(stack, matches)


def check_documented(seen: Seen, strokes: list[Stroke]) -> None:
    """Fail unless one of the strokes so far may show itself to the player like this."""
    if seen.reason in _ANEW:
        result = Result.ANEW
    elif seen.reason == "DESERTED":
        result = Result.DESERTED
    else:
        assert seen.reason in _TO_REPEAT, seen
        result = Result.AGAIN
    assert any(result in results_of(stroke.fault, seen.phase) for stroke in strokes[: seen.strokes]), (seen, result)


async def check_match(stack: Stack, players: list[Player], match_id: str, *, is_finished: bool, is_rated: bool) -> None:
    results = rows(stack, f"SELECT is_rated, ending, winner FROM ranking.result WHERE match_id = '{match_id}'")
    assert not rows(stack, f"SELECT 1 FROM ranking.conflict WHERE match_id = '{match_id}'"), match_id
    if not is_finished:
        assert not results
        found = rows(stack, f"SELECT outcome, seat FROM match.ended_match WHERE match_id = '{match_id}'")
        assert all(row == {"outcome": "never_started", "seat": None} for row in found), found
        return
    assert len(results) == 1, (match_id, results)
    ends = [player.ends.get(match_id) for player in players]
    assert all(ends), (match_id, "one device was never told", ends)
    (result,) = results
    assert result["is_rated"] == is_rated, (match_id, result)
    has_resigned = result["ending"] == _RESIGNED
    receipts = [end.receipt.SerializeToString(deterministic=True) for end in ends if end and end.receipt]
    assert len(set(receipts)) <= 1, "two receipts of one match differ"
    sent = check_envelopes(players, match_id)
    record = await recorded(stack, match_id)
    expected: list[dict[str, object]] = [{"outcome": "finished", "seat": None, "counter": sent}]
    if has_resigned:  # else its device died between its last envelope and saying so to the relay
        expected.append({"outcome": "resigned", "seat": 0 if result["winner"] else 1, "counter": sent})
    assert record in expected, (match_id, record, expected)
    told = match.OUTCOME_RESIGNED if record["outcome"] == "resigned" else match.OUTCOME_FINISHED
    for end in ends:
        assert end is not None
        assert end.outcome in (told, match.OUTCOME_UNSPECIFIED), end
    for player in players:
        assert player.journals[match_id].acknowledged <= sent


def check_envelopes(players: list[Player], match_id: str) -> int:
    """Fail unless every number was sent once and arrived as it was sent; give how many there were."""
    first, second = (player.journals[match_id] for player in players)
    numbers = sorted([*first.sent, *second.sent])
    assert numbers == list(range(len(numbers))), numbers
    for sender, receiver in ((first, second), (second, first)):
        assert all(len(versions) == 1 for versions in sender.sent.values()), "a number was said in two ways"
        assert sender.sent == receiver.received
    told = first.told | second.told
    assert len(told) <= 1, told
    return len(numbers)


async def recorded(stack: Stack, match_id: str) -> dict[str, object] | None:
    """Give the relay's record, which may be written a while after the end."""
    deadline = asyncio.get_running_loop().time() + _RECORD_LIMIT_S
    query = f"SELECT outcome, seat, counter FROM match.ended_match WHERE match_id = '{match_id}'"
    while not (found := rows(stack, query)) and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.1)
    return found[0] if found else None


def check_ratings(stack: Stack, players: list[Player]) -> None:
    """Fail unless each account's rating is its results applied once, one after the other."""
    for player in players:
        account = f"account_id = '{player.account_id}'"
        query = f"SELECT mu, sigma, matches, wins FROM ranking.account WHERE {account}"
        (rating,) = rows(stack, query)
        seats = rows(
            stack,
            "SELECT seat, winner, is_rated, mu_before, sigma_before, mu_after, sigma_after FROM ranking.result_seat "
            f"JOIN ranking.result USING (order_number) WHERE {account} ORDER BY order_number",
        )
        assert len(seats) == sum(1 for end in player.ends), (player.role, len(seats), list(player.ends))
        for before, after in pairwise(seats):
            assert (before["mu_after"], before["sigma_after"]) == (after["mu_before"], after["sigma_before"])
        assert (rating["mu"], rating["sigma"]) == (seats[-1]["mu_after"], seats[-1]["sigma_after"])
        assert rating["matches"] == sum(bool(seat["is_rated"]) for seat in seats)
        assert rating["wins"] == sum(bool(seat["is_rated"]) and seat["winner"] == seat["seat"] for seat in seats)
        appearances = rows(stack, f"SELECT order_number FROM ranking.appearance WHERE {account}")
        assert len(appearances) == len(seats)


def check_accounts(stack: Stack, players: list[Player]) -> None:
    """Fail unless each device has one account, the one it was told, and its session is live."""
    for player in players:
        key = player.home.device_key().public.hex()
        found = rows(
            stack,
            "SELECT account_id::text, (SELECT count(*) FROM auth.sessions AS own WHERE own.device_key = "
            "devices.device_key AND end_time IS NULL) AS live FROM auth.devices WHERE "
            f"device_key = decode('{key}', 'hex')",
        )
        assert found == [{"account_id": player.account_id, "live": 1}], (player.role, found)
        session = player.home.load("session")
        assert session is not None
        assert session["account_id"] == player.account_id


def check_outcomes(stack: Stack, matches: set[str]) -> None:
    """Fail unless the stream says of each match one thing, however often, and what Postgres says."""
    told: dict[str, set[tuple[str, str]]] = {}
    with Redis.from_url(stack.valkey.url, decode_responses=True) as client:
        entries: list[tuple[str, dict[str, str]]] = client.xrange("outcomes")
    for _, entry in entries:
        told.setdefault(entry["match_id"], set()).add((entry["outcome"], entry["seat"]))
    for match_id in matches & set(told):
        assert len(told[match_id]) == 1, told[match_id]
        ((outcome, seat),) = told[match_id]
        query = f"SELECT outcome, coalesce(seat::text, '') AS seat FROM match.ended_match WHERE match_id = '{match_id}'"
        assert rows(stack, query) == [{"outcome": outcome, "seat": seat}]
