"""The greeting of both devices and the session keys made from it (docs/protocol.md section 9).

    HELLO = byte(count) | u16 version, ascending (1 to 8 of them) | x25519 public(32) | nonce(32) | sig(64)
    sig   = Ed25519( T("hello", contract_hash, pk_self, pk_peer, byte(count)|versions, x, nonce, rules_hash) )

A's nonce commits to its share of the coin toss, B's nonce is its share. The signed list of versions
prevents a downgrade.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from nacl import bindings

from koikoi_sdk.poker import DeviceKey, digest, verify
from koikoi_sdk.table.contract import Contract
from koikoi_sdk.table.envelope import Channel
from koikoi_sdk.table.errors import Reason, RemoteProtocolError, TransportError, require

VERSIONS = (1,)
"""What this client speaks."""
MAX_VERSIONS = 8
KEY_SIZE = 32
NONCE_SIZE = 32
_TAIL = KEY_SIZE + NONCE_SIZE + 64


@dataclass(frozen=True, slots=True)
class Hello:
    """One device's greeting; `data` is all of it, signature included, as it travels."""

    versions: tuple[int, ...]
    x25519: bytes
    nonce: bytes
    data: bytes


def build_hello(contract: Contract, device: DeviceKey, secret: bytes | bytearray, nonce: bytes) -> Hello:
    """Make this device's greeting; `secret` is its X25519 secret, 32 bytes of the OS generator."""
    public = bindings.crypto_scalarmult_base(bytes(secret))
    peer = contract.keys[1 - contract.seat_of(device.public)]
    listed = _list_versions(VERSIONS)
    fields = (contract.hash, device.public, peer, listed, public, nonce, contract.rules_hash)
    return Hello(VERSIONS, public, nonce, listed + public + nonce + device.sign("hello", *fields))


def parse_hello(contract: Contract, sender: int, data: bytes) -> Hello:
    """Read the greeting that the device in seat `sender` is said to have sent.

    Raises:
        TransportError: Its form or signature is wrong; the server could have made it.
    """
    count = data[0] if data else 0
    head = 1 + 2 * count
    if not 1 <= count <= MAX_VERSIONS or len(data) != head + _TAIL:
        raise TransportError("the greeting has another length")
    versions = tuple(int.from_bytes(data[at : at + 2], "big") for at in range(1, head, 2))
    if any(low >= high for low, high in pairwise(versions)):
        raise TransportError("the greeting's versions do not ascend")
    public, nonce = data[head : head + KEY_SIZE], data[head + KEY_SIZE : -64]
    key, own = contract.keys[sender], contract.keys[1 - sender]
    fields = (contract.hash, key, own, data[:head], public, nonce, contract.rules_hash)
    if not verify(key, data[-64:], "hello", *fields):
        raise TransportError("the greeting's signature is wrong")
    return Hello(versions, public, nonce, bytes(data))


def require_usable(hello: Hello, secret: bytes | bytearray) -> None:
    """Refuse the peer's greeting if no session can be made with it.

    Raises:
        RemoteProtocolError: VERSION, no common version or a key agreement without a secret.
    """
    common = set(hello.versions).intersection(VERSIONS)
    require(common, Reason.VERSION, "the devices have no version in common")
    _agree(secret, hello.x25519)


def open_channel(
    contract: Contract, seat: int, secret: bytes | bytearray, hellos: tuple[Hello, Hello]
) -> tuple[Channel, bytes]:
    """Give the session's channel for one seat, and head_0.

    `hellos` are those of device A and B; the peer's is a usable one.
    """
    first, second = hellos
    is_a = seat == contract.seat_a
    keys = (contract.keys[contract.seat_a], contract.keys[1 - contract.seat_a])
    agreed = (contract.hash, contract.rules_hash, *keys, first.nonce, second.nonce)
    session_id = digest("match", *agreed)[:32]
    shared = _agree(secret, second.x25519 if is_a else first.x25519)
    publics = (keys[0] + keys[1], first.x25519 + second.x25519)
    to_b, to_a = (digest("e2e", shared, session_id, *publics, bytes([way]))[:32] for way in (0, 1))
    sending, receiving = (to_b, to_a) if is_a else (to_a, to_b)
    channel = Channel(session_id, sending, receiving, contract.keys[seat], contract.keys[1 - seat])
    return channel, digest("head0", session_id, first.data, second.data)[:32]


def _list_versions(versions: tuple[int, ...]) -> bytes:
    return bytes([len(versions)]) + b"".join(version.to_bytes(2, "big") for version in versions)


def _agree(secret: bytes | bytearray, public: bytes) -> bytes:
    """Give the X25519 secret (RFC 7748); libsodium refuses an all-zero one."""
    try:
        return bindings.crypto_scalarmult(bytes(secret), public)
    except RuntimeError:
        raise RemoteProtocolError(Reason.VERSION, "the key agreement gives no secret") from None
