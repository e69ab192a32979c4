"""A second reading of docs/protocol.md: replays a recorded match byte for byte from the document alone.

Both seats of our tests share their code, so a mistake could hide on both sides at once. This observer knows all
secrets of both devices (section 18, whole-match vectors) and makes every byte of every message anew from hashlib,
PyNaCl's primitives and the group's arithmetic; the rules come from the second rules engine. It shares no layout, label,
order of fields or position with `koikoi_sdk.table` and `koikoi_sdk.poker`.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

from nacl import bindings

from tests.property import rules_oracle as oracle
from tests.unit.table.remade import Deal, Shuffler, tagged, u16

Random = Callable[[str, int, int, int], bytes]
SMALL, MIDDLE, LARGE = 512, 3584, 9216
# By type: name, phase, class.
WIRE = {
    1: ("COIN_OPEN", 1, SMALL), 10: ("S1", 2, LARGE), 11: ("S2", 2, LARGE), 12: ("S3", 3, SMALL), 13: ("S4", 3, SMALL),
    20: ("T1", 4, SMALL), 21: ("T2", 4, SMALL), 22: ("T3", 4, SMALL), 30: ("AU1", 5, SMALL), 31: ("AU2", 5, SMALL),
    32: ("AU3", 5, MIDDLE), 33: ("AU4", 5, MIDDLE), 40: ("RESULT_SIGN", 6, SMALL), 50: ("NEXT", 2, SMALL),
    51: ("RESIGN", 6, SMALL),
}  # fmt: skip
DEALERS_HAND, OTHERS_HAND, FIELD, PILE = range(8), range(8, 16), range(16, 24), range(24, 48)


class Message(NamedTuple):
    number: int
    sender: int
    name: str
    payload: bytes
    head: bytes


class Resigned(Exception):
    """A RESIGN stands where another message was owed."""


def card_name(card: int) -> str:
    return f"{card // 4 + 1:02d}-{card % 4 + 1}"


class Observer:
    """Replays one match. `skipped` rounds were pretended to be over (tests only)."""

    def __init__(
        self,
        contract: bytes,
        randoms: Sequence[Random],
        wire: Sequence[tuple[int, bytes]],
        skipped: int = 0,
        points: tuple[int, int] | None = None,
    ) -> None:
        members = json.loads(contract)
        self.rules = json.loads(members["rules"])
        self.variant = oracle.rules_of(self.rules["preset"], self.rules["overrides"])
        self.keys = [base64.urlsafe_b64decode(seat["key"] + "=") for seat in members["seats"]]
        self.a = 0 if self.keys[0] < self.keys[1] else 1
        self.contract_hash = hashlib.sha256(contract).digest()
        self.rules_hash = hashlib.sha256(members["rules"].encode()).digest()
        self.randoms, self.wire, self.at = randoms, wire, 2
        self.results = [bytes([1, 255]) + bytes(8)] * skipped
        self.points = list(points or [self.variant["start"]] * 2)
        self.names: list[str] = []

    def sender(self, number: int) -> int:
        return self.a if number % 2 == 0 else 1 - self.a

    def draw(self, label: str, number: int, index: int = 0, size: int = 32) -> bytes:
        return self.randoms[self.sender(number)](label, number, index, size)

    # -- sections 8 and 9

    def greet(self) -> None:
        a, b = pk = (self.keys[self.a], self.keys[1 - self.a])
        secrets = [self.draw("x25519", number) for number in (0, 1)]
        xs = [bindings.crypto_scalarmult_base(secret) for secret in secrets]
        self.shares = [self.draw("hello", number) for number in (0, 1)]
        nonces = [tagged("coin/commit", self.contract_hash, a, b, self.shares[0])[:32], self.shares[1]]
        for i, (phase, data) in enumerate(self.wire[:2]):
            versions = bytes([1, 0, 1])
            fields = (self.contract_hash, pk[i], pk[1 - i], versions, xs[i], nonces[i], self.rules_hash)
            assert phase == 0
            assert data[:-64] == versions + xs[i] + nonces[i]
            self.require_signed(self.sender(i), data[-64:], "hello", *fields)
        self.session = tagged("match", self.contract_hash, self.rules_hash, a, b, *nonces)[:32]
        shared = bindings.crypto_scalarmult(secrets[0], xs[1])
        self.aead = [tagged("e2e", shared, self.session, a + b, xs[0] + xs[1], bytes([way]))[:32] for way in (0, 1)]
        self.head = tagged("head0", self.session, self.wire[0][1], self.wire[1][1])[:32]

    def require_signed(self, seat: int, signature: bytes, label: str, *fields: bytes) -> None:
        bindings.crypto_sign_open(signature + tagged(label, *fields), self.keys[seat])

    def take(self, *names: str) -> Message:
        """Open the next message, check its envelope, and that it is one of these."""
        number, (phase, envelope) = self.at, self.wire[self.at]
        sender = self.sender(number)
        nonce = envelope[:24]
        assert nonce == self.draw("aead", number, 0, 24)
        plain = bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(
            envelope[24:], self.session, nonce, self.aead[number % 2]
        )
        body, signature = plain[:-64], plain[-64:]
        name, expected_phase, size = WIRE[body[0]]
        assert (phase, len(envelope)) == (expected_phase, size + 141)
        assert body[1:5] == number.to_bytes(4, "big")
        assert body[5:37] == self.head
        self.require_signed(sender, signature, "msg", self.session, self.keys[sender], self.keys[1 - sender], body)
        length = int.from_bytes(body[37:39], "big")
        assert body[39 + length :] == bytes(size - 2 - length)
        message = Message(number, sender, name, body[39 : 39 + length], self.head)
        self.head = tagged("head", self.head, body, signature)[:32]
        self.at += 1
        self.names.append(name)
        if name == "RESIGN":
            self.resignation = message
            raise Resigned
        assert name in names, (name, names)
        return message

    @property
    def owing(self) -> int:
        return self.sender(self.at)

    # -- sections 4 and 18

    def replay(self) -> bytes:
        """Replay it all and give the signed statement."""
        self.greet()
        try:
            ending, winner = self.play()
        except Resigned:
            message = self.resignation
            statement = self.statement(2, 1 - message.sender, message.head)
            self.require_signed(message.sender, message.payload, "match-result", statement)
        else:
            statement = self.statement(ending, winner, self.head)
            self.sign(statement)
        self.sign(statement)
        assert self.at == len(self.wire)
        return statement

    def statement(self, ending: int, winner: int, head: bytes) -> bytes:
        points = b"".join(map(u16, self.points))
        start = b"\1" + self.contract_hash + self.session + bytes([ending, winner])
        return start + points + bytes([len(self.results)]) + b"".join(self.results) + head

    def sign(self, statement: bytes) -> None:
        message = self.take("RESULT_SIGN")
        self.require_signed(message.sender, message.payload, "match-result", statement)

    def play(self) -> tuple[int, int]:
        opened = self.take("COIN_OPEN").payload
        assert opened == self.shares[0]
        coin = tagged("coin/result", self.session, *self.shares)[0] & 1
        self.dealer = 1 - self.a if coin else self.a
        while True:
            if self.owing != self.dealer:
                assert self.take("NEXT").payload == b""
            self.play_round()
            bust = self.variant["pays"] and 0 in self.points
            if bust or len(self.results) == self.rules["rounds"]:
                mine, yours = self.points
                return int(bust), 2 if mine == yours else int(yours > mine)

    def play_round(self) -> None:
        deals: list[Deal] = []
        while True:
            deal = self.deal(len(self.results) + 1, len(deals))
            deals.append(deal)
            self.game = oracle.new_round(self.variant, deal.engine_deck, self.dealer, self.points)
            self.finish_deal(deal)
            result = self.game["result"]
            if result is None or result["kind"] != "redeal":
                break
        turn = 0
        while self.game["result"] is None:
            self.turn(deal, turn)
            turn += 1
        result = self.game["result"]
        canonical = bytes([{"shobu": 0, "exhausted": 1, "teyaku": 2}[result["kind"]]])
        canonical += bytes([255 if result["winner"] is None else result["winner"]])
        canonical += b"".join(map(u16, (result["score"], result["payment"], *result["points_after"])))
        digest = tagged("round-result", self.session, u16(len(self.results) + 1), canonical)[:32]
        for deal in deals:
            self.audit(deal, digest)
        self.results.append(canonical)
        self.points, self.dealer = result["points_after"], result["next_dealer"]

    def deal(self, number: int, attempt: int) -> Deal:
        keys = (self.keys[self.dealer], self.keys[1 - self.dealer])
        did = tagged("deal", self.session, u16(number), u16(attempt), *keys, self.head)
        first = self.take("S1")
        assert first.sender == self.dealer
        second = self.take("S2")
        deal = Deal(did, (self.draw("seed", first.number), self.draw("seed", second.number)))
        for message, side in zip((first, second), deal.sides, strict=True):
            proof = side.shuffle_proof(message.head, self.draw("fresh", message.number))
            shuffle = side.key + b"".join(side.after) + proof
            assert message.payload[:7872] == shuffle
        tokens = deal.tokens(1, (*DEALERS_HAND, *FIELD), second.head, self.draw("fresh", second.number, 1))
        assert second.payload[7872:] == tokens
        return deal

    def finish_deal(self, deal: Deal) -> None:
        """S3 and S4: whoever must claim claims, unless the round is decided already."""
        third = self.take("S3")
        fresh = [self.draw("fresh", third.number, index) for index in range(3)]
        payload = deal.tokens(0, OTHERS_HAND, third.head, fresh[0])
        payload += deal.opening(0, FIELD, third.head, fresh[1])
        is_decided = self.has_four(deal, FIELD)
        if not is_decided and self.must_claim(deal, DEALERS_HAND):
            payload += deal.opening(0, DEALERS_HAND, third.head, fresh[2])
            is_decided = True
        assert third.payload == payload
        fourth = self.take("S4")
        result = self.game["result"]
        payload = bytes([result is not None and result["kind"] == "redeal"])
        if not is_decided and self.must_claim(deal, OTHERS_HAND):
            payload += deal.opening(1, OTHERS_HAND, fourth.head, self.draw("fresh", fourth.number))
        assert fourth.payload == payload

    @staticmethod
    def has_four(deal: Deal, places: range) -> bool:
        months = [deal.deck[place] // 4 for place in places]
        return any(months.count(month) == 4 for month in months)

    def must_claim(self, deal: Deal, places: range) -> bool:
        months = [deal.deck[place] // 4 for place in places]
        is_kuttsuki = all(months.count(month) == 2 for month in months)
        if self.variant["teyaku"]:
            return is_kuttsuki or self.has_four(deal, places)
        return self.variant["redeal_hand"] and self.has_four(deal, places)

    def turn(self, deal: Deal, turn: int) -> None:
        role = turn % 2
        mover = self.dealer if role == 0 else 1 - self.dealer
        play = self.take("T1")
        assert play.sender == mover
        place, card = play.payload[:2]
        assert place in (OTHERS_HAND if role else DEALERS_HAND)
        opening = deal.opening(role, [place], play.head, self.draw("fresh", play.number))
        assert play.payload == bytes([place]) + opening + play.payload[-1:]
        token = self.take("T2")
        top = PILE[turn]
        assert token.payload == deal.tokens(1 - role, [top], token.head, self.draw("fresh", token.number))
        flip = self.take("T3")
        assert flip.payload[:-2] == deal.opening(role, [top], flip.head, self.draw("fresh", flip.number))
        capture, decision = flip.payload[-2:]
        self.act(["play", card_name(card), self.target(play.payload[-1])])
        if capture != 255:
            self.act(["take", card_name(capture)])
        if decision:
            self.act([["shobu"], ["koikoi"]][decision - 1])
        assert self.game["phase"] in ("play", "over")

    @staticmethod
    def target(capture: int) -> str | None:
        return None if capture == 255 else card_name(capture)

    def act(self, action: Sequence[str | None]) -> None:
        assert list(action) in oracle.legal_of(self.game)
        oracle.act(self.game, list(action))

    # -- section 7

    def audit(self, deal: Deal, digest: bytes) -> None:
        message = self.take("AU1")
        while True:  # a device that lost its master begins anew
            again = self.run(deal, digest, message)
            if again is None:
                return
            message = again

    def run(self, deal: Deal, digest: bytes, first: Message) -> Message | None:
        mine, yours = self.side(deal, first.sender), self.side(deal, 1 - first.sender)
        assert first.payload == mine.commit(first.head, self.draw("fresh", first.number)) + digest
        second = self.take("AU2")
        nonce = self.draw("challenge", second.number)
        commitment = yours.commit(second.head, self.draw("fresh", second.number))
        assert second.payload == commitment + nonce + digest
        third = self.take("AU3", "AU1")
        if third.name == "AU1":
            return third
        counter = self.draw("challenge", third.number)
        assert third.payload == counter + mine.respond(nonce)
        fourth = self.take("AU4", "AU1")
        if fourth.name == "AU1":
            return fourth
        assert fourth.payload == yours.respond(counter)
        return None

    def side(self, deal: Deal, seat: int) -> Shuffler:
        return deal.sides[0 if seat == self.dealer else 1]
