"""gzip of unary calls, both ways, and no bombs."""

import gzip
import json
import time

import pytest
from koikoi.ranking.v1 import ranking_service_pb2 as ranking

BOARD = "/koikoi.ranking.v1.RankingService/GetLeaderboard"
PACKED = gzip.compress(b"{}", mtime=0)  # the same for all test processes: it is part of names of tests


def rows(count):
    entries = [ranking.LeaderboardEntry(rank=rank, account_id="a" * 22, display_name="花子") for rank in range(count)]
    message = ranking.GetLeaderboardResponse(entries=entries).SerializeToString()

    async def answer(_call):
        return message

    return answer


async def test_a_packed_request_is_unpacked(bench):
    answer = await bench.post(BOARD, gzip.compress(b'{"pageSize": 9}'), Content_Encoding="gzip")
    assert answer.status == 200
    assert ranking.GetLeaderboardRequest.FromString(bench.script.calls[0].content).page_size == 9


async def test_an_empty_body_is_never_unpacked(bench):
    answer = await bench.post(BOARD, b"", Content_Encoding="gzip", Content_Type="application/proto")
    assert answer.status == 200


@pytest.mark.parametrize("body", [b"{}", PACKED[:-1], PACKED + b"x", PACKED * 2, b"\x1f\x8b"])
async def test_what_is_not_one_member_of_gzip_is_refused(bench, body):
    answer = await bench.post(BOARD, body, Content_Encoding="gzip")
    assert (answer.status, answer.code) == (400, "invalid_argument")
    assert answer.detail("ErrorInfo")["metadata"]["field"] == "body"


async def test_a_bomb_is_refused_before_it_goes_off(bench):
    bomb = gzip.compress(b" " * 60_000_000)
    assert len(bomb) < 64 * 1024
    started = time.process_time()
    answer = await bench.post(BOARD, bomb, Content_Encoding="gzip")
    assert time.process_time() - started < 0.2
    assert (answer.status, answer.detail("ErrorInfo")["reason"]) == (429, "BODY_TOO_LARGE")
    assert not bench.script.calls


async def test_the_largest_message_passes_packed(bench):
    assert (await bench.post(BOARD, gzip.compress(b"{}".ljust(64 * 1024)), Content_Encoding="gzip")).status == 200
    answer = await bench.post(BOARD, gzip.compress(b"{}".ljust(64 * 1024 + 1)), Content_Encoding="gzip")
    assert answer.status == 429


async def test_another_encoding_is_unimplemented_with_what_is_known(bench):
    answer = await bench.post(BOARD, b"{}", Content_Encoding="br")
    assert (answer.status, answer.code) == (501, "unimplemented")
    metadata = answer.detail("ErrorInfo")["metadata"]
    assert (metadata["field"], metadata["known"]) == ("content-encoding", "gzip, identity")


@pytest.mark.parametrize(
    ("accept", "is_packed"),
    [
        ("gzip", True),
        ("br, gzip;q=0.8", True),
        ("GZIP", True),
        ("deflate, gzip", True),
        ("", False),
        ("br", False),
        ("identity, gzip", False),
        ("gzip;q=0", False),
        ("gzip;q=0.000, identity", False),
        ("*", False),
    ],
)
async def test_a_long_answer_is_packed_for_who_wants_it(bench, accept, is_packed):
    bench.script.answers[BOARD] = rows(100)
    answer = await bench.post(BOARD, Accept_Encoding=accept)
    assert answer.headers.get("Content-Encoding", "identity") == ("gzip" if is_packed else "identity")
    body = gzip.decompress(answer.body) if is_packed else answer.body
    assert len(json.loads(body)["entries"]) == 100
    assert (len(answer.body) < 2000) is is_packed


async def test_who_sends_gzip_accepts_it(bench):
    bench.script.answers[BOARD] = rows(100)
    head = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    skip = ["Accept-Encoding"]
    answer = await bench.send("POST", BOARD, data=gzip.compress(b"{}"), headers=head, skip_auto_headers=skip)
    assert answer.headers["Content-Encoding"] == "gzip"


async def test_short_answers_and_errors_stay_as_they_are(bench):
    bench.script.answers[BOARD] = rows(1)
    assert "Content-Encoding" not in (await bench.post(BOARD, Accept_Encoding="gzip")).headers
    assert "Content-Encoding" not in (await bench.post(BOARD, b"{", Accept_Encoding="gzip")).headers
