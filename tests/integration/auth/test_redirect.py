"""Sign-in by redirect: the whole way, and everything an attacker may try on it."""

import asyncio
import socket

import grpc
import pytest
from koikoi.auth.v1 import auth_service_pb2 as pb
from redis.asyncio import Redis

from services.auth.domain.redirects import pkce_challenge
from tests.harness import running_app
from tests.harness.browser import Browser, open_browser, query_of
from tests.integration.auth.device import Refused
from tests.integration.auth.redirecting import REDIRECT_URI, Place, redirect_settings
from tests.integration.auth.world import World
from tools.oidc_provider import Faults


async def test_a_person_signs_in_with_a_browser_and_keeps_the_account(place: Place, browser: Browser):
    client = place.client()
    answer = await client.complete(await client.code(browser), display_name="花子", device_name="居間")
    assert answer.is_new_account
    assert answer.profile.display_name == "花子"
    await client.device.profile()
    await client.device.refresh()
    other = place.client()
    again = await other.complete(await other.code(browser))
    assert (again.is_new_account, again.profile.account_id) == (False, answer.profile.account_id)
    by_token = place.world.device(client.device.email, process=1)
    assert (await by_token.sign_in()).profile.account_id == answer.profile.account_id, "either way it is one account"


async def test_every_step_on_the_way_is_closed_to_onlookers(place: Place, browser: Browser):
    client = place.client()
    begun = await client.begin()
    assert begun.expire_time.ToSeconds() == int(place.world.clock.now()) + 600
    start = await browser.get(begun.authorize_url)
    [cookie] = start.cookies
    name, _, attributes = cookie.partition("; ")
    assert name.startswith("koikoi-sign-in=")  # plain http on loopback; https and production: see test_cookie
    assert {one.strip() for one in attributes.split(";")} == {"HttpOnly", "Max-Age=600", "Path=/", "SameSite=Lax"}
    asked = query_of(start.location)
    assert asked["code_challenge_method"] == "S256"
    assert asked["redirect_uri"] == f"{place.gateway_url}/sign-in/callback"
    assert client.verifier not in start.location
    assert asked["code_challenge"] != pkce_challenge(client.verifier), "the provider's PKCE is our own"
    provider = await browser.log_in(start.location, client.device.email)
    back = await browser.get(provider.location)
    assert back.location.startswith(f"{REDIRECT_URI}?code=")
    assert "Max-Age=0" in back.cookies[0], "the cookie is forgotten"
    for page in (start, back):
        assert page.headers["Cache-Control"] == "no-store"
        assert page.headers["Referrer-Policy"] == "no-referrer"
        assert "Access-Control-Allow-Origin" not in page.headers


async def test_registered_addresses_are_taken_to_the_letter(place: Place, browser: Browser):
    for uri, begins in (
        ("https://play.example/signed-in?from=koikoi", "https://play.example/signed-in?from=koikoi&code="),
        ("com.example.app:/signed-in", "com.example.app:/signed-in?code="),
        ("http://[::1]:1/", "http://[::1]:1/?code="),
    ):
        client = place.client()
        begun = await client.begin(redirect_uri=uri)
        back = await browser.sign_in(begun.authorize_url, client.device.email)
        assert back.startswith(begins)
    for uri in (
        "", "https://play.example/signed-in", "https://play.example/signed-in?from=koikoi&x=1", "https://evil.example/",
        "HTTPS://play.example/signed-in?from=koikoi", "http://localhost:8000/", "http://127.0.0.1.evil.example/",
        "http://127.0.0.1@evil.example/", "http://127.0.0.1:80@evil.example/", "http://127.0.0.1:70000/",
        "http://127.0.0.1/#x", "http://127.0.0.1\\@evil.example/", "https://127.0.0.1/", "javascript:alert(1)",
        "http://127.0.0.1/a b", "http://127.0.0.1/\r\nX: y", "http://127.0.0.2/", "//evil.example", "data:text/html,x",
        "http://127.0.0.1/" + "a" * 600,
    ):  # fmt: skip
        async with Refused("REDIRECT_URI_INVALID", grpc.StatusCode.INVALID_ARGUMENT, field="redirect_uri"):
            await place.client().begin(redirect_uri=uri)
        place.world.clock.advance(4)


