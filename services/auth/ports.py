"""What the use cases need from the outside, in their own words. Stores and adapters implement these."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from services.auth.domain.challenges import Challenge
from services.auth.domain.devices import Device
from services.auth.domain.identity import Identity
from services.auth.domain.profiles import Profile
from services.auth.domain.redirects import Grant, Journey, Ticket
from services.auth.domain.sessions import Session


@dataclass(frozen=True)
class SignInRecord:
    """Is a verified sign-in, ready to be stored.

    Args:
        identity: Who signs in.
        profile: The profile of the account, should this sign-in create it.
        session: The session, should it be opened; account and device id may be replaced by known ones.
        device_name: The name the device is listed under.
        challenge: What the sign-in answers; good for one success.
        request_id: The caller's name for this attempt.
        content_hash: Equal for equal content only.
    """

    identity: Identity
    profile: Profile
    session: Session
    device_name: str
    challenge: Challenge
    request_id: str
    content_hash: bytes


@dataclass(frozen=True)
class SignedIn:
    """Is the stored outcome of a sign-in."""

    session: Session
    profile: Profile
    is_new_account: bool


@dataclass(frozen=True)
class Rotation:
    """Moves a session to its next generation; times in unix seconds."""

    session_id: UUID
    from_generation: int
    token_hash: bytes
    rotate_time: float
    expire_time: float


@dataclass(frozen=True)
class Request:
    """Is what makes a repeated call the same one: who, which attempt, which content; from which device, when."""

    account_id: UUID
    device_id: UUID
    request_id: str
    content_hash: bytes
    time: float


@dataclass(frozen=True)
class Revocation:
    """Announces that a device was signed out; `time` in unix seconds."""

    session_id: UUID
    account_id: UUID
    device_id: UUID
    device_key: bytes
    time: float


class Accounts(Protocol):
    """Keeps accounts, identities, device keys, sessions and answered requests; durable."""

    async def has_identity(self, identity: Identity) -> bool:
        """Say whether the identity already has an account."""
        ...

    async def sign_in(self, record: SignInRecord, now: float) -> SignedIn:
        """Store a sign-in in one step, or return the stored one when this is the same request again.

        Raises:
            ChallengeInvalid: The challenge was used by another sign-in or has expired.
            RequestIdReused: The device used the request id for other content.
            DeviceKeyTaken: The key belongs to another account.
        """
        ...

    async def find_session(self, session_id: UUID) -> Session | None:
        """Return a session, ended or not."""
        ...

    async def rotate(self, rotation: Rotation) -> bool:
        """Move a session on; False when it is no longer at that generation, or has ended."""
        ...

    async def end_family(self, session_id: UUID, now: float) -> None:
        """End a session whose refresh token was shown twice."""
        ...

    async def find_profile(self, account_id: UUID) -> Profile | None:
        """Return the profile of an account."""
        ...

    async def update_profile(self, request: Request, display_name: str | None, avatar: str | None) -> Profile:
        """Change what is given, once per request; returns the profile as it is now.

        Raises:
            AccessTokenInvalid: The device was signed out.
            RequestIdReused: The request id was used for other content.
        """
        ...

    async def sign_out(self, request: Request, *, all_devices: bool) -> int:
        """End the session of the calling device, or all, once per request; returns how many this call ended.

        Raises:
            AccessTokenInvalid: A signed-out device wants to end all. The request is not used up by that.
            RequestIdReused: The request id was used for other content.
        """
        ...

    async def list_devices(self, account_id: UUID, device_id: UUID, limit: int, now: float) -> Sequence[Device]:
        """Return the account's devices that have a session or had one lately: `device_id` first, then the last used."""
        ...

    async def rename_device(self, request: Request, renamed_id: UUID, name: str) -> Device:
        """Name a device of the account, once per request; an empty name gives it back its own.

        Raises:
            AccessTokenInvalid: The calling device was signed out.
            DeviceUnknown: The account has no such device.
            RequestIdReused: The request id was used for other content.
        """
        ...

    async def revoke_device(self, request: Request, revoked_id: UUID) -> bool:
        """End the session of a device of the account, once per request; says whether this call ended a live one.

        Raises:
            AccessTokenInvalid: The calling device was signed out. The request is not used up by that.
            DeviceUnknown: The account has no such device.
            RequestIdReused: The request id was used for other content.
        """
        ...

    async def unannounced(self, limit: int) -> Sequence[Revocation]:
        """Return sign-outs that were not announced yet, the oldest first."""
        ...

    async def mark_announced(self, session_ids: Sequence[UUID]) -> None:
        """Note that these sign-outs were announced."""
        ...


