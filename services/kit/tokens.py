"""Signed documents: compact JWS with Ed25519, made and checked through joserfc.

Every issuer has its own key set, never merged with another's. The header is exactly `alg` (EdDSA), `kid` and `typ`,
so nothing in a document can point at a key (`jku`, `x5u`, `jwk`) or change the meaning of its bytes (`crit`, `b64`).
"""

import asyncio
import base64
import json
import os
import re
import secrets
import warnings
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from joserfc import jws
from joserfc.errors import JoseError, SecurityWarning
from joserfc.jwk import OKPKey

from services.kit.clock import Clock
from services.kit.errors import DocumentInvalid, KeysUnavailable, Unauthenticated
from services.kit.settings import SettingsError
from services.kit.signatures import is_valid_public_key

__all__ = [
    "AccessTokenVerifier", "Caller", "Document", "KeySet", "SigningKeys", "access_token_payload", "create_signing_key",
    "decode_base64url", "encode_base64url", "verify_document",
]  # fmt: skip

# RFC 9864 prefers the name "Ed25519"; RFC 8037's "EdDSA" is what the documents were specified with.
warnings.filterwarnings("ignore", message="EdDSA is deprecated", category=SecurityWarning)
_REGISTRY = jws.JWSRegistry(algorithms=["EdDSA"])
_COMPACT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_TOKEN_MAX_CHARS, _KEY_SET_MAX_CHARS, _KEY_SET_MAX_KEYS = 4096, 65_536, 64
_SKEW_S = 5.0


@dataclass(frozen=True)
class Caller:
    """Who calls, as the access token says; `device_key` is the device's Ed25519 public key, 32 bytes."""

    account_id: str
    device_id: str
    device_key: bytes
    display_name: str
    avatar: str
    scope: str


@dataclass(frozen=True)
class Document:
    """A document whose signature, type and issuer were checked. Its times were not."""

    payload: bytes
    claims: dict[str, Any]
    kid: str
    public_key: bytes


def encode_base64url(data: bytes) -> str:
    """Encode without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_base64url(text: str) -> bytes:
    """Decode unpadded base64url; exactly one text is accepted for each value.

    Raises:
        ValueError: The text is anything else.
    """
    data = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    if encode_base64url(data) != text:
        raise ValueError("not canonical base64url")
    return data


def create_signing_key(directory: Path, not_before: float, name: str | None = None) -> str:
    """Write a new Ed25519 key, first used at `not_before` (unix seconds), to `directory`; returns its `kid`.

    With a fixed `name` an existing file wins, so that processes which start together agree on one key.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    kid = secrets.token_hex(8)
    jwk = {**OKPKey.generate_key("Ed25519").as_dict(private=True), "kid": kid, "not_before": int(not_before)}
    draft = directory / f".{kid}.draft"
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(jwk, file)
    try:
        os.link(draft, directory / f"{name or kid}.json")  # appears whole or not at all
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return kid


@dataclass(frozen=True)
class _SigningKey:
    key: OKPKey
    kid: str
    usable_from: float


class SigningKeys:
    """An issuer's keys: Ed25519 JWK files `*.json` with `kid` and `not_before`, re-read every 10 s.

    A key is published as soon as its file is seen and used from `not_before` on, but never sooner than
    `publish_lead_s` after this process first saw it - except at start, when the others may have published it long ago.

    Args:
        directory: Where the files are (a mounted secret).
        clock: Time.
        publish_lead_s: How long a key is published before its first use; verifiers refresh well within it.
        retire_after_s: How long a replaced public key is still published: as long as its documents may arrive.
        create: Makes a first key in an empty directory. Development only.

    Raises:
        SettingsError: The directory holds no usable key, or a file is not a key.
    """

    def __init__(
        self,
        directory: Path,
        clock: Clock,
        *,
        publish_lead_s: float = 900.0,
        retire_after_s: float = 8 * 86_400.0,
        create: bool = False,
    ) -> None:
        self._directory, self._clock = directory, clock
        self._lead_s, self._retire_after_s = publish_lead_s, retire_after_s
        self._keys: dict[str, _SigningKey] = {}
        self._next_read = 0.0
        if create and not any(directory.glob("*.json")):
            create_signing_key(directory, clock.now(), "first")
        self._read(first=True)
        self.current()

    def sign(self, payload: bytes, typ: str) -> str:
        """Sign exactly these bytes with the current key; returns a compact JWS."""
        signer = self.current()
        header = {"alg": "EdDSA", "kid": signer.kid, "typ": typ}
        return jws.serialize_compact(header, payload, signer.key, registry=_REGISTRY)

    def jwks(self) -> str:
        """Return every public key that verifiers may need, as JSON: the next, the current, and not yet retired ones."""
        self._read()
        now, ordered = self._clock.now(), self._ordered()
        replaced_at = [key.usable_from for key in ordered[1:]] + [float("inf")]
        public = [
            {**key.key.as_dict(private=False), "kid": key.kid, "alg": "EdDSA", "use": "sig"}
            for key, end in zip(ordered, replaced_at, strict=True)
            if end + self._retire_after_s > now
        ]
        return json.dumps({"keys": public}, separators=(",", ":"))

    def current(self) -> _SigningKey:
        """Return the key in use now: the latest usable one."""
        self._read()
        usable = [key for key in self._ordered() if key.usable_from <= self._clock.now()]
        if not usable:
            raise SettingsError(f"The key directory {self._directory} holds no signing key that may be used yet.")
        return usable[-1]

    def _ordered(self) -> list[_SigningKey]:
        return sorted(self._keys.values(), key=lambda key: (key.usable_from, key.kid))

    def _read(self, *, first: bool = False) -> None:
        if not first and self._clock.monotonic() < self._next_read:
            return
        self._next_read = self._clock.monotonic() + 10.0
        earliest = 0.0 if first else self._clock.now() + self._lead_s
        found: dict[str, _SigningKey] = {}
        for path in sorted(self._directory.glob("*.json")):
            try:
                jwk = json.loads(path.read_text(encoding="utf-8"))
                kid, not_before = str(jwk["kid"]), float(jwk["not_before"])
                key = OKPKey.import_key({"kty": "OKP", "crv": "Ed25519", "x": jwk["x"], "d": jwk["d"]})
            except (OSError, ValueError, KeyError, TypeError, JoseError):
                if first:
                    raise SettingsError(
                        f"The key file {path.name} is not an Ed25519 JWK with kid, d and not_before."
                    ) from None
                continue  # half-written or damaged later: go on with the others
            found[kid] = self._keys.get(kid) or _SigningKey(key, kid, max(not_before, earliest))
        self._keys = found or self._keys


