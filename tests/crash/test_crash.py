"""The crash matrix (docs/crash-matrix.md): whatever is struck, whenever, a match ends once and as documented."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from tests.crash.evidence import check
from tests.crash.players import MOST_MATCHES, RATED, SHORT, Player, Table
from tests.crash.scenario import GROUPS, Fault, Phase, page, strokes_of
from tests.crash.strokes import CLIENTS, Striker
from tools.stack import Stack

LIFE_LIMIT_S = 100.0
SERVICES = ("auth", "lobby", "match", "ranking", "gateway")
PAGE = Path(__file__).parents[2] / "docs" / "crash-matrix.md"


async def live(stack: Stack, directory: Path, seed: int) -> str:
    """Let two devices live through a seed's strokes; gives what happened, checked."""
    strokes = strokes_of(seed)
    striker = Striker(stack, strokes)
    table = Table(striker, SHORT if seed % 2 else RATED)
    players = [
        Player(role, f"{name}{seed}", stack, directory / role, table)
        for role, name in (("host", "Ume"), ("guest", "Fuji"))
    ]
    try:
        async with asyncio.timeout(LIFE_LIMIT_S), asyncio.TaskGroup() as lives:
            for player in players:
                lives.create_task(player.run())
    except TimeoutError:
        where = [(player.role, player.playing, player.seen) for player in players]
        raise AssertionError(f"players did not come to an end: {where}, struck: {striker.fallen}") from None
    finally:
        await striker.settle()
    assert striker.is_done, f"{MOST_MATCHES} matches passed and some strokes did not fall"
    for player in players:
        assert player.deaths == sum(CLIENTS.get(stroke.fault) == player.role for stroke in strokes)
    await check(stack, players, striker.fallen, is_rated=table.rules == RATED)
    return "; ".join(f"{player.role} saw {player.seen}" for player in players)


def test_life(stack: Stack, tmp_path: Path, seed: int) -> None:
    """One seed: eight strokes, one in each group of phases; see scenario.py."""
    sizes = {name: stack.log(name).stat().st_size for name in SERVICES}
    try:
        print(asyncio.run(live(stack, tmp_path, seed)))
        for name, size in sizes.items():
            new = stack.log(name).read_bytes()[size:]
            assert b"Traceback" not in new and not re.search(rb'"level": ?"critical"', new), (name, new[-3000:])
    except BaseException:
        print("the strokes:", *strokes_of(seed), f"once more: make test-crash SEED={seed}", sep="\n  ")
        raise


def test_the_first_seeds_strike_every_group_of_phases_with_every_fault() -> None:
    struck = {(stroke.fault, stroke.phase) for seed in range(len(Fault)) for stroke in strokes_of(seed)}
    assert all(any((fault, phase) in struck for phase in group) for fault in Fault for group in GROUPS)
    later = {(stroke.fault, stroke.phase) for seed in range(200) for stroke in strokes_of(seed)}
    assert later == {(fault, phase) for fault in Fault for phase in Phase}


def test_the_page_holds_the_table() -> None:
    """`python -m tests.crash.scenario` prints what belongs there."""
    assert page() in PAGE.read_text(encoding="utf-8")
