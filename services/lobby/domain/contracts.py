"""The match contract: the one document two players take from a room to the relay.

docs/architecture.md section 2, document 2; docs/protocol.md section 9. Its hash is SHA-256 of the
payload bytes, so they are written once and travel unchanged.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode

from koikoi_sdk.rules import Rules, format_rules

from services.lobby.domain.rooms import Contract, Player

CONTRACT_TYPE = "koikoi-contract+jws"
CONTRACT_LIFE_S = 3 * 60 * 60
MAX_PAYLOAD_BYTES = 2_000
"""Two players with the longest texts stay below it (`MAX_TEXT_BYTES`), so that the signed contract stays below 3 KiB
and leaves room for the rest of the relay's first frame of 4 KiB."""


def draw_contract(issuer: str, rules: Rules, host: Player, guest: Player, *, now: int, random: bytes) -> Contract:
    """Write the contract of a room's two players; seat 0 is the host.

    Args:
        issuer: The `iss` of lobby, which contains the environment's name.
        rules: What the host chose.
        host: Takes seat 0.
        guest: Takes seat 1.
        now: Milliseconds since 1970.
        random: 10 fresh bytes for the match id.
    """
    match_id = uuid7(now, random)
    issued_s = now // 1000
    members = {
        "exp": issued_s + CONTRACT_LIFE_S,
        "iat": issued_s,
        "iss": issuer,
        "jti": match_id,
        "ranked": rules.is_ranked,
        "rules": format_rules(rules),
        "seats": [_seat(host), _seat(guest)],
    }
    payload = json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode()
    return Contract(match_id, payload, now, (issued_s + CONTRACT_LIFE_S) * 1000)


def uuid7(now: int, random: bytes) -> str:
    """Write a UUID version 7 (RFC 9562 section 5.7): 48 bits of milliseconds, then 74 random bits."""
    value = bytearray(now.to_bytes(6) + random[:10])
    value[6] = value[6] & 0x0F | 0x70
    value[8] = value[8] & 0x3F | 0x80
    digits = value.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _seat(player: Player) -> dict[str, str]:
    return {
        "account": player.account_id,
        "avatar": player.avatar,
        "key": urlsafe_b64encode(player.device_key).rstrip(b"=").decode(),
        "name": player.display_name,
    }
