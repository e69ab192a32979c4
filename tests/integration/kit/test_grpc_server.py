"""The edge: every error, deadline, identity and outcome of an RPC, over a real channel.

The service under test is made here, from raw bytes, so that kit is tried without any service of ours.
"""

import asyncio
import io
import json
import re
from contextlib import asynccontextmanager
from ipaddress import ip_network

import aiohttp
import grpc
import pytest
from google.rpc import error_details_pb2
from google.rpc.error_details_pb2 import ErrorInfo
from grpc_status import rpc_status
from redis.exceptions import ResponseError

from services.kit import log
from services.kit.errors import Code, KeysUnavailable, ServiceError
from services.kit.grpc_server import caller, client_address, start_server
from services.kit.health import Health, serve_http
from services.kit.limits import address_group, resolve_address
from services.kit.metrics import Metrics
from services.kit.postgres import open_pool
from services.kit.redis import open_client
from services.kit.tokens import AccessTokenVerifier
from tests.harness import AUDIENCE, Issuer, make_caller

SECRET = "wrong-horse-battery"


class Full(ServiceError):
    code = Code.RESOURCE_EXHAUSTED
    reason = "FULL"
    domain = "shop.koikoi"


class Things:
    async def who(self, _request, _context):
        return f"{caller().account_id} {caller().display_name}".encode()

    async def anybody(self, _request, _context):
        return client_address().encode()

    async def anonymous_but_asks(self, _request, _context):
        return caller().account_id.encode()

    async def refuse(self, _request, _context):
        raise Full("No room.", metadata={"limit": "2"}, retry_after_s=1.5, field="size")

    async def crash(self, request, _context):
        raise ValueError(f"bad thing {request!r} {SECRET}")

    async def ask_redis(self, _request, _context):
        client = open_client("unix:///nowhere/valkey.sock")
        try:
            return await client.get("x")
        finally:
            await client.aclose()

    async def ask_full_redis(self, _request, _context):
        raise ResponseError("MISCONF Errors writing to the AOF file: No space left on device")

    async def ask_postgres(self, _request, _context):
        return await open_pool("postgresql://nobody@127.0.0.1:1/none", schema="x")

    async def hang(self, _request, _context):
        await asyncio.sleep(60)

    async def count(self, _request, _context):
        for number in range(3):
            yield f"{number} {caller().account_id}".encode()

    async def count_and_refuse(self, _request, _context):
        yield b"0"
        raise Full("No more.")

    async def count_and_crash(self, _request, _context):
        yield b"0"
        raise ValueError(SECRET)

    async def echo(self, requests, _context):
        async for request in requests:
            yield request + caller().account_id.encode()

    async def add(self, requests, _context):
        return b"".join([request async for request in requests])

    async def write(self, _request, context):
        await context.write(b"written")

    def register(self, server: grpc.aio.Server) -> None:
        kinds = {
            grpc.unary_unary_rpc_method_handler: (
                self.who, self.anybody, self.anonymous_but_asks, self.refuse, self.crash, self.hang,
                self.ask_redis, self.ask_full_redis, self.ask_postgres,
            ),
            grpc.unary_stream_rpc_method_handler: (
                self.count, self.count_and_refuse, self.count_and_crash, self.write,
            ),
            grpc.stream_stream_rpc_method_handler: (self.echo,),
            grpc.stream_unary_rpc_method_handler: (self.add,),
        }  # fmt: skip
        handlers = {behavior.__name__: make(behavior) for make, behaviors in kinds.items() for behavior in behaviors}
        handlers["typed"] = grpc.unary_unary_rpc_method_handler(self.anybody, ErrorInfo.FromString)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Things", handlers),))


@pytest.fixture
def logs():
    stream = io.StringIO()
    log.configure("things", {}, stream)
    return stream


@asynccontextmanager
async def serving(issuer: Issuer, **options):
    health, metrics = options.pop("health", Health()), Metrics("things")
    verifier = AccessTokenVerifier(issuer.key_set(), AUDIENCE, issuer.clock)
    anonymous = ("anybody", "anonymous_but_asks")
    options = {"verifier": verifier, "anonymous": anonymous, "health": health, "grace_s": 0.1} | options
    async with (
        start_server(address="127.0.0.1:0", services=[Things().register], metrics=metrics, **options) as port,
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):

        async def call(method: str, request: bytes = b"", **more) -> bytes:
            return await channel.unary_unary(f"/test.Things/{method}")(request, **more)

        call.channel, call.metrics = channel, metrics
        yield call


