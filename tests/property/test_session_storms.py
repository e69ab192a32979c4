"""A deal and a resignation in a storm: crashes, broken connections and a lost store, in any order, change nothing."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from koikoi.match.v1 import match_service_pb2 as match
from koikoi_sdk.client.session import MatchEnd
from koikoi_sdk.table import View

from tests.unit.client.devices import Device, Player, Tables
from tests.unit.table.pair import contract_payload

PAYLOAD = contract_payload("boardgameland")


@pytest.fixture(autouse=True, scope="module")
def quick_disk() -> Iterator[None]:
    with patch.object(os, "fsync", lambda handle: None):
        yield


def resigns(view: View) -> bool:
    return view.round is not None and view.round.turn >= 3


async def play(directory: Path, seed: int | None) -> list[MatchEnd]:
    table = Tables(directory, PAYLOAD)
    if seed is not None:
        storm = random.Random(seed)
        for device in table.devices:
            _trouble(table, device, storm)
    return await table.play(Player(), Player(resigns))


def _trouble(table: Tables, device: Device, storm: random.Random) -> None:
    """At each point something may happen; in all at most a few of each, so that the match ends."""
    left = {"crash": 12, "break": 6, "loss": 2}
    loop = asyncio.get_running_loop()

    def happens(point: str) -> bool:
        kind = storm.choices(["calm", *left], [20, 3, 2, 1])[0]
        if kind == "calm" or not left[kind]:
            return False
        left[kind] -= 1
        if kind == "break":
            loop.call_soon(table.relay.drop_all)
        elif kind == "loss" and table.relay.match.ending is None:
            loop.call_soon(_lose, table)
        return kind == "crash"

    device.may_crash = happens


def _lose(table: Tables) -> None:
    if table.relay.match.ending is None and table.relay.match.phase not in {None, 6}:
        table.relay.lose_everything()


@cache
def calm_end() -> list[MatchEnd]:
    with TemporaryDirectory() as name:
        return asyncio.run(play(Path(name) / "calm", None))


@settings(max_examples=8, derandomize=True)
@given(st.integers(0, 2**32))
def test_storm(seed: int) -> None:
    calm = calm_end()
    with TemporaryDirectory() as name:
        ends = asyncio.run(play(Path(name) / "storm", seed))
    assert [end.result for end in ends] == [end.result for end in calm]
    assert ends[0].outcome == ends[1].outcome
    assert ends[0].outcome in {match.OUTCOME_RESIGNED, match.OUTCOME_FINISHED}
