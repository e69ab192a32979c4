"""Callers and their access tokens, minted by a test issuer."""

import secrets
from pathlib import Path

from nacl.signing import SigningKey

from services.kit.clock import Clock
from services.kit.tokens import Caller, KeySet, SigningKeys, access_token_payload

AUTH_ISSUER = "https://auth.koikoi/development"
AUDIENCE = "koikoi/development"


def make_caller(
    name: str = "Taro", *, account_id: str | None = None, device_key: bytes | None = None, **others: str
) -> Caller:
    """Make a caller with random ids and a valid random device key where none are given."""
    return Caller(
        account_id=account_id or secrets.token_hex(8),
        device_id=others.get("device_id", secrets.token_hex(8)),
        device_key=device_key or bytes(SigningKey.generate().verify_key),
        display_name=name,
        avatar=others.get("avatar", "crane"),
        scope=others.get("scope", "play"),
    )


class Issuer:
    """Stands for an issuer (auth, lobby, match): signs documents and serves its keys."""

    def __init__(self, directory: Path, clock: Clock, issuer: str = AUTH_ISSUER) -> None:
        self.issuer = issuer
        self.clock = clock
        self.keys = SigningKeys(directory, clock, create=True)

    def key_set(self) -> KeySet:
        async def fetch() -> str:
            return self.keys.jwks()

        return KeySet(self.issuer, fetch, self.clock)

    def access_token(self, caller: Caller, *, audience: str = AUDIENCE, lifetime_s: float = 900.0) -> str:
        payload = access_token_payload(
            caller, issuer=self.issuer, audience=audience, issued_at=self.clock.now(), lifetime_s=lifetime_s
        )
        return self.keys.sign(payload, "at+jwt")

    def bearer(self, caller: Caller) -> list[tuple[str, str]]:
        """Return gRPC metadata that carries an access token of this caller."""
        return [("authorization", f"Bearer {self.access_token(caller)}")]
