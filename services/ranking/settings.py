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
    trusted_proxies: tuple[Network, ...] = field(
        default=LOOPBACK, metadata={"doc": "Addresses or networks whose x-forwarded-for counts."}
    )
    pool_size: int = field(default=4, metadata={"doc": "Largest number of Postgres connections.", "min": 1})
    submissions_per_minute: int = field(
        default=60, metadata={"doc": "Results taken from one address in a minute.", "min": 1}
    )

    @property
    def issuer_of_contracts(self) -> str:
        """Give the issuer that contracts must name; it contains the environment."""
        return self.lobby_issuer or f"https://lobby.koikoi/{self.environment}"
