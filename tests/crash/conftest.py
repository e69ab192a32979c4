"""The running system whose parts are killed, and the seeds to kill by."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.scenario import Fault
from tools.embedded import Valkey
from tools.plan import free_ports
from tools.stack import Stack

# What limits strangers has tests of its own; here one machine signs in more people than it may.
SETTINGS = {
    "KOIKOI_MATCH_JOINS_PER_S": "100000",
    "KOIKOI_AUTH_ADDRESS_PER_MINUTE": "100000",
    "KOIKOI_AUTH_DEVICE_PER_MINUTE": "1000",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" not in metafunc.fixturenames:
        return
    one = os.environ.get("KOIKOI_CRASH_SEED")
    seeds = [int(one)] if one else list(range(int(os.environ.get("KOIKOI_CRASH_SEEDS") or len(Fault))))
    marks = [pytest.mark.xdist_group(f"crash-{seed % 2}") for seed in seeds]
    metafunc.parametrize("seed", [pytest.param(seed, marks=mark) for seed, mark in zip(seeds, marks, strict=True)])


@pytest.fixture(scope="session")
def stack_directory() -> Iterator[Path]:
    # Not pytest's own temporary folder: its names are too long for unix sockets.
    directory = Path(tempfile.mkdtemp(prefix="koikoi-crash-"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def stack(stack_directory: Path) -> Iterator[Stack]:
    stack = Stack(stack_directory, ports=free_ports(), durable=False, settings=SETTINGS)
    stack.valkey = Valkey(stack.directory)  # keeps its data over a kill, by an append-only file
    try:
        asyncio.run(stack.__aenter__())
        yield stack
    finally:
        asyncio.run(stack.close())
