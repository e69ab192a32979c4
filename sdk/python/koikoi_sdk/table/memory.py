"""What the parts of a seat share while it runs: its state, its device key, its secrets in memory."""

from __future__ import annotations

import secrets
from collections import Counter
from typing import Protocol

from koikoi_sdk.poker import Commitment, Deal, DeviceKey
from koikoi_sdk.rules import Board, Match, Pair
from koikoi_sdk.table.contract import Contract
from koikoi_sdk.table.envelope import Channel
from koikoi_sdk.table.state import Round, State

MAX_ATTEMPTS = 5
"""Deals of one round; a sixth is refused."""


class Random(Protocol):
    """Where every random byte of a seat comes from (docs/protocol.md section 18, whole-match vectors)."""

    def __call__(self, label: str, number: int, index: int, size: int) -> bytes:
        """Give `size` bytes for use `index` of `label` in the message of that number."""
        ...


def draw_from_system(label: str, number: int, index: int, size: int) -> bytes:
    """Draw from the operating system's generator; what everything but a test vector uses."""
    return secrets.token_bytes(size)


class Table:
    """The shared view of the two seats as one of them has it.

    `deals` run parallel to the stored deals of the round. `commitment` is this device's in the
    running audit; it exists in memory only, and a restarted device does without (section 7).
    """

    def __init__(self, contract: Contract, device: DeviceKey, random: Random, state: State) -> None:
        """Take up a stored or new state; `device` must have a seat in the contract."""
        self.contract, self.device, self.state = contract, device, state
        self.seat = contract.seat_of(device.public)
        self.peer = 1 - self.seat
        self.deals = [Deal(stored) for stored in state.round.deals] if state.round else []
        self.commitment: Commitment | None = None
        self._random = random
        self._uses: Counter[tuple[str, int]] = Counter()

    def draw(self, label: str, number: int | None = None, size: int = 32) -> bytes:
        """Draw random bytes for the message being built, which has the counter's number unless given."""
        number = self.state.counter if number is None else number
        index = self._uses[label, number]
        self._uses[label, number] += 1
        return self._random(label, number, index, size)

    def sender_of(self, number: int) -> int:
        """Give the seat that sends a number: A the even ones, B the odd ones."""
        a = self.contract.seat_a
        return 1 - a if number % 2 else a

    @property
    def owing(self) -> int:
        """Give the seat that owes the next message."""
        return self.sender_of(self.state.counter)

    @property
    def channel(self) -> Channel:
        """Give the open channel."""
        assert self.state.channel is not None
        return self.state.channel

    @property
    def match(self) -> Match:
        """Give the match, which exists from COIN_OPEN on."""
        assert self.state.match is not None
        return self.state.match

    @property
    def points(self) -> Pair:
        """Give the points of both seats after the rounds that are over."""
        stake = self.contract.rules.variant.stake
        return self.state.match.points if self.state.match else (stake, stake)

    @property
    def round(self) -> Round:
        """Give the present round, which exists from COIN_OPEN on."""
        assert self.state.round is not None
        return self.state.round

    @property
    def board(self) -> Board:
        """Give the board, which exists from S3 on."""
        assert self.round.board is not None
        return self.round.board

    @property
    def deal(self) -> Deal:
        """Give the deal being played: the last."""
        return self.deals[-1]

    def erase(self) -> None:
        """Erase what is needed no more once the match ended or a device refused to go on."""
        for deal in self.deals:
            deal.erase()
        self.deals.clear()
        if self.state.round:
            self.state.round.deals.clear()
        self.commitment = None
        self.state.secret[:] = bytes(len(self.state.secret))
        self.state.secret.clear()
