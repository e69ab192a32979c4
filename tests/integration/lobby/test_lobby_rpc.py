"""The lobby as clients see it: gRPC in, a real Valkey below."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import subprocess
import sys

import aiohttp
import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from koikoi.lobby.v1 import lobby_service_pb2 as pb
from redis.asyncio import Redis

from services.kit.tokens import KeySet, verify_document
from tests.harness import make_caller

HOUSE = pb.Rules(preset="house")


def create(**changes):
    fields = {"visibility": pb.VISIBILITY_PUBLIC, "rules": HOUSE, "request_id": secrets.token_hex(8), **changes}
    return pb.CreateRoomRequest(**fields)


def join(code, **changes):
    return pb.JoinRoomRequest(code=code, **{"request_id": secrets.token_hex(8), **changes})


async def refusal(call) -> tuple[grpc.StatusCode, error_details_pb2.ErrorInfo, float | None]:
    """Give status, ErrorInfo and retry delay of a call that must fail."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    info, retry = error_details_pb2.ErrorInfo(), None
    for detail in rpc_status.from_call(caught.value).details:
        if detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR):
            detail.Unpack(info)
        if detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR):
            message = error_details_pb2.RetryInfo()
            detail.Unpack(message)
            retry = message.retry_delay.ToTimedelta().total_seconds()
    return caught.value.code(), info, retry


async def test_two_players_meet_and_both_read_the_same_verifiable_contract(process, fake_clock):
    host, guest = make_caller("月見の兎"), make_caller("花子", avatar="moon")
    host_says, guest_says = process.bearer(host), process.bearer(guest)
    room = (await process.stub.CreateRoom(create(rules=pb.Rules(preset="house", rounds=12)), metadata=host_says)).room
    assert room.state == pb.ROOM_STATE_OPEN
    assert room.host == pb.Player(account_id=host.account_id, display_name="月見の兎", avatar="crane")
    assert room.rules == pb.Rules(preset="house", rounds=12, double_at=8, hanami_tsukimi=True, cup="tane")
    assert room.rules_text == '{"overrides":{},"preset":"house","rounds":12,"version":1}'
    assert room.is_ranked
    assert not room.has_password
    assert room.create_time.seconds == int(fake_clock.now())

    seen = await process.stub.GetRoom(pb.GetRoomRequest(code=room.code.lower()), metadata=guest_says)
    assert seen == pb.GetRoomResponse(room=room)
    assert list((await process.stub.ListRooms(pb.ListRoomsRequest(), metadata=guest_says)).rooms) == [room]

    joined = await process.stub.JoinRoom(join(room.code), metadata=guest_says)
    assert joined.room.state == pb.ROOM_STATE_READY
    assert joined.room.guest == pb.Player(account_id=guest.account_id, display_name="花子", avatar="moon")
    looked = await process.stub.GetRoom(pb.GetRoomRequest(code=room.code), metadata=host_says)
    assert looked.contract == joined.contract
    assert looked.room == joined.room
    assert not (await process.stub.ListRooms(pb.ListRoomsRequest(), metadata=guest_says)).rooms

    async def jwks() -> str:
        return (await process.stub.GetKeySet(pb.GetKeySetRequest())).jwks

    keys = KeySet("https://lobby.koikoi/development", jwks, fake_clock)
    document = await verify_document(joined.contract, typ="koikoi-contract+jws", keys=keys, max_chars=3072)
    assert set(document.claims) == {"iss", "jti", "iat", "exp", "ranked", "rules", "seats"}
    assert [seat["account"] for seat in document.claims["seats"]] == [host.account_id, guest.account_id]
    for says in (host_says, guest_says):
        (match,) = (await process.stub.ListMyMatches(pb.ListMyMatchesRequest(), metadata=says)).matches
        assert (match.contract, match.code) == (joined.contract, room.code)
        assert match.match_id == document.claims["jti"]
        assert match.expire_time.seconds == document.claims["exp"]


