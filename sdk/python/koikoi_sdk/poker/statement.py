"""What is proved about a shuffle, and the secret that makes it true."""

from collections.abc import Sequence
from dataclasses import dataclass

from koikoi_sdk.poker import group
from koikoi_sdk.poker.errors import Reason, require
from koikoi_sdk.poker.transcript import CARDS, permutation, secret_scalar


@dataclass(frozen=True)
class Statement:
    """Claims that `after` is `before`, permuted, with every point multiplied by the secret of `key`.

    The claim of docs/protocol.md sections 5 and 7: key = k*G and after[i] = k*before[p(i)].
    """

    key: bytes
    before: tuple[bytes, ...]
    after: tuple[bytes, ...]

    def require_form(self) -> None:
        """Check lengths and the encodings of what was received, `key` and `after` (reason FORM).

        `before` is the receiver's own list. (Were a point of it invalid, using it would raise FORM.)
        """
        whole = len(self.before) == CARDS and len(self.after) == CARDS
        require(whole, Reason.FORM, f"a deck has {CARDS} points")
        group.require_points([self.key], "key")
        group.require_points(self.after, "deck")

    def require_plausible(self) -> None:
        """Check that no two cards are equal and that the key hides something (reason PROOF)."""
        require(len(set(self.after)) == CARDS, Reason.PROOF, "two points of the deck are equal")
        require(self.key != group.GENERATOR, Reason.PROOF, "the public key is the base point")


@dataclass(frozen=True, repr=False)
class Layer:
    """Holds the secrets of one device in one attempt: its key and its permutation.

    Both are functions of (seed, did) and are never stored: keep the seed.
    """

    secret: bytes
    inverse: bytes
    key: bytes
    permutation: tuple[int, ...]

    @classmethod
    def derive(cls, seed: bytes | bytearray, did: bytes) -> "Layer":
        """Derive key and permutation from the 32 secret bytes of this attempt (section 3)."""
        material = bytes(seed)
        secret = secret_scalar("deal/key", material, did)
        return cls(
            secret,
            group.scalar_invert(secret),
            group.multiply_base(secret),
            permutation(CARDS, "deal/perm", material, did),
        )

    def apply(self, deck: Sequence[bytes]) -> tuple[bytes, ...]:
        """Permute a deck and add this layer of encryption."""
        return tuple(group.multiply(self.secret, deck[source]) for source in self.permutation)

    def shuffle(self, before: Sequence[bytes]) -> Statement:
        """Shuffle a deck; the result is the true statement about it."""
        return Statement(self.key, tuple(before), self.apply(before))
