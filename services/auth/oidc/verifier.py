"""Checks that the provider signed an ID token: RS256 only, with a key of its key set, no other header trusted."""

import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from typing import Any

from joserfc import jws
from joserfc.errors import JoseError

from services.auth.domain.errors import IdTokenInvalid
from services.auth.oidc.key_cache import KeyCache

_ALGORITHM = "RS256"
_REGISTRY = jws.JWSRegistry(algorithms=[_ALGORITHM])
_COMPACT = re.compile(r"[A-Za-z0-9_-]{1,1024}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_HEADER = frozenset({"alg", "kid", "typ"})  # what the provider sends; `jku`, `jwk`, `x5c`, `crit`... are refused
_MAX_KID_CHARACTERS = 256


class IdTokenVerifier:
    """Implements `ports.IdentityProvider` over a key cache."""

    def __init__(self, keys: KeyCache) -> None:
        self._keys = keys

    async def verified_claims(self, id_token: str) -> Mapping[str, Any]:
        """Return the claims of a token that the provider signed; what they say is not checked."""
        _require(_COMPACT.fullmatch(id_token) is not None, "form")
        header = _json_object(id_token.split(".", 1)[0])
        _require(header is not None and set(header) <= _HEADER, "header")
        assert header is not None
        _require(header.get("alg") == _ALGORITHM, "alg")
        _require(header.get("typ", "JWT") == "JWT", "typ")
        kid = header.get("kid")
        _require(isinstance(kid, str) and 0 < len(kid) <= _MAX_KID_CHARACTERS, "kid")
        key = await self._keys.find(str(kid))
        _require(key is not None, "kid")
        try:
            jws.deserialize_compact(id_token, key, registry=_REGISTRY)
        except (JoseError, ValueError):
            raise _invalid("signature") from None
        claims = _json_object(id_token.split(".")[1])
        _require(claims is not None, "payload")
        assert claims is not None
        return claims


def _json_object(part: str) -> dict[str, Any] | None:
    try:
        value = json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise _invalid(what)


def _invalid(what: str) -> IdTokenInvalid:
    return IdTokenInvalid(f"The ID token is not one of the identity provider ({what}).", metadata={"part": what})
