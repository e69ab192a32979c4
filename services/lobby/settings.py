"""The settings of lobby: `KOIKOI_LOBBY_*`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from services.kit.settings import LOOPBACK, Network, SettingsError
from services.lobby.domain.bulletin import Bulletin, check_bulletin
from services.lobby.streams import StreamLimits


@dataclass(frozen=True)
class Settings:
    """Every setting has a default that works for `make run`, except where to find Redis and the signing keys."""

    redis_url: str = field(metadata={"doc": "Redis for rooms, codes, presence and limits."})
    database_url: str = field(metadata={"doc": "Postgres of blocks and conduct."})
    key_directory: Path = field(metadata={"doc": "Signing keys of contracts: Ed25519 JWK files."})
    revocations_redis_url: str = field(
        default="", metadata={"doc": "Redis of auth's stream of signed-out devices; empty for the same as redis_url."}
    )
    outcomes_redis_url: str = field(
        default="", metadata={"doc": "Redis of match's stream of outcomes; empty for the same as redis_url."}
    )
    cool_down_s: float = field(
        default=300.0,
        metadata={"doc": "Seconds of the shortest cool-down after a match that was left; 0 for none.", "min": 0.0},
    )
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

    invite_base_url: str = field(
        default="http://127.0.0.1:8080", metadata={"doc": "What the links of invitations begin with; /i/... follows."}
    )
    notice_en: str = field(default="", metadata={"doc": "Notice to all players in English, at most 500 characters."})
    notice_ja: str = field(default="", metadata={"doc": "Notice to all players in Japanese, at most 500 characters."})
    min_client_version: str = field(
        default="", metadata={"doc": "Oldest client version that may open or enter rooms, like 1.4.2; empty for any."}
    )
    bulletin_path: str = field(
        default="",
        metadata={
            "doc": "JSON file, read again and again, with any of notice_en, notice_ja, min_client_version, is_closed "
            "(true: no new rooms and matches), retry_after_s; while it is there it counts instead of the three above."
        },
    )
    most_streams: int = field(default=2000, metadata={"doc": "Open streams of one process.", "min": 1})
    most_streams_per_account: int = field(
        default=8, metadata={"doc": "Open streams of one account in one process.", "min": 1}
    )
    stream_life_s: float = field(
        default=900.0,
        metadata={"doc": "Seconds after which a stream has to be opened again, less up to a tenth.", "min": 0.1},
    )
    presence_period_s: float = field(
        default=5.0,
        metadata={"doc": "Seconds between two renewals of who is there; they last 30 s.", "min": 0.05, "max": 10.0},
    )
    bulletin_period_s: float = field(
        default=10.0, metadata={"doc": "Seconds between two looks at bulletin_path.", "min": 0.05}
    )
    ping_every_s: float = field(
        default=15.0, metadata={"doc": "Seconds of silence on a stream before a ping.", "min": 0.05, "max": 20.0}
    )

    @property
    def issuer_of_contracts(self) -> str:
        """Give the issuer that contracts name; it contains the environment."""
        return self.issuer or f"https://lobby.koikoi/{self.environment}"

    @property
    def issuer_of_tokens(self) -> str:
        """Give the issuer that access tokens must name; it contains the environment."""
        return self.auth_issuer or f"https://auth.koikoi/{self.environment}"

    def bulletin(self) -> Bulletin:
        """Give what the settings say to all players.

        Raises:
            SettingsError: It cannot be told.
        """
        try:
            return check_bulletin(Bulletin(self.notice_en, self.notice_ja, self.min_client_version))
        except ValueError as error:
            name, _, rest = str(error).partition(" ")
            raise SettingsError(f"KOIKOI_LOBBY_{name.upper()} {rest}") from None

    def stream_limits(self) -> StreamLimits:
        """Give the bounds of streams."""
        return StreamLimits(self.most_streams, self.most_streams_per_account, self.stream_life_s, self.ping_every_s)
