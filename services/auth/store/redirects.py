"""Sign-ins by redirect on their way, in Redis. All of it may be lost: people begin once more."""

import json
from base64 import b64decode, b64encode
from typing import Any

from redis.asyncio import Redis

from services.auth.domain.challenges import Challenge
from services.auth.domain.identity import Identity
from services.auth.domain.redirects import Grant, Journey, Ticket
from services.auth.domain.sessions import REPLY_GRACE_S
from services.kit.clock import Clock


class RedisRedirects:
    """Implements `ports.Redirects`: one JSON text each, named by its secret's hash, gone when it expires.

    A grant is kept 30 s beyond its expiry, so that a repeated sign-in can still be told from a new one.
    """

    def __init__(self, client: Redis, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def put_ticket(self, name: bytes, ticket: Ticket) -> None:
        """Keep a ticket until it expires."""
        await self._put("ticket", name, _ticket_members(ticket), ticket.expire_time)

    async def take_ticket(self, name: bytes) -> Ticket | None:
        """Use up a ticket."""
        members = _members(await self._client.getdel(_key("ticket", name)))
        return None if members is None else _ticket(members)

    async def put_journey(self, name: bytes, journey: Journey) -> None:
        """Keep a journey until its ticket would expire."""
        members = {
            "ticket": _ticket_members(journey.ticket),
            "cookie_hash": _text(journey.cookie_hash),
            "provider_verifier": journey.provider_verifier,
        }
        await self._put("journey", name, members, journey.ticket.expire_time)

    async def take_journey(self, name: bytes) -> Journey | None:
        """Use up a journey."""
        members = _members(await self._client.getdel(_key("journey", name)))
        if members is None:
            return None
        return Journey(_ticket(members["ticket"]), b64decode(members["cookie_hash"]), members["provider_verifier"])

    async def put_grant(self, name: bytes, grant: Grant) -> None:
        """Keep a grant until its challenge expires and a little longer."""
        members = {
            "issuer": grant.identity.issuer,
            "subject": grant.identity.subject,
            "challenge": _text(grant.challenge.value),
            "device_key": _text(grant.challenge.device_key),
            "expire_time": grant.challenge.expire_time,
            "code_challenge": grant.code_challenge,
        }
        await self._put("grant", name, members, grant.challenge.expire_time + REPLY_GRACE_S)

    async def find_grant(self, name: bytes) -> Grant | None:
        """Return a grant."""
        members = _members(await self._client.get(_key("grant", name)))
        if members is None:
            return None
        challenge = Challenge(
            b64decode(members["challenge"]), b64decode(members["device_key"]), float(members["expire_time"])
        )
        return Grant(Identity(members["issuer"], members["subject"]), challenge, members["code_challenge"])

    async def _put(self, kind: str, name: bytes, members: dict[str, Any], expire_time: float) -> None:
        lifetime_ms = max(1, int((expire_time - self._clock.now()) * 1000))
        await self._client.set(_key(kind, name), json.dumps(members), px=lifetime_ms)


def _key(kind: str, name: bytes) -> str:
    return f"auth:redirect:{kind}:{name.hex()}"


def _members(stored: bytes | str | None) -> dict[str, Any] | None:
    return None if stored is None else dict(json.loads(stored))


def _ticket_members(ticket: Ticket) -> dict[str, Any]:
    return {
        "device_key": _text(ticket.device_key),
        "challenge": _text(ticket.challenge),
        "redirect_uri": ticket.redirect_uri,
        "client_state": ticket.client_state,
        "code_challenge": ticket.code_challenge,
        "expire_time": ticket.expire_time,
    }


def _ticket(members: dict[str, Any]) -> Ticket:
    return Ticket(
        device_key=b64decode(members["device_key"]),
        challenge=b64decode(members["challenge"]),
        redirect_uri=members["redirect_uri"],
        client_state=members["client_state"],
        code_challenge=members["code_challenge"],
        expire_time=float(members["expire_time"]),
    )


def _text(data: bytes) -> str:
    return b64encode(data).decode()
