"""Why auth refuses a call: one class per reason of koikoi.auth.v1.Reason.

    AuthError
    ├── INVALID_ARGUMENT    DeviceKeyInvalid, DisplayNameInvalid, AvatarInvalid, FieldInvalid, RequestIdReused,
    │                       RedirectUriInvalid
    ├── UNAUTHENTICATED     ChallengeInvalid, IdTokenInvalid, SignatureInvalid, RefreshTokenInvalid,
    │                       RefreshTokenReused, AccessTokenInvalid, RedirectInvalid, SignInCodeInvalid
    ├── PERMISSION_DENIED   DeviceKeyTaken
    ├── NOT_FOUND           DeviceUnknown
    ├── FAILED_PRECONDITION RedirectSignInOff
    ├── RESOURCE_EXHAUSTED  RateLimited
    └── UNAVAILABLE         IdentityProviderUnavailable

Messages are written for the person who reads them and never hold a token, key, signature or name.
"""

from services.kit.errors import Code, ServiceError


class AuthError(ServiceError):
    """Is the base of everything auth refuses."""

    domain = "auth.koikoi"


class DeviceKeyInvalid(AuthError):
    """The device key is not 32 bytes, not canonical or of small order."""

    code = Code.INVALID_ARGUMENT
    reason = "DEVICE_KEY_INVALID"


class DeviceKeyTaken(AuthError):
    """The device key belongs to another account."""

    code = Code.PERMISSION_DENIED
    reason = "DEVICE_KEY_TAKEN"


class ChallengeInvalid(AuthError):
    """The challenge is unknown, used, expired or was given to another key."""

    code = Code.UNAUTHENTICATED
    reason = "CHALLENGE_INVALID"


class IdTokenInvalid(AuthError):
    """The ID token does not verify or is not meant for this sign-in; metadata names the claim or header."""

    code = Code.UNAUTHENTICATED
    reason = "ID_TOKEN_INVALID"


class SignatureInvalid(AuthError):
    """The device signature does not verify."""

    code = Code.UNAUTHENTICATED
    reason = "SIGNATURE_INVALID"


class RefreshTokenInvalid(AuthError):
    """The refresh token is unknown, expired or of an ended session."""

    code = Code.UNAUTHENTICATED
    reason = "REFRESH_TOKEN_INVALID"


class RefreshTokenReused(AuthError):
    """An old refresh token was shown again, so its session was ended."""

    code = Code.UNAUTHENTICATED
    reason = "REFRESH_TOKEN_REUSED"


class IdentityProviderUnavailable(AuthError):
    """The identity provider does not answer as it should now."""

    code = Code.UNAVAILABLE
    reason = "IDENTITY_PROVIDER_UNAVAILABLE"


class DisplayNameInvalid(AuthError):
    """The display name breaks a rule; metadata names the rule."""

    code = Code.INVALID_ARGUMENT
    reason = "DISPLAY_NAME_INVALID"


class AvatarInvalid(AuthError):
    """The avatar is neither a built-in one nor a picture on the provider's known host."""

    code = Code.INVALID_ARGUMENT
    reason = "AVATAR_INVALID"


class FieldInvalid(AuthError):
    """A field is missing or out of range; metadata names field and limit."""

    code = Code.INVALID_ARGUMENT
    reason = "FIELD_INVALID"


class RateLimited(AuthError):
    """Too many calls from one address, key or session."""

    code = Code.RESOURCE_EXHAUSTED
    reason = "RATE_LIMITED"


class AccessTokenInvalid(AuthError):
    """The access token names an account that does not exist here, or a device that was signed out."""

    code = Code.UNAUTHENTICATED
    reason = "ACCESS_TOKEN_INVALID"


class RequestIdReused(AuthError):
    """The same request_id was used before with other content."""

    code = Code.INVALID_ARGUMENT
    reason = "REQUEST_ID_REUSED"


class RedirectUriInvalid(AuthError):
    """The redirect_uri is neither one of the operator's nor a loopback address."""

    code = Code.INVALID_ARGUMENT
    reason = "REDIRECT_URI_INVALID"


class RedirectSignInOff(AuthError):
    """The operator has not set up sign-in by redirect."""

    code = Code.FAILED_PRECONDITION
    reason = "REDIRECT_SIGN_IN_OFF"


class RedirectInvalid(AuthError):
    """The redirect sign-in is unknown, used, too old, or another browser's."""

    code = Code.UNAUTHENTICATED
    reason = "REDIRECT_INVALID"


class SignInCodeInvalid(AuthError):
    """The sign-in code is unknown, used or too old, or the verifier does not fit."""

    code = Code.UNAUTHENTICATED
    reason = "SIGN_IN_CODE_INVALID"


class DeviceUnknown(AuthError):
    """The account has no such device."""

    code = Code.NOT_FOUND
    reason = "DEVICE_UNKNOWN"