async def test_bad_fields_are_named(place: Place):
    client = place.client()
    for fields, reason, field in (
        ({"client_state": "short"}, "FIELD_INVALID", "client_state"),
        ({"client_state": "x" * 513}, "FIELD_INVALID", "client_state"),
        ({"client_state": "a&code=stolen-code"}, "FIELD_INVALID", "client_state"),
        ({"code_challenge": ""}, "FIELD_INVALID", "code_challenge"),
        ({"code_challenge": client.verifier}, "FIELD_INVALID", "code_challenge"),
        ({"device_key": b"x"}, "DEVICE_KEY_INVALID", "device_key"),
        ({"device_key": bytes(32)}, "DEVICE_KEY_INVALID", "device_key"),
    ):
        async with Refused(reason, field=field):
            await client.begin(**fields)
    await client.begin()
    for fields, field in (
        ({"code_verifier": "short"}, "code_verifier"),
        ({"code_verifier": "ä" * 50}, "code_verifier"),
        ({"device_signature": b""}, "device_signature"),
        ({"request_id": ""}, "request_id"),
        ({"device_name": "\u202e"}, "device_name"),
    ):
        async with Refused("FIELD_INVALID", field=field):
            await client.complete("c" * 43, **fields)


async def test_a_ticket_opens_once_and_for_ten_minutes(place: Place, browser: Browser):
    begun = await place.client().begin()
    assert (await browser.get(begun.authorize_url)).status == 303
    again = await browser.get(begun.authorize_url)
    assert (again.status, again.cookies) == (401, [])
    begun = await place.client().begin()
    place.world.clock.advance(600)
    late = await browser.get(begun.authorize_url)
    assert late.status == 401
    for page in (again, late):
        assert "もう一度サインイン" in page.text
        assert "sign in again" in page.text
        assert "script" not in page.text
        assert page.headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'sha256-")
    for ticket in ("", "x", "x" * 43, "é", "%00", "a&ticket=b", "x" * 3000):
        page = await browser.get(f"{place.gateway_url}/sign-in/start?ticket={ticket}")
        assert page.status == 401


async def test_fifty_browsers_with_one_ticket_give_one_way(place: Place):
    async with place.world.running(**redirect_settings(place.world, place.gateway_url)):
        begun = await place.client().begin()
        request = pb.StartRedirectSignInRequest(ticket=query_of(begun.authorize_url)["ticket"])
        stubs = place.world.stubs[1:]
        answers = await asyncio.gather(
            *(stubs[number % 2].StartRedirectSignIn(request) for number in range(50)), return_exceptions=True
        )
        assert sum(isinstance(answer, pb.StartRedirectSignInResponse) for answer in answers) == 1


async def test_a_sign_in_begun_in_one_browser_cannot_end_in_another(place: Place, browser: Browser):
    """Login CSRF: the attacker's way back is opened by the victim, who has no cookie or one of another sign-in."""
    async with open_browser() as attacker:
        for has_own in (False, True):
            client, victim = place.client("attacker@example.org"), place.client("victim@example.org")
            start = await attacker.get((await client.begin()).authorize_url)
            provider = await attacker.log_in(start.location, "attacker@example.org")
            if has_own:
                await browser.get((await victim.begin()).authorize_url)
            stolen = await browser.get(provider.location)
            assert stolen.status == 401
            assert "Location" not in stolen.headers
            used_up = await attacker.get(provider.location)
            assert used_up.status == 401, "whoever tried, the way back works once"


