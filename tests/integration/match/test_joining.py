"""Joining is a proof of possession: what opens the door, and everything that does not."""

import json
import secrets
from functools import partial
from typing import Any

import pytest
from koikoi.match.v1 import match_service_pb2 as pb
from nacl.signing import SigningKey
from picows import WSError, WSMsgType, ws_connect

from services.kit.clock import SystemClock
from tests.harness import Issuer, make_caller
from tests.integration.match.conftest import DOOR, LOBBY_ISSUER, Place
from tests.integration.match.raw_client import Game, WebSocketClient, make_game, signed_join


@pytest.fixture(autouse=True)
def _door(place: Place, door: str) -> None:
    place.door = door


async def refused(place: Place, app: Any, game: Game, join: Any, match_id: str | None = None) -> tuple[int, str]:
    client = await place.dial(app, match_id or game.match_id)
    challenge = (await client.expect("challenge")).challenge
    assert len(challenge) == 32
    await client.send(join=join(challenge))
    closed = await client.expect("closed")
    return closed.code, closed.reason


async def test_wrong_proofs(place: Place, tmp_path: Any):
    app = await place.start()
    game = place.game()
    seat = game.order[0]
    old = await place.dial(app, game.match_id)
    old_challenge = (await old.expect("challenge")).challenge

    def join(**changes: Any) -> Any:
        return lambda challenge: signed_join(game, seat, changes.pop("door", DOOR), challenge, **changes)

    def altered(**fields: Any) -> Any:
        def make(challenge: bytes) -> pb.Join:
            frame = signed_join(game, seat, DOOR, challenge)
            for name, value in fields.items():
                setattr(frame, name, value)
            return frame

        return make

    good = (4503, "JOIN_SIGNATURE_INVALID")
    for bad in (
        join(key=SigningKey.generate()),  # a stranger's key
        join(key=game.keys[1 - seat]),  # the opponent's
        join(signed_door="other.test:443"),  # signed for another relay
        join(door="other.test:443"),  # a relay that this one is not
        join(door=DOOR.upper()),
        lambda _challenge: signed_join(game, seat, DOOR, old_challenge),  # a replayed challenge
        altered(signature=secrets.token_bytes(64)),
        altered(signature=bytes(64)),
        altered(seat=1 - seat),
    ):
        assert await refused(place, app, game, bad) == good
    for fields in (
        {"signature": b""},
        {"signature": bytes(63)},
        {"seat": 2},
        {"seat": 2**32 - 1},
        {"epoch": bytes(7)},
        {"epoch": bytes(9)},
        {"client_version": "v" * 65},
        {"contract": "x" * 4097},
    ):
        assert await refused(place, app, game, altered(**fields)) == (4501, "FRAME_INVALID")
    client = await place.enter(app, game, seat)
    await client.expect("welcome")  # and the right one still opens


async def test_wrong_contracts(place: Place, lobby: Issuer, tmp_path: Any):
    app = await place.start()
    clock = SystemClock()
    elsewhere = Issuer(tmp_path / "elsewhere", clock, "https://lobby.koikoi/production")
    impostor = Issuer(tmp_path / "impostor", clock, LOBBY_ISSUER)
    auth = Issuer(tmp_path / "auth", clock, "https://auth.koikoi/development")
    now = int(clock.now())
    wrong = (4502, "CONTRACT_INVALID")
    game = place.game()
    for bad in (
        place.game(age_s=3 * 3600),  # expired
        place.game(claims={"iat": now + 60, "exp": now + 600}),  # from the future
        place.game(claims={"exp": now + 90_000}),
        make_game(elsewhere),  # another environment's keys and issuer
        make_game(impostor),  # another's keys under the right issuer
        place.game(claims={"iss": "https://lobby.koikoi/production"}),  # the right keys under another issuer
        place.game(claims={"iss": "https://auth.koikoi/development"}),
        place.game(typ="at+jwt"),
        place.game(typ="koikoi-receipt+jws"),
        place.game(claims={"jti": "0000"}),
        place.game(claims={"extra": 1}),
    ):
        assert await refused(place, app, bad, partial(signed_join, bad, 0, DOOR), game.match_id) == wrong
    for text in (
        auth.access_token(make_caller()),  # an access token shown instead
        lobby.keys.sign(b"not json", "koikoi-contract+jws"),
        game.compact[:-4] + "AAAA",
        game.compact + ".x",
        "",
        "a.b.c",
    ):
        join = partial(signed_join, game, 0, DOOR, contract=text)
        assert await refused(place, app, game, join) == wrong
    other = place.game()
    assert await refused(place, app, game, partial(signed_join, game, 0, DOOR), other.match_id) == wrong