class KeySet:
    """Another issuer's public keys, fetched and cached.

    Old keys are kept when a fetch fails; an unknown `kid` causes at most one fetch per cool-down, however many ask.

    Args:
        issuer: The exact `iss` of the documents.
        fetch: Gets the JWKS text from that issuer.
        clock: Time.
        max_age_s: When the keys are fetched again; less than the issuer's publish lead.
        cool_down_s: Shortest time between two fetches caused by unknown ids or failures.
    """

    def __init__(
        self,
        issuer: str,
        fetch: Callable[[], Awaitable[str]],
        clock: Clock,
        *,
        max_age_s: float = 300.0,
        cool_down_s: float = 10.0,
    ) -> None:
        self.issuer = issuer
        self._fetch, self._clock = fetch, clock
        self._max_age_s, self._cool_down_s = max_age_s, cool_down_s
        self._keys: dict[str, bytes] = {}
        self._fetched_at = self._tried_at = -float("inf")
        self._fetching: asyncio.Task[None] | None = None

    async def key(self, kid: str) -> bytes | None:
        """Return the 32-byte public key with this id, or None when the issuer does not know it.

        Raises:
            KeysUnavailable: The keys were never read, or the id is unknown and asking the issuer failed.
        """
        if self._is_stale() or kid not in self._keys:
            await self._refresh()
        if kid not in self._keys and self._fetched_at < self._tried_at:
            raise KeysUnavailable(f"The keys of {self.issuer} cannot be read now.", retry_after_s=self._cool_down_s)
        return self._keys.get(kid)

    def _is_stale(self) -> bool:
        return self._clock.monotonic() - self._fetched_at >= self._max_age_s

    async def _refresh(self) -> None:
        """Wait for the fetch in progress, or start one unless the last was just now.

        The fetch is a task of its own: callers who give up in the middle, on purpose, must not use up the others' turn.
        """
        now = self._clock.monotonic()
        if self._fetching is None and now - self._tried_at >= self._cool_down_s:
            self._tried_at = now
            self._fetching = asyncio.create_task(self._read())
        if self._fetching is not None:
            await asyncio.shield(self._fetching)

    async def _read(self) -> None:
        try:
            async with asyncio.timeout(5.0):
                self._keys = _parse_key_set(await self._fetch())
            self._fetched_at = self._tried_at
        except Exception:  # noqa: BLE001 - any failure means the same: keep the old keys, try after the cool-down
            return
        finally:
            self._fetching = None


def _parse_key_set(text: str) -> dict[str, bytes]:
    if len(text) > _KEY_SET_MAX_CHARS:
        raise ValueError("key set too long")
    keys: dict[str, bytes] = {}
    for jwk in json.loads(text)["keys"]:
        if jwk["kty"] != "OKP" or jwk["crv"] != "Ed25519":
            continue
        kid, key = jwk["kid"], decode_base64url(jwk["x"])
        if not isinstance(kid, str) or not 0 < len(kid) <= 64 or kid in keys or not is_valid_public_key(key):
            raise ValueError("bad key in key set")
        keys[kid] = key
    if not 0 < len(keys) <= _KEY_SET_MAX_KEYS:
        raise ValueError("no keys or too many in key set")
    return keys


