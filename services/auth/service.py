"""The use cases of auth: load, decide (domain), save, announce. No proto types, no I/O of its own."""

from dataclasses import dataclass, replace
from hashlib import sha256
from uuid import UUID

from services.auth.domain.avatars import check_avatar, choose_avatar
from services.auth.domain.challenges import (
    CHALLENGE_BYTES,
    CHALLENGE_LIFETIME_S,
    Challenge,
    check_challenge,
)
from services.auth.domain.errors import (
    AccessTokenInvalid,
    DeviceKeyInvalid,
    RefreshTokenInvalid,
    RefreshTokenReused,
    SignatureInvalid,
)
from services.auth.domain.identity import Identity, ProviderRules, identify, sign_in_nonce
from services.auth.domain.names import generate_display_name, normalise_device_name, normalise_display_name
from services.auth.domain.profiles import Profile
from services.auth.domain.requests import (
    check_challenge_size,
    check_device_key_size,
    check_id_token_size,
    check_request_id,
    check_signature_size,
    content_hash,
)
from services.auth.domain.sessions import (
    SEED_BYTES,
    Decision,
    RefreshTokens,
    Session,
    ShownToken,
    parse_refresh_token,
    token_hash,
)
from services.auth.ports import (
    Accounts,
    Announcements,
    Challenges,
    Chance,
    IdentityProvider,
    Limits,
    Request,
    Rotation,
    Signer,
    SignInRecord,
)
from services.kit.clock import Clock
from services.kit.signatures import is_valid_public_key, tagged, verify
from services.kit.tokens import Caller, access_token_payload

_ACCESS_TOKEN_TYPE = "at+jwt"  # noqa: S105 - the media type of RFC 9068, no secret
_ACCESS_LIFETIME_S = 900
_SCOPE = "play"
_ANNOUNCE_BATCH = 100


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
class SignInAttempt:
    """Is what a client shows to sign in; nothing about it is checked."""

    device_key: bytes
    challenge: bytes
    id_token: str
    device_signature: bytes
    device_name: str
    display_name: str
    request_id: str


@dataclass(frozen=True)
class IssuedSession:
    """Is a session with its two tokens, as the client gets it; times in unix seconds."""

    access_token: str
    access_expire_time: float
    refresh_token: str
    refresh_expire_time: float
    device_id: UUID


