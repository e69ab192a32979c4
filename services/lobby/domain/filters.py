"""Which rooms somebody wants to see in the list."""

from __future__ import annotations

from dataclasses import dataclass

from services.lobby.domain.rooms import Room


@dataclass(frozen=True, slots=True)
class Filter:
    """What is not set lets everything through."""

    preset: str = ""
    has_password: bool | None = None
    is_ranked: bool | None = None

    def passes(self, room: Room) -> bool:
        """Tell whether the room is wanted."""
        return (
            self.preset in ("", room.rules.preset)
            and self.has_password in (None, room.has_password)
            and self.is_ranked in (None, room.rules.is_ranked)
        )