async def test_every_method_but_the_keys_needs_an_access_token(process, issuer, fake_clock):
    calls = [
        (process.stub.CreateRoom, create()),
        (process.stub.GetRoom, pb.GetRoomRequest(code="222222")),
        (process.stub.JoinRoom, join("222222")),
        (process.stub.LeaveRoom, pb.LeaveRoomRequest(code="222222", request_id="x")),
        (process.stub.ListRooms, pb.ListRoomsRequest()),
        (process.stub.ListMyMatches, pb.ListMyMatchesRequest()),
    ]
    wrong_audience = [("authorization", f"Bearer {issuer.access_token(make_caller(), audience='koikoi/production')}")]
    stale = issuer.bearer(make_caller())
    fake_clock.advance(1000)
    for method, request in calls:
        for metadata in ((), [("authorization", "Bearer x.y.z")], wrong_audience, stale):
            code, info, _ = await refusal(method(request, metadata=metadata))
            assert (code, info.reason) == (grpc.StatusCode.UNAUTHENTICATED, "ACCESS_TOKEN_INVALID")
    assert json.loads((await process.stub.GetKeySet(pb.GetKeySetRequest())).jwks)["keys"]


@pytest.mark.parametrize(
    ("changes", "reason", "field"),
    [
        ({"visibility": 0}, "FIELD_INVALID", "visibility"),
        ({"visibility": 77}, "FIELD_INVALID", "visibility"),
        ({"request_id": ""}, "FIELD_INVALID", "request_id"),
        ({"request_id": "x" * 65}, "FIELD_INVALID", "request_id"),
        ({"password": "x" * 65}, "PASSWORD_INVALID", "password"),
        ({"rules": None}, "RULES_INVALID", "rules.preset"),
        ({"rules": pb.Rules(preset="\x00" * 5000)}, "RULES_INVALID", "rules.preset"),
        ({"rules": pb.Rules(preset="house", rounds=2**32 - 1)}, "RULES_INVALID", "rules.rounds"),
        ({"rules": pb.Rules(preset="house", double_at=2**32 - 1)}, "RULES_INVALID", "rules.double_at"),
        ({"rules": pb.Rules(preset="house", cup="both ")}, "RULES_INVALID", "rules.cup"),
    ],
)
async def test_bad_fields_of_a_new_room_name_field_and_limit(process, changes, reason, field):
    code, info, _ = await refusal(process.stub.CreateRoom(create(**changes), metadata=process.newcomer()))
    assert (code, info.reason, info.domain) == (grpc.StatusCode.INVALID_ARGUMENT, reason, "lobby.koikoi")
    assert info.metadata["field"] == field
    assert info.metadata["limit"]
    listed = await process.stub.ListRooms(pb.ListRoomsRequest(), metadata=process.newcomer())
    assert not listed.rooms


async def test_garbage_in_every_other_field(process):
    me = process.newcomer()
    for code in ("", "12345", "!!!!!!", "２２２２２２", "\x00" * 6, "2" * 10_000, "い" * 6):
        for call in (
            process.stub.GetRoom(pb.GetRoomRequest(code=code), metadata=me),
            process.stub.JoinRoom(join(code), metadata=me),
            process.stub.LeaveRoom(pb.LeaveRoomRequest(code=code, request_id="x"), metadata=me),
        ):
            status, info, _ = await refusal(call)
            assert (status, info.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "FIELD_INVALID")
            assert info.metadata["field"] == "code"
    for call, field in (
        (process.stub.JoinRoom(join("222222", request_id=""), metadata=me), "request_id"),
        (process.stub.JoinRoom(join("222222", password="ぱ" * 65), metadata=me), "password"),
        (process.stub.LeaveRoom(pb.LeaveRoomRequest(code="222222"), metadata=me), "request_id"),
        (process.stub.ListRooms(pb.ListRoomsRequest(page_size=201), metadata=me), "page_size"),
        (process.stub.ListRooms(pb.ListRoomsRequest(preset="poker"), metadata=me), "preset"),
    ):
        status, info, _ = await refusal(call)
        assert status == grpc.StatusCode.INVALID_ARGUMENT
        assert info.metadata["field"] == field
    # None of this was a guess: five misses are still free.
    for _ in range(5):
        assert (await refusal(process.stub.GetRoom(pb.GetRoomRequest(code="222222"), metadata=me)))[1].reason == (
            "ROOM_NOT_FOUND"
        )