class Challenges(Protocol):
    """Keeps challenges until they expire and a little longer, for repeated calls."""

    async def put(self, challenge: Challenge) -> None:
        """Keep a new challenge."""
        ...

    async def find(self, value: bytes) -> Challenge | None:
        """Return a challenge that was given out."""
        ...


class Redirects(Protocol):
    """Keeps sign-ins by redirect on their way, by the hash of a secret; `take` gives each to one caller only."""

    async def put_ticket(self, name: bytes, ticket: Ticket) -> None:
        """Keep a ticket until it expires."""
        ...

    async def take_ticket(self, name: bytes) -> Ticket | None:
        """Use up a ticket."""
        ...

    async def put_journey(self, name: bytes, journey: Journey) -> None:
        """Keep a journey until its ticket would expire."""
        ...

    async def take_journey(self, name: bytes) -> Journey | None:
        """Use up a journey."""
        ...

    async def put_grant(self, name: bytes, grant: Grant) -> None:
        """Keep a grant until its challenge expires and a little longer, for repeated calls."""
        ...

    async def find_grant(self, name: bytes) -> Grant | None:
        """Return a grant; that it is good for one sign-in only is kept by `Accounts`."""
        ...


class CodeExchange(Protocol):
    """Exchanges the provider's authorization codes."""

    async def id_token(self, code: str, verifier: str) -> str:
        """Return the ID token the code stands for; nothing about it is verified.

        Raises:
            IdTokenInvalid: The provider refuses the code, or what it gives is no ID token.
            IdentityProviderUnavailable: The provider does not answer as it should now.
        """
        ...


class Limits(Protocol):
    """Counts calls; every method raises RateLimited when there were too many."""

    async def begin(self, address: str, device_key: bytes) -> None:
        """Count a BeginSignIn."""
        ...

    async def sign_in(self, address: str) -> None:
        """Count a SignIn, before anything about it is checked."""
        ...

    async def proven_sign_in(self, device_key: bytes) -> None:
        """Count a SignIn that the device signed, before its ID token is checked."""
        ...

    async def identified_sign_in(self, identity: Identity) -> None:
        """Count a sign-in whose identity was verified."""
        ...

    async def start(self, address: str) -> None:
        """Count an opened ticket."""
        ...

    async def finish(self, address: str) -> None:
        """Count a return from the provider."""
        ...

    async def refresh(self, address: str, session_id: UUID) -> None:
        """Count a RefreshSession."""
        ...

    async def proven_refresh(self, account_id: UUID) -> None:
        """Count a RefreshSession that the device signed."""
        ...

    async def read(self, address: str, account_id: UUID) -> None:
        """Count a reading of what is the account's own."""
        ...

    async def change(self, address: str, account_id: UUID) -> None:
        """Count a change of a profile or of a device's name."""
        ...

    async def sign_out(self, address: str, device_id: UUID) -> None:
        """Count a sign-out."""
        ...

    async def revoke(self, address: str, device_id: UUID) -> None:
        """Count a RevokeDevice."""
        ...

    async def key_set(self, address: str) -> None:
        """Count a reading of the public keys; never fails because the counter does."""
        ...


class IdentityProvider(Protocol):
    """Verifies ID tokens."""

    async def verified_claims(self, id_token: str) -> Mapping[str, Any]:
        """Return the claims of a token that the provider signed; what they say is not checked.

        Raises:
            IdTokenInvalid: The token is malformed or not signed by the provider.
            IdentityProviderUnavailable: The provider's keys cannot be read now.
        """
        ...


class Signer(Protocol):
    """Signs documents with auth's current key and publishes the public keys."""

    def sign(self, payload: bytes, typ: str) -> str:
        """Return a compact JWS over exactly these bytes."""
        ...

    def jwks(self) -> str:
        """Return the public keys as JSON text."""
        ...


class Announcements(Protocol):
    """Tells the other services which devices were signed out; at least once, in any order."""

    async def announce(self, revocations: Sequence[Revocation]) -> None:
        """Append the revocations to the stream."""
        ...


class Chance(Protocol):
    """Gives randomness that nobody can foresee."""

    def bytes(self, size: int) -> bytes:
        """Return `size` random bytes."""
        ...

    def below(self, bound: int) -> int:
        """Return a random number from 0 up to but without `bound`."""
        ...
