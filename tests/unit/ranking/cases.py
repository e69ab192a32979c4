"""Contracts, matches and signed statements for tests of ranking, built without ranking's own code."""

import base64
import hashlib
import json
import secrets
import struct
import time
from dataclasses import dataclass, field, replace
from typing import Any

from koikoi_sdk.rules import EndReason, Match, ResultKind, RoundResult, start_match, variant
from koikoi_sdk.rules.scoring import settle_exhausted, settle_shobu, settle_teyaku
from nacl.signing import SigningKey

from services.kit.signatures import tagged

LOBBY_ISSUER = "https://lobby.koikoi/development"
CONTRACT_TYP = "koikoi-contract+jws"
NOW = 1_800_000_000
KIND_BYTES = {ResultKind.SHOBU: 0, ResultKind.EXHAUSTED: 1, ResultKind.TEYAKU: 2}


@dataclass
class Device:
    """One player with the key that signs."""

    account: str = field(default_factory=lambda: secrets.token_hex(8))
    name: str = "Taro"
    key: SigningKey = field(default_factory=SigningKey.generate)

    @property
    def public_key(self) -> bytes:
        return bytes(self.key.verify_key)

    def seat(self) -> dict[str, str]:
        key = base64.urlsafe_b64encode(self.public_key).rstrip(b"=").decode()
        return {"account": self.account, "avatar": "crane", "key": key, "name": self.name}

    def sign(self, statement: bytes) -> bytes:
        return bytes(self.key.sign(tagged("match-result", statement)).signature)


def rules_text(preset: str = "house", rounds: int = 6, **overrides: Any) -> str:
    members = {"overrides": overrides, "preset": preset, "rounds": rounds, "version": 1}
    return json.dumps(members, sort_keys=True, separators=(",", ":"))


