"""The settings of the gateway: `KOIKOI_GATEWAY_*`."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.kit.settings import Network


@dataclass(frozen=True)
class Settings:
    """Every setting has a default that works for `make run`."""

    environment: str = field(default="development", metadata={"doc": "development or production."})
    http_address: str = field(default="127.0.0.1:8080", metadata={"doc": "Where HTTP listens."})
    metrics_address: str = field(default="127.0.0.1:9105", metadata={"doc": "Where metrics and probes listen."})
    auth_target: str = field(default="127.0.0.1:50051", metadata={"doc": "Auth's gRPC address."})
    lobby_target: str = field(default="127.0.0.1:50052", metadata={"doc": "Lobby's gRPC address."})
    match_target: str = field(default="127.0.0.1:50053", metadata={"doc": "Match's gRPC address."})
    ranking_target: str = field(default="127.0.0.1:50054", metadata={"doc": "Ranking's gRPC address."})
    trusted_proxies: tuple[Network, ...] = field(
        default=(), metadata={"doc": "Addresses or networks before the gateway whose x-forwarded-for counts."}
    )
    call_limit_s: float = field(
        default=15.0,
        metadata={"doc": "Longest time for a call in seconds, reading its body included.", "min": 0.1, "max": 60.0},
    )
    key_set_age_s: float = field(
        default=60.0, metadata={"doc": "Seconds that a service's key set is answered from memory.", "max": 600.0}
    )

    allowed_origins: tuple[str, ...] = field(
        default=("*",), metadata={"doc": "Origins whose pages may call us, * for every one; empty for none."}
    )
    most_streams: int = field(default=2000, metadata={"doc": "Open streams of one process.", "min": 1})
    most_streams_per_address: int = field(
        default=100, metadata={"doc": "Open streams of one address, or of one /64 of IPv6.", "min": 1}
    )
    stall_limit_s: float = field(
        default=30.0,
        metadata={"doc": "Seconds that the caller of a stream may take nothing; then it is closed.", "min": 0.1},
    )

    @property
    def targets(self) -> dict[str, str]:
        """Give each service's gRPC address by the service's name."""
        return {
            "auth": self.auth_target,
            "lobby": self.lobby_target,
            "match": self.match_target,
            "ranking": self.ranking_target,
        }
