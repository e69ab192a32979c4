"""The settings of lobby: `KOIKOI_LOBBY_*`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from services.kit.settings import LOOPBACK, Network


@dataclass(frozen=True)
class Settings:
    """Every setting has a default that works for `make run`, except where to find Redis and the signing keys."""

    redis_url: str = field(metadata={"doc": "Redis for rooms, codes and limits."})
    key_directory: Path = field(metadata={"doc": "Signing keys of contracts: Ed25519 JWK files."})
    revocations_redis_url: str = field(
        default="", metadata={"doc": "Redis of auth's stream of signed-out devices; empty for the same as redis_url."}
    )
    database_url: str = field(default="", metadata={"doc": "Postgres of lobby; it keeps no table there yet."})
    environment: str = field(default="development", metadata={"doc": "development or production."})
    grpc_address: str = field(default="127.0.0.1:50052", metadata={"doc": "Where gRPC listens."})
    metrics_address: str = field(default="127.0.0.1:9102", metadata={"doc": "Where metrics and probes listen."})
    auth_target: str = field(default="127.0.0.1:50051", metadata={"doc": "Auth's gRPC address, for its keys."})
    auth_issuer: str = field(
        default="", metadata={"doc": "Issuer of access tokens; empty for https://auth.koikoi/{environment}."}
    )
    issuer: str = field(
        default="", metadata={"doc": "Issuer of contracts; empty for https://lobby.koikoi/{environment}."}
    )
    trusted_proxies: tuple[Network, ...] = field(
        default=LOOPBACK, metadata={"doc": "Addresses or networks whose x-forwarded-for counts."}
    )
    sweep_period_s: float = field(
        default=30.0, metadata={"doc": "Seconds between two repairs of list and index.", "min": 0.05}
    )

    @property
    def issuer_of_contracts(self) -> str:
        """Give the issuer that contracts name; it contains the environment."""
        return self.issuer or f"https://lobby.koikoi/{self.environment}"

    @property
    def issuer_of_tokens(self) -> str:
        """Give the issuer that access tokens must name; it contains the environment."""
        return self.auth_issuer or f"https://auth.koikoi/{self.environment}"