def details(error: grpc.aio.AioRpcError) -> dict[str, object]:
    """Unpack google.rpc.Status from the trailing metadata."""
    found: dict[str, object] = {}
    for kind in (error_details_pb2.ErrorInfo, error_details_pb2.BadRequest, error_details_pb2.RetryInfo):
        for part in rpc_status.from_call(error).details:
            message = kind()
            if part.Unpack(message):
                found[kind.DESCRIPTOR.name] = message
    return found


async def failure(work) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await work
    return caught.value


async def collect(call) -> list[bytes]:
    return [answer async for answer in call]


async def test_a_handler_knows_who_calls(issuer: Issuer, logs):
    me = make_caller("花子")
    async with serving(issuer) as call:
        assert (await call("who", metadata=issuer.bearer(me))).decode() == f"{me.account_id} 花子"
        stream = call.channel.unary_stream("/test.Things/count")(b"", metadata=issuer.bearer(me))
        assert await collect(stream) == [f"{n} {me.account_id}".encode() for n in range(3)]
        echo = call.channel.stream_stream("/test.Things/echo")(iter([b"a", b"b"]), metadata=issuer.bearer(me))
        assert await collect(echo) == [b"a" + me.account_id.encode(), b"b" + me.account_id.encode()]
        add = call.channel.stream_unary("/test.Things/add")(iter([b"a", b"b"]), metadata=issuer.bearer(me))
        assert await add == b"ab"
        write = call.channel.unary_stream("/test.Things/write")(b"", metadata=issuer.bearer(me))
        assert await collect(write) == [b"written"]


async def test_two_callers_at_once_are_not_mixed_up(issuer: Issuer, logs):
    callers = [make_caller(str(number)) for number in range(20)]
    async with serving(issuer) as call:
        answers = await asyncio.gather(*(call("who", metadata=issuer.bearer(one)) for one in callers))
    assert [answer.decode() for answer in answers] == [f"{one.account_id} {one.display_name}" for one in callers]


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic abc", "Bearer abc.def.ghi", "abc"])
async def test_every_method_that_is_not_listed_needs_a_token(issuer: Issuer, logs, header):
    metadata = [] if header is None else [("authorization", header)]
    async with serving(issuer) as call:
        for method in ("who", "refuse", "crash", "hang"):
            error = await failure(call(method, metadata=metadata))
            assert error.code() == grpc.StatusCode.UNAUTHENTICATED
            info = details(error)["ErrorInfo"]
            assert (info.reason, info.domain) == ("ACCESS_TOKEN_INVALID", "things.koikoi")
        for method in ("count", "write"):
            error = await failure(collect(call.channel.unary_stream(f"/test.Things/{method}")(b"", metadata=metadata)))
            assert error.code() == grpc.StatusCode.UNAUTHENTICATED


async def test_a_listed_method_needs_none_and_knows_nobody(issuer: Issuer, logs):
    async with serving(issuer) as call:
        assert await call("anybody") == b"127.0.0.1"
        assert await call("anybody", metadata=[("authorization", "Bearer nonsense")]) == b"127.0.0.1"
        error = await failure(call("anonymous_but_asks", metadata=issuer.bearer(make_caller())))
        assert error.code() == grpc.StatusCode.UNAUTHENTICATED
    async with serving(issuer, verifier=None) as call:
        assert await call("anybody") == b"127.0.0.1"
        assert (await failure(call("who"))).code() == grpc.StatusCode.UNAUTHENTICATED


async def test_an_outage_of_the_keys_is_unavailable(issuer: Issuer, logs):
    class Down:
        async def verify(self, token):
            raise KeysUnavailable("down", retry_after_s=10)

    async with serving(issuer, verifier=Down()) as call:
        error = await failure(call("who", metadata=issuer.bearer(make_caller())))
    assert error.code() == grpc.StatusCode.UNAVAILABLE
    assert details(error)["RetryInfo"].retry_delay.seconds == 10