async def test_the_way_back_works_once(place: Place, browser: Browser):
    client = place.client()
    start = await browser.get((await client.begin()).authorize_url)
    cookie = start.cookies[0].partition(";")[0]
    provider = await browser.log_in(start.location, client.device.email)
    assert (await browser.get(provider.location, Cookie=cookie)).status == 303
    assert (await browser.get(provider.location, Cookie=cookie)).status == 401


async def test_what_comes_back_must_be_ours(place: Place, browser: Browser):
    callback = f"{place.gateway_url}/sign-in/callback"
    for query in (
        "",
        "code=x",
        "state=x&code=x",
        f"state={'x' * 43}&code=x",
        "error=access_denied",
        "state=%ff&code=x",
    ):
        page = await browser.get(f"{callback}?{query}")
        assert (page.status, "Location" in page.headers) == (401, False)
    client = place.client()
    start = await browser.get((await client.begin()).authorize_url)
    state = query_of(start.location)["state"]
    twice = await browser.get(f"{callback}?state={state}&state={state}&code=x")
    assert twice.status == 401
    page = await browser.get(f"{callback}?state={state}&code=made-up")
    assert query_of(page.location)["error"] == "server_error", "the provider refuses the code"


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("error=access_denied", "access_denied"),
        ("error=temporarily_unavailable", "temporarily_unavailable"),
        ("error=%3Cscript%3E", "server_error"),
        ("error=access_denied&iss=https%3A%2F%2Fevil.example", "server_error"),
        ("code=x&iss=https%3A%2F%2Fevil.example", "server_error"),  # mix-up: the code is not shown to our provider
        ("code=a&code=b", "server_error"),
        ("", "server_error"),
    ],
)
async def test_a_refusal_is_told_to_the_client(place: Place, browser: Browser, query: str, error: str):
    client = place.client()
    start = await browser.get((await client.begin()).authorize_url)
    state = query_of(start.location)["state"]
    page = await browser.get(f"{place.gateway_url}/sign-in/callback?state={state}&{query}")
    assert page.location.startswith(f"{REDIRECT_URI}?error=")
    back = query_of(page.location)
    assert (back["error"], back["state"], back["iss"]) == (error, client.state, client.begun.issuer)
    assert "script%3E" not in page.location


@pytest.mark.parametrize(
    ("faults", "error"),
    [
        *((Faults(token=fault), "temporarily_unavailable") for fault in ("outage", "redirect", "oversize", "garbage")),
        *((Faults(token=fault), "temporarily_unavailable") for fault in ("hang_up", "invalid_client")),
        (Faults(token_delay_s=30), "temporarily_unavailable"),
        (Faults(key_set="outage"), "temporarily_unavailable"),
        *((Faults(token=fault), "server_error") for fault in ("refused", "no_id_token")),
        *((Faults(signing=fault), "server_error") for fault in ("none", "hmac", "foreign_key", "unknown_key")),
        (Faults(claims={"nonce": "another"}), "server_error"),
        (Faults(claims={"nonce": None}), "server_error"),
        (Faults(claims={"aud": "another-client"}), "server_error"),
        (Faults(claims={"iss": "https://evil.example"}), "server_error"),
    ],
    ids=repr,
)
async def test_a_failing_provider_is_told_to_the_client(place: Place, browser: Browser, faults: Faults, error: str):
    client = place.client()
    begun = await client.begin()
    place.world.provider.faults = faults
    back = query_of(await browser.sign_in(begun.authorize_url, client.device.email))
    assert back["error"] == error
    place.world.provider.faults = Faults()
    place.world.clock.advance(15)
    assert (await client.complete(await client.code(browser))).is_new_account


