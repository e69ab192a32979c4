"""Sections 2 to 7 of docs/protocol.md once more: one deal, made anew from both devices' secrets for `observer`."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from koikoi_sdk.poker import group


def tagged(label: str, *fields: bytes) -> bytes:
    parts = (b"koikoi-mp/v1/ristretto255-sha512", label.encode(), *fields)
    return hashlib.sha512(b"".join(len(part).to_bytes(4, "big") + part for part in parts)).digest()


def u16(number: int) -> bytes:
    return bytes([number >> 8, number & 255])


def to_scalar(label: str, *fields: bytes) -> bytes:
    return (int.from_bytes(tagged(label, *fields), "little") % group.ORDER).to_bytes(32, "little")


def secret_scalar(label: str, *fields: bytes) -> bytes:
    return to_scalar(label, *fields, u16(0))  # zero with probability 2^-252


def shuffled(label: str, *fields: bytes) -> list[int]:
    order, stream = list(range(48)), b"".join(tagged(label, *fields, u16(block)) for block in range(8))
    at = 0
    for i in range(47, 0, -1):
        m = i + 1
        while stream[at] >= 256 - 256 % m:
            at += 1
        j = stream[at] % m
        at += 1
        order[i], order[j] = order[j], order[i]
    return order


def number(scalar: bytes) -> int:
    return int.from_bytes(scalar, "little")


def encode(value: int) -> bytes:
    return (value % group.ORDER).to_bytes(32, "little")


def total(scalars: Sequence[int], points: Sequence[bytes]) -> bytes:
    return group.add_all([group.multiply(encode(s), p) for s, p in zip(scalars, points, strict=True)])


H = group.hash_to_point(tagged("gen/H"))
HS = [group.hash_to_point(tagged("gen/Hi", u16(i))) for i in range(48)]
G = group.multiply_base(encode(1))


class Shuffler:
    """One device in one attempt: its secrets, and the proofs it must make."""

    def __init__(self, role: int, seed: bytes, did: bytes) -> None:
        self.role, self.seed, self.did = role, seed, did
        self.k = number(secret_scalar("deal/key", seed, did))
        self.order = shuffled("deal/perm", seed, did)
        self.key = group.multiply_base(encode(self.k))

    def shuffle(self, before: list[bytes]) -> list[bytes]:
        self.before = before
        self.after = [group.multiply(encode(self.k), before[source]) for source in self.order]
        return self.after

    def hedge(self, kind: str, head: bytes, fresh: bytes) -> bytes:
        return tagged("hedge", self.seed, self.did, kind.encode(), head, fresh)

    def context(self, kind: str, head: bytes) -> bytes:
        return tagged("proof", self.did, kind.encode(), bytes([self.role]), head)

    def equality(
        self, kind: str, label: bytes, points: list[bytes], images: list[bytes], head: bytes, fresh: bytes
    ) -> bytes:
        z, context = self.hedge(kind, head, fresh), self.context(kind, head)
        st = tagged("dleq/statement", context, label, self.key, b"".join(points), b"".join(images))
        rho = [1, *(number(to_scalar("dleq/rho", st, u16(i))) for i in range(1, len(points)))]
        w = number(secret_scalar("nonce/dleq", z, st))
        first, second = group.multiply_base(encode(w)), group.multiply(encode(w), total(rho, points))
        c = to_scalar("dleq/c", st, first, second)
        return c + encode(w + number(c) * self.k)

    def shuffle_proof(self, head: bytes, fresh: bytes) -> bytes:
        """Section 5, steps 1 to 7, with the nonces of section 11."""
        z, context = self.hedge("shuffle", head, fresh), self.context("shuffle", head)
        place = {card: i for i, card in enumerate(self.order)}
        r = [number(secret_scalar("nonce/r", z, context, u16(j))) for j in range(48)]
        rh = [number(secret_scalar("nonce/rh", z, context, u16(i))) for i in range(48)]
        c = [group.add(group.multiply_base(encode(r[j])), HS[place[j]]) for j in range(48)]
        st = tagged("shuffle/statement", context, self.key, *map(b"".join, (self.before, self.after, c)))
        u = [number(to_scalar("shuffle/u", st, u16(j))) for j in range(48)]
        up = [u[self.order[i]] for i in range(48)]
        ch, rest = [H], 0
        for i in range(48):
            ch.append(total([rh[i], up[i]], [G, ch[-1]]))
            rest = (rh[i] + up[i] * rest) % group.ORDER
        bound = (z, st, b"".join(ch[1:]))
        w1, w2, w3, wk = (number(secret_scalar(f"nonce/w{x}", *bound, u16(0))) for x in "123k")
        wh = [number(secret_scalar("nonce/wh", *bound, u16(i))) for i in range(48)]
        wp = [number(secret_scalar("nonce/wp", *bound, u16(i))) for i in range(48)]
        ts = [
            total([w1], [G]),
            total([w2], [G]),
            total([w3, *wp], [G, *HS]),
            group.subtract(total(wp, self.after), total([wk], [total(u, self.before)])),
            total([wk], [G]),
            b"".join(total([wh[i], wp[i]], [G, ch[i]]) for i in range(48)),
        ]
        e = to_scalar("shuffle/e", st, bound[2], *ts)
        answers = [(w1, sum(r)), (w2, rest), (w3, sum(map(int.__mul__, u, r))), (wk, self.k)]
        answers += [*zip(wh, rh, strict=True), *zip(wp, up, strict=True)]
        return b"".join((*c, *ch[1:], e, *(encode(w + number(e) * x) for w, x in answers)))

    def commit(self, head: bytes, fresh: bytes) -> bytes:
        """Section 7: the commitment; keeps what answers it."""
        master = self.hedge("audit", head, fresh)
        self.actx = tagged("audit", self.did, bytes([self.role]), head)
        self.seeds = [tagged("audit/seed", master, self.actx, u16(i))[:32] for i in range(40)]
        images = []
        for seed in self.seeds:
            t, tau = secret_scalar("audit/t", seed), shuffled("audit/perm", seed)
            z = group.multiply_base(t) + b"".join(group.multiply(t, self.before[card]) for card in tau)
            images.append(tagged("audit/z", z))
        self.com = tagged("audit/commit", self.actx, *images)[:32]
        return self.com

    def respond(self, nonce: bytes) -> bytes:
        bits = tagged("audit/challenge", self.actx, self.com, nonce)
        place = {card: i for i, card in enumerate(self.order)}
        answer = b""
        for i, seed in enumerate(self.seeds):
            if bits[i >> 3] >> (i & 7) & 1:
                t, tau = number(secret_scalar("audit/t", seed)), shuffled("audit/perm", seed)
                answer += encode(t * pow(self.k, -1, group.ORDER)) + bytes(place[card] for card in tau)
            else:
                answer += seed
        return answer


class Deal:
    """One attempt as both devices together know it; `deck[position]` is a card number."""

    def __init__(self, did: bytes, seeds: tuple[bytes, bytes]) -> None:
        self.points = [group.hash_to_point(tagged("card", did, u16(card))) for card in range(48)]
        self.sides = [Shuffler(role, seed, did) for role, seed in enumerate(seeds)]
        dealer, other = self.sides
        self.first = dealer.shuffle(self.points)
        self.second = other.shuffle(self.first)
        self.deck = [dealer.order[other.order[position]] for position in range(48)]

    def tokens(self, giver: int, places: Sequence[int], head: bytes, fresh: bytes) -> bytes:
        side, images = self.sides[giver], [self.second[place] for place in places]
        undo = encode(pow(side.k, -1, group.ORDER))
        tokens = [group.multiply(undo, image) for image in images]
        return b"".join(tokens) + side.equality("token", bytes(places), tokens, images, head, fresh)

    def opening(self, reader: int, places: Sequence[int], head: bytes, fresh: bytes) -> bytes:
        """Give the card numbers and the proof."""
        side, cards = self.sides[reader], [self.deck[place] for place in places]
        points = [self.points[card] for card in cards]
        tokens = [group.multiply(encode(side.k), point) for point in points]
        label = bytes(places) + bytes(cards)
        return bytes(cards) + side.equality("open", label, points, tokens, head, fresh)

    @property
    def engine_deck(self) -> list[str]:
        """Give the deck as docs/rules.md section 3 orders it."""
        deck = [f"{card // 4 + 1:02d}-{card % 4 + 1}" for card in self.deck]
        return deck[8:16] + deck[16:24] + deck[0:8] + deck[24:48]