async def test_raw_garbage_bytes_do_not_hurt(process):
    async with grpc.aio.insecure_channel(f"127.0.0.1:{process.ports['grpc']}") as channel:
        for method in ("CreateRoom", "GetRoom", "JoinRoom", "LeaveRoom", "ListRooms", "ListMyMatches", "GetKeySet"):
            call = channel.unary_unary(f"/koikoi.lobby.v1.LobbyService/{method}")
            for garbage in (b"\xff" * 3, b"\x0a\xff\xff\xff\xff\x0f", b"\x22\x01", b"\x0f"):
                with pytest.raises(grpc.aio.AioRpcError):
                    await call(garbage, metadata=process.newcomer())
            for garbage in (b"\x0a\x02\xff\xfe", secrets.token_bytes(300)):  # may be unknown fields, which are allowed
                await asyncio.gather(call(garbage, metadata=process.newcomer()), return_exceptions=True)
    assert not (await process.stub.ListRooms(pb.ListRoomsRequest(), metadata=process.newcomer())).rooms
    assert (await process.stub.CreateRoom(create(), metadata=process.newcomer())).room.code


async def test_a_name_too_long_for_a_contract_is_refused_not_cut(process):
    code, info, _ = await refusal(process.stub.CreateRoom(create(), metadata=process.newcomer("名" * 100)))
    assert (code, info.metadata["field"]) == (grpc.StatusCode.INVALID_ARGUMENT, "display_name")


async def test_errors_carry_what_a_client_needs(process):
    me = process.newcomer()
    first = (await process.stub.CreateRoom(create(), metadata=me)).room
    code, info, _ = await refusal(process.stub.CreateRoom(create(), metadata=me))
    assert (code, info.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "ALREADY_IN_ROOM")
    assert info.metadata["code"] == first.code
    code, info, _ = await refusal(process.stub.JoinRoom(join(first.code), metadata=me))
    assert (code, info.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "OWN_ROOM")
    guesser = process.newcomer()
    for _ in range(5):
        await refusal(process.stub.GetRoom(pb.GetRoomRequest(code="222222"), metadata=guesser))
    code, info, retry = await refusal(process.stub.GetRoom(pb.GetRoomRequest(code=first.code), metadata=guesser))
    assert (code, info.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "RATE_LIMITED")
    assert retry == pytest.approx(60.0)


async def test_an_address_behind_a_trusted_proxy_is_limited_by_itself(process):
    code = (await process.stub.CreateRoom(create(), metadata=process.newcomer())).room.code

    async def look(wanted: str, address: str) -> str:
        metadata = [*process.newcomer(), ("x-forwarded-for", address)]
        try:
            await process.stub.GetRoom(pb.GetRoomRequest(code=wanted), metadata=metadata)
        except grpc.aio.AioRpcError as error:
            info = error_details_pb2.ErrorInfo()
            rpc_status.from_call(error).details[0].Unpack(info)
            return info.reason
        return "OK"

    for number in range(5):  # every one another account and another address of the same /64
        assert await look("222222", f"2001:db8:1:2::{number}") == "ROOM_NOT_FOUND"
    assert await look("222222", "2001:db8:1:2:ffff::9") == "RATE_LIMITED"
    assert await look(code, "2001:db8:1:2:ffff::9") == "RATE_LIMITED"
    assert await look(code, "2001:db8:1:3::9") == "OK"


async def test_a_signed_out_device_is_refused(start_lobby, redis_url, fake_clock, issuer):
    gone, kept, early = make_caller(), make_caller(), make_caller()

    async def announce(caller) -> None:
        fields = {"device_id": caller.device_id, "account_id": caller.account_id, "time": int(fake_clock.now() * 1000)}
        await redis.xadd("revocations", fields, id=f"{int(fake_clock.now() * 1000)}-*")

    async with Redis.from_url(redis_url) as redis:
        await announce(early)
        async with start_lobby() as process:
            request = pb.ListRoomsRequest()
            assert (await refusal(process.stub.ListRooms(request, metadata=process.bearer(early))))[1].reason == (
                "ACCESS_TOKEN_INVALID"
            )
            await process.stub.ListRooms(request, metadata=process.bearer(gone))
            await announce(gone)
            refused = None
            for _ in range(100):
                await asyncio.sleep(0.05)
                try:
                    await process.stub.ListRooms(request, metadata=process.bearer(gone))
                except grpc.aio.AioRpcError as error:
                    refused = error.code()
                    break
            assert refused is grpc.StatusCode.UNAUTHENTICATED
            await process.stub.ListRooms(request, metadata=process.bearer(kept))


