"""Sign-in from challenge to session, on real stores and the real local provider."""

import asyncio
import json
import secrets
from base64 import urlsafe_b64decode
from hashlib import sha256

import grpc
from koikoi.auth.v1 import auth_service_pb2 as pb

from services.auth.domain.names import normalise_display_name
from services.auth.domain.requests import MAX_ID_TOKEN_CHARACTERS
from services.kit.tokens import AccessTokenVerifier, KeySet
from tests.harness import AUDIENCE
from tests.integration.auth.device import ISSUER, Refused, base64url
from tests.integration.auth.world import World

ORDER = 2**252 + 27742317777372353535851937790883648493
SMALL_ORDER_KEYS = [
    bytes(32),
    b"\x01" + bytes(31),  # the identity
    bytes.fromhex("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),  # order 2
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),  # order 8
    bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"),  # order 8
    bytes.fromhex("eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),  # identity, not canonical
    bytes.fromhex("edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),  # 0, not canonical
    b"\xff" * 32,
    b"\x02" + bytes(31),  # not on the curve
]


async def test_a_new_person_gets_an_account_and_a_session(world: World):
    device = world.device()
    answer = await device.sign_in(display_name="花子", device_name="居間の端末")
    assert answer.is_new_account
    assert answer.profile.display_name == "花子"
    assert answer.profile.create_time.ToSeconds() == int(world.clock.now())
    assert answer.session.access_expire_time.ToSeconds() == int(world.clock.now()) + 900
    assert answer.session.refresh_expire_time.ToSeconds() == int(world.clock.now()) + 30 * 86_400
    assert (await device.profile()) == answer.profile


async def test_the_access_token_says_who_calls_to_any_service(world: World):
    device = world.device()
    answer = await device.sign_in()

    async def fetch() -> str:
        return (await device.stub.GetKeySet(pb.GetKeySetRequest())).jwks

    verifier = AccessTokenVerifier(KeySet(ISSUER, fetch, world.clock), AUDIENCE, world.clock)
    caller = await verifier.verify(answer.session.access_token)
    assert (caller.account_id, caller.device_id) == (answer.profile.account_id, answer.session.device_id)
    assert (caller.display_name, caller.avatar) == (answer.profile.display_name, answer.profile.avatar)
    assert (caller.device_key, caller.scope) == (device.public_key, "play")
    header, payload, _ = answer.session.access_token.split(".")
    claims = json.loads(urlsafe_b64decode(payload + "=="))
    assert claims["iss"] == ISSUER
    assert claims["exp"] - claims["iat"] == 900
    assert json.loads(urlsafe_b64decode(header + "=="))["typ"] == "at+jwt"


async def test_the_same_person_on_another_device_is_the_same_account(world: World):
    first, second = world.device(), world.device()
    known = await first.sign_in(display_name="花子")
    again = await second.sign_in(display_name="\u202eignored\u202e")  # a wish counts for a new account only
    assert not again.is_new_account
    assert again.profile == known.profile
    assert again.session.device_id != known.session.device_id
    stranger = await world.device("taro@example.org").sign_in()
    assert stranger.profile.account_id != known.profile.account_id


async def test_whoever_chooses_no_name_gets_one(world: World):
    answer = await world.device().sign_in()
    assert normalise_display_name(answer.profile.display_name) == answer.profile.display_name
    assert any("\u3040" < character < "\u9fff" for character in answer.profile.display_name)


async def test_a_bad_name_of_a_new_account_is_refused_and_may_be_mended(world: World):
    device = world.device()
    begun = await device.begin()
    async with Refused("DISPLAY_NAME_INVALID", grpc.StatusCode.INVALID_ARGUMENT, rule="invisible"):
        await device.stub.SignIn(device.sign_in_request(begun, display_name="a\u202eb"))
    answer = await device.stub.SignIn(device.sign_in_request(begun, display_name="ｂ"))
    assert answer.is_new_account
    assert answer.profile.display_name == "b"


async def test_a_device_that_stays_signed_in_keeps_its_id_and_only_its_newest_session(world: World):
    device = world.device()
    first = await device.sign_in()
    second = await device.sign_in()
    assert second.session.device_id == first.session.device_id
    async with Refused("REFRESH_TOKEN_INVALID"):
        await device.refresh(first.session.refresh_token)
    await device.refresh(second.session.refresh_token)


async def test_one_key_belongs_to_one_account_for_ever(world: World):
    device = world.device()
    await device.sign_in()
    await device.sign_out()
    device.email = "thief@example.org"
    async with Refused("DEVICE_KEY_TAKEN", grpc.StatusCode.PERMISSION_DENIED):
        await device.sign_in()
    other = world.device("thief@example.org")
    assert (await other.sign_in()).is_new_account, "the refused sign-in left no account behind"


async def test_small_order_and_non_canonical_keys_are_refused(world: World):
    device = world.device()
    begun = await device.begin()
    for key in SMALL_ORDER_KEYS:
        async with Refused("DEVICE_KEY_INVALID", grpc.StatusCode.INVALID_ARGUMENT, field="device_key"):
            await device.stub.BeginSignIn(pb.BeginSignInRequest(device_key=key))
        async with Refused("DEVICE_KEY_INVALID"):
            await device.stub.SignIn(device.sign_in_request(begun, device_key=key))


MALFORMED: list[tuple[str, object, str]] = [
    ("device_key", b"", "DEVICE_KEY_INVALID"),
    ("device_key", b"k" * 31, "DEVICE_KEY_INVALID"),
    ("device_key", b"k" * 33, "DEVICE_KEY_INVALID"),
    ("challenge", b"", "FIELD_INVALID"),
    ("challenge", b"c" * 31, "FIELD_INVALID"),
    ("id_token", "", "FIELD_INVALID"),
    ("id_token", "a" * (MAX_ID_TOKEN_CHARACTERS + 1), "FIELD_INVALID"),
    ("id_token", "é.é.é", "FIELD_INVALID"),
    ("device_signature", b"", "FIELD_INVALID"),
    ("device_signature", b"s" * 63, "FIELD_INVALID"),
    ("device_signature", b"s" * 65, "FIELD_INVALID"),
    ("request_id", "", "FIELD_INVALID"),
    ("request_id", "r" * 65, "FIELD_INVALID"),
    ("request_id", "a b", "FIELD_INVALID"),
    ("device_name", "x" * 41, "FIELD_INVALID"),
    ("device_name", "x\x00", "FIELD_INVALID"),
    ("device_name", "x" * 60_000, "FIELD_INVALID"),
]


async def test_malformed_fields_are_named_and_change_nothing(world: World):
    device = world.device()
    begun = await device.begin()
    for field, value, reason in MALFORMED:
        async with Refused(reason, grpc.StatusCode.INVALID_ARGUMENT, field=field):
            await device.stub.SignIn(device.sign_in_request(begun, **{field: value}))
    assert (await device.stub.SignIn(device.sign_in_request(begun))).is_new_account


async def test_the_device_must_sign_exactly_this_sign_in(world: World):
    device, stranger = world.device(), world.device()
    begun = await device.begin()
    good = device.sign_in_request(begun)
    hashed = sha256(good.id_token.encode()).digest()
    r, s = good.device_signature[:32], int.from_bytes(good.device_signature[32:], "little")
    wrong = [
        bytes(64),
        secrets.token_bytes(64),
        good.device_signature[:63] + bytes([good.device_signature[63] ^ 1]),
        r + (s + ORDER).to_bytes(32, "little"),  # S + L
        stranger.sign(b"sign-in", b"", device.public_key, begun.challenge, hashed),
        device.sign(b"refresh", b"", device.public_key, begun.challenge, hashed),
        device.sign(b"sign-in", b"x", device.public_key, begun.challenge, hashed),
        device.sign(b"sign-in", b"", stranger.public_key, begun.challenge, hashed),
        device.sign(b"sign-in", b"", device.public_key, bytes(32), hashed),
        device.sign(b"sign-in", b"", device.public_key, begun.challenge, bytes(32)),
        device.key.sign(begun.challenge).signature,
    ]
    for signature in wrong:
        request = pb.SignInRequest()
        request.CopyFrom(good)
        request.device_signature = signature
        async with Refused("SIGNATURE_INVALID", grpc.StatusCode.UNAUTHENTICATED):
            await device.stub.SignIn(request)
    assert (await device.stub.SignIn(good)).is_new_account


async def test_a_challenge_is_good_for_one_sign_in(world: World):
    device = world.device()
    begun = await device.begin()
    await device.stub.SignIn(device.sign_in_request(begun))
    async with Refused("CHALLENGE_INVALID", grpc.StatusCode.UNAUTHENTICATED):
        await device.stub.SignIn(device.sign_in_request(begun))
    world.clock.advance(120)
    async with Refused("CHALLENGE_INVALID"):
        await device.stub.SignIn(device.sign_in_request(begun))


async def test_a_challenge_lives_for_five_minutes_and_serves_one_key(world: World):
    device, stranger = world.device(), world.device("taro@example.org")
    begun, older = await device.begin(), await device.begin()
    assert begun.challenge != older.challenge
    assert begun.nonce == base64url(sha256(b"koikoi-signin/v1" + device.public_key + begun.challenge).digest())
    assert begun.expire_time.ToSeconds() == int(world.clock.now()) + 300
    async with Refused("CHALLENGE_INVALID"):
        await stranger.stub.SignIn(stranger.sign_in_request(begun))
    async with Refused("CHALLENGE_INVALID"):
        await device.stub.SignIn(device.sign_in_request(begun, challenge=secrets.token_bytes(32)))
    world.clock.advance(299)
    await device.stub.SignIn(device.sign_in_request(older))
    world.clock.advance(1)
    async with Refused("CHALLENGE_INVALID"):
        await device.stub.SignIn(device.sign_in_request(begun))


async def test_the_same_request_again_gives_the_same_session_for_thirty_seconds(world: World):
    device = world.device()
    request = device.sign_in_request(await device.begin(), display_name="花子")
    first = await device.stub.SignIn(request)
    world.clock.advance(30)
    again = await device.stub.SignIn(request)
    assert again.session.refresh_token == first.session.refresh_token
    assert again.session.device_id == first.session.device_id
    assert (again.profile, again.is_new_account) == (first.profile, True)
    world.clock.advance(1)
    async with Refused("CHALLENGE_INVALID"):
        await device.stub.SignIn(request)


async def test_a_lost_reply_at_the_end_of_the_challenge_can_still_be_repeated(world: World):
    device = world.device()
    begun = await device.begin()
    world.clock.advance(299)
    request = device.sign_in_request(begun)
    first = await device.stub.SignIn(request)
    world.clock.advance(29)
    assert (await device.stub.SignIn(request)).session.refresh_token == first.session.refresh_token


async def test_a_request_is_not_repeated_once_the_session_moved_on(world: World):
    device = world.device()
    request = device.sign_in_request(await device.begin())
    answer = await device.stub.SignIn(request)
    device.session, device.account_id = answer.session, answer.profile.account_id
    await device.refresh()
    async with Refused("CHALLENGE_INVALID"):
        await device.stub.SignIn(request)


async def test_a_request_id_names_one_content(world: World):
    device = world.device()
    begun = await device.begin()
    await device.stub.SignIn(device.sign_in_request(begun, request_id="once"))
    async with Refused("REQUEST_ID_REUSED", grpc.StatusCode.INVALID_ARGUMENT):
        await device.stub.SignIn(device.sign_in_request(begun, request_id="once", device_name="other"))
    async with Refused("REQUEST_ID_REUSED"):
        await device.sign_in(request_id="once")
    assert (await world.device("taro@example.org").sign_in(request_id="once")).is_new_account, "per device"


async def test_twenty_sign_ins_with_one_challenge_give_one_session(world: World):
    async with world.running():
        device, elsewhere = world.device(), world.device(process=1)
        begun = await device.begin()
        requests = [device.sign_in_request(begun) for _ in range(20)]
        answers = await asyncio.gather(
            *((device, elsewhere)[number % 2].stub.SignIn(request) for number, request in enumerate(requests)),
            return_exceptions=True,
        )
        sessions = [answer for answer in answers if isinstance(answer, pb.SignInResponse)]
        assert len(sessions) == 1
        for answer in answers:
            if not isinstance(answer, pb.SignInResponse):
                async with Refused("CHALLENGE_INVALID"):
                    raise answer


async def test_one_request_sent_twenty_times_at_once_gives_one_session(world: World):
    async with world.running():
        device, elsewhere = world.device(), world.device(process=1)
        request = device.sign_in_request(await device.begin())
        answers = await asyncio.gather(*((device, elsewhere)[n % 2].stub.SignIn(request) for n in range(20)))
        assert len({answer.session.refresh_token for answer in answers}) == 1
        assert len({answer.profile.account_id for answer in answers}) == 1


async def test_one_person_on_ten_new_devices_at_once_is_one_account(world: World):
    answers = await asyncio.gather(*(world.device().sign_in() for _ in range(10)))
    assert len({answer.profile.account_id for answer in answers}) == 1
    assert sum(answer.is_new_account for answer in answers) == 1
    assert len({answer.session.device_id for answer in answers}) == 10


async def test_one_key_shown_by_ten_people_at_once_goes_to_one(world: World):
    device = world.device()
    begun = [await device.begin() for _ in range(10)]
    requests = [
        device.sign_in_request(one, world.provider.id_token(f"person-{number}@example.org", one.nonce))
        for number, one in enumerate(begun)
    ]
    answers = await asyncio.gather(*(device.stub.SignIn(one) for one in requests), return_exceptions=True)
    assert sum(isinstance(answer, pb.SignInResponse) for answer in answers) == 1
    for answer in answers:
        if not isinstance(answer, pb.SignInResponse):
            async with Refused("DEVICE_KEY_TAKEN"):
                raise answer


async def test_limits_hold_per_address_and_per_device(world: World):
    async with world.running(address_per_minute="5", device_per_minute="3"):
        device, other = world.device(process=1), world.device(process=1)
        for _ in range(3):
            await device.begin()
        async with Refused("RATE_LIMITED", grpc.StatusCode.RESOURCE_EXHAUSTED) as refusal:
            await device.begin()
        assert refusal.retry_delay_s is not None
        assert 0 < refusal.retry_delay_s <= 60
        world.clock.advance(60)
        await device.begin()
        await other.begin()


async def test_an_opponent_who_knows_a_key_cannot_use_up_its_sign_ins(world: World):
    """Unsigned sign-ins count for the address only."""
    async with world.running(device_per_minute="2"):
        device, opponent = world.device(process=1), world.device("taro@example.org", process=1)
        begun = await device.begin()
        for _ in range(5):
            async with Refused("SIGNATURE_INVALID"):
                forged = opponent.sign_in_request(begun, device_key=device.public_key)
                await opponent.stub.SignIn(forged)
        assert (await device.stub.SignIn(device.sign_in_request(begun))).is_new_account


async def test_a_challenge_survives_the_process_that_gave_it(world: World):
    async with world.running():
        device = world.device(process=1)
        begun = await device.begin()
    device.stub = world.stub
    assert (await device.stub.SignIn(device.sign_in_request(begun))).is_new_account
