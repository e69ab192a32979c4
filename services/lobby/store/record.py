"""A room as the fields of a Redis hash, and back."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence

from koikoi_sdk.rules import format_rules, parse_rules

from services.lobby.domain.rooms import Contract, Knock, Player, Room, RoomState, Visibility


def room_fields(room: Room) -> dict[str, str]:
    """Write a new room. The scripts read some of these fields, and write `stream`, the generation of its host's."""
    return {
        "room_id": room.room_id,
        "code": room.code,
        "visibility": str(int(room.visibility)),
        "password": room.password_hash,
        "rules": format_rules(room.rules),
        "host": _player_text(room.host),
        "host_account": room.host.account_id,
        "host_key": room.host.device_key.hex(),
        "created": str(room.create_time),
        "alive_until": str(room.alive_until),
        "request": room.request_id,
        "digest": room.digest,
        "state": room.state.value,
        "approval": "1" if room.needs_approval else "0",
        "invite": room.invite_secret,
        "barred": f" {' '.join(sorted(room.barred))} " if room.barred else "",
        "away": "0" if room.is_host_present else "1",
        "completion": "" if room.host_completion is None else str(room.host_completion),
    }


def seat_fields(guest: Player, contract: Contract) -> dict[str, str | bytes]:
    """Write what the last seat adds to a room."""
    return {
        "guest": _player_text(guest),
        "match_id": contract.match_id,
        "contract": contract.payload,
        "filled": str(contract.fill_time),
        "expires": str(contract.expire_time),
    }


def flatten(fields: Mapping[str, str | bytes]) -> list[str | bytes]:
    """Give fields as the scripts take them: name, value, name, value."""
    return [part for pair in fields.items() for part in pair]


def read_pairs(answer: Sequence[bytes]) -> Room | None:
    """Read a script's answer: name, value, name, value; nothing when there is no room."""
    return read_room(dict(zip(answer[::2], answer[1::2], strict=True)))


def read_room(record: Mapping[bytes, bytes]) -> Room | None:
    """Read a room; nothing when there is none."""
    if b"room_id" not in record:
        return None
    text = {name.decode(): value.decode() for name, value in record.items()}
    return Room(
        room_id=text["room_id"],
        code=text["code"],
        visibility=Visibility(int(text["visibility"])),
        password_hash=text["password"],
        rules=parse_rules(text["rules"]),
        host=_read_player(text["host"]),
        create_time=int(text["created"]),
        alive_until=int(text["alive_until"]),
        request_id=text["request"],
        digest=text["digest"],
        state=RoomState(text["state"]),
        guest=_read_player(text["guest"]) if "guest" in text else None,
        contract=_read_contract(text) if "contract" in text else None,
        needs_approval=text.get("approval") == "1",
        invite_secret=text.get("invite", ""),
        barred=frozenset(text.get("barred", "").split()),
        is_host_present=text.get("away") != "1",
        host_completion=int(text["completion"]) if text.get("completion") else None,
    )


def knock_text(player: Player, create_time: int) -> str:
    """Write the part of a knock that stays; the scripts put the time and the generation of the stream before it."""
    return f"{create_time} {_player_text(player)}"


def read_knock(text: bytes) -> Knock:
    """Read a knock."""
    until, generation, create_time, player = text.decode().split(" ", 3)
    return Knock(_read_player(player), generation, int(create_time), int(until))


def _read_contract(text: Mapping[str, str]) -> Contract:
    return Contract(
        match_id=text["match_id"],
        payload=text["contract"].encode(),
        fill_time=int(text["filled"]),
        expire_time=int(text["expires"]),
        jws=text.get("jws"),
    )


def _player_text(player: Player) -> str:
    key = b64encode(player.device_key).decode()
    return json.dumps([player.account_id, key, player.display_name, player.avatar], ensure_ascii=False)


def _read_player(text: str) -> Player:
    account_id, key, display_name, avatar = json.loads(text)
    return Player(account_id, b64decode(key), display_name, avatar)