async def verify_document(compact: str, *, typ: str, keys: KeySet, max_chars: int) -> Document:
    """Check size, header, signature and issuer of a document, in this order. Its times are the caller's to judge.

    Raises:
        DocumentInvalid: One of them is wrong; the message says which.
        KeysUnavailable: The issuer's keys cannot be read, so nothing is known about the document.
    """
    if len(compact) > max_chars:
        raise DocumentInvalid(f"The document has more than {max_chars} characters.")
    if not _COMPACT.fullmatch(compact):
        raise DocumentInvalid("The document is not a compact JWS.")
    header = _json_object(compact.split(".", 1)[0], "header")
    if set(header) != {"alg", "kid", "typ"} or header["alg"] != "EdDSA" or header["typ"] != typ:
        raise DocumentInvalid(f"The document's header must be alg EdDSA, typ {typ} and a kid, and nothing else.")
    kid = header["kid"]
    if not isinstance(kid, str) or not 0 < len(kid) <= 64:
        raise DocumentInvalid("The document's kid is not a text of 1 to 64 characters.")
    public_key = await keys.key(kid)
    if public_key is None:
        raise DocumentInvalid("The document's key is not one of its issuer's.")
    verifier = OKPKey.import_key({"kty": "OKP", "crv": "Ed25519", "x": encode_base64url(public_key)})
    try:
        payload = jws.deserialize_compact(compact, verifier, registry=_REGISTRY).payload
    except (JoseError, ValueError):
        raise DocumentInvalid("The document's signature does not verify.") from None
    claims = _json_object(compact.split(".")[1], "payload")
    if claims.get("iss") != keys.issuer:
        raise DocumentInvalid(f"The document is not from {keys.issuer}.")
    return Document(payload, claims, kid, public_key)


def _json_object(part: str, what: str) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(members := dict(pairs)) != len(pairs):
            raise ValueError("duplicate member")
        return members

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not JSON")

    try:
        value = json.loads(decode_base64url(part), object_pairs_hook=unique, parse_constant=refuse)
    except (ValueError, RecursionError):
        raise DocumentInvalid(f"The document's {what} is not a JSON object.") from None
    if not isinstance(value, dict):
        raise DocumentInvalid(f"The document's {what} is not a JSON object.")
    return value


def access_token_payload(
    caller: Caller, *, issuer: str, audience: str, issued_at: float, lifetime_s: float = 900.0
) -> bytes:
    """Return the claims of an access token (RFC 9068, RFC 7800): what `AccessTokenVerifier` reads back."""
    jwk = {"crv": "Ed25519", "kty": "OKP", "x": encode_base64url(caller.device_key)}
    claims = {
        "iss": issuer, "aud": audience, "sub": caller.account_id, "jti": secrets.token_hex(16), "iat": int(issued_at),
        "exp": int(issued_at + lifetime_s), "cnf": {"jwk": jwk}, "device": caller.device_id, "scope": caller.scope,
        "name": caller.display_name, "avatar": caller.avatar,
    }  # fmt: skip
    return json.dumps(claims, separators=(",", ":"), ensure_ascii=False).encode()


class AccessTokenVerifier:
    """Turns an access token into the caller.

    Args:
        keys: auth's keys.
        audience: The one `aud` that is valid here, `koikoi/{environment}`.
        clock: Time.
        typ: The type of the tokens.
    """

    def __init__(self, keys: KeySet, audience: str, clock: Clock, typ: str = "at+jwt") -> None:
        self._keys, self._audience, self._clock, self._typ = keys, audience, clock, typ

    async def verify(self, token: str) -> Caller:
        """Return who shows this token.

        Raises:
            Unauthenticated: It is malformed, forged, expired, or meant for another place.
            KeysUnavailable: auth's keys cannot be read now.
        """
        try:
            claims = (await verify_document(token, typ=self._typ, keys=self._keys, max_chars=_TOKEN_MAX_CHARS)).claims
            self._check_times(claims)
            return self._caller(claims)
        except DocumentInvalid as error:
            raise Unauthenticated(error.message.replace("document", "access token")) from None
        except (KeyError, TypeError, ValueError):
            raise Unauthenticated("The access token lacks a claim or has a bad one.") from None

    def _check_times(self, claims: Mapping[str, Any]) -> None:
        now = self._clock.now()
        if claims["aud"] != self._audience:
            raise Unauthenticated(f"The access token is not for {self._audience}.")
        if float(claims["exp"]) + _SKEW_S <= now:
            raise Unauthenticated("The access token has expired; refresh the session.")
        if float(claims["iat"]) - _SKEW_S > now:
            raise Unauthenticated("The access token is not valid yet.")

    @staticmethod
    def _caller(claims: Mapping[str, Any]) -> Caller:
        jwk = claims["cnf"]["jwk"]
        device_key = decode_base64url(str(jwk["x"]))
        texts = [claims[name] for name in ("sub", "device", "name", "avatar", "scope")]
        if not all(isinstance(text, str) for text in texts) or not claims["sub"] or not claims["device"]:
            raise ValueError("a claim is not a text")
        if (jwk["kty"], jwk["crv"]) != ("OKP", "Ed25519") or not is_valid_public_key(device_key):
            raise ValueError("bad device key")
        return Caller(claims["sub"], claims["device"], device_key, claims["name"], claims["avatar"], claims["scope"])
