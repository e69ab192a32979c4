"""Who is there: the host's stream in the room itself, knocks in a hash beside it; renewed by the batch."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from hashlib import sha1
from pathlib import Path
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import NoScriptError

from services.kit.redis import Argument, load_script
from services.lobby.domain.rooms import MAX_KNOCKS, Knock, Player
from services.lobby.ports import Attendance, Attended
from services.lobby.store.record import knock_text, read_knock
from services.lobby.store.rooms import CHANNEL, GRAVE_MS, knocks_key, room_key


class RedisPresence:
    """Implements `ports.Presence`.

    Args:
        client: Redis.
        life_ms: How long a host or a knock counts as there after its stream was last renewed.
    """

    def __init__(self, client: Redis, life_ms: int) -> None:
        self._client = client
        self._life_ms = life_ms
        self._attend, self._knock, self._end = (
            _Script(client, name) for name in ("attend_room", "knock", "end_stream")
        )

    def new_generation(self) -> str:
        """Name a stream."""
        return secrets.token_hex(8)

    async def attend(self, attendance: Attendance, now: int, mode: str) -> Attended:
        """Say that the host's stream, or the one that knocks, is there."""
        if attendance.knocker is None:
            return Attended(await self._attend.one(*self._attending(attendance, now, mode)))
        return Attended(await self._knock.one(*self._knocking(attendance, attendance.knocker, now, mode)))

    async def renew(self, attendances: Sequence[Attendance], now: int) -> list[Attended]:
        """Say that all these streams are still there; gives what became of each."""
        hosts = [one for one in attendances if one.knocker is None]
        knocks = [(one, one.knocker) for one in attendances if one.knocker is not None]
        of_hosts = iter(await self._attend.many([self._attending(one, now, "renew") for one in hosts]))
        of_knocks = iter(await self._knock.many([self._knocking(one, who, now, "renew") for one, who in knocks]))
        return [Attended(next(of_hosts if one.knocker is None else of_knocks)) for one in attendances]

    async def end(self, attendance: Attendance) -> None:
        """Say that a stream is over; one that a newer stream took over from changes nothing."""
        keys = [room_key(attendance.code), knocks_key(attendance.code)]
        await self._end.one(keys, [attendance.account_id, attendance.generation, CHANNEL, attendance.code])

    async def knocks(self, codes: Sequence[str], now: int) -> list[tuple[Knock, ...]]:
        """Give those who knock at each room, in the order of their coming."""
        if not codes:
            return []
        pipeline = self._client.pipeline(transaction=False)
        for code in codes:
            pipeline.hvals(knocks_key(code))
        found = []
        for answer in await pipeline.execute():
            knocks = [knock for knock in map(read_knock, answer) if knock.alive_until > now]
            found.append(tuple(sorted(knocks, key=lambda knock: (knock.create_time, knock.player.account_id))))
        return found

    def _attending(self, one: Attendance, now: int, mode: str) -> tuple[list[str], list[Argument]]:
        until, life = now + self._life_ms, self._life_ms + GRAVE_MS
        return [room_key(one.code)], [one.account_id, one.generation, now, until, life, CHANNEL, one.code, mode]

    def _knocking(self, one: Attendance, who: Player, now: int, mode: str) -> tuple[list[str], list[Argument]]:
        text = knock_text(who, one.create_time)
        until, keys = now + self._life_ms, [room_key(one.code), knocks_key(one.code)]
        return keys, [one.account_id, one.generation, now, until, MAX_KNOCKS, CHANNEL, one.code, mode, text]


class _Script:
    """A script that can also run many times in one round trip."""

    def __init__(self, client: Redis, name: str) -> None:
        self._client = client
        self._text = (Path(__file__).parent / "lua" / f"{name}.lua").read_text(encoding="utf-8")
        self._digest = sha1(self._text.encode(), usedforsecurity=False).hexdigest()
        self.one = load_script(client, self._text)

    async def many(self, calls: Sequence[tuple[Sequence[str], Sequence[Argument]]]) -> list[Any]:
        answers: list[Any] = []
        if calls:
            answers = await self._pipe(calls)
            if any(isinstance(answer, NoScriptError) for answer in answers):
                await self._client.script_load(self._text)
                answers = await self._pipe(calls)
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return answers

    async def _pipe(self, calls: Sequence[tuple[Sequence[str], Sequence[Argument]]]) -> list[Any]:
        pipeline = self._client.pipeline(transaction=False)
        for keys, arguments in calls:
            pipeline.evalsha(self._digest, len(keys), *keys, *arguments)
        answers: list[Any] = await pipeline.execute(raise_on_error=False)
        return answers
