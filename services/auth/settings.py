"""The settings of auth, `KOIKOI_AUTH_*`, and what production refuses."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from services.auth.domain.identity import GOOGLE
from services.kit.settings import LOOPBACK, Network, SettingsError, load

PREFIX = "KOIKOI_AUTH"
GOOGLE_KEY_SET = "https://www.googleapis.com/oauth2/v3/certs"
GOOGLE_AUTHORIZE = "https://accounts.google.com/o/oauth2/v2/auth"
GOOGLE_TOKEN = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address, no secret
_FIXED_URLS = {
    "oidc_jwks_url": GOOGLE_KEY_SET,
    "oidc_authorize_url": GOOGLE_AUTHORIZE,
    "oidc_token_url": GOOGLE_TOKEN,
}
GENERATED_MARK = "development-"  # begins every secret that is made up when none is given
GENERATED_KEY_FILE = "first.json"  # the name kit gives a signing key that it makes up

_MIN_SECRET_CHARACTERS = 32
_MIN_PASSWORD_CHARACTERS = 16
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
# https, or a private-use scheme, which has a dot (RFC 8252 section 7.1): never javascript: or data:.
_REDIRECT_URI = re.compile(r"(?:https://[A-Za-z0-9]|[a-z][a-z0-9-]*(?:\.[a-z0-9-]+)+:/)[!-\"$-~]*")


@dataclass(frozen=True)
class Settings:
    """Is everything an operator can set; secrets may come from `*_FILE`."""

    database_url: str = field(metadata={"doc": "Postgres, schema auth."})
    redis_url: str = field(metadata={"doc": "Redis for challenges and limits."})
    key_directory: Path = field(metadata={"doc": "Signing keys, Ed25519 JWK files; in development made when missing."})
    oidc_client_ids: tuple[str, ...] = field(metadata={"doc": "Our client ids at the identity provider."})
    environment: str = field(default="development", metadata={"doc": "development or production."})
    grpc_address: str = field(default="127.0.0.1:50051", metadata={"doc": "Where gRPC listens."})
    metrics_address: str = field(default="127.0.0.1:9101", metadata={"doc": "Where metrics and probes listen."})
    revocations_redis_url: str = field(
        default="", metadata={"doc": "Redis of the stream of signed-out devices; empty for the same as redis_url."}
    )
    issuer: str = field(
        default="", metadata={"doc": "Issuer of access tokens; empty for https://auth.koikoi/{environment}."}
    )
    oidc_issuer: str = field(default=GOOGLE, metadata={"doc": "The identity provider."})
    oidc_jwks_url: str = field(default=GOOGLE_KEY_SET, metadata={"doc": "The identity provider's public keys."})
    oidc_authorize_url: str = field(
        default=GOOGLE_AUTHORIZE, metadata={"doc": "The identity provider's authorization endpoint."}
    )
    oidc_token_url: str = field(default=GOOGLE_TOKEN, metadata={"doc": "The identity provider's token endpoint."})
    oidc_redirect_client_id: str = field(
        default="", metadata={"doc": "Which of our client ids signs in by redirect; empty for the first."}
    )
    oidc_client_secret: str = field(
        default="", metadata={"doc": "The secret of that client at the identity provider; empty for a public client."}
    )
    public_url: str = field(
        default="",
        metadata={"doc": "Where browsers reach the gateway, like https://play.example; empty: no sign-in by redirect."},
    )
    redirect_uris: tuple[str, ...] = field(
        default=(),
        metadata={"doc": "Where a redirect sign-in may send browsers back to, exactly; loopback is always allowed."},
    )
    oidc_skew_s: float = field(
        default=30.0, metadata={"doc": "Seconds by which the provider's clock may be off.", "max": 300}
    )
    picture_host: str = field(default="lh3.googleusercontent.com", metadata={"doc": "Host of avatar pictures."})
    token_secret: str = field(
        default="", metadata={"doc": "Key of refresh tokens, 32 characters or more; in development made when empty."}
    )
    refresh_lifetime_s: float = field(
        default=30 * 86_400.0, metadata={"doc": "Seconds that an unused session lives.", "min": 60}
    )
    address_per_minute: int = field(
        default=120, metadata={"doc": "Calls of a kind taken from one address, or /64 of IPv6, in a minute.", "min": 1}
    )
    account_per_minute: int = field(
        default=60,
        metadata={"doc": "Sign-ins, refreshes and readings each taken for one account in a minute.", "min": 1},
    )
    device_per_minute: int = field(
        default=20, metadata={"doc": "Calls of a kind taken from one device, session or account in a minute.", "min": 1}
    )
    trusted_proxies: tuple[Network, ...] = field(
        default=LOOPBACK, metadata={"doc": "Addresses or networks whose x-forwarded-for counts."}
    )

    @property
    def issuer_name(self) -> str:
        """Return `iss` of our tokens; it contains the environment's name."""
        return self.issuer or f"https://auth.koikoi/{self.environment}"

    @property
    def redirect_client_id(self) -> str:
        """Return the client id that signs in by redirect."""
        return self.oidc_redirect_client_id or self.oidc_client_ids[0]

    @property
    def audience(self) -> str:
        """Return `aud` of our tokens."""
        return f"koikoi/{self.environment}"


