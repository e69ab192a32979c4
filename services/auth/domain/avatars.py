"""Avatars: a closed built-in set, or a picture on the identity provider's known host. Nobody here ever fetches it."""

import re
from collections.abc import Callable
from urllib.parse import urlsplit

from services.auth.domain.errors import AvatarInvalid

MAX_AVATAR_BYTES = 256

BUILT_IN = (
    "crane", "warbler", "curtain", "cuckoo", "bridge", "butterfly", "boar", "moon", "geese", "sake-cup", "deer",
    "rain-poet", "swallow", "phoenix",
)  # fmt: skip

_URL = re.compile(r"https://[A-Za-z0-9.-]+/[A-Za-z0-9._~/=%?&-]*")


def check_avatar(text: str, picture_host: str) -> str:
    """Return the avatar unchanged when it is allowed.

    Args:
        text: A name of `BUILT_IN`, or an https URL without user, port or fragment.
        picture_host: The only host a picture may be on; empty for none.

    Raises:
        AvatarInvalid: Metadata names the limits.
    """
    if text in BUILT_IN or _is_known_picture(text, picture_host):
        return text
    raise AvatarInvalid(
        "The avatar must be a built-in one or a picture on the identity provider's own host.",
        metadata={"built_in": " ".join(BUILT_IN), "picture_host": picture_host, "max_bytes": str(MAX_AVATAR_BYTES)},
        field="avatar",
    )


def choose_avatar(below: Callable[[int], int]) -> str:
    """Return a built-in avatar for a new account; `below(n)` gives a random number from 0 up to but without n."""
    return BUILT_IN[below(len(BUILT_IN))]


def _is_known_picture(text: str, picture_host: str) -> bool:
    if len(text) > MAX_AVATAR_BYTES or not _URL.fullmatch(text):
        return False
    return urlsplit(text).netloc == picture_host.lower()
