"""Opens sessions for verified identities and hands out their tokens; what every way to sign in ends with."""

from dataclasses import dataclass, replace
from uuid import UUID

from services.auth.domain.avatars import choose_avatar
from services.auth.domain.challenges import Challenge
from services.auth.domain.errors import DeviceKeyInvalid, SignatureInvalid
from services.auth.domain.identity import Identity, ProviderRules
from services.auth.domain.names import generate_display_name, normalise_display_name
from services.auth.domain.profiles import Profile
from services.auth.domain.sessions import SEED_BYTES, RefreshTokens, Session, token_hash
from services.auth.ports import Accounts, Chance, Rotation, Signer, SignInRecord
from services.kit.clock import Clock
from services.kit.signatures import is_valid_public_key, tagged, verify
from services.kit.tokens import Caller, access_token_payload

_ACCESS_TOKEN_TYPE = "at+jwt"  # noqa: S105 - the media type of RFC 9068, no secret
_ACCESS_LIFETIME_S = 900
_SCOPE = "play"


@dataclass(frozen=True)
class Policy:
    """Holds what an operator decides.

    Args:
        issuer: The name of this auth service in tokens and signed values.
        audience: Who the access tokens are for.
        provider: Which ID tokens are accepted.
        refresh_lifetime_s: How long an unused refresh token lives.
        picture_host: The only host an avatar picture may be on.
    """

    issuer: str
    audience: str
    provider: ProviderRules
    refresh_lifetime_s: float
    picture_host: str


@dataclass(frozen=True)
class Proof:
    """Is a verified sign-in that is not stored yet; `device_name` and `request_id` are checked, `display_name` not."""

    identity: Identity
    challenge: Challenge
    device_name: str
    display_name: str
    request_id: str
    content_hash: bytes


@dataclass(frozen=True)
class IssuedSession:
    """Is a session with its two tokens, as the client gets it; times in unix seconds."""

    access_token: str
    access_expire_time: float
    refresh_token: str
    refresh_expire_time: float
    device_id: UUID


@dataclass(frozen=True)
class OpenedSession:
    """Is what a sign-in gives."""

    session: IssuedSession
    profile: Profile
    is_new_account: bool


class Issuance:
    """Opens, moves on and hands out sessions."""

    def __init__(
        self,
        *,
        policy: Policy,
        accounts: Accounts,
        signer: Signer,
        refresh_tokens: RefreshTokens,
        chance: Chance,
        clock: Clock,
    ) -> None:
        self._policy = policy
        self._accounts = accounts
        self._signer = signer
        self._refresh_tokens = refresh_tokens
        self._chance = chance
        self._clock = clock

    async def open(self, proof: Proof) -> OpenedSession:
        """Store a verified sign-in and hand out its session; the same proof again within 30 s gives the same session.

        Raises:
            ChallengeInvalid: The challenge was used by another sign-in or has expired.
            RequestIdReused: The device used the request id for other content.
            DeviceKeyTaken: The key belongs to another account.
            DisplayNameInvalid: The account is new and its wished name breaks a rule.
        """
        now = self._clock.now()
        profile = await self._new_profile(proof.identity, proof.display_name, now)
        record = SignInRecord(
            identity=proof.identity,
            profile=profile,
            session=self._new_session(profile.account_id, proof.challenge.device_key, now),
            device_name=proof.device_name,
            challenge=proof.challenge,
            request_id=proof.request_id,
            content_hash=proof.content_hash,
        )
        stored = await self._accounts.sign_in(record, now)
        return OpenedSession(self.issue(stored.session, stored.profile, now), stored.profile, stored.is_new_account)

    async def rotate(self, session: Session, now: float) -> Session | None:
        """Return the session at its next generation, or nothing when another call was first."""
        generation = session.generation + 1
        fresh_hash = token_hash(self._refresh_tokens.make(session.session_id, session.seed, generation))
        expire_time = now + self._policy.refresh_lifetime_s
        rotation = Rotation(session.session_id, session.generation, fresh_hash, now, expire_time)
        if not await self._accounts.rotate(rotation):
            return None
        return replace(session, generation=generation, token_hash=fresh_hash, expire_time=expire_time)

    def issue(self, session: Session, profile: Profile, now: float) -> IssuedSession:
        """Return a fresh access token and the session's newest refresh token."""
        caller = Caller(
            account_id=str(session.account_id),
            device_id=str(session.device_id),
            device_key=session.device_key,
            display_name=profile.display_name,
            avatar=profile.avatar,
            scope=_SCOPE,
        )
        payload = access_token_payload(
            caller,
            issuer=self._policy.issuer,
            audience=self._policy.audience,
            issued_at=now,
            lifetime_s=_ACCESS_LIFETIME_S,
        )
        return IssuedSession(
            access_token=self._signer.sign(payload, _ACCESS_TOKEN_TYPE),
            access_expire_time=int(now + _ACCESS_LIFETIME_S),
            refresh_token=self._refresh_tokens.newest(session),
            refresh_expire_time=session.expire_time,
            device_id=session.device_id,
        )

    async def _new_profile(self, identity: Identity, wished_name: str, now: float) -> Profile:
        """Return the profile the account would get; the wish counts for a new account only, so it is checked then."""
        below = self._chance.below
        if wished_name and not await self._accounts.has_identity(identity):
            name = normalise_display_name(wished_name)
        else:
            name = generate_display_name(below)
        return Profile(self._random_uuid(), name, choose_avatar(below), now)

    def _new_session(self, account_id: UUID, device_key: bytes, now: float) -> Session:
        session_id, seed = self._random_uuid(), self._chance.bytes(SEED_BYTES)
        return Session(
            session_id=session_id,
            device_id=self._random_uuid(),
            account_id=account_id,
            device_key=device_key,
            seed=seed,
            generation=0,
            token_hash=token_hash(self._refresh_tokens.make(session_id, seed, 0)),
            previous_hash=None,
            rotate_time=now,
            expire_time=now + self._policy.refresh_lifetime_s,
        )

    def _random_uuid(self) -> UUID:
        return UUID(bytes=self._chance.bytes(16), version=4)


def check_device_key(device_key: bytes) -> None:
    """Check that a device can sign with it and that nobody else can: a canonical point of the prime-order group."""
    if not is_valid_public_key(device_key):
        raise DeviceKeyInvalid("The device key is not a usable Ed25519 public key; create one.", field="device_key")


def check_sign_in_signature(issuer: str, challenge: Challenge, shown_hash: bytes, signature: bytes) -> None:
    """Check the device's signature over a sign-in; `shown_hash` is SHA-256 of the ID token or of the code."""
    key = challenge.device_key
    message = tagged("auth", b"sign-in", issuer.encode(), b"", key, challenge.value, shown_hash)
    if not verify(key, signature, message):
        raise SignatureInvalid("The device signature does not verify.", field="device_signature")
