"""Between the use cases' types and koikoi.auth.v1."""

from uuid import UUID

from google.protobuf.timestamp_pb2 import Timestamp
from koikoi.auth.v1 import auth_service_pb2 as pb

from services.auth.domain.devices import Device
from services.auth.domain.profiles import Profile
from services.auth.domain.redirects import ProviderAnswer
from services.auth.issuance import IssuedSession
from services.auth.redirects import Completion, RedirectRequest
from services.auth.service import SignInAttempt


def timestamp(seconds: float) -> Timestamp:
    """Return unix seconds as a Timestamp with milliseconds."""
    stamp = Timestamp()
    stamp.FromMilliseconds(int(seconds * 1000))
    return stamp


def attempt(request: pb.SignInRequest) -> SignInAttempt:
    """Return what a SignIn request shows."""
    return SignInAttempt(
        device_key=request.device_key,
        challenge=request.challenge,
        id_token=request.id_token,
        device_signature=request.device_signature,
        device_name=request.device_name,
        display_name=request.display_name,
        request_id=request.request_id,
    )


def redirect_request(request: pb.BeginRedirectSignInRequest) -> RedirectRequest:
    """Return what a BeginRedirectSignIn request asks for."""
    return RedirectRequest(
        device_key=request.device_key,
        redirect_uri=request.redirect_uri,
        client_state=request.client_state,
        code_challenge=request.code_challenge,
    )


def provider_answer(request: pb.FinishRedirectSignInRequest) -> ProviderAnswer:
    """Return what a browser brought back."""
    return ProviderAnswer(
        state=request.state, code=request.code, error=request.error, issuer=request.issuer, cookie=request.cookie
    )


def completion(request: pb.CompleteRedirectSignInRequest) -> Completion:
    """Return what a CompleteRedirectSignIn request shows."""
    return Completion(
        code=request.code,
        code_verifier=request.code_verifier,
        device_signature=request.device_signature,
        device_name=request.device_name,
        display_name=request.display_name,
        request_id=request.request_id,
    )


def session(issued: IssuedSession) -> pb.Session:
    """Return an issued session."""
    return pb.Session(
        access_token=issued.access_token,
        access_expire_time=timestamp(issued.access_expire_time),
        refresh_token=issued.refresh_token,
        refresh_expire_time=timestamp(issued.refresh_expire_time),
        device_id=str(issued.device_id),
    )


def profile(known: Profile) -> pb.Profile:
    """Return a profile."""
    return pb.Profile(
        account_id=str(known.account_id),
        display_name=known.display_name,
        avatar=known.avatar,
        create_time=timestamp(known.create_time),
    )


def device(known: Device, current_id: UUID) -> pb.Device:
    """Return a device as the one with `current_id` sees it."""
    return pb.Device(
        device_id=str(known.device_id),
        device_name=known.name,
        create_time=timestamp(known.create_time),
        last_use_time=timestamp(known.last_use_time),
        is_current=known.device_id == current_id,
        is_signed_in=known.is_signed_in,
    )
