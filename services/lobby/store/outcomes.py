"""The relay's stream `outcomes`, read by one consumer group for all processes of lobby.

At least once: an entry is acknowledged after its marks are in Postgres, and one that a dead process took is taken over.
All processes share one consumer name, so that a dead one leaves nothing behind. A stream that was lost begins anew;
what nobody had read of it is forgiven.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from services.lobby.domain.conduct import CHARGING, COMPLETE, NEUTRAL, Outcome
from services.lobby.ports import OutcomeEntry

STREAM = "outcomes"
GROUP = "lobby"
CONSUMER = "lobby"
CLAIM_AFTER_MS = 10_000
"""Whoever has not acknowledged an entry by then is taken for dead."""
_BATCH = 100
_BLOCK_MS = 1000
_LAST_TIME_MS = 4_102_444_800_000  # the year 2100: a later one is no time
_ACCOUNT_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MATCH_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"[0-9]{1,13}")
_SEATS = {"": None, "0": 0, "1": 1}


class RedisOutcomes:
    """Implements `ports.Outcomes`."""

    def __init__(self, client: Redis, *, claim_after_ms: int = CLAIM_AFTER_MS, block_ms: int = _BLOCK_MS) -> None:
        self._client, self._claim_after_ms, self._block_ms = client, claim_after_ms, block_ms

    async def read(self) -> list[OutcomeEntry]:
        """Wait a moment for entries that no process has read yet."""
        try:
            answer: Any = await self._client.xreadgroup(
                GROUP, CONSUMER, {STREAM: ">"}, count=_BATCH, block=self._block_ms
            )
        except ResponseError as error:
            if not str(error).startswith("NOGROUP"):
                raise
            await self._begin()
            return []
        return [entry for _, entries in answer or () for entry in map(_read_entry, entries)]

    async def claim(self) -> list[OutcomeEntry]:
        """Take over entries that were read long ago and never acknowledged."""
        try:
            answer: Any = await self._client.xautoclaim(STREAM, GROUP, CONSUMER, self._claim_after_ms, count=_BATCH)
        except ResponseError as error:
            if not str(error).startswith("NOGROUP"):
                raise
            return []
        return [_read_entry(entry) for entry in answer[1]]

    async def acknowledge(self, entries: Sequence[OutcomeEntry]) -> None:
        """Say that entries are done with."""
        if entries:
            await self._client.xack(STREAM, GROUP, *(position for position, _ in entries))

    async def _begin(self) -> None:
        """Make the group, from the beginning of whatever stream there is; another process may be faster."""
        try:
            await self._client.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
        except ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):
                raise


def _read_entry(entry: tuple[bytes, Mapping[bytes, bytes] | None]) -> OutcomeEntry:
    position, fields = entry
    return position, read_outcome(fields or {})


def read_outcome(fields: Mapping[bytes, bytes]) -> Outcome | None:
    """Read an entry's fields; None for anything the relay would not write."""
    try:
        text = {name.decode("ascii"): value.decode("ascii") for name, value in fields.items()}
        match_id, word, seat = text["match_id"], text["outcome"], _SEATS[text["seat"]]
        accounts, time = (text["account_0"], text["account_1"]), text["end_time_ms"]
    except (UnicodeDecodeError, KeyError):
        return None
    is_sound = (
        word in (*NEUTRAL, *COMPLETE, *CHARGING, "disputed")
        and (seat is not None or word not in CHARGING)
        and _MATCH_ID.fullmatch(match_id)
        and all(map(_ACCOUNT_ID.fullmatch, accounts))
        and accounts[0] != accounts[1]
        and _TIME.fullmatch(time)
        and int(time) < _LAST_TIME_MS
    )
    return Outcome(str(UUID(match_id)), word, seat, accounts, int(time)) if is_sound else None
