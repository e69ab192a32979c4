"""The use cases of auth: load, decide (domain), save, announce. No proto types, no I/O of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

from services.auth.domain.avatars import check_avatar
from services.auth.domain.challenges import (
    CHALLENGE_BYTES,
    CHALLENGE_LIFETIME_S,
    Challenge,
    check_challenge,
)
from services.auth.domain.devices import MAX_DEVICES, Device
from services.auth.domain.errors import (
    AccessTokenInvalid,
    RefreshTokenInvalid,
    RefreshTokenReused,
    SignatureInvalid,
)
from services.auth.domain.identity import identify, sign_in_nonce
from services.auth.domain.names import normalise_device_name, normalise_display_name
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
    Decision,
    RefreshTokens,
    Session,
    ShownToken,
    parse_refresh_token,
    token_hash,
)
from services.auth.issuance import (
    Issuance,
    IssuedSession,
    OpenedSession,
    Policy,
    Proof,
    check_device_key,
    check_sign_in_signature,
)
from services.auth.ports import (
    Accounts,
    Announcements,
    Challenges,
    Chance,
    IdentityProvider,
    Limits,
    Request,
    Signer,
)
from services.kit import log
from services.kit.clock import Clock
from services.kit.signatures import tagged, verify

_ANNOUNCE_BATCH = 100


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
        issuance: Issuance,
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
        self._issuance = issuance
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
        check_device_key(device_key)
        expire_time = self._clock.now() + CHALLENGE_LIFETIME_S
        challenge = Challenge(self._chance.bytes(CHALLENGE_BYTES), device_key, expire_time)
        await self._challenges.put(challenge)
        return challenge, sign_in_nonce(device_key, challenge.value)

    async def sign_in(self, attempt: SignInAttempt, address: str) -> OpenedSession:
        """Exchange an ID token and a device signature for a session; the same again within 30 s gives the same one."""
        device_name = _check_form(attempt)
        await self._limits.sign_in(address)
        check_device_key(attempt.device_key)
        challenge = check_challenge(await self._challenges.find(attempt.challenge), attempt.device_key)
        id_token_hash = sha256(attempt.id_token.encode()).digest()
        check_sign_in_signature(self.issuer, challenge, id_token_hash, attempt.device_signature)
        await self._limits.proven_sign_in(attempt.device_key)
        claims = await self._provider.verified_claims(attempt.id_token)
        nonce = sign_in_nonce(attempt.device_key, attempt.challenge)
        identity = identify(claims, self._policy.provider, nonce, self._clock.now())
        await self._limits.identified_sign_in(identity)
        proof = Proof(
            identity, challenge, device_name, attempt.display_name, attempt.request_id, _attempt_hash(attempt)
        )
        return await self._issuance.open(proof)

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
                log.get().warning("auth.refresh.unsigned", device_id=str(session.device_id))
                raise SignatureInvalid("The device signature does not verify.", field="device_signature")
            if decision is Decision.REUSED:
                log.get().warning("auth.refresh.reused", device_id=str(session.device_id), is_signed=is_signed)
                await self._accounts.end_family(session.session_id, now)
                raise RefreshTokenReused("This refresh token was used before, so its session was ended; sign in again.")
            await self._limits.proven_refresh(session.account_id)
            if decision is Decision.ROTATE:
                rotated = await self._issuance.rotate(session, now)
                if rotated is None:
                    continue
                session = rotated
            return self._issuance.issue(session, await self._existing_profile(session.account_id), now)
        raise RefreshTokenInvalid("The refresh token is unknown, expired or of an ended session; sign in again.")

    async def sign_out(
        self, account_id: UUID, device_id: UUID, address: str, *, all_devices: bool, request_id: str
    ) -> int:
        """End the session of the calling device, or all sessions of the account; returns how many this call ended."""
        check_request_id(request_id)
        await self._limits.sign_out(address, device_id)
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

    async def list_devices(self, account_id: UUID, device_id: UUID, address: str) -> Sequence[Device]:
        """Return the account's devices: the calling one first, then the last used."""
        await self._limits.read(address, account_id)
        return await self._accounts.list_devices(account_id, device_id, MAX_DEVICES, self._clock.now())

    async def rename_device(
        self, account_id: UUID, device_id: UUID, address: str, *, renamed_id: UUID, name: str, request_id: str
    ) -> Device:
        """Name a device of the account and return it as it is now; a repeated request changes nothing again."""
        check_request_id(request_id)
        await self._limits.change(address, account_id)
        chosen = normalise_device_name(name)
        content = content_hash(b"rename", renamed_id.bytes, chosen.encode())
        request = Request(account_id, device_id, request_id, content, self._clock.now())
        return await self._accounts.rename_device(request, renamed_id, chosen)

    async def revoke_device(
        self, account_id: UUID, device_id: UUID, address: str, *, revoked_id: UUID, request_id: str
    ) -> bool:
        """End the session of a device of the account; says whether this call ended one."""
        check_request_id(request_id)
        await self._limits.revoke(address, device_id)
        content = content_hash(b"revoke", revoked_id.bytes)
        request = Request(account_id, device_id, request_id, content, self._clock.now())
        return await self._accounts.revoke_device(request, revoked_id)

    async def get_profile(self, account_id: UUID, address: str) -> Profile:
        """Return the caller's profile."""
        await self._limits.read(address, account_id)
        return await self._existing_profile(account_id)

    async def update_profile(
        self,
        account_id: UUID,
        device_id: UUID,
        address: str,
        *,
        display_name: str | None,
        avatar: str | None,
        request_id: str,
    ) -> Profile:
        """Change what is given and return the profile as it is now; a repeated request changes nothing again."""
        check_request_id(request_id)
        await self._limits.change(address, account_id)
        name = None if display_name is None else normalise_display_name(display_name)
        picture = None if avatar is None else check_avatar(avatar, self._policy.picture_host)
        content = content_hash(b"profile", *(repr(value).encode() for value in (name, picture)))
        request = Request(account_id, device_id, request_id, content, self._clock.now())
        return await self._accounts.update_profile(request, name, picture)

    async def key_set(self, address: str) -> str:
        """Return the public keys that verify access tokens, as JSON text."""
        await self._limits.key_set(address)
        return self._signer.jwks()

    def _is_signed_refresh(self, session: Session, shown: ShownToken, signature: bytes) -> bool:
        account = str(session.account_id).encode()
        shown_hash = token_hash(shown.text)
        message = tagged("auth", b"refresh", self.issuer.encode(), account, session.device_key, shown_hash)
        return verify(session.device_key, signature, message)

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


def _unknown_account() -> AccessTokenInvalid:
    return AccessTokenInvalid("The account of this access token does not exist; sign in again.")
