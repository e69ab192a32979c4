"""What a seed means: which thing is struck, when, how long it stays away, and what players may then see.

One seed is one life of two devices: sign in, open and join a room, play, hand the result in; over again until every
stroke of the scenario has fallen. `page()` is the table of docs/crash-matrix.md.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import Enum


class Fault(Enum):
    """What is killed; the value is how the page calls it."""

    CLIENT_A = "client A (host)"
    CLIENT_B = "client B (guest)"
    MATCH = "match"
    LOBBY = "lobby"
    AUTH = "auth"
    RANKING = "ranking"
    GATEWAY = "gateway"
    REDIS_KEEPS = "Redis, keeps its data"
    REDIS_FALLS_BACK = "Redis, loses its tail"
    REDIS_FORGETS = "Redis, loses everything"
    POSTGRES = "Postgres"


class Phase(Enum):
    """Where in a life; the value is how the page calls it."""

    SIGN_IN = "sign-in"
    ROOM = "room creation"
    JOIN = "joining"
    HELLO = "HELLO"
    COIN = "coin"
    S1 = "S1"
    S2 = "S2"
    S3 = "S3"
    PLAY = "play"
    AUDIT = "audit"
    SIGNING = "result signing"
    CLOSE = "closing"
    SUBMIT = "submission"


class Result(Enum):
    """What a player may see of a fault."""

    NOTHING = "nothing"
    """At most a wait: the client repeats calls and connects again by itself."""
    AGAIN = "again"
    """A refusal that docs/errors.md marks `again: yes`; the same command works a moment later."""
    RESUMED = "resumed"
    """A device that died goes on from its disk."""
    ANEW = "anew"
    """A sign-in under way or an open room is begun anew (CHALLENGE_INVALID; ROOM_NOT_FOUND)."""
    DESERTED = "deserted"
    """One device has a contract that the other will never get: the match never starts, charged to nobody."""


GROUPS = (
    (Phase.SIGN_IN,),
    (Phase.ROOM, Phase.JOIN),
    (Phase.HELLO, Phase.COIN),
    (Phase.S1, Phase.S2, Phase.S3),
    (Phase.PLAY,),
    (Phase.AUDIT,),
    (Phase.SIGNING, Phase.CLOSE),
    (Phase.SUBMIT,),
)
"""The columns of the matrix: with the first eleven seeds every fault strikes in each of them."""
LONGEST_PAUSE_S = 3.0
STAGES = ("before", "during", "after")


@dataclass(frozen=True)
class Stroke:
    """One kill. `moment` counts the calls or envelopes of the phase, `stage` is where in that one it falls.

    `delay_s` is how long after its beginning `during` is, `lag` how many calls or envelopes a store falls back.
    """

    fault: Fault
    phase: Phase
    moment: int
    stage: str
    delay_s: float
    pause_s: float
    lag: int
    is_graceful: bool


def strokes_of(seed: int) -> list[Stroke]:
    """Give a seed's strokes, one for each group of phases.

    Seeds 0-10 hold one fault each, and so does every second eleven after them; those between mix the faults.
    """
    rng = random.Random(seed)
    faults = list(Fault)
    own = faults[seed % len(faults)]
    is_mixed = seed // len(faults) % 2 == 1
    strokes = []
    for group in GROUPS:
        strokes.append(
            Stroke(
                fault=rng.choice(faults) if is_mixed else own,
                phase=rng.choice(group),
                moment=rng.choice([1, 1, 2, 3]) if group[0] in (Phase.PLAY, Phase.AUDIT, Phase.S1) else 1,
                stage=rng.choice(STAGES),
                delay_s=rng.uniform(0.0, 0.015),
                pause_s=LONGEST_PAUSE_S * rng.random() ** 4,  # mostly short: that is when a restart meets a retry
                lag=rng.randint(1, 6),
                is_graceful=rng.random() < 0.3,
            )
        )
    return strokes


_SETTING_UP = (Phase.SIGN_IN, Phase.ROOM, Phase.JOIN)
_STORES_THAT_LOSE = (Fault.REDIS_FALLS_BACK, Fault.REDIS_FORGETS)


def results_of(fault: Fault, phase: Phase) -> frozenset[Result]:
    """Give everything that a player may see in this phase of this fault."""
    results = {Result.NOTHING}
    if fault in (Fault.CLIENT_A, Fault.CLIENT_B):
        results.add(Result.RESUMED)
        if phase in (Phase.ROOM, Phase.JOIN):
            results.add(Result.ANEW)  # whoever comes back as host opens another room
            results.add(Result.DESERTED)  # and may just have missed its guest
        return frozenset(results)
    if phase in _SETTING_UP or phase is Phase.SUBMIT:
        results.add(Result.AGAIN)
    if fault in _STORES_THAT_LOSE:
        if phase in _SETTING_UP:
            results.add(Result.ANEW)
        if phase in (Phase.ROOM, Phase.JOIN):
            results.add(Result.DESERTED)
    return frozenset(results)


def page() -> str:
    """Give the table of documented results as Markdown."""
    head = "| struck | " + " | ".join(phase.value for phase in Phase) + " |"
    rows = [head, "|" + "---|" * (len(Phase) + 1)]
    for fault in Fault:
        cells = []
        for phase in Phase:
            found = results_of(fault, phase)
            words = [result.value for result in Result if result in found]
            cells.append(", ".join(words[1:]) or words[0])
        rows.append(f"| {fault.value} | " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(page(), end="")