async def test_a_code_is_worth_nothing_without_verifier_and_key(place: Place, browser: Browser):
    client, thief = place.client(), place.client("thief@example.org")
    code = await client.code(browser)
    thief.begun = client.begun
    for stolen, reason in (
        (thief.completion(code), "SIGN_IN_CODE_INVALID"),
        (thief.completion(code, code_verifier=client.verifier), "SIGNATURE_INVALID"),
        (client.completion(code, code_verifier=pkce_challenge(client.verifier)), "SIGN_IN_CODE_INVALID"),
        (client.completion(code, device_signature=bytes(64)), "SIGNATURE_INVALID"),
        (client.completion(code[:-1] + ("A" if code[-1] != "A" else "B")), "SIGN_IN_CODE_INVALID"),
    ):
        async with Refused(reason, grpc.StatusCode.UNAUTHENTICATED):
            await client.device.stub.CompleteRedirectSignIn(stolen)
    assert (await client.complete(code)).is_new_account, "no thief used it up"


async def test_a_code_of_another_sign_in_cannot_be_injected(place: Place, browser: Browser):
    victim, attacker = place.client("victim@example.org"), place.client("attacker@example.org")
    theirs = await attacker.code(browser)
    await victim.begin()
    async with Refused("SIGN_IN_CODE_INVALID"):
        await victim.complete(theirs)
    own = place.client("victim@example.org")
    code = await own.code(browser)
    await victim.begin()
    async with Refused("SIGN_IN_CODE_INVALID"):
        await victim.complete(code)


async def test_a_code_lives_a_minute_and_is_good_for_one_session(place: Place, browser: Browser):
    client = place.client()
    code = await client.code(browser)
    place.world.clock.advance(60)
    async with Refused("SIGN_IN_CODE_INVALID"):
        await client.complete(code)
    code = await client.code(browser)
    place.world.clock.advance(59)
    request = client.completion(code)
    first = await client.device.stub.CompleteRedirectSignIn(request)
    place.world.clock.advance(30)
    again = await client.device.stub.CompleteRedirectSignIn(request)
    assert again.session.refresh_token == first.session.refresh_token
    assert (again.profile, again.is_new_account) == (first.profile, True)
    async with Refused("SIGN_IN_CODE_INVALID"):
        await client.complete(code)
    async with Refused("REQUEST_ID_REUSED"):
        await client.complete(code, request_id=request.request_id, device_name="another")
    place.world.clock.advance(1)
    async with Refused("SIGN_IN_CODE_INVALID"):
        await client.device.stub.CompleteRedirectSignIn(request)


async def test_fifty_completions_of_one_code_give_one_session(place: Place, browser: Browser):
    rates = {"device_per_minute": "100", "account_per_minute": "100"}
    async with place.world.running(**redirect_settings(place.world, place.gateway_url), **rates):
        client = place.client()
        code = await client.code(browser)
        stub = place.world.stubs[2]
        answers = await asyncio.gather(
            *(stub.CompleteRedirectSignIn(client.completion(code)) for _ in range(50)), return_exceptions=True
        )
        assert sum(isinstance(answer, pb.CompleteRedirectSignInResponse) for answer in answers) == 1


