"""The whole system for end-to-end tests: real stores, local OpenID provider, all services, as their own processes."""

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.plan import free_ports
from tools.stack import Stack


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """The running system of this test process; a test that stops a part of it starts it again."""
    # Not pytest's own temporary folder: its names are too long for unix sockets.
    directory = Path(tempfile.mkdtemp(prefix="koikoi-e2e-"))
    stack = Stack(directory, ports=free_ports(), durable=False)
    try:
        asyncio.run(stack.__aenter__())
        yield stack
    finally:
        asyncio.run(stack.close())
        shutil.rmtree(directory, ignore_errors=True)
