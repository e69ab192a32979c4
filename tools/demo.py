"""`make demo`: everything on free ports, one house match over each door, a line of JSON at the end.

Exit status 0 only if both results were accepted and rated.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from koikoi.lobby.v1 import lobby_service_pb2 as lobby

from tools.bots import Played, play_one_match
from tools.embedded import EmbeddedError
from tools.plan import PlanError, free_ports
from tools.stack import Stack, StackError

__all__ = ["main"]

RULES = lobby.Rules(preset="house", rounds=6)


def main() -> None:
    """Run the demo; what keeps it from starting is one sentence on stderr and exit status 1."""
    try:
        sys.exit(0 if asyncio.run(_run()) else 1)
    except (EmbeddedError, PlanError, StackError) as error:
        sys.exit(f"\n{error}")
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.exit(130)


async def _run() -> bool:
    started = time.monotonic()

    def say(line: str) -> None:
        print(f"[{time.monotonic() - started:5.1f} s] {line}", flush=True)

    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    with tempfile.TemporaryDirectory(prefix="koikoi-demo-") as name:
        directory = Path(name)
        async with Stack(directory / "stack", ports=free_ports(), durable=False, say=say) as stack:
            matches: list[dict[str, Any]] = []
            for transport, url in (("websocket", stack.plan.websocket_url), ("grpc", stack.plan.grpc_url)):
                say(f"a match over {transport}")
                played = await play_one_match(
                    stack.plan, directory / transport, url, rules=RULES, seed=len(matches), say=say
                )
                matches.append(_describe(transport, played))
                say(f"outcome: {played.outcome}; {_ratings(played)}")
            say("stopping")
    is_ok = all(match["accepted"] and match["rated"] for match in matches)
    print(json.dumps({"matches": matches, "ok": is_ok}), flush=True)
    return is_ok


def _describe(transport: str, played: Played) -> dict[str, Any]:
    receipt = played.receipt
    return {
        "transport": transport,
        "rounds": receipt.rounds if receipt else 0,
        "points": [seat.points for seat in receipt.seats] if receipt else [],
        "accepted": receipt is not None,
        "rated": receipt is not None and receipt.is_rated,
        "deal_ms": played.deal_ms,
        "move_ms_p50": played.move_ms_p50,
    }


def _ratings(played: Played) -> str:
    if played.receipt is None:
        return "no result was recorded"
    changes = (
        f"{seat.display_name} {seat.rating_before:.0f} -> {seat.rating_after:.0f}" for seat in played.receipt.seats
    )
    return "ratings: " + ", ".join(changes)


if __name__ == "__main__":
    main()