async def test_a_refusal_carries_everything(issuer: Issuer, logs):
    async with serving(issuer) as call:
        error = await failure(call("refuse", metadata=issuer.bearer(make_caller())))
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert error.details() == "No room."
    found = details(error)
    assert found["ErrorInfo"].reason == "FULL"
    assert found["ErrorInfo"].domain == "shop.koikoi"
    metadata = dict(found["ErrorInfo"].metadata)
    assert re.fullmatch("[0-9a-f]{32}", metadata.pop("trace_id"))
    assert metadata == {"limit": "2", "field": "size"}
    assert found["BadRequest"].field_violations[0].field == "size"
    assert found["RetryInfo"].retry_delay.ToTimedelta().total_seconds() == 1.5


async def test_a_refusal_within_a_stream_comes_after_what_was_sent(issuer: Issuer, logs):
    async with serving(issuer) as call:
        metadata = issuer.bearer(make_caller())
        stream = call.channel.unary_stream("/test.Things/count_and_refuse")(b"", metadata=metadata)
        assert await stream.read() == b"0"
        error = await failure(stream.read())
        assert details(error)["ErrorInfo"].reason == "FULL"


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_crash_says_nothing_to_the_caller_and_no_secret_to_the_log(issuer: Issuer, logs, streaming):
    token = issuer.bearer(make_caller())
    async with serving(issuer) as call:
        if streaming:
            work = collect(call.channel.unary_stream("/test.Things/count_and_crash")(b"", metadata=token))
        else:
            work = call("crash", SECRET.encode(), metadata=token)
        error = await failure(work)
    assert error.code() == grpc.StatusCode.INTERNAL
    assert details(error) == {}
    error_id = error.details().removeprefix("Internal error ").removesuffix(".")
    assert len(error_id) == 16
    [record] = [json.loads(line) for line in logs.getvalue().splitlines() if "failed" in line]
    assert record["error_id"] == error_id
    assert record["error"] == "ValueError"
    assert SECRET not in logs.getvalue()
    assert token[0][1].removeprefix("Bearer ") not in logs.getvalue()


@pytest.mark.parametrize("method", ["ask_redis", "ask_full_redis", "ask_postgres"])
async def test_a_store_that_is_away_is_said_so_and_worth_another_try(issuer: Issuer, logs, method):
    async with serving(issuer) as call:
        error = await failure(call(method, metadata=issuer.bearer(make_caller())))
    assert error.code() == grpc.StatusCode.UNAVAILABLE
    assert details(error)["ErrorInfo"].reason == "STORE_UNAVAILABLE"
    assert details(error)["RetryInfo"].retry_delay.seconds == 1


async def test_bytes_that_are_no_message_get_a_typed_refusal(issuer: Issuer, logs):
    async with serving(issuer) as call:
        error = await failure(call("typed", b"\xff\xff\xff", metadata=issuer.bearer(make_caller())))
        assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert details(error)["ErrorInfo"].reason == "FIELD_INVALID"
        assert await call("typed", b"", metadata=issuer.bearer(make_caller())) == b"127.0.0.1"


async def test_a_call_ends_at_the_clients_or_the_servers_deadline(issuer: Issuer, logs):
    async with serving(issuer, deadline_s=0.2) as call:
        for timeout in (None, 0.1, 100):
            error = await failure(call("hang", metadata=issuer.bearer(make_caller()), timeout=timeout))
            assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED


async def test_oversized_and_unknown_calls_are_refused(issuer: Issuer, logs):
    async with serving(issuer) as call:
        error = await failure(call("anybody", b"x" * 65_537))
        assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert (await failure(call("nothing"))).code() == grpc.StatusCode.UNIMPLEMENTED


async def test_each_rpc_leaves_one_line_and_one_count(issuer: Issuer, logs):
    async with serving(issuer) as call:
        await call("anybody")
        await failure(call("refuse", metadata=issuer.bearer(make_caller())))
        text = call.metrics.exposition().decode()
    lines = [json.loads(line) for line in logs.getvalue().splitlines()]
    got = [(line["event"], line["method"], line["outcome"], line["reason"]) for line in lines]
    assert got == [("things.rpc", "anybody", "OK", ""), ("things.rpc", "refuse", "RESOURCE_EXHAUSTED", "FULL")]
    assert 'koikoi_things_rpcs_total{method="refuse",outcome="RESOURCE_EXHAUSTED"} 1.0' in text
    assert 'koikoi_things_rpc_seconds_count{method="anybody"} 1.0' in text


