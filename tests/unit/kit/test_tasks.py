"""Background work of a service: it ends when the service does, and its death is seen."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from structlog.testing import capture_logs

from services.kit.app import end_task, start_task


async def test_work_that_swallows_a_cancellation_is_cancelled_again():
    swallowed = []

    async def stubborn() -> None:
        while len(swallowed) < 2:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                swallowed.append(True)
        await asyncio.sleep(60)

    async with asyncio.timeout(10), AsyncExitStack() as stack:
        start_task(stack, stubborn())
        await asyncio.sleep(0)
    assert len(swallowed) == 2


async def test_a_death_is_logged_and_does_not_hinder_the_end():
    async def faulty() -> None:
        raise KeyError("a secret")

    with capture_logs() as lines:
        async with AsyncExitStack() as stack:
            start_task(stack, faulty())
            await asyncio.sleep(0.01)
    (line,) = [line for line in lines if line["event"] == "task.died"]
    assert line["error"] == "KeyError"
    assert "secret" not in str(line["error"])


async def test_ending_a_task_that_failed_raises_nothing():
    async def fail() -> None:
        raise ValueError

    task = asyncio.get_running_loop().create_task(fail())
    await asyncio.wait([task])
    await end_task(task)
    with pytest.raises(ValueError):
        await task