async def test_the_cookie_is_the_host_one_behind_https(world: World, browser: Browser):
    """The browser would speak https with a proxy before the gateway; here we look at what the gateway says."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        auth_address = f"127.0.0.1:{listener.getsockname()[1]}"
    settings = redirect_settings(world, "https://play.example")
    async with (
        running_app("gateway", auth_target=auth_address) as gateway,
        world.running(grpc_address=auth_address, **settings),
    ):
        place = Place(world, f"http://127.0.0.1:{gateway.ports['http']}")
        client = place.client()
        begun = await client.begin()
        assert begun.authorize_url.startswith("https://play.example/sign-in/start?ticket=")
        ticket = query_of(begun.authorize_url)["ticket"]
        start = await browser.get(f"{place.gateway_url}/sign-in/start?ticket={ticket}")
        cookie, *attributes = (part.strip() for part in start.cookies[0].split(";"))
        assert cookie.startswith("__Host-koikoi-sign-in=")
        assert {"Secure", "HttpOnly", "Path=/", "SameSite=Lax"} <= set(attributes)
        assert not any(one.lower().startswith("domain") for one in attributes)
        state = query_of(start.location)["state"]
        url = f"{place.gateway_url}/sign-in/callback?state={state}&error=access_denied"
        back = await browser.get(url, Cookie=f"koikoi-sign-in=x; {cookie}")
        assert query_of(back.location)["error"] == "access_denied"


async def test_a_production_gateway_reads_and_sets_the_host_cookie_only(world: World, browser: Browser):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        auth_address = f"127.0.0.1:{listener.getsockname()[1]}"
    async with (
        running_app("gateway", auth_target=auth_address, environment="production") as gateway,
        world.running(grpc_address=auth_address, **redirect_settings(world, "http://127.0.0.1:1")),
    ):
        url = f"http://127.0.0.1:{gateway.ports['http']}"
        begun = await Place(world, url).client().begin()
        ticket = query_of(begun.authorize_url)["ticket"]
        start = await browser.get(f"{url}/sign-in/start?ticket={ticket}")
        cookie = start.cookies[0].partition(";")[0]
        assert cookie.startswith("__Host-koikoi-sign-in=")
        assert "Secure" in start.cookies[0]
        state = query_of(start.location)["state"]
        plain = await browser.get(
            f"{url}/sign-in/callback?state={state}&error=x", Cookie=cookie.removeprefix("__Host-")
        )
        assert plain.status == 401


async def test_a_look_ahead_uses_nothing_up(place: Place, browser: Browser):
    begun = await place.client().begin()
    head = await browser._send("HEAD", begun.authorize_url)
    assert head.status in {404, 405}
    assert (await browser.get(begun.authorize_url)).status == 303


async def test_pages_are_limited_per_address(place: Place, browser: Browser):
    ticket = "x" * 43
    statuses = [(await browser.get(f"{place.gateway_url}/sign-in/start?ticket={ticket}")).status for _ in range(121)]
    assert statuses == [401] * 120 + [429]
    callback = f"{place.gateway_url}/sign-in/callback?state={ticket}&code=x"
    page = await browser.get(callback)
    assert page.status == 401, "counted by page"
    page = await browser.get(f"{place.gateway_url}/sign-in/start?ticket={ticket}")
    assert int(page.headers["Retry-After"]) <= 60
    assert "Wait a minute" in page.text


async def test_it_is_off_without_a_public_address(world: World):
    request = pb.BeginRedirectSignInRequest(device_key=world.device().public_key)
    async with Refused("REDIRECT_SIGN_IN_OFF", grpc.StatusCode.FAILED_PRECONDITION):
        await world.stub.BeginRedirectSignIn(request)


async def test_pages_say_so_when_auth_is_away(browser: Browser):
    async with running_app("gateway", auth_target="127.0.0.1:1") as gateway:
        page = await browser.get(f"http://127.0.0.1:{gateway.ports['http']}/sign-in/start?ticket={'x' * 43}")
        assert page.status == 503
        assert "いまはサインインできません" in page.text


async def test_nothing_in_redis_opens_a_session(place: Place, browser: Browser):
    client = place.client()
    begun = await client.begin()
    stored = await _everything(place.world)
    start = await browser.get(begun.authorize_url)
    secrets = [query_of(begun.authorize_url)["ticket"], query_of(start.location)["state"]]
    secrets.append(start.cookies[0].partition(";")[0].partition("=")[2])
    stored += await _everything(place.world)
    provider = await browser.log_in(start.location, client.device.email)
    secrets.append(query_of((await browser.get(provider.location)).location)["code"])
    stored += await _everything(place.world)
    assert all(kind in stored for kind in ("ticket", "journey", "grant"))
    assert [one for one in secrets if one in stored] == []
    assert client.verifier not in stored


async def _everything(world: World) -> str:
    async with Redis.from_url(world.environ["KOIKOI_AUTH_REDIS_URL"]) as redis:
        keys = [key async for key in redis.scan_iter("auth:redirect:*")]
        texts = [await redis.get(key) for key in keys]
    return b" ".join([*keys, *texts]).decode()
