"""The whole system for end-to-end tests: real stores, local OpenID provider, all services, as their own processes."""

import asyncio
import re
from collections.abc import Iterator

import pytest

from tests.e2e.cheaters import Opponents
from tests.harness.stack import running_stack
from tools.bots import signed_in_bot
from tools.stack import Stack


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """The running system of this test process; a test that stops a part of it starts it again."""
    # A fast machine dials more often than the relay allows strangers; the cap itself has tests of its own.
    with running_stack({"KOIKOI_MATCH_JOINS_PER_S": "100000"}) as stack:
        yield stack


@pytest.fixture(scope="session")
def opponents(stack: Stack) -> list[Opponents]:
    """Pairs of signed-in devices; the first of each has the smaller key.

    Three, so that no account opens more rooms in a minute than it may.
    """

    async def sign_in(number: int) -> Opponents:
        found = []
        for name in ("tsuru", "kame"):
            directory = stack.directory / "players" / f"{name}-{number}"
            async with signed_in_bot(stack.plan, directory, f"{name}-{number}") as bot:
                found.append((bot.account.key.public, directory))
        (_, first), (_, second) = sorted(found)
        return Opponents(stack.plan, (first, second))

    async def sign_all_in() -> list[Opponents]:
        return [await sign_in(number) for number in range(3)]

    return asyncio.run(sign_all_in())


@pytest.fixture
def no_fault(stack: Stack) -> Iterator[None]:
    """Whatever a test sends, no service meets an error that it did not expect."""
    names = ("auth", "lobby", "match", "ranking", "gateway")
    sizes = {name: stack.log(name).stat().st_size for name in names}
    yield
    for name, size in sizes.items():
        new = stack.log(name).read_bytes()[size:]
        assert b"Traceback" not in new and not re.search(rb'"level": ?"(error|critical)"', new), (name, new)
