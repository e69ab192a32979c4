"""The use cases of sign-in by redirect: begin, open in a browser, come back from the provider, complete."""

from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import urlencode

from services.auth.domain.challenges import CHALLENGE_BYTES, Challenge
from services.auth.domain.errors import (
    ChallengeInvalid,
    IdentityProviderUnavailable,
    IdTokenInvalid,
    RedirectSignInOff,
)
from services.auth.domain.identity import identify, sign_in_nonce
from services.auth.domain.names import normalise_device_name
from services.auth.domain.redirects import (
    CODE_LIFETIME_S,
    JOURNEY_LIFETIME_S,
    SECRET_BYTES,
    SERVER_ERROR,
    TEMPORARILY_UNAVAILABLE,
    Grant,
    Journey,
    ProviderAnswer,
    Ticket,
    check_browser,
    check_client_state,
    check_code_challenge,
    check_code_verifier,
    check_grant,
    check_redirect_uri,
    error_uri,
    is_secret,
    pkce_challenge,
    provider_refusal,
    redirect_invalid,
    secret_hash,
    secret_text,
    sign_in_code_invalid,
    success_uri,
)
from services.auth.domain.requests import check_device_key_size, check_request_id, check_signature_size, content_hash
from services.auth.issuance import Issuance, OpenedSession, Policy, Proof, check_device_key, check_sign_in_signature
from services.auth.ports import Chance, CodeExchange, IdentityProvider, Limits, Redirects
from services.kit import log
from services.kit.clock import Clock


@dataclass(frozen=True)
class RedirectPolicy:
    """Holds what an operator decides about sign-in by redirect; it is off without a `public_url`.

    Args:
        public_url: Where browsers reach the gateway, without a slash at the end.
        authorize_url: The provider's authorization endpoint.
        client_id: Our name at the provider.
        redirect_uris: Where browsers may be sent back to, beside loopback addresses.
    """

    public_url: str
    authorize_url: str
    client_id: str
    redirect_uris: frozenset[str]

    @property
    def callback_url(self) -> str:
        """Return where the provider sends the browser back to."""
        return f"{self.public_url}/sign-in/callback"


@dataclass(frozen=True)
class RedirectRequest:
    """Is what a client asks for; nothing about it is checked."""

    device_key: bytes
    redirect_uri: str
    client_state: str
    code_challenge: str


@dataclass(frozen=True)
class Completion:
    """Is what a client shows in the end; nothing about it is checked."""

    code: str
    code_verifier: str
    device_signature: bytes
    device_name: str
    display_name: str
    request_id: str


@dataclass(frozen=True)
class Departure:
    """Is where an opened ticket leads: the provider's address, and the cookie that binds the browser."""

    location: str
    cookie: str
    cookie_lifetime_s: int
    is_secure: bool