async def test_two_processes_are_one_lobby(start_lobby, tmp_path):
    async with start_lobby() as one, start_lobby() as two:
        host, guest = one.newcomer(), one.newcomer()
        code = (await one.stub.CreateRoom(create(), metadata=host)).room.code
        assert [room.code for room in (await two.stub.ListRooms(pb.ListRoomsRequest(), metadata=guest)).rooms] == [code]
        joined = await two.stub.JoinRoom(join(code), metadata=guest)
        assert (await one.stub.GetRoom(pb.GetRoomRequest(code=code), metadata=host)).contract == joined.contract


async def test_metrics_health_and_the_sweeper_run(start_lobby, redis_url):
    async with start_lobby(sweep_period_s="0.1") as process:
        code = (await process.stub.CreateRoom(create(), metadata=process.newcomer())).room.code
        async with Redis.from_url(redis_url) as redis, aiohttp.ClientSession() as session:
            await redis.delete("lobby:list")
            base = f"http://127.0.0.1:{process.ports['metrics']}"
            text = await (await session.get(f"{base}/metrics")).text()
            assert 'koikoi_lobby_rooms_total{event="opened"} 1.0' in text
            assert code not in text
            assert (await session.get(f"{base}/readyz")).status == 200
            for _ in range(100):
                if await redis.zscore("lobby:list", code) is not None:
                    break
                await asyncio.sleep(0.05)
            else:
                pytest.fail("the sweeper did not repair the list")


async def test_no_secret_in_logs_or_errors(start_lobby, capfd, issuer, redis_url):
    secret = "ひみつ-password-7231"
    async with start_lobby() as process:
        host, guest = process.newcomer(), process.newcomer()
        code = (await process.stub.CreateRoom(create(password=secret), metadata=host)).room.code
        _, info, _ = await refusal(process.stub.JoinRoom(join(code, password=secret + "x"), metadata=guest))
        assert secret not in str(info)
        contract = (await process.stub.JoinRoom(join(code, password=secret), metadata=guest)).contract
        logging.getLogger().warning("planted %s", "needle-4711")
    said = "".join(capfd.readouterr())
    async with Redis.from_url(redis_url) as redis:
        fields = await redis.hgetall(f"lobby:room:{{{code}}}")
    assert b"$argon2id$v=19$m=19456,t=2,p=1$" in fields[b"password"]
    assert secret.encode() not in b"".join(fields.values())
    for needle in (secret, contract, host[0][1], guest[0][1]):
        assert needle not in said


def test_the_command_line_says_what_is_wrong_in_one_sentence(tmp_path, database_url):
    def lobby(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "services.lobby", *arguments]
        paths = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
        return subprocess.run(
            command, env={**paths, **environ}, capture_output=True, text=True, timeout=60, check=False
        )

    missing = lobby()
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)
    assert "KOIKOI_LOBBY_REDIS_URL" in missing.stderr
    stores = {
        "KOIKOI_LOBBY_REDIS_URL": "redis://127.0.0.1:1",
        "KOIKOI_LOBBY_DATABASE_URL": database_url("lobby"),
        "KOIKOI_LOBBY_KEY_DIRECTORY": str(tmp_path / "keys"),
    }
    assert lobby("migrate", **stores, KOIKOI_LOBBY_DATABASE_URL_FILE="x").returncode == 2
    assert lobby("migrate", **stores).returncode == 0
    unknown = lobby(**stores, KOIKOI_LOBBY_COLOUR="red")
    assert (unknown.returncode, "KOIKOI_LOBBY_COLOUR" in unknown.stderr) == (2, True)
    for name, value in (("MIN_CLIENT_VERSION", "newest"), ("NOTICE_JA", "保" * 501), ("PING_EVERY_S", "21")):
        unsaid = lobby(**stores, **{f"KOIKOI_LOBBY_{name}": value})
        assert (unsaid.returncode, unsaid.stderr.count("\n"), f"KOIKOI_LOBBY_{name}" in unsaid.stderr) == (2, 1, True)
    keyless = lobby(
        KOIKOI_LOBBY_REDIS_URL="redis://127.0.0.1:1",
        KOIKOI_LOBBY_DATABASE_URL=stores["KOIKOI_LOBBY_DATABASE_URL"],
        KOIKOI_LOBBY_KEY_DIRECTORY=str(tmp_path),
        KOIKOI_ENVIRONMENT="production",
    )
    assert (keyless.returncode, keyless.stderr.count("\n")) == (2, 1)
    assert "key" in keyless.stderr
