"""The settings of match: `KOIKOI_MATCH_*`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from services.match.domain.deadlines import Limits
from services.match.edge.limits import DoorLimits


@dataclass(frozen=True)
class Settings:
    """Every setting has a default that works for `make run`, except where to find the stores and the signing keys."""

    redis_url: str = field(metadata={"doc": "Redis of running matches; no eviction."})
    database_url: str = field(metadata={"doc": "Postgres of ended matches."})
    key_directory: Path = field(metadata={"doc": "Signing keys of receipts: Ed25519 JWK files."})
    outcomes_redis_url: str = field(
        default="", metadata={"doc": "Redis of the stream of outcomes; empty for the same as redis_url."}
    )
    revocations_redis_url: str = field(
        default="", metadata={"doc": "Redis of auth's stream of signed-out devices; empty for the same as redis_url."}
    )
    environment: str = field(default="development", metadata={"doc": "development or production."})
    grpc_address: str = field(default="127.0.0.1:50053", metadata={"doc": "Where gRPC listens."})
    websocket_address: str = field(default="127.0.0.1:8090", metadata={"doc": "Where WebSocket listens."})
    metrics_address: str = field(default="127.0.0.1:9103", metadata={"doc": "Where metrics and probes listen."})
    lobby_target: str = field(default="127.0.0.1:50052", metadata={"doc": "Lobby's gRPC address, for its keys."})
    door_names: tuple[str, ...] = field(
        default=("127.0.0.1:50053", "127.0.0.1:8090", "localhost:50053", "localhost:8090"),
        metadata={"doc": "Names under which clients reach this relay, lower-case host[:port], comma-separated."},
    )
    lobby_issuer: str = field(
        default="", metadata={"doc": "Issuer of contracts; empty for https://lobby.koikoi/{environment}."}
    )
    issuer: str = field(
        default="", metadata={"doc": "Issuer of receipts; empty for https://match.koikoi/{environment}."}
    )
    min_client_version: str = field(default="", metadata={"doc": "Oldest client version this relay serves."})
    notices: tuple[str, ...] = field(default=(), metadata={"doc": "Notices for players, comma-separated."})
    turn_s: float = field(default=60.0, metadata={"doc": "Seconds to answer in deal and play.", "min": 0.05})
    step_s: float = field(default=20.0, metadata={"doc": "Seconds to answer in all other phases.", "min": 0.05})
    first_hello_s: float = field(default=30.0, metadata={"doc": "Seconds for the first greeting.", "min": 0.05})
    grace_s: float = field(default=3.0, metadata={"doc": "Seconds of lag added to the three above."})
    gone_s: float = field(default=60.0, metadata={"doc": "Seconds a seat that owes may be gone.", "min": 0.05})
    match_s: float = field(default=7200.0, metadata={"doc": "Longest match in seconds.", "min": 0.05})
    recovery_s: float = field(default=60.0, metadata={"doc": "Seconds to repair a loss of the store.", "min": 0.05})
    closing_s: float = field(default=60.0, metadata={"doc": "Seconds to close after both signed.", "min": 0.05})
    creation_s: float = field(default=120.0, metadata={"doc": "Seconds after the contract to begin a match."})
    sweep_s: float = field(default=1.0, metadata={"doc": "Seconds between two sweeps of a bucket.", "min": 0.05})
    silence_s: float = field(
        default=3.0, metadata={"doc": "Seconds after which a process that was not heard counts as dead.", "min": 0.2}
    )
    most_connections: int = field(default=20_000, metadata={"doc": "Connections of one process.", "min": 1})
    joins_per_s: int = field(default=500, metadata={"doc": "Handshakes per second of one process.", "min": 1})
    join_within_s: float = field(default=5.0, metadata={"doc": "Seconds for the first frame.", "min": 0.05})
    ping_every_s: float = field(default=25.0, metadata={"doc": "Seconds of silence before a ping.", "min": 0.05})
    silent_for_s: float = field(
        default=40.0, metadata={"doc": "Seconds of silence after which a seat is gone.", "min": 0.1}
    )
    budget_frames: int = field(default=300, metadata={"doc": "Frames of one connection per 10 s.", "min": 1})
    budget_bytes: int = field(default=524_288, metadata={"doc": "Bytes of one connection per 10 s.", "min": 1})
    most_unsent_bytes: int = field(
        default=65_536, metadata={"doc": "Bytes that may wait for a connection that reads slowly.", "min": 16_384}
    )

    @property
    def issuer_of_receipts(self) -> str:
        """Give the issuer that receipts name; it contains the environment."""
        return self.issuer or f"https://match.koikoi/{self.environment}"

    @property
    def issuer_of_contracts(self) -> str:
        """Give the issuer that contracts must name; it contains the environment."""
        return self.lobby_issuer or f"https://lobby.koikoi/{self.environment}"

    def limits(self) -> Limits:
        """Give the relay's times in milliseconds."""
        return Limits(
            turn_ms=_ms(self.turn_s), step_ms=_ms(self.step_s), first_hello_ms=_ms(self.first_hello_s),
            grace_ms=_ms(self.grace_s), gone_ms=_ms(self.gone_s), match_ms=_ms(self.match_s),
            recovery_ms=_ms(self.recovery_s), closing_ms=_ms(self.closing_s), creation_ms=_ms(self.creation_s),
        )  # fmt: skip

    def door_limits(self) -> DoorLimits:
        """Give the bounds of the doors."""
        return DoorLimits(
            most_connections=self.most_connections, joins_per_s=self.joins_per_s, join_within_s=self.join_within_s,
            ping_every_s=self.ping_every_s, silent_for_s=self.silent_for_s, budget_frames=self.budget_frames,
            budget_bytes=self.budget_bytes, most_unsent_bytes=self.most_unsent_bytes,
        )  # fmt: skip


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
