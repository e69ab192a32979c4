"""No secret, token, key or name of a person in logs, metrics or errors."""

import io
import logging
from collections.abc import Iterator
from typing import Any

import aiohttp
import grpc
import pytest
import structlog
from koikoi.auth.v1 import auth_service_pb2 as pb

from services.kit import log
from tests.harness.browser import Browser, query_of
from tests.integration.auth.device import base64url
from tests.integration.auth.redirecting import Place
from tests.integration.auth.world import CLIENT_SECRET, World
from tools.oidc_provider import Faults


@pytest.fixture
def log_lines() -> Iterator[io.StringIO]:
    """Everything auth and its libraries say, at the finest level."""
    stream = io.StringIO()
    root = logging.getLogger()
    before = root.handlers[:], root.level
    log.configure("auth", {"KOIKOI_LOG_LEVEL": "debug"}, stream)
    root.setLevel(logging.DEBUG)
    yield stream
    structlog.reset_defaults()
    root.handlers[:], _ = before
    root.setLevel(before[1])


async def test_nothing_secret_is_written_anywhere(world: World, log_lines: io.StringIO):
    device = world.device("secret-person@example.org")
    secrets: dict[str, str | bytes] = {"mail": device.email, "private key": bytes(device.key), "key": device.public_key}
    refusals: list[str] = []

    async def refused(call: Any) -> None:
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await call
        refusals.append(f"{refusal.value.details()} {refusal.value.trailing_metadata()}")

    begun = await device.begin()
    secrets |= {"challenge": begun.challenge, "nonce": begun.nonce}
    request = device.sign_in_request(begun, display_name="ひみつの名", device_name="ひみつの端末")
    secrets |= {"id token": request.id_token, "signature": request.device_signature}
    secrets |= {"display name": "ひみつの名", "device name": "ひみつの端末", "hint": "secret-person"}
    for field, value in (
        ("display_name", "ひみつの名\u202e"),
        ("id_token", request.id_token[:-9]),
        ("challenge", bytes(32)),
    ):
        await refused(device.stub.SignIn(device.sign_in_request(begun, **{field: value})))
    world.provider.faults = Faults(signing="foreign_key")
    await refused(device.stub.SignIn(device.sign_in_request(begun)))
    world.provider.faults = Faults()
    answer = await device.stub.SignIn(request)
    device.session, device.account_id = answer.session, answer.profile.account_id
    secrets |= {"access token": answer.session.access_token, "refresh token": answer.session.refresh_token}
    await device.refresh()
    secrets |= {"access token 2": device.session.access_token, "refresh token 2": device.session.refresh_token}
    unsigned = pb.RefreshSessionRequest(refresh_token=device.session.refresh_token, device_signature=bytes(64))
    await refused(device.stub.RefreshSession(unsigned))
    world.clock.advance(31)
    await refused(device.stub.RefreshSession(device.refresh_request(answer.session.refresh_token)))
    bad = pb.GetProfileRequest()
    await refused(device.stub.GetProfile(bad, metadata=[("authorization", f"Bearer {request.id_token}")]))
    await device.profile()
    await device.sign_in()
    await device.update_profile(display_name="べつの名")
    await device.sign_out()

    url = f"http://127.0.0.1:{world.app.ports['metrics']}/metrics"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        metrics = await response.text()
    assert 'koikoi_auth_rpcs_total{method="SignIn",outcome="OK"} 2.0' in metrics
    written = log_lines.getvalue()
    assert written.count('"method": "SignIn"') == 6
    assert written.count('"event": "auth.refresh.unsigned"') == 1
    assert written.count('"event": "auth.refresh.reused"') == 1
    everything = "\n".join([written, metrics, *refusals])
    log.get().info("planted", value=request.id_token[200:240], key=device.public_key.hex())
    planted = log_lines.getvalue()
    assert _leaks({"id token": request.id_token, "key": device.public_key}, planted) == ["id token", "key"]
    assert _leaks({**secrets, "other name": "べつの名"}, everything) == []


async def test_nothing_of_a_redirect_sign_in_is_written_anywhere(
    place: Place, browser: Browser, log_lines: io.StringIO
):
    client = place.client("secret-person@example.org")
    begun = await client.begin()
    start = await browser.get(begun.authorize_url)
    provider = await browser.log_in(start.location, client.device.email)
    back = await browser.get(provider.location)
    again = await browser.get(provider.location)
    code, asked = query_of(back.location)["code"], query_of(start.location)
    wrong = client.completion(code, device_signature=bytes(64))
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await client.device.stub.CompleteRedirectSignIn(wrong)
    answer = await client.complete(code, device_name="ひみつの端末")
    secrets: dict[str, str | bytes] = {
        "ticket": query_of(begun.authorize_url)["ticket"],
        "challenge": begun.challenge,
        "client state": client.state,
        "state": asked["state"],
        "nonce": asked["nonce"],
        "cookie": start.cookies[0].partition(";")[0].partition("=")[2],
        "provider code": query_of(provider.location)["code"],
        "code": code,
        "verifier": client.verifier,
        "client secret": CLIENT_SECRET,
        "refresh token": answer.session.refresh_token,
        "hint": "secret-person",
        "device name": "ひみつの端末",
    }
    written = log_lines.getvalue()
    assert '"method": "CompleteRedirectSignIn"' in written
    assert '"page": "SignInCallback"' in written
    refusals = f"{refusal.value.details()} {refusal.value.trailing_metadata()} {again.text}"
    assert _leaks(secrets, written + refusals) == []


def _leaks(secrets: dict[str, str | bytes], text: str) -> list[str]:
    """Return the names of secrets of which the text holds a telling part, as text, hex or base64."""
    found = []
    for name, secret in secrets.items():
        forms = [secret] if isinstance(secret, str) else [secret.hex(), base64url(secret), repr(secret)[2:-1]]
        pieces = [form[start : start + 24] for form in forms for start in range(0, max(1, len(form) - 23), 8)]
        if name.startswith(("access token", "id token")):
            pieces = [piece for piece in pieces if piece not in secret[: secret.index(".")]]  # type: ignore[operator, index]
        if any(piece in text for piece in pieces):
            found.append(name)
    return found
