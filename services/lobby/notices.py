"""Reads what operators have to say from the settings, or from a file that may change while the service runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from services.kit import log
from services.lobby.domain.bulletin import Bulletin, parse_bulletin

_MAX_BYTES = 64 * 1024


class Notices:
    """The bulletin of now: the file's while there is one, else the settings'.

    Args:
        usual: What the settings say.
        path: The file; empty for none.
        on_change: Called when the bulletin became another.
    """

    def __init__(self, usual: Bulletin, path: str, on_change: Callable[[], None]) -> None:
        self._usual = usual
        self._path = Path(path) if path else None
        self._on_change = on_change
        self.bulletin = usual
        self.read()

    def read(self) -> None:
        """Read the file again. One that makes no sense changes nothing: what was said last stands."""
        if self._path is None:
            return
        try:
            bulletin = self._parse(self._path)
        except (ValueError, OSError) as error:  # UnicodeDecodeError is a ValueError
            log.get().warning("lobby.bulletin.unread", error=str(error) or type(error).__name__)
            return
        if bulletin != self.bulletin:
            self.bulletin = bulletin
            self._on_change()

    async def follow(self, period_s: float) -> None:
        """Read the file once a period until cancelled."""
        while True:
            await asyncio.sleep(period_s)
            self.read()

    def _parse(self, path: Path) -> Bulletin:
        try:
            with path.open("rb") as file:
                content = file.read(_MAX_BYTES)
        except FileNotFoundError:
            return self._usual
        return parse_bulletin(content.decode())