class AuthService:
    """Signs players in, keeps their sessions and profiles."""

    def __init__(
        self,
        *,
        policy: Policy,
        accounts: Accounts,
        challenges: Challenges,
        limits: Limits,
        provider: IdentityProvider,
        signer: Signer,
        announcements: Announcements,
        refresh_tokens: RefreshTokens,
        chance: Chance,
        clock: Clock,
    ) -> None:
        self._policy = policy
        self._accounts = accounts
        self._challenges = challenges
        self._limits = limits
        self._provider = provider
        self._signer = signer
        self._announcements = announcements
        self._refresh_tokens = refresh_tokens
        self._chance = chance
        self._clock = clock

    @property
    def issuer(self) -> str:
        """Return the name of this auth service; it goes into every device signature."""
        return self._policy.issuer

    async def begin_sign_in(self, device_key: bytes, address: str) -> tuple[Challenge, str]:
        """Give a challenge to a device key, with the nonce its ID token must carry."""
        check_device_key_size(device_key)
        await self._limits.begin(address, device_key)
        _check_device_key(device_key)
        expire_time = self._clock.now() + CHALLENGE_LIFETIME_S
        challenge = Challenge(self._chance.bytes(CHALLENGE_BYTES), device_key, expire_time)
        await self._challenges.put(challenge)
        return challenge, sign_in_nonce(device_key, challenge.value)

    async def sign_in(self, attempt: SignInAttempt, address: str) -> tuple[IssuedSession, Profile, bool]:
        """Exchange an ID token and a device signature for a session; the last value says if the account is new.

        The same attempt again within 30 s gives the same session.
        """
        device_name = _check_form(attempt)
        await self._limits.sign_in(address)
        _check_device_key(attempt.device_key)
        challenge = check_challenge(await self._challenges.find(attempt.challenge), attempt.device_key)
        id_token_hash = sha256(attempt.id_token.encode()).digest()
        message = tagged(
            "auth", b"sign-in", self.issuer.encode(), b"", attempt.device_key, attempt.challenge, id_token_hash
        )
        _check_signature(attempt.device_key, attempt.device_signature, message)
        await self._limits.proven_sign_in(attempt.device_key)
        claims = await self._provider.verified_claims(attempt.id_token)
        now = self._clock.now()
        nonce = sign_in_nonce(attempt.device_key, attempt.challenge)
        identity = identify(claims, self._policy.provider, nonce, now)
        profile = await self._new_profile(identity, attempt.display_name, now)
        record = SignInRecord(
            identity=identity,
            profile=profile,
            session=self._new_session(profile.account_id, attempt.device_key, now),
            device_name=device_name,
            challenge=challenge,
            request_id=attempt.request_id,
            content_hash=_attempt_hash(attempt),
        )
        stored = await self._accounts.sign_in(record, now)
        return self._issue(stored.session, stored.profile, now), stored.profile, stored.is_new_account

    async def refresh_session(self, refresh_token: str, signature: bytes, address: str) -> IssuedSession:
        """Rotate a refresh token, or repeat a lost reply; the table of cases is in domain/sessions.py."""
        check_signature_size(signature)
        shown = parse_refresh_token(refresh_token)
        await self._limits.refresh(address, shown.session_id)
        # A lost race means that the session moved on, so the second look never says ROTATE for the same token again.
        for _ in range(2):
            session = await self._accounts.find_session(shown.session_id)
            now = self._clock.now()
            is_signed = session is not None and self._is_signed_refresh(session, shown, signature)
            decision = self._refresh_tokens.decide(session, shown, is_signed, now)
            if decision is Decision.INVALID or session is None:
                break
            if decision is Decision.UNSIGNED:
                raise SignatureInvalid("The device signature does not verify.", field="device_signature")
            if decision is Decision.REUSED:
                await self._accounts.end_family(session.session_id, now)
                raise RefreshTokenReused("This refresh token was used before, so its session was ended; sign in again.")
            if decision is Decision.ROTATE:
                rotated = await self._rotate(session, now)
                if rotated is None:
                    continue
                session = rotated
            return self._issue(session, await self._existing_profile(session.account_id), now)
        raise RefreshTokenInvalid("The refresh token is unknown, expired or of an ended session; sign in again.")

    async def sign_out(self, account_id: UUID, device_id: UUID, *, all_devices: bool, request_id: str) -> int:
        """End the session of the calling device, or all sessions of the account; returns how many this call ended."""
        check_request_id(request_id)
        await self._limits.sign_out(device_id)
        content = content_hash(b"sign-out", bytes([all_devices]))
        request = Request(account_id, device_id, request_id, content, self._clock.now())
        return await self._accounts.sign_out(request, all_devices=all_devices)

    async def announce_sign_outs(self) -> int:
        """Tell the other services about sign-outs not announced yet; returns how many there were."""
        revocations = await self._accounts.unannounced(_ANNOUNCE_BATCH)
        if revocations:
            await self._announcements.announce(revocations)
            await self._accounts.mark_announced([revocation.session_id for revocation in revocations])
        return len(revocations)

    async def get_profile(self, account_id: UUID) -> Profile:
        """Return the caller's profile."""
        return await self._existing_profile(account_id)

    async def update_profile(
        self, account_id: UUID, device_id: UUID, *, display_name: str | None, avatar: str | None, request_id: str
    ) -> Profile:
        """Change what is given and return the profile as it is now; a repeated request changes nothing again."""
        check_request_id(request_id)
        await self._limits.change(account_id)
        name = None if display_name is None else normalise_display_name(display_name)
        picture = None if avatar is None else check_avatar(avatar, self._policy.picture_host)
        content = content_hash(b"profile", *(repr(value).encode() for value in (name, picture)))
        request = Request(account_id, device_id, request_id, content, self._clock.now())
        return await self._accounts.update_profile(request, name, picture)

    def key_set(self) -> str:
        """Return the public keys that verify access tokens, as JSON text."""
        return self._signer.jwks()

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

    def _is_signed_refresh(self, session: Session, shown: ShownToken, signature: bytes) -> bool:
        account = str(session.account_id).encode()
        shown_hash = token_hash(shown.text)
        message = tagged("auth", b"refresh", self.issuer.encode(), account, session.device_key, shown_hash)
        return verify(session.device_key, signature, message)

    async def _rotate(self, session: Session, now: float) -> Session | None:
        """Return the session at its next generation, or nothing when another call was first."""
        generation = session.generation + 1
        fresh_hash = token_hash(self._refresh_tokens.make(session.session_id, session.seed, generation))
        expire_time = now + self._policy.refresh_lifetime_s
        rotation = Rotation(session.session_id, session.generation, fresh_hash, now, expire_time)
        if not await self._accounts.rotate(rotation):
            return None
        return replace(session, generation=generation, token_hash=fresh_hash, expire_time=expire_time)

    def _issue(self, session: Session, profile: Profile, now: float) -> IssuedSession:
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

    async def _existing_profile(self, account_id: UUID) -> Profile:
        profile = await self._accounts.find_profile(account_id)
        if profile is None:
            raise _unknown_account()
        return profile


def _check_form(attempt: SignInAttempt) -> str:
    """Check all sizes and return the normalised device name."""
    check_device_key_size(attempt.device_key)
    check_challenge_size(attempt.challenge)
    check_id_token_size(attempt.id_token)
    check_signature_size(attempt.device_signature)
    check_request_id(attempt.request_id)
    return normalise_device_name(attempt.device_name)


def _attempt_hash(attempt: SignInAttempt) -> bytes:
    names = (attempt.device_name.encode(), attempt.display_name.encode())
    return content_hash(attempt.device_key, attempt.challenge, attempt.id_token.encode(), *names)


def _check_device_key(device_key: bytes) -> None:
    if not is_valid_public_key(device_key):
        raise DeviceKeyInvalid("The device key is not a usable Ed25519 public key; create one.", field="device_key")


def _check_signature(device_key: bytes, signature: bytes, message: bytes) -> None:
    if not verify(device_key, signature, message):
        raise SignatureInvalid("The device signature does not verify.", field="device_signature")


def _unknown_account() -> AccessTokenInvalid:
    return AccessTokenInvalid("The account of this access token does not exist; sign in again.")