def uuid7() -> str:
    bits = bytearray((time.time_ns() // 1_000_000).to_bytes(6, "big") + secrets.token_bytes(10))
    bits[6] = bits[6] & 0x0F | 0x70
    bits[8] = bits[8] & 0x3F | 0x80
    text = bits.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def contract_members(first: Device, second: Device, **changes: Any) -> dict[str, Any]:
    members = {
        "iss": LOBBY_ISSUER,
        "jti": uuid7(),
        "iat": NOW,
        "exp": NOW + 3 * 3600,
        "ranked": True,
        "rules": rules_text(),
        "seats": [first.seat(), second.seat()],
    }
    return members | changes


def encode_json(members: dict[str, Any]) -> bytes:
    return json.dumps(members, separators=(",", ":")).encode()


def play(preset: str, *rounds: tuple[Any, ...], count: int = 6, dealer: int = 0, **overrides: Any) -> Match:
    """Play rounds: `("shobu", winner, base, own koi-koi, other's)`, `("teyaku", winner)`, `("exhausted",)`."""
    match = start_match(replace(variant(preset, overrides), rounds=count), dealer)
    for kind, *details in rounds:
        match = match.record(settle(match, kind, *details))
    return match


def settle(match: Match, kind: str, winner: int = 0, base: int = 0, own: int = 0, other: int = 0) -> RoundResult:
    if kind == "exhausted":
        return settle_exhausted(match.variant, match.points, (0, 0), match.dealer)
    if kind == "teyaku":
        names = ("teshi", None) if winner == 0 else (None, "teshi")
        return settle_teyaku(match.variant, match.points, match.dealer, names)
    declared = (own, other) if winner == 0 else (other, own)
    return settle_shobu(match.variant, match.points, declared, winner, (("x", base),))


SIX_ROUNDS = (("shobu", 0, 5), ("exhausted",), ("teyaku", 1), ("shobu", 1, 3, 1), ("shobu", 0, 1), ("exhausted",))
"""A whole house match that seat 1 wins: 25-25, 30-20, =, 24-26, 18-32, 19-31, =."""


def encode(
    match: Match,
    contract_hash: bytes = bytes(32),
    *,
    session_id: bytes = b"s" * 32,
    resigned_by: int | None = None,
    **changes: Any,
) -> bytes:
    """Write the statement of a match as docs/protocol.md section 18 says; `changes` make it lie."""
    final = match.final
    ending = 2 if resigned_by is not None else int(final is not None and final.reason is EndReason.BUST)
    ahead = None if match.points[0] == match.points[1] else int(match.points[1] > match.points[0])
    winner = ahead if resigned_by is None else 1 - resigned_by
    values = {
        "version": 1,
        "contract_hash": contract_hash,
        "session_id": session_id,
        "ending": ending,
        "winner": 2 if winner is None else winner,
        "points": match.points,
        "count": len(match.results),
        "rounds": [encode_round(result) for result in match.results],
        "head": b"h" * 32,
    } | changes
    header = struct.pack(
        ">B32s32sBBHHB",
        values["version"], values["contract_hash"], values["session_id"], values["ending"], values["winner"],
        *values["points"], values["count"],
    )  # fmt: skip
    return header + b"".join(values["rounds"]) + values["head"]


def encode_round(result: RoundResult, **changes: Any) -> bytes:
    values = {
        "kind": KIND_BYTES[result.kind],
        "winner": 255 if result.winner is None else result.winner,
        "score": result.score,
        "payment": result.payment,
        "after": result.points_after,
    } | changes
    return struct.pack(
        ">BBHHHH", values["kind"], values["winner"], values["score"], values["payment"], *values["after"]
    )


@dataclass
class Game:
    """A signed match between two devices, ready to be handed in."""

    payload: bytes
    statement: bytes
    signatures: tuple[bytes, bytes]
    devices: tuple[Device, Device]

    @property
    def match_id(self) -> str:
        return str(json.loads(self.payload)["jti"])


def make_game(
    first: Device | None = None,
    second: Device | None = None,
    *,
    match: Match | None = None,
    resigned_by: int | None = None,
    lies: dict[str, Any] | None = None,
    session_id: bytes | None = None,
    **contract: Any,
) -> Game:
    """Make a game; by default a whole ranked house match that seat 1 wins."""
    devices = (first or Device(name="Taro"), second or Device(name="Hana"))
    payload = encode_json(contract_members(*devices, **contract))
    return sign_game(
        devices,
        payload,
        encode(
            match or play("house", *SIX_ROUNDS),
            hashlib.sha256(payload).digest(),
            session_id=session_id or secrets.token_bytes(32),
            resigned_by=resigned_by,
            **(lies or {}),
        ),
    )


def sign_game(devices: tuple[Device, Device], payload: bytes, statement: bytes) -> Game:
    first, second = devices
    return Game(payload, statement, (first.sign(statement), second.sign(statement)), devices)


ORDER = 2**252 + 27742317777372353535851937790883648493
"""L, the order of Ed25519's prime subgroup."""


def add_order(signature: bytes) -> bytes:
    """Give the same signature with S + L: a sloppy verifier accepts it, ours must not."""
    scalar = int.from_bytes(signature[32:], "little") + ORDER
    return signature[:32] + scalar.to_bytes(32, "little")


def sign_with_point(device: Device, message: bytes, extra: bytes | None, *, has_nonce: bool = True) -> bytes:
    """Sign by hand with R = rB + extra; without nonce R is the identity, a point of small order."""
    from nacl import bindings

    expanded = bytearray(hashlib.sha512(bytes(device.key)).digest())
    expanded[0] &= 248
    expanded[31] = expanded[31] & 127 | 64
    secret = int.from_bytes(expanded[:32], "little") % ORDER
    nonce = int.from_bytes(secrets.token_bytes(32), "little") % ORDER if has_nonce else 0
    point = bytes([1]) + bytes(31)
    if has_nonce:
        point = bindings.crypto_scalarmult_ed25519_base_noclamp(nonce.to_bytes(32, "little"))
    if extra is not None:
        point = bindings.crypto_core_ed25519_add(point, extra)
    challenge = int.from_bytes(hashlib.sha512(point + device.public_key + message).digest(), "little") % ORDER
    scalar = (nonce + challenge * secret) % ORDER
    return point + scalar.to_bytes(32, "little")


TORSION = bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")
"""A point of order 8."""
