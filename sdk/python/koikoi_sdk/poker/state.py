"""What a device stores of a deal."""

from dataclasses import dataclass, field

from koikoi_sdk.poker.layout import Role


@dataclass(repr=False)
class DealState:
    """Holds all that must be stored of a deal; plain values that any encoding can carry.

    `seed`: 32 bytes of the OS generator, drawn for this attempt (the other: when S1 arrives);
    secret. `steps`: messages done. `peer_key`, `dealer_deck` (A), `deck` (B): empty until known.
    `tokens`: all tokens given and received, by position. `opened`: cards that both devices know,
    by position. `nonces`: all audit nonces of this device, the last one answers the open `challenge`
    (head, commitment). `commitments`: all audit commitments of this device.
    Its representation shows nothing, so no log can hold a seed.
    """

    role: Role
    did: bytes
    seed: bytearray
    steps: int = 0
    peer_key: bytes = b""
    dealer_deck: tuple[bytes, ...] = ()
    deck: tuple[bytes, ...] = ()
    tokens: dict[int, bytes] = field(default_factory=dict)
    opened: dict[int, int] = field(default_factory=dict)
    nonces: list[bytes] = field(default_factory=list)
    challenge: tuple[bytes, bytes] | None = None
    commitments: list[bytes] = field(default_factory=list)
