"""The relay's word in writing: who owes what since when, signed by it (docs/architecture.md section 3, "Receipts").

A device asks for a receipt when the opponent has let half of its time pass (a stall, a gone device, a signature under
the result that does not come), and before it closes a match as disputed. What verifies is kept beside the match, so
that a player can show later what the relay saw. It proves nothing about content: the relay sees none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from koikoi.match.v1 import match_service_pb2 as match

from koikoi_sdk.client.connect import ConnectClient
from koikoi_sdk.client.documents import issuer_of, key_set_path, open_document
from koikoi_sdk.client.errors import KoikoiError
from koikoi_sdk.client.outbox import Outbox

TYPE = "koikoi-receipt+jws"
SETTLE_S = 5.0
"""Seconds in which what the relay signed last is still verified and stored at a match's end."""


class ReceiptInvalid(KoikoiError):
    """The relay's receipt does not verify or speaks of something else; the match goes on without it."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the relay signed. Times are milliseconds on its clock; `owing_seat` is None when nobody owes."""

    token: str
    match_id: str
    contract_hash: str
    epoch: str
    counter: int
    owing_seat: int | None
    owing_since_ms: int | None
    now_ms: int


Verify = Callable[[str], Awaitable[Receipt]]


def read_receipt(token: str, *, jwks: str, issuer: str, match_id: str, contract_hash: bytes) -> Receipt:
    """Verify a receipt of one match with the relay's key set.

    Raises:
        ReceiptInvalid: The signature, type or issuer is wrong, or it is about another match.
    """
    try:
        _, members = open_document(token, typ=TYPE, jwks=jwks, issuer=issuer)
        receipt = _parse(token, members)
    except ValueError as error:
        raise ReceiptInvalid(f"the relay's receipt does not verify: {error}") from None
    if (receipt.match_id, receipt.contract_hash) != (match_id, contract_hash.hex()):
        raise ReceiptInvalid("the relay's receipt is about another match")
    return receipt


def _parse(token: str, members: dict[str, Any]) -> Receipt:
    texts = [members.get(name) for name in ("match_id", "contract_hash", "epoch")]
    numbers = [members.get(name) for name in ("counter", "owing_seat", "owing_since_ms", "now_ms")]
    is_formed = all(isinstance(text, str) for text in texts) and all(
        type(number) is int or (number is None and optional)
        for number, optional in zip(numbers, (False, True, True, False), strict=True)
    )
    if not is_formed:
        raise ValueError("a member is missing or of another kind")
    match_id, contract_hash, epoch = map(str, texts)
    counter, owing_seat, owing_since_ms, now_ms = numbers
    return Receipt(token, match_id, contract_hash, epoch, counter or 0, owing_seat, owing_since_ms, now_ms or 0)


class ReceiptVerifier:
    """Verifies receipts with the relay's public keys, which the gateway publishes.

    Args:
        client: Where the key set is read.
        auth_issuer: Auth's issuer name, which tells the environment.
    """

    def __init__(self, client: ConnectClient, auth_issuer: str) -> None:
        self._client = client
        self._issuer = issuer_of("match", auth_issuer)

    def of(self, match_id: str, contract_hash: bytes) -> Verify:
        """Give the verifier of one match's receipts."""

        async def verify(token: str) -> Receipt:
            jwks = await self._client.get_text(key_set_path("match"))
            return read_receipt(token, jwks=jwks, issuer=self._issuer, match_id=match_id, contract_hash=contract_hash)

        return verify


class Witness:
    """Decides when a session asks for a receipt, and keeps what verifies.

    Args:
        outbox: Where receipts are kept.
        seat: This device's seat.
        verify: None when this session cannot verify any: then it asks for none.
    """

    def __init__(self, outbox: Outbox, seat: int, verify: Verify | None) -> None:
        self._outbox, self._seat, self._verify = outbox, seat, verify
        self._alarm: asyncio.Task[None] | None = None
        self._awaited: tuple[bytes, int] | None = None
        self._asked: tuple[bytes, int] | None = None
        self._keeping: set[asyncio.Task[None]] = set()

    @property
    def can_verify(self) -> bool:
        """Tell whether a receipt would be of any use."""
        return self._verify is not None

    @property
    def alarm(self) -> asyncio.Task[None] | None:
        """Give the task that ends when it is time to ask, None when nothing is awaited."""
        return self._alarm

    def heed(self, status: match.Status, epoch: bytes, position: int) -> None:
        """Take the relay's status: when the opponent owes, wait for half of its time; once per owed message."""
        awaited = (epoch, position)
        peer_owes = status.HasField("owing_seat") and status.owing_seat != self._seat
        if self._verify is None or not peer_owes or not status.HasField("deadline_ms") or awaited == self._asked:
            self.rest()
        elif self._alarm is None or awaited != self._awaited:
            self.rest()
            self._awaited, self._alarm = awaited, asyncio.create_task(asyncio.sleep(status.deadline_ms / 2000))

    def ask(self) -> bool:
        """Tell whether the time to ask has come, and note that it was asked."""
        if self._alarm is None or not self._alarm.done():
            return False
        self._asked, self._alarm = self._awaited, None
        return True

    def rest(self) -> None:
        """Await nothing: the opponent answered, or the connection is gone."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def take(self, receipt: match.Receipt, epoch: bytes, position: int) -> None:
        """Verify and store what the relay signed, beside the play: keys may have to be fetched first."""
        if self._verify is not None:
            task = asyncio.create_task(self._keep(self._verify, receipt.receipt, epoch, position))
            self._keeping.add(task)
            task.add_done_callback(self._keeping.discard)

    async def settle(self) -> None:
        """Finish what is being verified, within bounds."""
        self.rest()
        if self._keeping:
            await asyncio.wait(self._keeping, timeout=SETTLE_S)
        for task in self._keeping:
            task.cancel()

    async def _keep(self, verify: Verify, token: str, epoch: bytes, position: int) -> None:
        try:
            receipt = await verify(token)
        except KoikoiError:  # it is of no use, and the match does not depend on it
            return
        if receipt.epoch == epoch.hex() and abs(receipt.counter - position) <= 1:  # else not what this seat has seen
            self._outbox.save_receipt(token)
