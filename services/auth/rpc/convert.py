"""Between the use cases' types and koikoi.auth.v1."""

from google.protobuf.timestamp_pb2 import Timestamp
from koikoi.auth.v1 import auth_service_pb2 as pb

from services.auth.domain.profiles import Profile
from services.auth.service import IssuedSession, SignInAttempt


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