def read_settings(environ: Mapping[str, str]) -> Settings:
    """Read and check the settings.

    Raises:
        SettingsError: One is missing, bad, or not fit for production; one sentence that names the variable.
    """
    settings = load(Settings, PREFIX, environ)
    if not settings.oidc_client_ids:
        raise SettingsError("KOIKOI_AUTH_OIDC_CLIENT_IDS must name at least one client id of the identity provider.")
    if settings.token_secret and len(settings.token_secret) < _MIN_SECRET_CHARACTERS:
        raise SettingsError(f"KOIKOI_AUTH_TOKEN_SECRET must have at least {_MIN_SECRET_CHARACTERS} characters.")
    _check_redirects(settings)
    if settings.environment == "production":
        _check_production(settings)
    else:
        _check_development(settings)
    return settings


def _check_redirects(settings: Settings) -> None:
    if settings.redirect_client_id not in settings.oidc_client_ids:
        raise SettingsError("KOIKOI_AUTH_OIDC_REDIRECT_CLIENT_ID must be one of KOIKOI_AUTH_OIDC_CLIENT_IDS.")
    url = urlsplit(settings.public_url)
    if settings.public_url and (url.path or url.query or url.fragment or "@" in url.netloc):
        raise SettingsError("KOIKOI_AUTH_PUBLIC_URL must be like https://play.example, without a path.")
    for uri in settings.redirect_uris:
        if not _REDIRECT_URI.fullmatch(uri) or "@" in urlsplit(uri).netloc:
            raise SettingsError(
                "KOIKOI_AUTH_REDIRECT_URIS must hold https URLs, or addresses of an app like "
                f"com.example.app:/signed-in, without a fragment, not {uri!r}."
            )


def _check_development(settings: Settings) -> None:
    for name in ("oidc_issuer", "oidc_jwks_url", "oidc_authorize_url", "oidc_token_url", "public_url"):
        url = urlsplit(getattr(settings, name))
        is_local = url.scheme == "http" and url.hostname in _LOOPBACK
        if url.scheme != "https" and not is_local and (name != "public_url" or settings.public_url):
            raise SettingsError(f"{PREFIX}_{name.upper()} must be an https URL, or http on a loopback address.")


def _check_production(settings: Settings) -> None:
    """Refuse what is only fit for development, the most dangerous first."""
    if settings.oidc_issuer != GOOGLE:
        raise SettingsError(f"KOIKOI_AUTH_OIDC_ISSUER must be {GOOGLE} in production; other providers are for tests.")
    for name, fixed in _FIXED_URLS.items():
        if getattr(settings, name) != fixed:
            raise SettingsError(f"{PREFIX}_{name.upper()} must be {fixed} in production.")
    _check_production_redirects(settings)
    if "production" not in settings.issuer_name or not settings.issuer_name.startswith("https://"):
        raise SettingsError("KOIKOI_AUTH_ISSUER must be an https URL that contains `production` in production.")
    secret = settings.token_secret
    if not secret or secret.startswith(GENERATED_MARK) or len(set(secret)) < _MIN_SECRET_CHARACTERS // 4:
        raise SettingsError("KOIKOI_AUTH_TOKEN_SECRET must be set to a random secret of your own in production.")
    if not settings.key_directory.is_dir() or not any(settings.key_directory.glob("*.json")):
        raise SettingsError("KOIKOI_AUTH_KEY_DIRECTORY must hold your own signing keys in production.")
    if (settings.key_directory / GENERATED_KEY_FILE).exists():
        raise SettingsError(
            f"KOIKOI_AUTH_KEY_DIRECTORY holds {GENERATED_KEY_FILE}, generated for development; remove it in production."
        )
    for name in ("database_url", "redis_url", "revocations_redis_url"):
        _check_password(f"{PREFIX}_{name.upper()}", getattr(settings, name))


def _check_production_redirects(settings: Settings) -> None:
    if settings.public_url and not settings.public_url.startswith("https://"):
        raise SettingsError("KOIKOI_AUTH_PUBLIC_URL must be an https URL in production: its cookie is a __Host- one.")
    if settings.public_url and not settings.oidc_client_secret:
        raise SettingsError("KOIKOI_AUTH_OIDC_CLIENT_SECRET must be set in production when KOIKOI_AUTH_PUBLIC_URL is.")
    if settings.oidc_client_secret.startswith(GENERATED_MARK):
        raise SettingsError("KOIKOI_AUTH_OIDC_CLIENT_SECRET was generated for development; set your own in production.")


def _check_password(name: str, url: str) -> None:
    """A URL may have no password (sockets, certificates), but not a guessable one."""
    password = urlsplit(url).password
    if password is not None and (len(password) < _MIN_PASSWORD_CHARACTERS or password.startswith(GENERATED_MARK)):
        raise SettingsError(
            f"{name} must hold a random password of at least {_MIN_PASSWORD_CHARACTERS} characters in production."
        )