async def test_a_client_that_goes_away_is_counted_as_cancelled(issuer: Issuer, logs):
    async with serving(issuer) as call:
        task = asyncio.create_task(call("hang", metadata=issuer.bearer(make_caller())))
        await asyncio.sleep(0.2)
        task.cancel()
        for _ in range(100):
            if 'outcome="CANCELLED"' in call.metrics.exposition().decode():
                return
            await asyncio.sleep(0.05)
    pytest.fail("nothing was counted")


async def test_a_taken_port_is_an_error(issuer: Issuer, logs):
    options = {"services": [], "health": Health(), "metrics": Metrics("x"), "verifier": None}
    async with start_server(address="127.0.0.1:0", **options) as port:
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{port}"):
            async with start_server(address=f"127.0.0.1:{port}", **options):
                pytest.fail("two servers share a port")


async def test_health_by_grpc_and_http_agree(issuer: Issuer, logs):
    broken = [False]

    async def database() -> None:
        if broken[0]:
            raise OSError("down")

    health = Health({"database": database, "slow": lambda: asyncio.sleep(0)})
    async with (
        serving(issuer, health=health) as call,
        serve_http("127.0.0.1:0", health, call.metrics) as port,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as http,
    ):

        async def state() -> tuple[int, dict, bytes]:
            async with http.get("/readyz") as answer:
                body = await answer.json()
            return answer.status, body, await call.channel.unary_unary("/grpc.health.v1.Health/Check")(b"")

        assert await state() == (200, {"status": "ready", "faults": []}, b"\x08\x01")
        broken[0] = True
        assert await state() == (503, {"status": "not ready", "faults": ["database"]}, b"\x08\x02")
        broken[0] = False
        watch = call.channel.unary_stream("/grpc.health.v1.Health/Watch")(b"")
        assert await watch.read() == b"\x08\x01"
        health.draining = True
        assert await watch.read() == b"\x08\x02"
        assert await state() == (503, {"status": "not ready", "faults": ["draining"]}, b"\x08\x02")
        async with http.get("/healthz") as answer:
            assert answer.status == 200
        async with http.get("/metrics") as answer:
            assert "koikoi_things_rpcs_total" in await answer.text()
        watch.cancel()


@pytest.mark.parametrize(
    ("peer", "forwarded", "trusted", "address"),
    [
        ("10.0.0.1", "", [], "10.0.0.1"),
        ("10.0.0.1", "1.2.3.4", [], "10.0.0.1"),
        ("10.0.0.1", "1.2.3.4", ["10.0.0.0/8"], "1.2.3.4"),
        ("10.0.0.1", "6.6.6.6, 1.2.3.4", ["10.0.0.0/8"], "1.2.3.4"),
        ("10.0.0.1", "6.6.6.6, 1.2.3.4, 10.0.0.2", ["10.0.0.0/8"], "1.2.3.4"),
        ("10.0.0.1", "10.0.0.3, 10.0.0.2", ["10.0.0.0/8"], "10.0.0.3"),
        ("10.0.0.1", "1.2.3.4, nonsense", ["10.0.0.0/8"], "10.0.0.1"),
        ("10.0.0.1", "nonsense, 1.2.3.4", ["10.0.0.0/8"], "1.2.3.4"),
        ("unix", "1.2.3.4", ["10.0.0.0/8"], "unix"),
        ("::1", "2001:db8::7", ["::1"], "2001:db8::7"),
        ("10.0.0.1", " , ,", ["10.0.0.1"], "10.0.0.1"),
        ("::ffff:10.0.0.1", "1.2.3.4, ::ffff:10.0.0.2", ["10.0.0.0/8"], "1.2.3.4"),
    ],
)
def test_a_client_cannot_choose_its_own_address(peer, forwarded, trusted, address):
    assert resolve_address(peer, forwarded, [ip_network(network) for network in trusted]) == address


async def test_the_forwarded_address_counts_from_trusted_proxies_only(issuer: Issuer, logs):
    forwarded = [("x-forwarded-for", "203.0.113.9")]
    async with serving(issuer, trusted_proxies=[ip_network("127.0.0.1")]) as call:
        assert await call("anybody", metadata=forwarded) == b"203.0.113.9"
    async with serving(issuer) as call:
        assert await call("anybody", metadata=forwarded) == b"127.0.0.1"


@pytest.mark.parametrize(
    ("address", "group"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("unix", "unix"),
    ],
)
def test_one_subscriber_is_one_group(address, group):
    assert address_group(address) == group
