"""What a deal costs: `python -m bench.deal` prints one line per operation with its aim.

CPU time of one core, median of the repeats. The aims are those of the project: a whole deal at most
100 ms of CPU for both devices, a move at most 2 ms. All of it is group arithmetic, so the first lines say
how fast this machine is at that, and the last ones state the deal in multiplications of a point by
libsodium, of the same run: compare machines by that. Checking proofs uses the project's own C where it
was built (docs/adr/0017); it is measured without it, too.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar
from unittest.mock import patch

from koikoi_sdk.poker import Deal, DealState, deal_id, group
from koikoi_sdk.poker.transcript import generators_sum, point, scalar

T = TypeVar("T")
REPEATS = 9
BATCH = 300
HEAD, FRESH, NONCE = b"h" * 32, b"f" * 32, b"n" * 32


@dataclass
class Clock:
    """Collects CPU times in milliseconds by operation."""

    times: dict[str, list[float]] = field(default_factory=dict)

    def run(self, name: str, action: Callable[[], T]) -> T:
        start = time.process_time()
        result = action()
        self.times.setdefault(name, []).append((time.process_time() - start) * 1000)
        return result

    def median(self, *names: str) -> float:
        return sum(statistics.median(self.times[name]) for name in names)


def primitives(clock: Clock) -> None:
    some, factor = point("bench"), scalar("bench")
    for name, action in (
        ("multiply a point", lambda: group.multiply(factor, some)),
        ("multiply the base", lambda: group.multiply_base(factor)),
        ("add two points", lambda: group.add(some, group.GENERATOR)),
    ):
        clock.run(name, lambda action=action: [action() for _ in range(BATCH)])


def round_trip(clock: Clock, number: int) -> None:
    did = deal_id(b"m", round_number=number, attempt=0, dealer_key=b"a", other_key=b"b", head=HEAD)
    dealer = clock.run("take up a deal", lambda: Deal(DealState(0, did, bytearray(b"D" * 32))))
    other = Deal(DealState(1, did, bytearray(b"N" * 32)))
    s1 = clock.run("S1 build", lambda: dealer.shuffle_first(HEAD, FRESH))
    clock.run("S1 accept", lambda: other.accept_first(s1, HEAD))
    again = Deal(DealState(1, did, bytearray(b"N" * 32)))
    with patch.object(group, "native_weighted_sum", None):
        clock.run("S1 accept, libsodium", lambda: again.accept_first(s1, HEAD))
    s2 = clock.run("S2 build", lambda: other.shuffle_second(HEAD, FRESH, FRESH))
    clock.run("S2 accept", lambda: dealer.accept_second(s2, HEAD))
    s3 = clock.run("S3 build", lambda: dealer.show_field(HEAD, FRESH, FRESH))
    clock.run("S3 accept", lambda: other.accept_field(s3, HEAD))

    def move() -> None:
        other.accept_play(dealer.play(0, HEAD, FRESH), HEAD)
        dealer.accept_token(other.give_token(HEAD, FRESH), HEAD)
        other.accept_flip(dealer.flip(HEAD, FRESH), HEAD)

    clock.run("move", move)
    commitment = clock.run("audit: commit", lambda: dealer.commit_audit(HEAD, FRESH))
    other.challenge_audit(HEAD, commitment.value, NONCE)
    response = clock.run("audit: respond", lambda: commitment.respond(NONCE))
    clock.run("audit: accept", lambda: other.accept_audit(response))


def main() -> None:
    clock = Clock()
    generators_sum()
    print(
        "proofs are checked with", "the project's own C" if group.ACCELERATED else "libsodium: no C library was built"
    )
    for number in range(REPEATS):
        primitives(clock)
        round_trip(clock, number)
    print(f"{'operation':<28}{'CPU':>10}   aim")
    for name in ("multiply a point", "multiply the base", "add two points"):
        print(f"{name:<28}{clock.median(name) / BATCH * 1000:>7.1f} us")
    steps = ("S1 build", "S1 accept", "S2 build", "S2 accept", "S3 build", "S3 accept")
    audit = ("audit: commit", "audit: respond", "audit: accept")
    for name in ("take up a deal", *steps, "S1 accept, libsodium", *audit):
        print(f"{name:<28}{clock.median(name):>7.2f} ms")
    deal = clock.median("take up a deal", "take up a deal", *steps)
    print(f"{'whole deal, both devices':<28}{deal:>7.2f} ms   100 ms")
    print(f"{'one move, both devices':<28}{clock.median('move'):>7.2f} ms   2 ms")
    print(f"{'whole deal':<28}{deal / clock.median('multiply a point') * BATCH:>7.0f} multiplications of a point")
    print(f"{'checking S1':<28}{clock.median('S1 accept, libsodium') / clock.median('S1 accept'):>7.1f} times as fast")


if __name__ == "__main__":
    main()
