"""Two players who follow the OpenAPI document's examples: they send each as it stands, with what is theirs put in."""

import base64
import hashlib
import json
import secrets
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import aiohttp
from koikoi_sdk.client.openid import fetch_id_token
from nacl.signing import SigningKey

from services.kit.signatures import tagged
from tests.harness.browser import open_browser, query_of
from tests.unit.ranking.cases import SIX_ROUNDS, encode, play
from tools.openapi import EXAMPLES
from tools.plan import PROVIDER_CLIENT_ID, Plan

AUTH, LOBBY = "koikoi.auth.v1.AuthService", "koikoi.lobby.v1.LobbyService"
MATCH, RANKING = "koikoi.match.v1.MatchService", "koikoi.ranking.v1.RankingService"
READ = json.loads(EXAMPLES.read_text(encoding="utf-8"))


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


@dataclass
class Player:
    """One device that calls the gateway with nothing but HTTP and JSON."""

    name: str
    plan: Plan
    http: aiohttp.ClientSession
    sent: set[str]
    document: dict[str, Any]
    key: SigningKey = field(default_factory=SigningKey.generate)
    token: str = ""

    async def follow(self, method: str, **live: Any) -> dict[str, Any]:
        """Send the example of a method; `live` replaces members of the same name. Gives the answer."""
        example = READ[method]
        request = put_in(example["request"], live)
        assert not live, f"{method}: the example has no {', '.join(live)}"
        offered = self.document["paths"][f"/{method}"]
        send = self.open if "x-streaming" in offered["post"] else self.post
        answers = [await send(method, request)]
        if "get" in offered:
            answers.append(await self.get(method, request))
        for answer in answers:
            assert shape_of(answer) == shape_of(example["response"]), (method, answer)
        self.sent.add(method)
        return answers[0]

    async def post(self, method: str, request: dict[str, Any]) -> Any:
        async with self.http.post(self.url(method), json=request, headers=self.headers) as response:
            assert response.status == 200, (method, await response.text())
            return await response.json()

    async def get(self, method: str, request: dict[str, Any]) -> Any:
        query = urlencode({"connect": "v1", "encoding": "json", "message": json.dumps(request)})
        async with self.http.get(f"{self.url(method)}?{query}", headers=self.headers) as response:
            assert response.status == 200, (method, await response.text())
            return await response.json()

    async def open(self, method: str, request: dict[str, Any]) -> Any:
        """Give the first message of a stream, and leave it."""
        async with self.opened(method, request) as message:
            return message

    @asynccontextmanager
    async def opened(self, method: str, request: dict[str, Any]) -> AsyncIterator[Any]:
        """Hold a stream open after its first message."""
        content = json.dumps(request).encode()
        headers = self.headers | {"Content-Type": "application/connect+json"}
        body = struct.pack(">BI", 0, len(content)) + content
        async with self.http.post(self.url(method), data=body, headers=headers) as response:
            flags, size = struct.unpack(">BI", await response.content.readexactly(5))
            message = json.loads(await response.content.readexactly(size))
            assert flags == 0, (method, message)
            yield message

    def url(self, method: str) -> str:
        return f"{self.plan.gateway_url}/{method}"

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def sign(self, domain: str, *parts: bytes) -> str:
        return base64_of(bytes(self.key.sign(tagged(domain, *parts)).signature))

    async def sign_in(self) -> dict[str, Any]:
        public = bytes(self.key.verify_key)
        begun = await self.follow(f"{AUTH}/BeginSignIn", deviceKey=base64_of(public))
        id_token = await fetch_id_token(
            self.plan.provider_url, client_id=PROVIDER_CLIENT_ID, login_hint=self.name, nonce=begun["nonce"]
        )
        challenge, digest = base64.b64decode(begun["challenge"]), hashlib.sha256(id_token.encode()).digest()
        answer = await self.follow(
            f"{AUTH}/SignIn",
            deviceKey=base64_of(public),
            challenge=begun["challenge"],
            idToken=id_token,
            deviceSignature=self.sign("auth", b"sign-in", begun["issuer"].encode(), b"", public, challenge, digest),
            requestId=secrets.token_hex(8),
        )
        self.token = answer["session"]["accessToken"]
        return {**answer, "issuer": begun["issuer"]}

    async def sign_in_by_redirect(self) -> None:
        """Sign in as a client without the provider's library does, a browser going the way of its user."""
        public, verifier = bytes(self.key.verify_key), READ[f"{AUTH}/CompleteRedirectSignIn"]["request"]["codeVerifier"]
        begun = await self.follow(f"{AUTH}/BeginRedirectSignIn", deviceKey=base64_of(public))
        async with open_browser() as browser:
            back = query_of(await browser.sign_in(begun["authorizeUrl"], f"{self.name}@example.test"))
        assert back["state"] == READ[f"{AUTH}/BeginRedirectSignIn"]["request"]["clientState"]
        assert back["iss"] == begun["issuer"]
        challenge, digest = base64.b64decode(begun["challenge"]), hashlib.sha256(back["code"].encode()).digest()
        answer = await self.follow(
            f"{AUTH}/CompleteRedirectSignIn",
            code=back["code"],
            codeVerifier=verifier,
            deviceSignature=self.sign("auth", b"sign-in", begun["issuer"].encode(), b"", public, challenge, digest),
            requestId=secrets.token_hex(8),
        )
        self.token = answer["session"]["accessToken"]

    async def refresh(self, signed_in: dict[str, Any]) -> None:
        token, account = signed_in["session"]["refreshToken"], signed_in["profile"]["accountId"]
        digest, public = hashlib.sha256(token.encode()).digest(), bytes(self.key.verify_key)
        signature = self.sign("auth", b"refresh", signed_in["issuer"].encode(), account.encode(), public, digest)
        answer = await self.follow(f"{AUTH}/RefreshSession", refreshToken=token, deviceSignature=signature)
        self.token = answer["session"]["accessToken"]


def put_in(value: Any, live: dict[str, Any]) -> Any:
    """Replace members by name, and take from `live` what was used."""
    if not isinstance(value, dict):
        return value
    return {name: live.pop(name) if name in live else put_in(inner, live) for name, inner in value.items()}


def shape_of(value: Any) -> Any:
    """Give names and kinds without values; of an array, its first element."""
    if isinstance(value, dict):
        return {name: shape_of(inner) for name, inner in sorted(value.items())}
    if isinstance(value, list):
        return [shape_of(value[0])] if value else []
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def finished_match(contract: str, host: Player, guest: Player) -> dict[str, Any]:
    """Give what SubmitResult asks for, as if the two had played."""
    payload = base64.urlsafe_b64decode(contract.split(".")[1] + "==")
    statement = encode(play("house", *SIX_ROUNDS), hashlib.sha256(payload).digest(), session_id=secrets.token_bytes(32))
    signatures = [player.sign("match-result", statement) for player in (host, guest)]
    return {"contract": contract, "statement": base64_of(statement), "signatures": signatures}
