"""Challenges, limits and the stream of sign-outs in Redis. All of it may be lost: people sign in once more."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

from redis.asyncio import Redis

from services.auth.domain.challenges import Challenge, challenge_hash
from services.auth.domain.errors import RateLimited
from services.auth.domain.identity import Identity
from services.auth.domain.sessions import REPLY_GRACE_S
from services.auth.ports import Revocation
from services.kit import redis
from services.kit.clock import Clock
from services.kit.limits import Limiter, address_group
from services.kit.tokens import encode_base64url

REVOCATIONS = "revocations"
# Far more sign-outs than happen while an access token or a match contract may outlive one (3 h). By number and not by
# time: the clocks of auth and of Redis may differ.
_KEEP_REVOCATIONS = 100_000
_KEY_SET_PATIENCE_S = 0.5


class RedisChallenges:
    """Implements `ports.Challenges`: a string per challenge, the device key and the expiry in ms.

    A challenge is kept 30 s beyond its expiry, so that a repeated sign-in can still be told from a new one. That it
    is good for one sign-in only is kept by Postgres.
    """

    def __init__(self, client: Redis, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def put(self, challenge: Challenge) -> None:
        """Keep a new challenge."""
        expire_ms = int(challenge.expire_time * 1000)
        lifetime_ms = expire_ms - int((self._clock.now() - REPLY_GRACE_S) * 1000)
        value = challenge.device_key + expire_ms.to_bytes(8, "big")
        await self._client.set(_name(challenge.value), value, px=max(1, lifetime_ms))

    async def find(self, value: bytes) -> Challenge | None:
        """Return a challenge that was given out."""
        stored = await self._client.get(_name(value))
        if not isinstance(stored, bytes):
            return None
        return Challenge(value, stored[:32], int.from_bytes(stored[32:], "big") / 1000)


def _name(challenge: bytes) -> str:
    return f"auth:challenge:{challenge_hash(challenge).hex()}"


@dataclass(frozen=True)
class Rates:
    """Says how many calls a minute are let through."""

    address_per_minute: int
    account_per_minute: int
    device_per_minute: int


class RedisLimits:
    """Implements `ports.Limits`: exact windows of a minute, per address (IPv6 by /64) and per key, session, account.

    A stranger who knows a device's key (every opponent does) must not be able to use up its owner's calls: so unsigned
    calls count per key only together with the address, and signed ones once the signature was verified. Sign-outs and
    revocations count per device and not per account: a thief of one device must not keep the others from ending it.
    """

    def __init__(self, client: Redis, clock: Clock, rates: Rates) -> None:
        self._limiter = Limiter(client, clock, "auth:limit:")
        self._rates = rates

    async def begin(self, address: str, device_key: bytes) -> None:
        """Count a BeginSignIn."""
        await self._take_address("begin", address)
        await self._take(f"begin:{address_group(address)}:{device_key.hex()}")

    async def sign_in(self, address: str) -> None:
        """Count a SignIn, before anything about it is checked."""
        await self._take_address("sign-in", address)

    async def proven_sign_in(self, device_key: bytes) -> None:
        """Count a SignIn that the device signed, before its ID token is checked."""
        await self._take(f"sign-in:{device_key.hex()}")

    async def identified_sign_in(self, identity: Identity) -> None:
        """Count a sign-in whose identity was verified."""
        person = sha256(f"{identity.issuer} {identity.subject}".encode()).hexdigest()
        await self._take(f"sign-in:account:{person}", self._rates.account_per_minute)

    async def start(self, address: str) -> None:
        """Count an opened ticket."""
        await self._take_address("start", address)

    async def finish(self, address: str) -> None:
        """Count a return from the provider."""
        await self._take_address("finish", address)

    async def refresh(self, address: str, session_id: UUID) -> None:
        """Count a RefreshSession."""
        await self._take_address("refresh", address)
        await self._take(f"refresh:{session_id}")

    async def proven_refresh(self, account_id: UUID) -> None:
        """Count a RefreshSession that the device signed."""
        await self._take(f"refresh:account:{account_id}", self._rates.account_per_minute)

    async def read(self, address: str, account_id: UUID) -> None:
        """Count a reading of what is the account's own."""
        await self._take_address("read", address)
        await self._take(f"read:account:{account_id}", self._rates.account_per_minute)

    async def change(self, address: str, account_id: UUID) -> None:
        """Count a change of a profile or of a device's name."""
        await self._take_address("change", address)
        await self._take(f"change:{account_id}")

    async def sign_out(self, address: str, device_id: UUID) -> None:
        """Count a sign-out."""
        await self._take_address("sign-out", address)
        await self._take(f"sign-out:{device_id}")

    async def revoke(self, address: str, device_id: UUID) -> None:
        """Count a RevokeDevice."""
        await self._take_address("revoke", address)
        await self._take(f"revoke:{device_id}")

    async def key_set(self, address: str) -> None:
        """Count a reading of the public keys. They are in memory: they must not depend on Redis, nor wait for it."""
        try:
            async with asyncio.timeout(_KEY_SET_PATIENCE_S):
                await self._take_address("key-set", address)
        except TimeoutError:
            pass
        except Exception as error:
            if not redis.is_outage(error):
                raise

    async def _take_address(self, what: str, address: str) -> None:
        key = f"{what}:address:{address_group(address)}"
        await self._limiter.take(key, self._rates.address_per_minute, 60.0, RateLimited)

    async def _take(self, key: str, limit: int | None = None) -> None:
        await self._limiter.take(key, limit or self._rates.device_per_minute, 60.0, RateLimited)


class RevocationStream:
    """Implements `ports.Announcements`: entries `device_id`, `account_id`, `device_key` (base64url), `time` (ms)."""

    def __init__(self, client: Redis) -> None:
        self._client = client

    async def announce(self, revocations: Sequence[Revocation]) -> None:
        """Append the revocations, and drop entries that no reader can need any more."""
        async with self._client.pipeline(transaction=False) as pipeline:
            for revocation in revocations:
                fields: dict[str | bytes, str | int] = {
                    "device_id": str(revocation.device_id),
                    "account_id": str(revocation.account_id),
                    "device_key": encode_base64url(revocation.device_key),
                    "time": int(revocation.time * 1000),
                }
                pipeline.xadd(REVOCATIONS, fields, maxlen=_KEEP_REVOCATIONS, approximate=True)  # type: ignore[arg-type]
            await pipeline.execute()
