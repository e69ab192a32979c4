"""What runs on one machine: every process with its settings. Pure; `stack` starts it.

A setting of the user's environment always wins, so `KOIKOI_AUTH_DATABASE_URL=... make run` uses that server.
"""

import errno
import random
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from services.kit.settings import SettingsError, host_port

__all__ = ["PORTS", "SERVICES", "Plan", "PlanError", "free_ports", "make_plan", "taken_port"]

SERVICES = ("auth", "lobby", "match", "ranking", "gateway")
PROVIDER_CLIENT_ID = "koikoi-development"
PROVIDER_REDIRECT_CLIENT_ID = "koikoi-development-redirect"

# The setting that moves each listener, what it is, and its port in `make run`.
PORTS: dict[str, tuple[str, int]] = {
    "KOIKOI_GATEWAY_HTTP_ADDRESS": ("gateway, HTTP", 8080),
    "KOIKOI_MATCH_WEBSOCKET_ADDRESS": ("match, WebSocket", 8090),
    "KOIKOI_AUTH_GRPC_ADDRESS": ("auth, gRPC", 50051),
    "KOIKOI_LOBBY_GRPC_ADDRESS": ("lobby, gRPC", 50052),
    "KOIKOI_MATCH_GRPC_ADDRESS": ("match, gRPC", 50053),
    "KOIKOI_RANKING_GRPC_ADDRESS": ("ranking, gRPC", 50054),
    "KOIKOI_AUTH_METRICS_ADDRESS": ("auth, metrics", 9101),
    "KOIKOI_LOBBY_METRICS_ADDRESS": ("lobby, metrics", 9102),
    "KOIKOI_MATCH_METRICS_ADDRESS": ("match, metrics", 9103),
    "KOIKOI_RANKING_METRICS_ADDRESS": ("ranking, metrics", 9104),
    "KOIKOI_GATEWAY_METRICS_ADDRESS": ("gateway, metrics", 9105),
    "KOIKOI_PROVIDER_ADDRESS": ("local OpenID provider", 8085),
}


class PlanError(Exception):
    """The machine cannot run this; the text is one sentence that says what to change."""


@dataclass(frozen=True)
class Plan:
    """Where everything listens, and what each process gets as its environment (without the machine's own)."""

    addresses: dict[str, str]
    settings: dict[str, dict[str, str]]
    database_urls: dict[str, str] = field(default_factory=dict)  # given by the user, by service
    redis_urls: dict[str, str] = field(default_factory=dict)

    @property
    def gateway_url(self) -> str:
        """The public HTTP door."""
        return f"http://{self.addresses['KOIKOI_GATEWAY_HTTP_ADDRESS']}"

    @property
    def websocket_url(self) -> str:
        """The relay's WebSocket door, as `koikoi --relay` wants it."""
        return f"ws://{self.addresses['KOIKOI_MATCH_WEBSOCKET_ADDRESS']}"

    @property
    def grpc_url(self) -> str:
        """The relay's gRPC door, as `koikoi --relay` wants it."""
        return f"grpc://{self.addresses['KOIKOI_MATCH_GRPC_ADDRESS']}"

    @property
    def provider_url(self) -> str:
        """The local OpenID provider; its issuer name."""
        return f"http://{self.addresses['KOIKOI_PROVIDER_ADDRESS']}"

    def probe_url(self, service: str) -> str:
        """Where a service says whether it is ready."""
        return f"http://{self.addresses[f'KOIKOI_{service.upper()}_METRICS_ADDRESS']}/readyz"


