"""AuthService over gRPC. No `try`: kit's interceptor owns errors, deadlines, identity, log line and metrics."""

from typing import Any
from uuid import UUID

from koikoi.auth.v1 import auth_service_pb2 as pb
from koikoi.auth.v1 import auth_service_pb2_grpc as pb_grpc

from services.auth.rpc import convert
from services.auth.service import AuthService
from services.kit.grpc_server import caller, client_address

ANONYMOUS = ("BeginSignIn", "SignIn", "RefreshSession", "GetKeySet")


class AuthHandlers(pb_grpc.AuthServiceServicer):
    """Answers koikoi.auth.v1.AuthService."""

    def __init__(self, service: AuthService) -> None:
        self._service = service

    async def BeginSignIn(self, request: pb.BeginSignInRequest, context: Any) -> pb.BeginSignInResponse:  # noqa: N802
        """Give a single-use challenge."""
        challenge, nonce = await self._service.begin_sign_in(request.device_key, client_address())
        return pb.BeginSignInResponse(
            challenge=challenge.value,
            nonce=nonce,
            issuer=self._service.issuer,
            expire_time=convert.timestamp(challenge.expire_time),
        )

    async def SignIn(self, request: pb.SignInRequest, context: Any) -> pb.SignInResponse:  # noqa: N802
        """Exchange an ID token and a device signature for a session."""
        issued, profile, is_new = await self._service.sign_in(convert.attempt(request), client_address())
        return pb.SignInResponse(
            session=convert.session(issued), profile=convert.profile(profile), is_new_account=is_new
        )

    async def RefreshSession(self, request: pb.RefreshSessionRequest, context: Any) -> pb.RefreshSessionResponse:  # noqa: N802
        """Rotate a refresh token."""
        issued = await self._service.refresh_session(request.refresh_token, request.device_signature, client_address())
        return pb.RefreshSessionResponse(session=convert.session(issued))

    async def SignOut(self, request: pb.SignOutRequest, context: Any) -> pb.SignOutResponse:  # noqa: N802
        """End the calling device's session, or all."""
        who = caller()
        ended = await self._service.sign_out(
            UUID(who.account_id), UUID(who.device_id), all_devices=request.all_devices, request_id=request.request_id
        )
        return pb.SignOutResponse(ended_sessions=ended)

    async def GetProfile(self, request: pb.GetProfileRequest, context: Any) -> pb.GetProfileResponse:  # noqa: N802
        """Return the caller's profile."""
        profile = await self._service.get_profile(UUID(caller().account_id))
        return pb.GetProfileResponse(profile=convert.profile(profile))

    async def UpdateProfile(self, request: pb.UpdateProfileRequest, context: Any) -> pb.UpdateProfileResponse:  # noqa: N802
        """Change the caller's display name or avatar."""
        who = caller()
        profile = await self._service.update_profile(
            UUID(who.account_id),
            UUID(who.device_id),
            display_name=request.display_name if request.HasField("display_name") else None,
            avatar=request.avatar if request.HasField("avatar") else None,
            request_id=request.request_id,
        )
        return pb.UpdateProfileResponse(profile=convert.profile(profile))

    async def GetKeySet(self, request: pb.GetKeySetRequest, context: Any) -> pb.GetKeySetResponse:  # noqa: N802
        """Return the public keys that verify access tokens."""
        return pb.GetKeySetResponse(jwks=self._service.key_set())