class RedirectSignIn:
    """Signs in people in a browser, for clients that cannot get an ID token themselves."""

    def __init__(
        self,
        *,
        policy: Policy,
        redirect_policy: RedirectPolicy,
        redirects: Redirects,
        limits: Limits,
        provider: IdentityProvider,
        exchange: CodeExchange,
        issuance: Issuance,
        chance: Chance,
        clock: Clock,
    ) -> None:
        self._policy = policy
        self._redirect_policy = redirect_policy
        self._redirects = redirects
        self._limits = limits
        self._provider = provider
        self._exchange = exchange
        self._issuance = issuance
        self._chance = chance
        self._clock = clock

    async def begin(self, request: RedirectRequest, address: str) -> tuple[str, Ticket]:
        """Return the address to open in the browser, and what was asked for."""
        if not self._redirect_policy.public_url:
            raise RedirectSignInOff("Sign-in by redirect is not set up here; sign in with an ID token.")
        check_device_key_size(request.device_key)
        await self._limits.begin(address, request.device_key)
        check_client_state(request.client_state)
        check_code_challenge(request.code_challenge)
        check_redirect_uri(request.redirect_uri, self._redirect_policy.redirect_uris)
        check_device_key(request.device_key)
        ticket = Ticket(
            device_key=request.device_key,
            challenge=self._chance.bytes(CHALLENGE_BYTES),
            redirect_uri=request.redirect_uri,
            client_state=request.client_state,
            code_challenge=request.code_challenge,
            expire_time=self._clock.now() + JOURNEY_LIFETIME_S,
        )
        secret = self._new_secret()
        await self._redirects.put_ticket(secret_hash(secret), ticket)
        return f"{self._redirect_policy.public_url}/sign-in/start?{urlencode({'ticket': secret})}", ticket

    async def start(self, secret: str, address: str) -> Departure:
        """Use up a ticket: bind it to the browser that opened it, and send that to the provider."""
        await self._limits.start(address)
        ticket = await self._redirects.take_ticket(secret_hash(secret)) if is_secret(secret) else None
        now = self._clock.now()
        if ticket is None or ticket.expire_time <= now:
            raise redirect_invalid()
        state, cookie, verifier = (self._new_secret() for _ in range(3))
        await self._redirects.put_journey(secret_hash(state), Journey(ticket, secret_hash(cookie), verifier))
        query = {
            "response_type": "code",
            "client_id": self._redirect_policy.client_id,
            "redirect_uri": self._redirect_policy.callback_url,
            "scope": "openid",
            "state": state,
            "nonce": sign_in_nonce(ticket.device_key, ticket.challenge),
            "code_challenge": pkce_challenge(verifier),
            "code_challenge_method": "S256",
            "prompt": "select_account",
        }
        return Departure(
            location=f"{self._redirect_policy.authorize_url}?{urlencode(query)}",
            cookie=cookie,
            cookie_lifetime_s=int(JOURNEY_LIFETIME_S),
            is_secure=self._redirect_policy.public_url.startswith("https://"),
        )

    async def finish(self, answer: ProviderAnswer, address: str) -> str:
        """Return where the browser goes, with a code or an error, once it is known to be the one that began."""
        await self._limits.finish(address)
        taken = await self._redirects.take_journey(secret_hash(answer.state)) if is_secret(answer.state) else None
        journey = check_browser(taken, answer.cookie, self._clock.now())
        ticket = journey.ticket
        if refusal := provider_refusal(answer, self._policy.provider.issuer_names):
            return error_uri(ticket, refusal, self._policy.issuer)
        try:
            grant = await self._grant(journey, answer.code)
        except IdentityProviderUnavailable:
            return error_uri(ticket, TEMPORARILY_UNAVAILABLE, self._policy.issuer)
        except IdTokenInvalid as error:
            log.get().warning("auth.redirect.refused", **error.metadata)
            return error_uri(ticket, SERVER_ERROR, self._policy.issuer)
        code = self._new_secret()
        await self._redirects.put_grant(secret_hash(code), grant)
        return success_uri(ticket, code, self._policy.issuer)

    async def complete(self, completion: Completion, address: str) -> OpenedSession:
        """Exchange a code for a session; the same attempt again within 30 s gives the same session."""
        check_signature_size(completion.device_signature)
        check_request_id(completion.request_id)
        check_code_verifier(completion.code_verifier)
        device_name = normalise_device_name(completion.device_name)
        await self._limits.sign_in(address)
        found = await self._redirects.find_grant(secret_hash(completion.code)) if is_secret(completion.code) else None
        grant = check_grant(found, completion.code_verifier)
        challenge, code = grant.challenge, completion.code.encode()
        check_sign_in_signature(self._policy.issuer, challenge, sha256(code).digest(), completion.device_signature)
        await self._limits.proven_sign_in(challenge.device_key)
        await self._limits.identified_sign_in(grant.identity)
        names = (completion.device_name.encode(), completion.display_name.encode())
        content = content_hash(challenge.device_key, challenge.value, code, *names)
        proof = Proof(grant.identity, challenge, device_name, completion.display_name, completion.request_id, content)
        try:
            return await self._issuance.open(proof)
        except ChallengeInvalid:
            raise sign_in_code_invalid() from None

    async def _grant(self, journey: Journey, provider_code: str) -> Grant:
        """Return the identity that the provider's code stands for, verified exactly as in SignIn."""
        ticket = journey.ticket
        id_token = await self._exchange.id_token(provider_code, journey.provider_verifier)
        claims = await self._provider.verified_claims(id_token)
        now = self._clock.now()
        nonce = sign_in_nonce(ticket.device_key, ticket.challenge)
        identity = identify(claims, self._policy.provider, nonce, now)
        challenge = Challenge(ticket.challenge, ticket.device_key, now + CODE_LIFETIME_S)
        return Grant(identity, challenge, ticket.code_challenge)

    def _new_secret(self) -> str:
        return secret_text(self._chance.bytes(SECRET_BYTES))
