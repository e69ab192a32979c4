"""Two devices in one deal, without rules: a source of honest messages for tests."""

from dataclasses import dataclass, field
from itertools import count

from koikoi_sdk.poker import Deal, DealState, deal_id
from koikoi_sdk.poker.layout import DEALER, OTHER
from koikoi_sdk.poker.transcript import digest


@dataclass
class Pair:
    """Plays a deal; every message gets its own head and fresh bytes, both from a counter."""

    name: bytes = b"pair"
    numbers: count = field(default_factory=count)

    def __post_init__(self) -> None:
        did = deal_id(self.name, round_number=1, attempt=0, dealer_key=b"a" * 32, other_key=b"b" * 32, head=b"h")
        seeds = [bytearray(digest("seed", self.name, bytes([role]))[:32]) for role in (0, 1)]
        self.dealer = Deal(DealState(DEALER, did, seeds[DEALER]))
        self.other = Deal(DealState(OTHER, did, seeds[OTHER]))
        self.head, self.fresh = b"", b""

    def next(self) -> tuple[bytes, bytes]:
        """The head and the fresh bytes of the next message."""
        number = next(self.numbers).to_bytes(4, "big")
        self.head, self.fresh = digest("head", self.name, number)[:32], digest("fresh", self.name, number)[:32]
        return self.head, self.fresh

    def deal(self) -> "Pair":
        head, fresh = self.next()
        self.other.accept_first(self.dealer.shuffle_first(head, fresh), head)
        head, fresh = self.next()
        self.dealer.accept_second(self.other.shuffle_second(head, fresh, fresh), head)
        head, fresh = self.next()
        self.other.accept_field(self.dealer.show_field(head, fresh, fresh), head)
        return self

    def movers(self) -> tuple[Deal, Deal]:
        """The device that plays now and the one that answers."""
        return (self.other, self.dealer) if self.dealer.top % 2 else (self.dealer, self.other)

    def play(self, position: int) -> int:
        mover, opponent = self.movers()
        head, fresh = self.next()
        played, card = opponent.accept_play(mover.play(position, head, fresh), head)
        assert played == position
        return card

    def draw(self) -> int:
        mover, opponent = self.movers()
        head, fresh = self.next()
        seen = mover.accept_token(opponent.give_token(head, fresh), head)
        head, fresh = self.next()
        assert opponent.accept_flip(mover.flip(head, fresh), head) == seen
        return seen

    def turn(self, position: int) -> tuple[int, int]:
        return self.play(position), self.draw()


def copied(deal: Deal) -> Deal:
    """The same deal on a restarted device: rebuilt from what is stored."""
    state = deal.state
    plain = {
        **vars(state),
        "seed": bytearray(state.seed),
        "tokens": dict(state.tokens),
        "opened": dict(state.opened),
        "nonces": list(state.nonces),
        "commitments": list(state.commitments),
    }
    return Deal(DealState(**plain))
