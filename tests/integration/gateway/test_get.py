"""Unary calls by GET: only methods without side effects, and what may be kept."""

import base64
import gzip
import json
from urllib.parse import quote, urlencode

import pytest

from tests.integration.gateway.conftest import METHODS
from tests.integration.gateway.echo import COUNT, LOOK, Request, Response

BEGIN = "/koikoi.auth.v1.AuthService/BeginSignIn"
MESSAGE = Request(number=7, text="花").SerializeToString()


def echoing(bench):
    async def answer(call):
        return call.content

    bench.script.answers[LOOK] = answer


async def get(bench, path=LOOK, headers=None, **parameters):
    return await bench.send("GET", f"{path}?{urlencode(parameters)}", headers=headers or {})


def base64url(content):
    return base64.urlsafe_b64encode(content).decode()


async def test_json_in_the_query(bench):
    echoing(bench)
    answer = await get(bench, connect="v1", encoding="json", message='{"number":7,"text":"花 +&"}')
    assert answer.json == {"number": 7, "text": "花 +&"}
    assert answer.headers["Cache-Control"] == "public, max-age=5"
    assert answer.headers["Vary"] == "Accept-Encoding, Authorization, Origin"


@pytest.mark.parametrize("text", [base64url(MESSAGE), base64url(MESSAGE).rstrip("=")])
async def test_binary_in_base64_padded_or_not(bench, text):
    echoing(bench)
    answer = await get(bench, encoding="proto", base64="1", message=text)
    assert answer.headers["Content-Type"] == "application/proto"
    assert Response.FromString(answer.body).number == 7


async def test_parameters_in_any_order_beside_others(bench):
    echoing(bench)
    answer = await bench.send("GET", f"{LOOK}?utm=x&message={quote('{}')}&base64=0&connect=v1&encoding=json&utm=y")
    assert (answer.status, answer.json) == (200, {})


async def test_gzip_in_the_query(bench):
    echoing(bench)
    packed = base64url(gzip.compress(b'{"number":7}'))
    answer = await get(bench, encoding="json", base64="1", compression="gzip", message=packed)
    assert answer.json == {"number": 7}


async def test_an_empty_message_is_never_unpacked(bench):
    echoing(bench)
    answer = await get(bench, encoding="proto", base64="1", compression="gzip", message="")
    assert (answer.status, answer.body) == (200, b"")


async def test_an_answer_to_a_token_is_nobody_elses(bench):
    answer = await get(bench, headers={"Authorization": "Bearer x"}, encoding="json", message="{}")
    assert answer.headers["Cache-Control"] == "no-store"
    assert bench.script.calls[0].metadata["authorization"] == "Bearer x"


async def test_an_error_is_not_kept(bench):
    await bench.stop("match")
    answer = await get(bench, encoding="json", message="{}")
    assert (answer.code, answer.headers["Cache-Control"]) == ("unavailable", "no-store")


@pytest.mark.parametrize("encoding", ["", "xml", "JSON", None])
async def test_another_codec_is_415(bench, encoding):
    parameters = {} if encoding is None else {"encoding": encoding}
    answer = await get(bench, message="{}", **parameters)
    assert answer.status == 415
    assert answer.headers["Accept-Post"] == "application/json, application/proto"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("encoding=json", "message"),
        ("encoding=json&message=%7B%7D&connect=v2", "connect"),
        ("encoding=json&message=%7B%7D&message=%7B%7D", "message"),
        ("encoding=json&encoding=proto&message=%7B%7D", "encoding"),
        ("encoding=proto&message=%ff%fe", "query"),
        ("encoding=json&message=%7B%7D" + "&a=b" * 20, "query"),
        ("encoding=proto&base64=1&message=a%2Bb", "message"),
        ("encoding=proto&base64=1&message=A", "message"),
        ("encoding=proto&base64=1&message=%C3%A9", "message"),
        ("encoding=json&message=%7B%22nope%22%3A1%7D", "nope"),
        ("encoding=json&base64=1&compression=gzip&message=e30", "body"),
    ],
)
async def test_a_bad_query_names_its_parameter(bench, query, field):
    answer = await bench.send("GET", f"{LOOK}?{query}")
    assert (answer.status, answer.code) == (400, "invalid_argument")
    assert answer.detail("BadRequest")["fieldViolations"][0]["field"] == field
    assert not bench.script.calls


async def test_another_compression_is_unimplemented(bench):
    answer = await get(bench, encoding="json", message="{}", compression="br")
    assert (answer.status, answer.code) == (501, "unimplemented")
    metadata = answer.detail("ErrorInfo")["metadata"]
    assert (metadata["field"], metadata["known"]) == ("compression", "gzip, identity")


async def test_a_bomb_in_the_query_is_refused(bench):
    packed = base64url(gzip.compress(b" " * 1_000_000))
    answer = await get(bench, encoding="json", base64="1", compression="gzip", message=packed)
    assert (answer.status, answer.detail("ErrorInfo")["reason"]) == (429, "BODY_TOO_LARGE")


async def test_a_query_too_long_for_a_header_is_refused(bench):
    answer = await get(bench, encoding="json", message=json.dumps({"text": "x" * 20_000}))
    assert answer.status == 400
    assert not bench.script.calls


async def test_only_methods_without_side_effects(bench):
    unsafe = [path for path, method in METHODS.items() if not method.is_safe]
    assert {BEGIN, COUNT} <= set(unsafe)
    for path in unsafe:
        answer = await get(bench, path=path, encoding="json", message="{}")
        assert (answer.status, answer.headers["Allow"]) == (405, "POST")
    answer = await bench.send("PUT", LOOK)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, POST")
    assert not bench.script.calls
