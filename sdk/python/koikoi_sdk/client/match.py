"""One match of one device, from the signed contract to the rating: sit down, play (or go on), hand in the result."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable

from koikoi.ranking.v1 import ranking_service_pb2 as ranking_messages

from koikoi_sdk.client.contract import SignedContract
from koikoi_sdk.client.errors import RelayClosed, ServerError, StorageError
from koikoi_sdk.client.home import Home
from koikoi_sdk.client.outbox import Outbox
from koikoi_sdk.client.players import Player
from koikoi_sdk.client.ranking import Ranking
from koikoi_sdk.client.receipts import ReceiptVerifier
from koikoi_sdk.client.session import MatchEnd, Session
from koikoi_sdk.client.transport import Transport
from koikoi_sdk.poker import DeviceKey
from koikoi_sdk.table import ContractError, Random, Seat, SnapshotError, View, draw_from_system

BEGIN_WITHIN_S = 120
"""Seconds after the contract in which a match may be begun."""
_FINAL_REFUSALS = {"CONTRACT_TOO_OLD", "RESULT_CONFLICT"}


def sit_down(home: Home, contract: SignedContract, device: DeviceKey, *, random: Random = draw_from_system) -> Outbox:
    """Take this device's seat of a contract and store it; a match that is stored already stays as it is.

    Raises:
        ContractError: The contract cannot be played or has no seat for this device: do not connect.
    """
    seat = Seat.start(contract.payload, device, random)
    return Outbox.create(home.matches, contract.match_id, contract.token, seat.dump())


async def play_match(
    outbox: Outbox,
    device: DeviceKey,
    transport: Transport,
    player: Player,
    *,
    observe: Callable[[View], None] = lambda view: None,
    lament: Callable[[RelayClosed], None] = lambda closed: None,
    receipts: ReceiptVerifier | None = None,
    random: Random = draw_from_system,
) -> MatchEnd:
    """Play a stored match to its end, from wherever it is. Raises as `Session.play` does.

    A match that the relay will never continue (it was not begun in time, or its contract is over) is forgotten.
    """
    with outbox.lock():
        payload = payload_of(outbox.contract)
        try:
            seat = Seat.load(payload, outbox.load(), device, random)
        except (SnapshotError, ContractError) as error:
            raise StorageError(f"the state of match {outbox.match_id} cannot be read: {error}") from error
        verify = receipts.of(outbox.match_id, seat.contract.hash) if receipts else None
        session = Session(outbox, seat, device, transport, observe=observe, lament=lament, verify_receipt=verify)
        try:
            return await session.play(player)
        except RelayClosed as closed:
            if closed.reason == "MATCH_UNKNOWN" or (closed.reason == "CONTRACT_INVALID" and _is_over(payload)):
                outbox.remove()
            raise


async def hand_in(outbox: Outbox, ranking: Ranking) -> ranking_messages.MatchResult | None:
    """Hand a signed result in and forget the match; None when there is no result both devices signed.

    Safe to repeat: the ranking answers the same result with the same receipt. A result that the ranking will never
    take is forgotten too.

    Raises:
        ServerError: The ranking refused, or cannot be reached: then the result stays, to be handed in later.
    """
    with outbox.lock():
        stored = outbox.load_result()
        if stored is None:
            outbox.remove()
            return None
        statement, signatures = stored
        try:
            receipt = await ranking.submit_result(outbox.contract, statement, signatures)
        except ServerError as error:
            if error.reason in _FINAL_REFUSALS:
                outbox.remove()
            raise
        outbox.remove(is_recorded=True)
        return receipt


def payload_of(token: str) -> bytes:
    """Give the payload bytes of a compact JWS that was verified before it was stored (RFC 7515 section 7.1)."""
    try:
        payload = token.split(".")[1]
        return base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
    except (IndexError, ValueError) as error:
        raise StorageError("the stored contract is damaged") from error


def is_young(payload: bytes) -> bool:
    """Tell whether the relay would still begin this match (docs/architecture.md section 3)."""
    return int(json.loads(payload)["iat"]) + BEGIN_WITHIN_S > time.time()


def _is_over(payload: bytes) -> bool:
    return int(json.loads(payload)["exp"]) < time.time()
