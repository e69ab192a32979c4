"""Pages of other origins: what a browser asks, and what it lets them read."""

import pytest

from tests.integration.gateway.conftest import bench_with
from tests.integration.gateway.echo import COUNT, LOOK

BOARD = "/koikoi.ranking.v1.RankingService/GetLeaderboard"
PAGE = "https://play.example"


def asking(method="POST", headers="content-type,connect-protocol-version", origin=PAGE):
    return {"Origin": origin, "Access-Control-Request-Method": method, "Access-Control-Request-Headers": headers}


def listed(answer, name):
    return {word.strip().lower() for word in answer.headers.get(name, "").split(",")}


@pytest.mark.parametrize("path", [BOARD, LOOK, COUNT, "/openapi.json", "/.well-known/auth/jwks.json"])
async def test_a_preflight_is_answered(bench, path):
    answer = await bench.send("OPTIONS", path, headers=asking())
    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert answer.headers["Access-Control-Max-Age"] == "7200"
    assert listed(answer, "Access-Control-Allow-Methods") == {"get", "post"}
    assert "origin" in listed(answer, "Vary")
    assert "Access-Control-Allow-Credentials" not in answer.headers
    assert not bench.script.calls


async def test_every_header_that_clients_send_is_allowed(bench):
    answer = await bench.send("OPTIONS", BOARD, headers=asking())
    assert {
        "content-type", "authorization", "connect-protocol-version", "connect-timeout-ms", "connect-accept-encoding",
        "connect-content-encoding", "x-user-agent", "traceparent", "koikoi-client-version",
    } <= listed(answer, "Access-Control-Allow-Headers")  # fmt: skip
    assert "cookie" not in listed(answer, "Access-Control-Allow-Headers")


@pytest.mark.parametrize("body", [b"{}", b"{"])
async def test_answers_and_errors_may_be_read(bench, body):
    answer = await bench.post(BOARD, body, Origin=PAGE)
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert {"retry-after", "connect-content-encoding", "trace-id"} <= listed(answer, "Access-Control-Expose-Headers")
    assert "origin" in listed(answer, "Vary")


async def test_streams_may_be_read(bench):
    answer = await bench.post(COUNT, b"\0\0\0\0\2{}", Content_Type="application/connect+json", Origin=PAGE)
    assert answer.status == 200
    assert answer.headers["Access-Control-Allow-Origin"] == "*"


async def test_who_has_no_origin_is_told_nothing(bench):
    answer = await bench.post(BOARD)
    assert "Access-Control-Allow-Origin" not in answer.headers
    assert listed(answer, "Vary") == {"origin"}


async def test_options_without_a_question_is_no_method(bench):
    assert (await bench.send("OPTIONS", BOARD)).status == 405
    assert (await bench.send("OPTIONS", BOARD, headers={"Origin": PAGE})).status == 405


async def test_only_listed_origins():
    async with bench_with(allowed_origins=f"{PAGE},http://127.0.0.1:8080") as bench:
        for origin in (PAGE, "http://127.0.0.1:8080"):
            for answer in (
                await bench.send("OPTIONS", BOARD, headers=asking(origin=origin)),
                await bench.post(BOARD, Origin=origin),
            ):
                assert answer.headers["Access-Control-Allow-Origin"] == origin
        for origin in ("https://play.example.evil", "http://play.example", "null", PAGE.upper(), f"{PAGE}:444"):
            answer = await bench.send("OPTIONS", BOARD, headers=asking(origin=origin))
            assert answer.status == 204
            assert not [name for name in answer.headers if name.startswith("Access-Control-")]
            assert "origin" in listed(answer, "Vary")
            assert "Access-Control-Allow-Origin" not in (await bench.post(BOARD, Origin=origin)).headers


async def test_empty_means_none():
    async with bench_with(allowed_origins="") as bench:
        answer = await bench.send("OPTIONS", BOARD, headers=asking())
        assert not [name for name in answer.headers if name.startswith("Access-Control-")]


@pytest.mark.parametrize("path", ["/", "/api", "/healthz", "/sign-in/start", "/sign-in/callback"])
async def test_pages_are_for_nobody_else(bench, path):
    for answer in (
        await bench.send("GET", path, headers={"Origin": PAGE}),
        await bench.send("OPTIONS", path, headers=asking()),
    ):
        assert not [name for name in answer.headers if name.startswith("Access-Control-")]
