"""Key sets, health and the front page."""

import asyncio
import json

import pytest
from koikoi.auth.v1 import auth_service_pb2 as auth
from koikoi.lobby.v1 import lobby_service_pb2 as lobby

from services.gateway.methods import public_methods
from services.kit.errors import Code, ServiceError

KEYS = "/koikoi.lobby.v1.LobbyService/GetKeySet"
PAGE = "/.well-known/lobby/jwks.json"


class Away(ServiceError):
    code, reason = Code.UNAVAILABLE, "BUSY"


class Lobby:
    """Answers GetKeySet and counts."""

    def __init__(self, bench):
        self.jwks, self.calls, self.failure = '{"keys":[1]}', 0, None
        bench.script.answers[KEYS] = self.answer

    async def answer(self, _call):
        self.calls += 1
        await asyncio.sleep(0.02)
        if self.failure:
            raise self.failure
        return lobby.GetKeySetResponse(jwks=self.jwks).SerializeToString()


@pytest.mark.parametrize("issuer", ["auth", "lobby", "match"])
async def test_every_issuer_has_its_own_key_set(bench, issuer):
    async def answer(_call):
        return auth.GetKeySetResponse(jwks=json.dumps({"keys": [issuer]})).SerializeToString()

    bench.script.answers[f"/koikoi.{issuer}.v1.{issuer.title()}Service/GetKeySet"] = answer
    page = await bench.send("GET", f"/.well-known/{issuer}/jwks.json")
    assert page.json == {"keys": [issuer]}
    assert page.headers["Cache-Control"] == "public, max-age=300"


@pytest.mark.parametrize("issuer", ["ranking", "gateway", "x", "%2e%2e"])
async def test_nobody_else_has_one(bench, issuer):
    page = await bench.send("GET", f"/.well-known/{issuer}/jwks.json")
    assert page.status == 404
    assert not bench.script.calls


async def test_a_key_set_is_asked_once_and_kept(bench):
    source = Lobby(bench)
    pages = await asyncio.gather(*(bench.send("GET", PAGE) for _ in range(20)))
    assert {page.body for page in pages} == {b'{"keys":[1]}'}
    assert source.calls == 1
    bench.clock.advance(61)
    source.jwks = '{"keys":[2]}'
    assert (await bench.send("GET", PAGE)).json == {"keys": [2]}
    assert source.calls == 2


async def test_an_old_key_set_is_better_than_none(bench):
    source = Lobby(bench)
    await bench.send("GET", PAGE)
    source.failure = Away("Later.")
    bench.clock.advance(61)
    for _ in range(3):
        assert (await bench.send("GET", PAGE)).json == {"keys": [1]}
    assert source.calls == 2  # then the cool-down
    source.failure = None
    bench.clock.advance(3)
    source.jwks = '{"keys":[3]}'
    assert (await bench.send("GET", PAGE)).json == {"keys": [3]}


async def test_without_any_key_set_the_outage_is_told(bench):
    source = Lobby(bench)
    source.failure = Away("Later.", retry_after_s=2)
    for _ in range(2):
        page = await bench.send("GET", PAGE)
        assert (page.status, page.code) == (503, "unavailable")
    assert source.calls == 1
    source.failure = None
    bench.clock.advance(3)
    assert (await bench.send("GET", PAGE)).status == 200


async def test_a_dead_issuer_is_unavailable(bench):
    await bench.stop("lobby")
    page = await bench.send("GET", PAGE)
    assert (page.status, page.code) == (503, "unavailable")


async def test_probes(bench):
    assert (await bench.send("GET", "/healthz")).json == {"status": "alive"}
    assert (await bench.send("GET", "/readyz")).json == {"status": "ready"}
    await bench.app.begin_drain()
    assert (await bench.send("GET", "/readyz")).status == 503
    assert (await bench.send("GET", "/healthz")).status == 200


async def test_the_front_page_lists_what_there_is(bench):
    page = await bench.send("GET", "/")
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    for path in public_methods():
        assert path in page.body.decode()


async def test_pages_are_only_read(bench):
    for path in ("/", "/healthz", PAGE):
        assert (await bench.send("POST", path, data=b"x")).status == 405
