"""`make run`: everything on this machine, a self-check, then serving until Ctrl-C."""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

from services.kit.settings import SettingsError
from tools.embedded import EmbeddedError
from tools.plan import Plan, PlanError, taken_port
from tools.self_check import SelfCheckError, play_one_match
from tools.stack import ROOT, Stack, StackError

__all__ = ["main"]


def main() -> None:
    """Run until Ctrl-C or SIGTERM; what keeps it from starting is one sentence on stderr and exit status 1.

    Data is kept in `.run`, or where KOIKOI_RUN_DIRECTORY says.
    """
    try:
        asyncio.run(_run(Path(os.environ.get("KOIKOI_RUN_DIRECTORY", ROOT / ".run"))))
    except (EmbeddedError, PlanError, SelfCheckError, SettingsError, StackError) as error:
        sys.exit(f"\n{error}")
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.exit(130)


async def _run(directory: Path) -> None:
    started = time.monotonic()

    def say(line: str) -> None:
        print(f"[{time.monotonic() - started:5.1f} s] {line}", flush=True)

    task = asyncio.current_task()
    assert task is not None
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        if not serving:
            task.cancel()  # while it starts: unwind, which stops what runs already
        stop.set()

    serving = False
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, on_signal)
    stack = Stack(directory, say=say)
    plan = stack.plan
    if (sentence := taken_port(plan)) is not None:
        raise PlanError(sentence)
    async with stack:
        say("playing one encrypted match between two bots, through the public API")
        say(await play_one_match(plan, directory))
        serving = True
        stack.watch()
        print(_addresses(plan, directory), flush=True)
        await stop.wait()
        print("\nstopping", flush=True)


def _addresses(plan: Plan, directory: Path) -> str:
    at = plan.addresses
    grpc = ", ".join(
        f"{name} {at[f'KOIKOI_{name.upper()}_GRPC_ADDRESS']}" for name in ("auth", "lobby", "match", "ranking")
    )
    metrics = ", ".join(
        f"{name} {at[f'KOIKOI_{name.upper()}_METRICS_ADDRESS']}"
        for name in ("auth", "lobby", "match", "ranking", "gateway")
    )
    return f"""
Koi-Koi Online is running.

  public API   {plan.gateway_url}
  relay        {plan.websocket_url}   {plan.grpc_url}
  sign-in      {plan.provider_url}   (local OpenID provider, for development only)
  gRPC         {grpc}
  metrics      {metrics}
  data, logs   {directory}

Ctrl-C stops everything; data stays for the next start."""


if __name__ == "__main__":
    main()
