"""Measures `koikoi referee` on one core: requests a second, JSON in and out included.

Run: python -m bench.referee. The promise is 3,000 `yaku` and 150 whole `round` requests a second.
"""

from __future__ import annotations

import io
import json
import random
import time

from koikoi_sdk.rules import PRESETS, card_name, deal, variant
from koikoi_sdk.rules.notation import action_json
from koikoi_sdk.rules.referee import main

SEED = 20_000
WANTED = {"yaku": 3000, "round": 150}


def yaku_request(chance: random.Random) -> dict[str, object]:
    captured = chance.sample(range(48), chance.randrange(49))
    return {
        "op": "yaku",
        "preset": chance.choice(list(PRESETS)),
        "overrides": {},
        "captured": [card_name(card) for card in captured],
    }


def round_request(chance: random.Random) -> dict[str, object]:
    preset = chance.choice(list(PRESETS))
    deck = chance.sample(range(48), 48)
    state = deal(variant(preset), deck, 0, (25, 25))
    actions = []
    while legal := state.legal():
        action = legal[-1] if len(legal[-1].__slots__) == 0 else chance.choice(legal)
        actions.append(action_json(action))
        state, _ = state.act(action)
    return {
        "op": "round",
        "preset": preset,
        "overrides": {},
        "deck": [card_name(card) for card in deck],
        "dealer": 0,
        "points_before": [25, 25],
        "actions": actions,
    }


def rate(requests: list[dict[str, object]]) -> float:
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    out = io.StringIO()
    began = time.process_time()
    main(io.StringIO(lines), out)
    spent = time.process_time() - began
    assert out.getvalue().count("\n") == len(requests)
    assert '"error"' not in out.getvalue()
    return len(requests) / spent


def run() -> int:
    chance = random.Random(SEED)
    rates = {
        "yaku": rate([yaku_request(chance) for _ in range(10_000)]),
        "round": rate([round_request(chance) for _ in range(500)]),
    }
    for name, wanted in WANTED.items():
        print(f"referee {name:5} {rates[name]:8.0f} requests/s of CPU time (at least {wanted})")
    return 0 if all(rates[name] >= wanted for name, wanted in WANTED.items()) else 1


if __name__ == "__main__":
    raise SystemExit(run())
