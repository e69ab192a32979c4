"""What operators tell all players: a notice, the oldest client that may play, and that nothing new is begun now."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields

from services.lobby.domain.errors import ClientTooOld, Maintenance

MAX_NOTICE_CHARACTERS = 500
RETRY_AFTER_S = 300.0
_VERSION = re.compile(r"(?:[A-Za-z0-9._-]{1,64}/)?([0-9]{1,6}(?:\.[0-9]{1,6}){0,3})(?:[-+ ].*)?")


@dataclass(frozen=True, slots=True)
class Bulletin:
    """The one thing that is said to everybody. Empty texts say nothing."""

    notice_en: str = ""
    notice_ja: str = ""
    min_client_version: str = ""
    is_closed: bool = False
    retry_after_s: float = RETRY_AFTER_S


NOTHING = Bulletin()


def check_bulletin(bulletin: Bulletin) -> Bulletin:
    """Refuse what players could not be told.

    Raises:
        ValueError: One sentence about the member at fault.
    """
    for name in ("notice_en", "notice_ja"):
        if len(getattr(bulletin, name)) > MAX_NOTICE_CHARACTERS:
            raise ValueError(f"{name} has more than {MAX_NOTICE_CHARACTERS} characters.")
    if bulletin.min_client_version and not version_numbers(bulletin.min_client_version):
        raise ValueError("min_client_version must be numbers with dots, like 1.4.2.")
    if not 1 <= bulletin.retry_after_s <= 86_400:
        raise ValueError("retry_after_s must be 1 to 86400.")
    return bulletin


def parse_bulletin(text: str) -> Bulletin:
    """Read a bulletin from a JSON object with its members; what is left out says nothing.

    Raises:
        ValueError: One sentence about what is wrong with it.
    """
    try:
        members = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("It is no JSON.") from None
    if not isinstance(members, dict):
        raise ValueError("It must be a JSON object.")  # noqa: TRY004 - one kind of error for the caller
    kinds = {field.name: type(getattr(NOTHING, field.name)) for field in fields(Bulletin)}
    for name, value in members.items():
        if name not in kinds:
            raise ValueError(f"It has an unknown member; the members are {', '.join(kinds)}.")
        if type(value) is not kinds[name] and not (kinds[name] is float and type(value) is int):
            raise ValueError(f"{name} must be of type {kinds[name].__name__}.")
    return check_bulletin(Bulletin(**members))


def version_numbers(text: str) -> tuple[int, ...]:
    """Read the numbers of a version such as `1.4`, `koikoi-web/1.4.2` or `1.4.2-beta`; none when it is no version."""
    found = _VERSION.fullmatch(text)
    if found is None:
        return ()
    numbers = [int(number) for number in found[1].split(".")]
    return tuple(numbers + [0] * (4 - len(numbers)))


def check_entry(bulletin: Bulletin, client_version: str) -> None:
    """Refuse to begin something new: an old client, or any during maintenance.

    Raises:
        ClientTooOld: The metadata names the oldest version that is taken.
        Maintenance: Nothing new is begun now.
    """
    least = bulletin.min_client_version
    if least and version_numbers(client_version) < version_numbers(least):
        raise ClientTooOld(
            f"This client is too old; update it to version {least} or later.", metadata={"min_client_version": least}
        )
    if bulletin.is_closed:
        raise Maintenance(
            "No new rooms during maintenance; running matches go on.", retry_after_s=bulletin.retry_after_s
        )
