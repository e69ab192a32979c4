"""An independent peer: the official Connect client for Python (package `connectrpc`), as published."""

import pytest
from connectrpc.client import ConnectClient
from connectrpc.code import Code
from connectrpc.compat import google_protobuf_binary_codec, google_protobuf_json_codec
from connectrpc.compression.gzip import GzipCompression
from connectrpc.errors import ConnectError
from connectrpc.method import IdempotencyLevel, MethodInfo, StreamType
from google.rpc.error_details_pb2 import ErrorInfo

from services.kit.errors import Code as OurCode
from services.kit.errors import ServiceError
from tests.integration.gateway.echo import COUNT, LOOK, PACKAGE, Request, Response

KINDS = [
    (codec, packing)
    for codec in (google_protobuf_json_codec(ignore_unknown_fields=False), google_protobuf_binary_codec())
    for packing in (None, GzipCompression())
]


class Refused(ServiceError):
    code, reason, domain = OurCode.PERMISSION_DENIED, "PASSWORD_WRONG", "lobby.koikoi"


def method(name, kind=StreamType.UNARY):
    return MethodInfo(
        name=name,
        service_name=f"{PACKAGE}.EchoService",
        input=Request,
        output=Response,
        idempotency_level=IdempotencyLevel.NO_SIDE_EFFECTS,
        stream_type=kind,
    )


@pytest.fixture(params=KINDS, ids=["json", "json-gzip", "proto", "proto-gzip"])
def client(request, bench):
    codec, packing = request.param
    return ConnectClient(bench.url, codec=codec, send_compression=packing, accept_compression=[GzipCompression()])


@pytest.mark.parametrize("use_get", [False, True])
async def test_unary(bench, client, use_get):
    async def answer(call):
        asked = Request.FromString(call.content)
        return Response(number=asked.number + 1, text=asked.text * 500).SerializeToString()

    bench.script.answers[LOOK] = answer
    request = Request(number=41, text="花札")
    got = await client.execute_unary(
        request=request, method=method("Look"), use_get=use_get, timeout_ms=5000, headers={"authorization": "Bearer x"}
    )
    assert (got.number, got.text) == (42, "花札" * 500)
    (call,) = bench.script.calls
    assert call.metadata["authorization"] == "Bearer x"
    assert call.time_remaining < 5.5


async def test_server_stream(bench, client):
    async def stream(call):
        for number in range(Request.FromString(call.content).number):
            yield Response(number=number, text="札" * 600).SerializeToString()

    bench.script.streams[COUNT] = stream
    request = Request(number=50)
    answers = client.execute_server_stream(request=request, method=method("Count", StreamType.SERVER_STREAM))
    assert [answer.number async for answer in answers] == list(range(50))


def reason_of(error: ConnectError) -> str:
    (detail,) = [one for one in error.details if one.type_name == "google.rpc.ErrorInfo"]
    return ErrorInfo.FromString(detail.message_bytes).reason


@pytest.mark.parametrize("use_get", [False, True])
async def test_a_refusal_is_typed(bench, client, use_get):
    async def answer(_call):
        raise Refused("No.")

    bench.script.answers[LOOK] = answer
    with pytest.raises(ConnectError) as raised:
        await client.execute_unary(request=Request(), method=method("Look"), use_get=use_get)
    assert (raised.value.code, raised.value.message, reason_of(raised.value)) == (
        Code.PERMISSION_DENIED, "No.", "PASSWORD_WRONG",
    )  # fmt: skip


async def test_a_refusal_in_mid_stream_is_typed(bench, client):
    async def stream(_call):
        yield Response(number=1).SerializeToString()
        raise Refused("No.")

    bench.script.streams[COUNT] = stream
    seen = []
    with pytest.raises(ConnectError) as raised:
        async for answer in client.execute_server_stream(
            request=Request(), method=method("Count", StreamType.SERVER_STREAM)
        ):
            seen.append(answer.number)
    assert seen == [1]
    assert (raised.value.code, reason_of(raised.value)) == (Code.PERMISSION_DENIED, "PASSWORD_WRONG")


async def test_what_does_not_exist_is_unimplemented(client):
    with pytest.raises(ConnectError) as raised:
        await client.execute_unary(request=Request(), method=method("Nothing"))
    assert raised.value.code is Code.UNIMPLEMENTED
