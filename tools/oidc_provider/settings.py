"""The settings of the local provider, `KOIKOI_PROVIDER_*`."""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from services.kit.settings import SettingsError, host_port, load

PREFIX = "KOIKOI_PROVIDER"


@dataclass(frozen=True)
class ProviderSettings:
    """Says where the provider listens and whom it knows."""

    environment: str = field(default="development", metadata={"doc": "Must be development."})
    address: str = field(default="127.0.0.1:8085", metadata={"doc": "Loopback host:port to listen on."})
    directory: Path = field(default=Path(".run/provider"), metadata={"doc": "Where the signing keys are kept."})
    clients: tuple[str, ...] = field(
        default=("koikoi-development",), metadata={"doc": "Client ids; `id:secret` for one that must authenticate."}
    )
    redirect_uris: tuple[str, ...] = field(
        default=(), metadata={"doc": "Exact redirect addresses allowed beside http://127.0.0.1 and http://[::1]."}
    )


def read_settings(environ: Mapping[str, str]) -> ProviderSettings:
    """Read and check the settings.

    Raises:
        SettingsError: One is bad, or somebody tries to use the provider for more than development.
    """
    settings = load(ProviderSettings, PREFIX, environ)
    check(settings)
    return settings


def check(settings: ProviderSettings) -> None:
    """Refuse production and every address that others can reach."""
    if settings.environment != "development":
        raise SettingsError("The local OpenID provider lets anybody sign in as anybody; it does not run in production.")
    host, _ = host_port(settings.address, f"{PREFIX}_ADDRESS")
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise SettingsError(f"{PREFIX}_ADDRESS must be a loopback address, since anybody may sign in as anybody.")
    if not settings.clients:
        raise SettingsError(f"{PREFIX}_CLIENTS must name at least one client.")
