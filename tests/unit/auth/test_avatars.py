"""Avatars: built in, or a picture on one known host."""

import random

import pytest

from services.auth.domain.avatars import BUILT_IN, MAX_AVATAR_BYTES, check_avatar, choose_avatar
from services.auth.domain.errors import AvatarInvalid

HOST = "lh3.googleusercontent.com"
PICTURE = f"https://{HOST}/a/ACg8ocK-x_y=s96-c"


@pytest.mark.parametrize("avatar", [*BUILT_IN, PICTURE, f"https://{HOST}/", f"https://{HOST}/a?sz=50&x=%20"])
def test_known_avatars_are_kept_as_they_are(avatar: str):
    assert check_avatar(avatar, HOST) == avatar


@pytest.mark.parametrize(
    "avatar",
    [
        "", "dragon", "CRANE", "crane ", f"http://{HOST}/a", f"//{HOST}/a", f"https://{HOST}", "https:///a",
        f"https://{HOST}.evil.example/a", f"https://evil.example/{HOST}", f"https://evil.example#@{HOST}/a",
        f"https://user@{HOST}/a", f"https://{HOST}:8443/a", f"https://{HOST}\\@evil.example/a", f"https://{HOST}/a#b",
        f"https://{HOST}/a b", f"https://{HOST}/é", f"https://{HOST}/a\n", f"https://{HOST}/\"onload=x",
        f"https://{HOST.upper()}/a", "javascript:alert(1)", "data:image/png;base64,AA==",
        f"https://{HOST}/" + "a" * MAX_AVATAR_BYTES, "https://evil.example/a",
    ],
)  # fmt: skip
def test_anything_else_is_refused(avatar: str):
    with pytest.raises(AvatarInvalid) as refusal:
        check_avatar(avatar, HOST)
    assert refusal.value.metadata["picture_host"] == HOST
    assert refusal.value.field == "avatar"


def test_without_a_picture_host_only_the_built_in_ones_remain():
    assert check_avatar("moon", "") == "moon"
    with pytest.raises(AvatarInvalid):
        check_avatar(PICTURE, "")


def test_new_accounts_get_a_built_in_avatar():
    chance = random.Random(1)
    assert {choose_avatar(chance.randrange) for _ in range(500)} == set(BUILT_IN)
