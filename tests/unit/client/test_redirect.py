"""The loopback address takes one answer, and only the one that was begun here."""

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urlencode

import aiohttp
import pytest
from koikoi_sdk.client.errors import ServerError
from koikoi_sdk.client.redirect import Loopback, make_verifier, open_loopback

ISSUER = "https://auth.koikoi/test"


@pytest.fixture
async def loopback() -> AsyncIterator[Loopback]:
    async with open_loopback() as opened:
        opened.issuer = ISSUER
        yield opened


async def visit(
    loopback: Loopback, path: str = "", headers: dict[str, str] | None = None, **query: str
) -> tuple[int, str]:
    url = path or f"{loopback.redirect_uri}?{urlencode(query)}"
    async with aiohttp.ClientSession() as http, http.get(url, headers=headers) as response:
        assert response.headers.get("Cache-Control", "no-store") == "no-store"
        return response.status, await response.text()


async def test_the_code_is_taken_and_the_person_may_close_the_window(loopback: Loopback):
    waiting = asyncio.create_task(loopback.code(5))
    status, text = await visit(loopback, code="the-code", state=loopback.state, iss=ISSUER)
    assert status == 200
    assert "閉じてかまいません" in text
    assert "close this window" in text
    assert "the-code" not in text
    assert await waiting == "the-code"


async def test_whatever_was_not_begun_here_is_turned_away(loopback: Loopback):
    port = loopback.port
    right = {"code": "c", "state": loopback.state, "iss": ISSUER}
    for query in (
        {**right, "state": "x"},
        {**right, "state": "ü"},
        {**right, "iss": "https://evil.example"},
        {"code": "c", "iss": ISSUER},
        {"code": "c", "state": loopback.state},
    ):
        assert (await visit(loopback, **query))[0] == 400
    twice = f"{loopback.redirect_uri}?{urlencode(right)}&state={loopback.state}"
    assert (await visit(loopback, twice))[0] == 400
    assert (await visit(loopback, headers={"Host": f"evil.example:{port}"}, **right))[0] == 400, "DNS rebinding"
    assert (await visit(loopback, f"http://127.0.0.1:{port}/favicon.ico"))[0] == 404
    assert (await visit(loopback, **right))[0] == 200
    assert (await visit(loopback, **{**right, "code": "later"}))[0] == 400
    assert await loopback.code(1) == "c"


@pytest.mark.parametrize(
    ("query", "words", "code"),
    [
        ({"error": "access_denied", "error_description": "not allowed"}, "not allowed", "unauthenticated"),
        ({"error": "temporarily_unavailable"}, "temporarily_unavailable", "unavailable"),
        ({}, "no code came back", "unauthenticated"),
    ],
)
async def test_a_refusal_is_one_sentence(loopback: Loopback, query: dict[str, str], words: str, code: str):
    _, text = await visit(loopback, state=loopback.state, iss=ISSUER, **query)
    assert "You are not signed in" in text
    with pytest.raises(ServerError, match=words) as refusal:
        await loopback.code(1)
    assert refusal.value.code == code


async def test_nobody_is_waited_for_without_end(loopback: Loopback):
    with pytest.raises(TimeoutError, match="run `koikoi login` again"):
        await loopback.code(0.01)


def test_verifiers_are_random_and_long_enough():
    (one, challenge), (other, _) = make_verifier(), make_verifier()
    assert one != other
    assert 43 <= len(one) <= 128
    assert len(challenge) == 43
