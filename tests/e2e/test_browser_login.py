"""`koikoi login` in a browser, and `koikoi devices`, as people use them."""

from __future__ import annotations

import asyncio
import re
import signal

import pytest

from tests.e2e.test_cli import Run, done, koikoi, refused
from tests.harness.browser import open_browser
from tools.stack import Stack

pytestmark = pytest.mark.xdist_group("e2e")
__all__ = ["koikoi"]
URL = r"http://127\.0\.0\.1:\d+/sign-in/start\?ticket=[\w-]{43}"


def log_in(koikoi: Run, device: str, email: str, *options: str) -> str:
    """Run `koikoi login`, go the way of the person at the browser, and give what the command said."""

    async def browse(url: str) -> str:
        async with open_browser() as browser:
            back = await browser.sign_in(url, email)
            page = await browser.get(back)
            assert page.status == 200
            return page.text

    command = koikoi(device, "login", "--no-browser", *options)
    url = command.read_until(URL)[0]
    assert "close this window" in asyncio.run(browse(url))
    return done(command)


def test_signing_in_with_a_browser_and_looking_after_ones_devices(koikoi: Run, stack: Stack) -> None:
    assert "signed in as Momiji" in log_in(
        koikoi, "momiji", "momiji@example.test", "--name", "Momiji", "--device-name", "書斎"
    )
    assert "signed in as Momiji" in log_in(koikoi, "phone", "momiji@example.test", "--device-name", "phone")
    lines = done(koikoi("momiji", "devices")).splitlines()
    assert re.match(r"[0-9a-f-]{36}  書斎  \(this device; since \d{4}-\d\d-\d\d, last used", lines[0])
    assert "  phone  (since" in lines[1]
    phone_id = lines[1][:8]
    assert "  my phone  (" in done(koikoi("momiji", "devices", "rename", phone_id, "my phone"))
    assert done(koikoi("momiji", "devices", "revoke", phone_id)).strip() == "signed out"
    assert "my phone  (signed out" in done(koikoi("momiji", "devices", "list"))
    assert done(koikoi("momiji", "devices", "revoke", phone_id)).strip() == "it was signed out already"
    assert "signed out" in refused(koikoi("phone", "devices"))
    assert "no device of yours" in done(koikoi("momiji", "devices", "revoke", "zzz"), 2)
    assert done(koikoi("momiji", "devices", "revoke", lines[0][:36])).strip() == "signed out"
    assert "nobody is signed in" in refused(koikoi("momiji", "devices"))


def test_nobody_comes_back_from_the_browser(koikoi: Run) -> None:
    assert "nobody signed in within 1 s" in refused(koikoi("kiku", "login", "--no-browser", "--wait", "1"))
    command = koikoi("kiku", "login", "--no-browser")
    command.read_until(URL)
    command.process.send_signal(signal.SIGINT)
    assert "Traceback" not in done(command, 130)


def test_a_browser_that_cannot_be_opened_is_no_fault(koikoi: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROWSER", "/nonexistent/browser")
    command = koikoi("kiku", "login", "--wait", "2")
    command.read_until(URL)
    assert "nobody signed in within 2 s" in refused(command)
