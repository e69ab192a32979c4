"""Handing a result in, and forgetting matches that nothing can be done for any more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from koikoi.ranking.v1 import ranking_service_pb2 as ranking
from koikoi_sdk.client.contract import SignedContract
from koikoi_sdk.client.errors import RelayClosed, ServerError, StorageError
from koikoi_sdk.client.home import Home
from koikoi_sdk.client.match import hand_in, payload_of, play_match, sit_down
from koikoi_sdk.client.outbox import Outbox

from tests.unit.client.devices import Player, Tables
from tests.unit.table.pair import DEVICES, contract_payload


class Ranking:
    def __init__(self, failure: ServerError | None = None) -> None:
        self.failure = failure
        self.submitted: list[tuple[str, bytes, tuple[bytes, bytes]]] = []

    async def submit_result(self, contract: str, statement: bytes, signatures: tuple[bytes, bytes]) -> Any:
        self.submitted.append((contract, statement, signatures))
        if self.failure is not None:
            raise self.failure
        return ranking.MatchResult(rounds=3)


@pytest.fixture
def played(tmp_path: Path) -> Outbox:
    """A match whose result was not handed in."""
    outbox = Outbox.create(tmp_path, "m", "h.e30.s", b"state")
    outbox.erase()
    (outbox.directory / "result").write_text(json.dumps({"statement": "01", "signatures": ["02", "03"]}))
    return outbox


async def submit(outbox: Outbox, failure: ServerError | None = None) -> Any:
    return await hand_in(outbox, Ranking(failure))  # type: ignore[arg-type]


async def test_a_result_is_handed_in_and_the_match_forgotten(played: Outbox) -> None:
    service = Ranking()
    receipt = await hand_in(played, service)  # type: ignore[arg-type]
    assert receipt is not None
    assert service.submitted == [("h.e30.s", b"\x01", (b"\x02", b"\x03"))]
    assert not played.directory.exists()


async def test_a_match_without_a_result_is_only_forgotten(tmp_path: Path) -> None:
    outbox = Outbox.create(tmp_path, "m", "h.e30.s", b"state")
    assert await submit(outbox) is None
    assert not outbox.directory.exists()


@pytest.mark.parametrize(
    ("code", "reason", "is_kept"),
    [
        ("unavailable", "UNREACHABLE", True),
        ("resource_exhausted", "RATE_LIMITED", True),
        ("internal", "", True),
        ("failed_precondition", "CONTRACT_TOO_OLD", False),
        ("already_exists", "RESULT_CONFLICT", False),
    ],
)
async def test_a_refused_result(played: Outbox, code: str, reason: str, is_kept: bool) -> None:
    with pytest.raises(ServerError):
        await submit(played, ServerError("no", code=code, reason=reason))
    assert played.directory.exists() is is_kept


async def test_two_processes_do_not_hand_in_at_once(played: Outbox) -> None:
    with played.lock(), pytest.raises(StorageError, match="another process"):
        await submit(played)


class ClosedDoor:
    door = "relay.test"

    def __init__(self, code: int, reason: str) -> None:
        self._closed = RelayClosed(code, reason)

    async def connect(self, match_id: str) -> Any:
        raise self._closed


@pytest.mark.parametrize(
    ("code", "reason", "exp", "is_kept"),
    [
        (4504, "MATCH_UNKNOWN", 2**40, False),
        (4502, "CONTRACT_INVALID", 1, False),
        (4502, "CONTRACT_INVALID", 2**40, True),  # another environment's relay, perhaps
        (4503, "JOIN_SIGNATURE_INVALID", 1, True),
        (4505, "SUPERSEDED", 1, True),
    ],
)
async def test_a_match_that_the_relay_refuses_for_good(
    tmp_path: Path, code: int, reason: str, exp: int, is_kept: bool
) -> None:
    payload = json.dumps({**json.loads(contract_payload()), "exp": exp}).encode()
    token = Tables(tmp_path / "t", payload).token
    outbox = sit_down(Home(tmp_path), SignedContract(token, payload, "m"), DEVICES[0])
    with pytest.raises(RelayClosed):
        await play_match(outbox, DEVICES[0], ClosedDoor(code, reason), Player())
    assert outbox.directory.exists() is is_kept


@pytest.mark.parametrize("token", ["", "a", "a.é.c", "a.a.c"])
def test_a_damaged_contract(token: str) -> None:
    with pytest.raises(StorageError):
        payload_of(token)
