"""The provider's public keys: fetched from one fixed URL, cached, and never in doubt because of an outage.

* A key set is used as long as `Cache-Control: max-age` says (within bounds), then fetched again.
* An unknown key id causes one fetch, shared by all who wait for it, and then none for a cool-down.
* When a fetch fails the old keys stay in use; what cannot be decided without a fetch is `IdentityProviderUnavailable`,
  never a bad token.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from joserfc.errors import JoseError
from joserfc.jwk import RSAKey

from services.auth.domain.errors import IdentityProviderUnavailable
from services.kit import log
from services.kit.clock import Clock

MIN_RSA_BITS, MAX_RSA_BITS = 2048, 8192

_MAX_KEYS = 32
_MAX_KID_CHARACTERS = 256
_MIN_AGE_S, _DEFAULT_AGE_S, _MAX_AGE_S = 60.0, 3600.0, 86_400.0
_MAX_AGE = re.compile(r"(?:^|,)\s*max-age\s*=\s*\"?(\d{1,10})\"?\s*(?:,|$)", re.IGNORECASE)


class FetchFailed(Exception):
    """The key set could not be fetched; the text says why, for the log."""


@dataclass(frozen=True)
class FetchedKeySet:
    """Is a parsed JSON body and its Cache-Control header."""

    body: Any
    cache_control: str


class KeySetSource(Protocol):
    """Fetches the provider's key set."""

    async def fetch(self) -> FetchedKeySet:
        """Return the key set as it is now.

        Raises:
            FetchFailed: It cannot be had.
        """
        ...


class KeyCache:
    """Holds the provider's RSA keys by key id.

    Args:
        source: Where the keys come from.
        clock: Its monotonic time drives age and cool-down.
        cool_down_s: Shortest time between two fetches caused by unknown ids or by failures.
    """

    def __init__(self, source: KeySetSource, clock: Clock, *, cool_down_s: float = 10.0) -> None:
        self._source = source
        self._clock = clock
        self._cool_down_s = cool_down_s
        self._keys: Mapping[str, RSAKey] = {}
        self._stale_at = self._tried_at = -float("inf")
        self._has_failed = False
        self._fetching: asyncio.Task[None] | None = None

    async def find(self, kid: str) -> RSAKey | None:
        """Return the key with this id, or None when the provider has no such key.

        Raises:
            IdentityProviderUnavailable: That cannot be said, since the last fetch failed.
        """
        if kid not in self._keys or self._clock.monotonic() >= self._stale_at:
            await self._refresh()
        key = self._keys.get(kid)
        if key is None and self._has_failed:
            wait_s = max(1.0, self._cool_down_s - (self._clock.monotonic() - self._tried_at))
            raise IdentityProviderUnavailable(
                "The identity provider's keys cannot be read now; try again later.", retry_after_s=wait_s
            )
        return key

    async def close(self) -> None:
        """Give up a fetch in progress."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.wait([self._fetching])

    async def _refresh(self) -> None:
        """Wait for the fetch in progress, or start one unless the last was just now.

        The fetch is a task of its own: a caller who gives up must not leave the others without an answer.
        """
        if self._fetching is None and self._clock.monotonic() - self._tried_at >= self._cool_down_s:
            self._fetching = asyncio.create_task(self._fetch())
        if self._fetching is not None:
            await asyncio.shield(self._fetching)

    async def _fetch(self) -> None:
        self._tried_at = self._clock.monotonic()
        try:
            fetched = await self._source.fetch()
            keys = usable_keys(fetched.body)
        except FetchFailed as failure:
            self._has_failed = True
            log.get().warning("auth.provider_keys.failed", why=str(failure), kept=len(self._keys))
        else:
            self._has_failed = False
            self._keys = keys
            self._stale_at = self._clock.monotonic() + max_age_s(fetched.cache_control)
            log.get().info("auth.provider_keys.fetched", keys=len(keys))
        finally:
            self._fetching = None


def usable_keys(body: object) -> dict[str, RSAKey]:
    """Return the RSA signing keys of a JWK set (RFC 7517); others and weak ones are left out, as if not there.

    Raises:
        FetchFailed: It is no key set, or holds no usable key.
    """
    members = body.get("keys") if isinstance(body, dict) else None
    if not isinstance(members, list) or len(members) > _MAX_KEYS:
        raise FetchFailed("the answer is no key set")
    keys: dict[str, RSAKey] = {}
    for member in members:
        key = _usable_key(member) if isinstance(member, dict) else None
        if key is not None:
            keys.setdefault(member["kid"], key)
    if not keys:
        raise FetchFailed("the key set holds no usable RSA key")
    return keys


def max_age_s(cache_control: str) -> float:
    """Return for how long a key set is good: `max-age` (RFC 9111) within a minute and a day, else an hour."""
    if re.search(r"\bno-(store|cache)\b", cache_control, re.IGNORECASE):
        return _MIN_AGE_S
    match = _MAX_AGE.search(cache_control)
    return min(max(float(match[1]), _MIN_AGE_S), _MAX_AGE_S) if match else _DEFAULT_AGE_S


def _usable_key(member: Mapping[str, Any]) -> RSAKey | None:
    kid = member.get("kid")
    is_rsa_signing = (
        member.get("kty") == "RSA" and member.get("use", "sig") == "sig" and member.get("alg", "RS256") == "RS256"
    )
    if not is_rsa_signing or not isinstance(kid, str) or not 0 < len(kid) <= _MAX_KID_CHARACTERS:
        return None
    modulus, exponent = member.get("n"), member.get("e")
    if not isinstance(modulus, str) or not isinstance(exponent, str):
        return None
    try:
        key = RSAKey.import_key({"kty": "RSA", "n": modulus, "e": exponent})
        bits, public_exponent = key.public_key.key_size, key.public_key.public_numbers().e
    except (JoseError, ValueError, TypeError, OverflowError):
        return None
    return key if MIN_RSA_BITS <= bits <= MAX_RSA_BITS and public_exponent >= 65_537 else None
