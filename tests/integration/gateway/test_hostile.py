"""What strangers send to break the door itself."""

import asyncio
import io
import json
import logging
import time

import pytest
import structlog

from services.gateway.backends import MAX_CALLS
from services.kit import log

BOARD = "/koikoi.ranking.v1.RankingService/GetLeaderboard"
SUBMIT = "/koikoi.ranking.v1.RankingService/SubmitResult"


@pytest.fixture
def written():
    """What the process writes to its log, in the format of a service."""
    root, text = logging.getLogger(), io.StringIO()
    handlers, level = root.handlers[:], root.level
    log.configure("gateway", stream=text)
    yield text
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


@pytest.mark.parametrize("line", [b"Authorization: Bearer tok-7231\0", b"Authori zation: Bearer tok-7231"])
async def test_a_header_that_cannot_be_read_is_not_logged(bench, written, line):
    answer = await bench.raw(
        b"POST %s HTTP/1.1\r\nHost: x\r\n%s\r\nContent-Length: 0\r\n\r\n" % (SUBMIT.encode(), line), leaves=False
    )
    assert answer.startswith(b"HTTP/1.0 400")
    (said,) = [json.loads(line) for line in written.getvalue().splitlines()]
    assert (said["event"], said["logger"], said["level"]) == ("library.said", "aiohttp.server", "error")
    assert said["error"] == "BadHttpMessage"
    assert said["trace"]
    assert "tok-7231" not in written.getvalue()


async def test_a_body_full_of_elements_does_not_hold_up_the_others(bench):
    elements = b'{"signatures":[' + b",".join([b'""'] * 21_000) + b"]}"
    started = time.process_time()
    answer = await bench.post(SUBMIT, elements)
    assert time.process_time() - started < 0.2
    assert (answer.status, answer.detail("ErrorInfo")["metadata"]["field"]) == (400, "signatures")


async def test_the_element_at_fault_is_named(bench):
    for wrong in (7, None, "é", "AAA*", {}, ["QQ=="], True):
        answer = await bench.post(SUBMIT, {"signatures": ["QQ==", "", wrong, "*"]})
        assert answer.status == 400
        assert answer.detail("ErrorInfo")["metadata"]["field"] == "signatures[2]"


async def test_a_burst_waits_its_turn(bench):
    for _ in range(3):  # above the services' 256 streams; both ends are here, within the usual 1024 open files
        answers = await asyncio.gather(*(bench.post(BOARD) for _ in range(350)))
        assert {answer.status for answer in answers} == {200}


async def test_a_call_that_gets_no_turn_is_told_to_come_back(bench):
    goes_on = asyncio.Event()

    async def hang(_call):
        await goes_on.wait()
        return b""

    bench.script.answers[BOARD] = hang
    hanging = [asyncio.create_task(bench.post(BOARD)) for _ in range(MAX_CALLS)]
    while len(bench.script.calls) < MAX_CALLS:
        await asyncio.sleep(0.01)
    answer = await bench.post(BOARD, Connect_Timeout_Ms="200")
    assert (answer.status, answer.code, answer.headers["Retry-After"]) == (503, "unavailable", "1")
    assert (await bench.post("/koikoi.lobby.v1.LobbyService/ListRooms")).status == 200, "the others go on"
    goes_on.set()
    assert {answer.status for answer in await asyncio.gather(*hanging)} == {200}
    assert (await bench.post(BOARD)).status == 200
