"""Every way a call to lobby can be refused; the reasons are the proto's enum `Reason`."""

from __future__ import annotations

from services.kit.errors import Code, ServiceError


class LobbyError(ServiceError):
    """Is what all refusals of lobby are."""

    domain = "lobby.koikoi"


class FieldInvalid(LobbyError):
    """A field is missing or out of range."""

    code = Code.INVALID_ARGUMENT
    reason = "FIELD_INVALID"

    def __init__(self, field: str, limit: str) -> None:
        super().__init__(f"{field}: expected {limit}", field=field, metadata={"field": field, "limit": limit})


class RulesInvalid(LobbyError):
    """The rules name an unknown preset or switch, or a number of rounds the preset does not allow."""

    code = Code.INVALID_ARGUMENT
    reason = "RULES_INVALID"

    def __init__(self, field: str, limit: str) -> None:
        super().__init__(f"{field}: expected {limit}", field=field, metadata={"field": field, "limit": limit})


class PasswordInvalid(LobbyError):
    """The password is too long, or empty where the room asks for one."""

    code = Code.INVALID_ARGUMENT
    reason = "PASSWORD_INVALID"

    def __init__(self, limit: str) -> None:
        super().__init__(
            f"password: expected {limit}", field="password", metadata={"field": "password", "limit": limit}
        )


class RoomNotFound(LobbyError):
    """No room with this code is open to the caller: unknown, expired, closed and long full look alike."""

    code = Code.NOT_FOUND
    reason = "ROOM_NOT_FOUND"


class RoomFull(LobbyError):
    """Somebody else took the second seat a moment ago."""

    code = Code.FAILED_PRECONDITION
    reason = "ROOM_FULL"


class OwnRoom(LobbyError):
    """The caller is the host and cannot be the second player too."""

    code = Code.FAILED_PRECONDITION
    reason = "OWN_ROOM"


class SameDeviceKey(LobbyError):
    """Both seats would have the same device key."""

    code = Code.FAILED_PRECONDITION
    reason = "SAME_DEVICE_KEY"


class PasswordWrong(LobbyError):
    """The password is not this room's."""

    code = Code.PERMISSION_DENIED
    reason = "PASSWORD_WRONG"


class PasswordTries(LobbyError):
    """The caller tried too many passwords for this room."""

    code = Code.RESOURCE_EXHAUSTED
    reason = "PASSWORD_TRIES"


class AlreadyInRoom(LobbyError):
    """The caller is in another room; the metadata holds its code, and the match id once both seats are taken."""

    code = Code.FAILED_PRECONDITION
    reason = "ALREADY_IN_ROOM"


class RateLimited(LobbyError):
    """The caller, or its network address, made too many calls."""

    code = Code.RESOURCE_EXHAUSTED
    reason = "RATE_LIMITED"


class Busy(LobbyError):
    """The service has more work waiting than it takes on."""

    code = Code.RESOURCE_EXHAUSTED
    reason = "BUSY"


class AccessTokenInvalid(LobbyError):
    """The caller's device has been signed out."""

    code = Code.UNAUTHENTICATED
    reason = "ACCESS_TOKEN_INVALID"


class RequestIdReused(LobbyError):
    """The request_id belongs to an earlier call with other content."""

    code = Code.INVALID_ARGUMENT
    reason = "REQUEST_ID_REUSED"


class ApprovalNeeded(LobbyError):
    """The room's host lets guests in one by one."""

    code = Code.FAILED_PRECONDITION
    reason = "APPROVAL_NEEDED"


class MembersOnly(LobbyError):
    """Only host and guest watch a room without approval."""

    code = Code.FAILED_PRECONDITION
    reason = "MEMBERS_ONLY"


class TooManyKnocks(LobbyError):
    """Too many wait at the door of this room."""

    code = Code.RESOURCE_EXHAUSTED
    reason = "TOO_MANY_KNOCKS"


class GuestNotFound(LobbyError):
    """The account does not knock any more, or is in another room now."""

    code = Code.NOT_FOUND
    reason = "GUEST_NOT_FOUND"


class TooManyBlocks(LobbyError):
    """The caller keeps out as many accounts as one may."""

    code = Code.RESOURCE_EXHAUSTED
    reason = "TOO_MANY_BLOCKS"


class TooManyStreams(LobbyError):
    """The account, or this process, has as many open streams as it may."""

    code = Code.RESOURCE_EXHAUSTED
    reason = "TOO_MANY_STREAMS"


class StreamOver(LobbyError):
    """The stream was open as long as one may be."""

    code = Code.UNAVAILABLE
    reason = "STREAM_OVER"


class Draining(LobbyError):
    """This process is going away."""

    code = Code.UNAVAILABLE
    reason = "DRAINING"


class ClientTooOld(LobbyError):
    """The client is older than the service takes, or does not say its version where a minimum is announced."""

    code = Code.FAILED_PRECONDITION
    reason = "CLIENT_TOO_OLD"


class CoolingDown(LobbyError):
    """The account left matches and waits before its next ranked one."""

    code = Code.FAILED_PRECONDITION
    reason = "COOLING_DOWN"


class Maintenance(LobbyError):
    """Nothing new is begun during the announced maintenance."""

    code = Code.UNAVAILABLE
    reason = "MAINTENANCE"
