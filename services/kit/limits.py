"""Who called, and how often: limits that hold across all processes.

A limit is an exact sliding window in Redis: at most `limit` hits in any `window_s` seconds.
"""

import ipaddress
import math
import secrets
from collections.abc import Callable, Sequence

from redis.asyncio import Redis

from services.kit.clock import Clock
from services.kit.errors import ServiceError
from services.kit.redis import load_script
from services.kit.settings import Network

__all__ = ["Limiter", "address_group", "is_among", "resolve_address"]

# KEYS[1] the window   ARGV: now in ms, window in ms, limit, member of this hit ("" only looks)
# Answers 0 when there is room (and the hit is counted), else the milliseconds until there is.
_TAKE = """
local now, window, limit = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - window)
local count = redis.call('ZCARD', KEYS[1])
if count >= limit then
  local oldest = redis.call('ZRANGE', KEYS[1], count - limit, count - limit, 'WITHSCORES')
  return math.max(1, math.ceil(tonumber(oldest[2]) + window - now))
end
if ARGV[4] ~= '' then
  redis.call('ZADD', KEYS[1], now, ARGV[4])
  redis.call('PEXPIRE', KEYS[1], window)
end
return 0
"""

Refusal = Callable[[float], ServiceError]


class Limiter:
    """Counts hits per key.

    Args:
        client: Where the windows are kept.
        clock: Time of the hits; processes should agree within a second or so.
        prefix: Begins every key, for example `lobby:limit:`.
    """

    def __init__(self, client: Redis, clock: Clock, prefix: str) -> None:
        self._client = client
        self._run = load_script(client, _TAKE)
        self._clock = clock
        self._prefix = prefix

    async def take(self, key: str, limit: int, window_s: float, refusal: Refusal | type[ServiceError]) -> None:
        """Count one hit, or raise: a refused hit is not counted.

        Args:
            key: What is limited, for example `begin:203.0.113.7`.
            limit: Hits per window, at least 1.
            window_s: Length of the window in seconds.
            refusal: An error class, or a callable that gets the seconds until there is room.
        """
        await self._ask(key, limit, window_s, refusal, secrets.token_hex(8))

    async def check(self, key: str, limit: int, window_s: float, refusal: Refusal | type[ServiceError]) -> None:
        """Raise when the window is full, without counting a hit; for counting only failures, afterwards."""
        await self._ask(key, limit, window_s, refusal, "")

    async def forget(self, key: str) -> None:
        """Empty the window of a key."""
        await self._client.delete(self._name(key))

    def _name(self, key: str) -> str:
        return f"{self._prefix}{{{key}}}"

    async def _ask(
        self, key: str, limit: int, window_s: float, refusal: Refusal | type[ServiceError], member: str
    ) -> None:
        now_ms, window_ms = int(self._clock.now() * 1000), int(window_s * 1000)
        wait_ms = await self._run([self._name(key)], [now_ms, window_ms, limit, member])
        if not wait_ms:
            return
        if isinstance(refusal, type):
            seconds = math.ceil(wait_ms / 1000)
            raise refusal(f"Too many calls; try again in {seconds} s.", retry_after_s=wait_ms / 1000)
        raise refusal(wait_ms / 1000)


def address_group(address: str) -> str:
    """Return what one subscriber holds: an IPv4 address, or the /64 of an IPv6 address. Other text stays as it is."""
    try:
        parsed = _parse(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    return str(ipaddress.ip_network((parsed, 64), strict=False))


def resolve_address(peer: str, forwarded_for: str, trusted_proxies: Sequence[Network]) -> str:
    """Return the client's address: the peer, or what trusted proxies say stood before them.

    `x-forwarded-for` is read from the right, and only as long as the hop that added an entry is trusted
    (addresses or networks), so a client cannot choose its own address.
    """
    address = peer
    for hop in reversed([part.strip() for part in forwarded_for.split(",") if part.strip()]):
        if not is_among(address, trusted_proxies) or not _is_address(hop):
            break
        address = hop
    return address


def is_among(address: str, networks: Sequence[Network]) -> bool:
    """Say whether an address is in one of the networks; what is no address is in none."""
    return _is_address(address) and any(_parse(address) in network for network in networks)


def _is_address(text: str) -> bool:
    try:
        _parse(text)
    except ValueError:
        return False
    return True


def _parse(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Read an address; one of IPv4 that a socket for both writes as IPv6 is still one of IPv4."""
    parsed = ipaddress.ip_address(address)
    return (parsed.ipv4_mapped or parsed) if isinstance(parsed, ipaddress.IPv6Address) else parsed
