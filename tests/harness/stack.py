"""The whole system for a test module: real stores, local OpenID provider, all services, as their own processes."""

import asyncio
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tools.plan import free_ports
from tools.stack import Stack


@contextmanager
def running_stack(settings: Mapping[str, str] | None = None) -> Iterator[Stack]:
    """Start everything on free ports in a directory of its own; leaving stops it and removes what it stored."""
    # Not pytest's own temporary folder: its names are too long for unix sockets.
    directory = Path(tempfile.mkdtemp(prefix="koikoi-stack-"))
    stack = Stack(directory, ports=free_ports(), durable=False, settings=settings)
    try:
        asyncio.run(stack.__aenter__())
        yield stack
    finally:
        asyncio.run(stack.close())
        shutil.rmtree(directory, ignore_errors=True)