async def test_the_join_must_come_in_time_and_be_small(place: Place):
    app = await place.start(join_within_s="0.3")
    game = place.game()
    silent = await place.dial(app, game.match_id)
    await silent.expect("challenge")
    closed = await silent.expect("closed")
    assert (closed.code, closed.reason.split()[0]) == (4001, "JOIN_TIMEOUT")
    big = await place.dial(app, game.match_id)
    await big.expect("challenge")
    await big.send(join=pb.Join(contract="x" * 4097))
    assert (await big.expect("closed")).code == 4501


async def test_a_match_begins_only_within_two_minutes_of_its_contract(place: Place):
    app = await place.start()
    assert await refused(place, app, late := place.game(age_s=121), partial(signed_join, late, 0, DOOR)) == (
        4504,
        "MATCH_UNKNOWN",
    )
    game = place.game(age_s=119)
    client = await place.enter(app, game, 0)
    await client.expect("welcome")


async def test_a_match_that_began_can_be_joined_until_its_contract_expires(place: Place):
    game = place.game(age_s=60)
    await place.pair(await place.start(), game)
    again = await place.enter(await place.start(creation_s="1"), game, 0)
    assert (await again.expect("welcome")).counter == 0


async def test_the_lobby_s_keys_out_of_reach_means_come_back(place: Place):
    app = await place.start(lobby_target="127.0.0.1:1")
    game = place.game()
    code, reason = await refused(place, app, game, partial(signed_join, game, 0, DOOR))
    assert (code, reason.split()[0]) == (4004, "STORE_UNAVAILABLE")


async def test_a_second_join_on_a_connection_is_refused(place: Place):
    app = await place.start()
    game = place.game()
    client = await place.dial(app, game.match_id)
    challenge = await client.join(game, 0, DOOR)
    await client.expect("welcome")
    await client.send(join=signed_join(game, 0, DOOR, challenge))
    assert (await client.expect("closed")).code == 4501


async def test_another_contract_for_the_same_match_is_refused(place: Place):
    app = await place.start()
    game = place.game()
    client = await place.enter(app, game, 0)
    await client.expect("welcome")
    other = place.game(claims={"jti": game.match_id})
    assert await refused(place, app, other, partial(signed_join, other, 0, DOOR)) == (4502, "CONTRACT_INVALID")


async def test_websocket_paths_and_subprotocols(place: Place, door: str):
    if door != "websocket":
        return
    app = await place.start()
    url = f"ws://127.0.0.1:{app.ports['websocket']}"
    match_id = place.game().match_id
    headers = {"Sec-WebSocket-Protocol": "koikoi.match.v1"}
    for path, extra in (
        ("/", headers),
        ("/m/", headers),
        (f"/m/{match_id}/x", headers),
        (f"/m/{match_id}?token=x", headers),
        (f"/m/{match_id}", {}),
        (f"/m/{match_id}", {"Sec-WebSocket-Protocol": "koikoi.match.v2"}),
    ):
        with pytest.raises(WSError):
            await ws_connect(lambda: pytest.fail("connected"), url + path, extra_headers=extra)


async def test_fragments_text_and_compression_are_refused(place: Place, door: str):
    if door != "websocket":
        return
    app = await place.start()
    for kind, options in (
        (WSMsgType.TEXT, {}),
        (WSMsgType.BINARY, {"fin": False}),
        (WSMsgType.BINARY, {"rsv1": True}),
    ):
        client = await place.dial(app, place.game().match_id)
        assert isinstance(client, WebSocketClient)
        await client.expect("challenge")
        client.transport.send(kind, json.dumps({}).encode(), **options)
        assert (await client.expect("closed")).code in (4501, 1002)


async def test_an_oversize_message_ends_the_connection(place: Place):
    app = await place.start()
    client = await place.dial(app, place.game().match_id)
    await client.expect("challenge")
    await client.send_bytes(bytes(200_000))
    closed = await client.expect("closed")
    assert closed.code in (4501, 1009, 1002, 1006)