def make_plan(
    directory: Path, environ: Mapping[str, str], *, ports: Mapping[str, int] | None = None, token_secret: str = ""
) -> Plan:
    """Work out every process's settings.

    Args:
        directory: Holds keys and data.
        environ: The user's environment; its `KOIKOI_*` settings win.
        ports: By setting name; the defaults of `make run` when None.
        token_secret: auth's secret for refresh tokens, kept across restarts.
    """
    defaults = {name: port for name, (_, port) in PORTS.items()} | dict(ports or {})
    at = {name: environ.get(name, f"127.0.0.1:{port}") for name, port in defaults.items()}
    targets = {name: at[f"KOIKOI_{name}_GRPC_ADDRESS"] for name in ("AUTH", "LOBBY", "MATCH", "RANKING")}
    provider = f"http://{at['KOIKOI_PROVIDER_ADDRESS']}"
    keys = directory / "keys"
    doors = [*_names(at["KOIKOI_MATCH_WEBSOCKET_ADDRESS"]), *_names(at["KOIKOI_MATCH_GRPC_ADDRESS"])]
    settings: dict[str, dict[str, str]] = {
        "provider": {"KOIKOI_PROVIDER_DIRECTORY": str(keys / "provider")},
        "auth": {
            "KOIKOI_AUTH_KEY_DIRECTORY": str(keys / "auth"),
            "KOIKOI_AUTH_TOKEN_SECRET": token_secret,
            "KOIKOI_AUTH_OIDC_ISSUER": provider,
            "KOIKOI_AUTH_OIDC_JWKS_URL": f"{provider}/jwks",
            "KOIKOI_AUTH_OIDC_AUTHORIZE_URL": f"{provider}/authorize",
            "KOIKOI_AUTH_OIDC_TOKEN_URL": f"{provider}/token",
            "KOIKOI_AUTH_PUBLIC_URL": _public_url(at["KOIKOI_GATEWAY_HTTP_ADDRESS"]),
        },
        "lobby": {"KOIKOI_LOBBY_KEY_DIRECTORY": str(keys / "lobby"), "KOIKOI_LOBBY_AUTH_TARGET": targets["AUTH"]},
        "match": {
            "KOIKOI_MATCH_KEY_DIRECTORY": str(keys / "match"),
            "KOIKOI_MATCH_LOBBY_TARGET": targets["LOBBY"],
            "KOIKOI_MATCH_DOOR_NAMES": ",".join(doors),
        },
        "ranking": {
            "KOIKOI_RANKING_LOBBY_TARGET": targets["LOBBY"],
            "KOIKOI_RANKING_AUTH_TARGET": targets["AUTH"],
        },
        "gateway": {f"KOIKOI_GATEWAY_{name}_TARGET": target for name, target in targets.items()},
    }
    if "KOIKOI_AUTH_OIDC_CLIENT_IDS" not in environ:
        _add_clients(settings, token_secret)
    for process, own in settings.items():
        prefix = f"KOIKOI_{process.upper()}_"
        own |= {name: address for name, address in at.items() if name.startswith(prefix)}
        own |= {name: value for name, value in environ.items() if name.startswith(prefix)}
        own["KOIKOI_ENVIRONMENT"] = environ.get("KOIKOI_ENVIRONMENT", "development")
    return Plan(at, settings, _given(environ, "DATABASE_URL"), _given(environ, "REDIS_URL"))


def taken_port(plan: Plan) -> str | None:
    """Return one sentence about the first address that cannot be listened on, or None when all are free."""
    for name, address in plan.addresses.items():
        what, _ = PORTS[name]
        try:
            host, port = host_port(address, name)
            with socket.create_server((host, port)):
                pass
        except SettingsError as error:
            return str(error)
        except OSError as error:
            reason = "is taken" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
            return f"{address} ({what}) {reason}; free it, or choose another with {name}=127.0.0.1:PORT."
    return None


def free_ports() -> dict[str, int]:
    """Return a free port for every listener, from below the range that outgoing connections take theirs from."""
    chance = random.SystemRandom()
    ports: dict[str, int] = {}
    while len(ports) < len(PORTS):
        port = chance.randrange(15_000, 32_000)
        try:
            with socket.create_server(("127.0.0.1", port)):
                pass
        except OSError:
            continue
        if port not in ports.values():
            ports[list(PORTS)[len(ports)]] = port
    return ports


def _names(address: str) -> list[str]:
    _, _, port = address.rpartition(":")
    return [f"127.0.0.1:{port}", f"localhost:{port}", address]


def _add_clients(settings: dict[str, dict[str, str]], token_secret: str) -> None:
    """Make our two clients known to the local provider and to auth: one for bots, one with a secret for redirects."""
    secret = "development-" + sha256(f"provider client {token_secret}".encode()).hexdigest()
    settings["provider"] |= {
        "KOIKOI_PROVIDER_CLIENTS": f"{PROVIDER_CLIENT_ID},{PROVIDER_REDIRECT_CLIENT_ID}:{secret}",
        "KOIKOI_PROVIDER_REDIRECT_URIS": f"{settings['auth']['KOIKOI_AUTH_PUBLIC_URL']}/sign-in/callback",
    }
    settings["auth"] |= {
        "KOIKOI_AUTH_OIDC_CLIENT_IDS": f"{PROVIDER_CLIENT_ID},{PROVIDER_REDIRECT_CLIENT_ID}",
        "KOIKOI_AUTH_OIDC_REDIRECT_CLIENT_ID": PROVIDER_REDIRECT_CLIENT_ID,
        "KOIKOI_AUTH_OIDC_CLIENT_SECRET": secret,
    }


def _public_url(gateway_address: str) -> str:
    """Return where a browser on this machine reaches the gateway; empty when plain http must not go there."""
    host, _, port = gateway_address.rpartition(":")
    if host in {"0.0.0.0", "[::]"}:  # noqa: S104 - nothing listens here; a browser cannot dial it
        host = "127.0.0.1"
    return f"http://{host}:{port}" if host in {"127.0.0.1", "[::1]", "localhost"} else ""


def _given(environ: Mapping[str, str], suffix: str) -> dict[str, str]:
    given = {name: environ.get(f"KOIKOI_{name.upper()}_{suffix}", "") for name in SERVICES}
    return {name: url for name, url in given.items() if url}
