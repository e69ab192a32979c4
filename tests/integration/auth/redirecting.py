"""A client that signs in by redirect, step by step, through the gateway's pages."""

import secrets
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from koikoi.auth.v1 import auth_service_pb2 as pb

from services.auth.domain.redirects import pkce_challenge
from tests.harness.browser import Browser, query_of
from tests.integration.auth.device import Device
from tests.integration.auth.world import CLIENT_SECRET, World

REDIRECT_URI = "http://127.0.0.1:49152/signed-in"


@dataclass
class Client:
    """One device, its state and verifier, and what auth told it so far."""

    device: Device
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))
    state: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    begun: Any = None

    async def begin(self, **fields: Any) -> pb.BeginRedirectSignInResponse:
        request = {
            "device_key": self.device.public_key,
            "redirect_uri": REDIRECT_URI,
            "client_state": self.state,
            "code_challenge": pkce_challenge(self.verifier),
            **fields,
        }
        self.begun = await self.device.stub.BeginRedirectSignIn(pb.BeginRedirectSignInRequest(**request))
        return self.begun

    async def code(self, browser: Browser) -> str:
        """Begin, go the whole way in a browser, and give the code that came back."""
        begun = await self.begin()
        back = query_of(await browser.sign_in(begun.authorize_url, self.device.email))
        assert (back["state"], back["iss"]) == (self.state, begun.issuer)
        return back["code"]

    def completion(self, code: str, **fields: Any) -> pb.CompleteRedirectSignInRequest:
        """A right request; `fields` override."""
        digest = sha256(code.encode()).digest()
        signed = (b"", self.device.public_key, self.begun.challenge, digest)
        right = {
            "code": code,
            "code_verifier": self.verifier,
            "device_signature": self.device.sign(b"sign-in", *signed),
            "request_id": secrets.token_hex(8),
        }
        return pb.CompleteRedirectSignInRequest(**{**right, **fields})

    async def complete(self, code: str, **fields: Any) -> pb.CompleteRedirectSignInResponse:
        answer = await self.device.stub.CompleteRedirectSignIn(self.completion(code, **fields))
        self.device.session, self.device.account_id = answer.session, answer.profile.account_id
        return answer


@dataclass
class Place:
    """A world whose auth is reached by browsers through a gateway."""

    world: World
    gateway_url: str

    def client(self, email: str = "hana@example.org") -> Client:
        return Client(self.world.device(email, process=1))


def redirect_settings(world: World, public_url: str) -> dict[str, str]:
    return {
        "public_url": public_url,
        "oidc_client_ids": "koikoi-development,koikoi-web",
        "oidc_redirect_client_id": "koikoi-web",
        "oidc_client_secret": CLIENT_SECRET,
        "oidc_authorize_url": f"{world.provider.issuer}/authorize",
        "oidc_token_url": f"{world.provider.issuer}/token",
        "redirect_uris": "https://play.example/signed-in?from=koikoi,com.example.app:/signed-in",
    }
