"""AuthService over gRPC. No `try`: kit's interceptor owns errors, deadlines, identity, log line and metrics."""

from typing import Any
from uuid import UUID

from koikoi.auth.v1 import auth_service_pb2 as pb
from koikoi.auth.v1 import auth_service_pb2_grpc as pb_grpc

from services.auth.domain.devices import parse_device_id
from services.auth.redirects import RedirectSignIn
from services.auth.rpc import convert
from services.auth.service import AuthService
from services.kit.grpc_server import caller, client_address

ANONYMOUS = (
    "BeginRedirectSignIn", "BeginSignIn", "CompleteRedirectSignIn", "FinishRedirectSignIn", "GetKeySet",
    "RefreshSession", "SignIn", "StartRedirectSignIn",
)  # fmt: skip


class AuthHandlers(pb_grpc.AuthServiceServicer):
    """Answers koikoi.auth.v1.AuthService."""

    def __init__(self, service: AuthService, redirects: RedirectSignIn) -> None:
        self._service = service
        self._redirects = redirects

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
        opened = await self._service.sign_in(convert.attempt(request), client_address())
        return pb.SignInResponse(
            session=convert.session(opened.session),
            profile=convert.profile(opened.profile),
            is_new_account=opened.is_new_account,
        )

    async def BeginRedirectSignIn(  # noqa: N802
        self, request: pb.BeginRedirectSignInRequest, context: Any
    ) -> pb.BeginRedirectSignInResponse:
        """Give the address to open in a browser."""
        url, ticket = await self._redirects.begin(convert.redirect_request(request), client_address())
        return pb.BeginRedirectSignInResponse(
            authorize_url=url,
            challenge=ticket.challenge,
            issuer=self._service.issuer,
            expire_time=convert.timestamp(ticket.expire_time),
        )

    async def StartRedirectSignIn(  # noqa: N802
        self, request: pb.StartRedirectSignInRequest, context: Any
    ) -> pb.StartRedirectSignInResponse:
        """Bind the sign-in to a browser and send that to the provider."""
        departure = await self._redirects.start(request.ticket, client_address())
        return pb.StartRedirectSignInResponse(
            location=departure.location,
            cookie=departure.cookie,
            cookie_lifetime_s=departure.cookie_lifetime_s,
            is_secure=departure.is_secure,
        )

    async def FinishRedirectSignIn(  # noqa: N802
        self, request: pb.FinishRedirectSignInRequest, context: Any
    ) -> pb.FinishRedirectSignInResponse:
        """Send the browser back to the client, with a code or an error."""
        location = await self._redirects.finish(convert.provider_answer(request), client_address())
        return pb.FinishRedirectSignInResponse(location=location)

    async def CompleteRedirectSignIn(  # noqa: N802
        self, request: pb.CompleteRedirectSignInRequest, context: Any
    ) -> pb.CompleteRedirectSignInResponse:
        """Exchange the code and a device signature for a session."""
        opened = await self._redirects.complete(convert.completion(request), client_address())
        return pb.CompleteRedirectSignInResponse(
            session=convert.session(opened.session),
            profile=convert.profile(opened.profile),
            is_new_account=opened.is_new_account,
        )

    async def RefreshSession(self, request: pb.RefreshSessionRequest, context: Any) -> pb.RefreshSessionResponse:  # noqa: N802
        """Rotate a refresh token."""
        issued = await self._service.refresh_session(request.refresh_token, request.device_signature, client_address())
        return pb.RefreshSessionResponse(session=convert.session(issued))

    async def SignOut(self, request: pb.SignOutRequest, context: Any) -> pb.SignOutResponse:  # noqa: N802
        """End the calling device's session, or all."""
        who = caller()
        ended = await self._service.sign_out(
            UUID(who.account_id),
            UUID(who.device_id),
            client_address(),
            all_devices=request.all_devices,
            request_id=request.request_id,
        )
        return pb.SignOutResponse(ended_sessions=ended)

    async def ListDevices(self, request: pb.ListDevicesRequest, context: Any) -> pb.ListDevicesResponse:  # noqa: N802
        """List the devices of the caller's account."""
        who = caller()
        current_id = UUID(who.device_id)
        devices = await self._service.list_devices(UUID(who.account_id), current_id, client_address())
        return pb.ListDevicesResponse(devices=[convert.device(one, current_id) for one in devices])

    async def RenameDevice(self, request: pb.RenameDeviceRequest, context: Any) -> pb.RenameDeviceResponse:  # noqa: N802
        """Change the name a device is listed under."""
        who = caller()
        current_id = UUID(who.device_id)
        renamed = await self._service.rename_device(
            UUID(who.account_id),
            current_id,
            client_address(),
            renamed_id=parse_device_id(request.device_id),
            name=request.device_name,
            request_id=request.request_id,
        )
        return pb.RenameDeviceResponse(device=convert.device(renamed, current_id))

    async def RevokeDevice(self, request: pb.RevokeDeviceRequest, context: Any) -> pb.RevokeDeviceResponse:  # noqa: N802
        """End the session of a device of the account."""
        who = caller()
        has_ended = await self._service.revoke_device(
            UUID(who.account_id),
            UUID(who.device_id),
            client_address(),
            revoked_id=parse_device_id(request.device_id),
            request_id=request.request_id,
        )
        return pb.RevokeDeviceResponse(has_ended_session=has_ended)

    async def GetProfile(self, request: pb.GetProfileRequest, context: Any) -> pb.GetProfileResponse:  # noqa: N802
        """Return the caller's profile."""
        profile = await self._service.get_profile(UUID(caller().account_id), client_address())
        return pb.GetProfileResponse(profile=convert.profile(profile))

    async def UpdateProfile(self, request: pb.UpdateProfileRequest, context: Any) -> pb.UpdateProfileResponse:  # noqa: N802
        """Change the caller's display name or avatar."""
        who = caller()
        profile = await self._service.update_profile(
            UUID(who.account_id),
            UUID(who.device_id),
            client_address(),
            display_name=request.display_name if request.HasField("display_name") else None,
            avatar=request.avatar if request.HasField("avatar") else None,
            request_id=request.request_id,
        )
        return pb.UpdateProfileResponse(profile=convert.profile(profile))

    async def GetKeySet(self, request: pb.GetKeySetRequest, context: Any) -> pb.GetKeySetResponse:  # noqa: N802
        """Return the public keys that verify access tokens."""
        return pb.GetKeySetResponse(jwks=await self._service.key_set(client_address()))
