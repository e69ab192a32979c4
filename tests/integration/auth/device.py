"""A device as auth's tests see it: a key, and the calls of a sign-in by hand."""

import secrets
from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import Any

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from koikoi.auth.v1 import auth_service_pb2 as pb
from koikoi.auth.v1.auth_service_pb2_grpc import AuthServiceStub
from nacl.signing import SigningKey

from services.kit.signatures import tagged
from tools.oidc_provider import Provider

ISSUER = "https://auth.koikoi/development"


class Device:
    """Signs in as `email`; keeps its session."""

    def __init__(self, stub: AuthServiceStub, provider: Provider, email: str = "hana@example.org") -> None:
        self.stub: Any = stub
        self.provider = provider
        self.email = email
        self.key = SigningKey.generate()
        self.session = pb.Session()
        self.account_id = ""

    @property
    def public_key(self) -> bytes:
        return bytes(self.key.verify_key)

    async def begin(self) -> pb.BeginSignInResponse:
        return await self.stub.BeginSignIn(pb.BeginSignInRequest(device_key=self.public_key))

    def sign_in_request(self, begun: pb.BeginSignInResponse, id_token: str | None = None, **fields: Any) -> Any:
        """A right request; `fields` override."""
        id_token = self.provider.id_token(self.email, begun.nonce) if id_token is None else id_token
        fields = {
            "device_key": self.public_key,
            "challenge": begun.challenge,
            "id_token": id_token,
            "request_id": secrets.token_hex(8),
            **fields,
        }
        if "device_signature" not in fields:
            fields["device_signature"] = self.sign(
                b"sign-in", b"", fields["device_key"], fields["challenge"], sha256(fields["id_token"].encode()).digest()
            )
        return pb.SignInRequest(**fields)

    async def sign_in(self, **fields: Any) -> pb.SignInResponse:
        answer = await self.stub.SignIn(self.sign_in_request(await self.begin(), **fields))
        self.session, self.account_id = answer.session, answer.profile.account_id
        return answer

    def refresh_request(self, token: str | None = None, account_id: str | None = None) -> pb.RefreshSessionRequest:
        token = self.session.refresh_token if token is None else token
        account = (self.account_id if account_id is None else account_id).encode()
        signature = self.sign(b"refresh", account, self.public_key, sha256(token.encode()).digest())
        return pb.RefreshSessionRequest(refresh_token=token, device_signature=signature)

    async def refresh(self, token: str | None = None) -> pb.Session:
        answer = await self.stub.RefreshSession(self.refresh_request(token))
        self.session = answer.session
        return answer.session

    def sign(self, action: bytes, *fields: bytes) -> bytes:
        return self.key.sign(tagged("auth", action, ISSUER.encode(), *fields)).signature

    @property
    def bearer(self) -> list[tuple[str, str]]:
        return [("authorization", f"Bearer {self.session.access_token}")]

    async def profile(self) -> pb.Profile:
        answer = await self.stub.GetProfile(pb.GetProfileRequest(), metadata=self.bearer)
        return answer.profile

    async def sign_out(self, *, all_devices: bool = False, request_id: str | None = None) -> int:
        request = pb.SignOutRequest(all_devices=all_devices, request_id=request_id or secrets.token_hex(8))
        answer = await self.stub.SignOut(request, metadata=self.bearer)
        return int(answer.ended_sessions)

    async def update_profile(self, **fields: Any) -> pb.Profile:
        request = pb.UpdateProfileRequest(**{"request_id": secrets.token_hex(8), **fields})
        answer = await self.stub.UpdateProfile(request, metadata=self.bearer)
        return answer.profile


class Refused:
    """`async with Refused("REASON") as refusal:` expects a typed error with that reason, as clients see it."""

    def __init__(self, reason: str, code: grpc.StatusCode | None = None, **metadata: str) -> None:
        self.reason, self.code, self.expected = reason, code, metadata
        self.metadata: dict[str, str] = {}
        self.message = ""
        self.retry_delay_s: float | None = None

    async def __aenter__(self) -> "Refused":
        return self

    async def __aexit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        assert error is not None, f"the call should have been refused with {self.reason}"
        if not isinstance(error, grpc.aio.AioRpcError):
            return False
        status = rpc_status.from_call(error)
        assert status is not None, f"no details: {error.code()} {error.details()}"
        info, retry = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo()
        assert status.details[0].Unpack(info)
        assert (info.reason, info.domain) == (self.reason, "auth.koikoi"), (info.reason, error.details())
        assert self.code in (None, error.code())
        self.metadata, self.message = dict(info.metadata), str(error.details())
        assert self.expected.items() <= self.metadata.items(), self.metadata
        for detail in status.details:
            if detail.Unpack(retry):
                self.retry_delay_s = retry.retry_delay.ToMilliseconds() / 1000
        return True


def base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
