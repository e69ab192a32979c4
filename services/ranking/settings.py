"""The settings of ranking: `KOIKOI_RANKING_*`."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.kit.settings import LOOPBACK, Network


@dataclass(frozen=True)
class Settings:
    """Every setting has a default that works for `make run`, except where to find the stores."""

    database_url: str = field(metadata={"doc": "Postgres, role and database of ranking."})
    redis_url: str = field(metadata={"doc": "Redis for the limits of calls."})
    environment: str = field(default="development", metadata={"doc": "development or production."})
    grpc_address: str = field(default="127.0.0.1:50054", metadata={"doc": "Where gRPC listens."})
    metrics_address: str = field(default="127.0.0.1:9104", metadata={"doc": "Where metrics and probes listen."})
    lobby_target: str = field(default="127.0.0.1:50052", metadata={"doc": "Lobby's gRPC address, for its keys."})
    lobby_issuer: str = field(
        default="", metadata={"doc": "Issuer of contracts; empty for https://lobby.koikoi/{environment}."}
    )
    auth_target: str = field(
        default="127.0.0.1:50051", metadata={"doc": "Auth's gRPC address, for the keys of access tokens."}
    )
    auth_issuer: str = field(
        default="", metadata={"doc": "Issuer of access tokens; empty for https://auth.koikoi/{environment}."}
    )
    trusted_proxies: tuple[Network, ...] = field(
        default=LOOPBACK, metadata={"doc": "Addresses or networks whose x-forwarded-for counts."}
    )
    pool_size: int = field(default=4, metadata={"doc": "Largest number of Postgres connections.", "min": 1})
    submissions_per_minute: int = field(
        default=60, metadata={"doc": "Results taken from one address in a minute.", "min": 1}
    )
    reads_per_minute: int = field(
        default=600, metadata={"doc": "Reading calls answered to one address in a minute.", "min": 1}
    )
    account_reads_per_minute: int = field(
        default=300, metadata={"doc": "Reading calls answered to one account in a minute.", "min": 1}
    )

    @property
    def issuer_of_contracts(self) -> str:
        """Give the issuer that contracts must name; it contains the environment."""
        return self.lobby_issuer or f"https://lobby.koikoi/{self.environment}"

    @property
    def issuer_of_tokens(self) -> str:
        """Give the issuer that access tokens must name; it contains the environment."""
        return self.auth_issuer or f"https://auth.koikoi/{self.environment}"
