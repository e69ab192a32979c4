"""Messages that must be refused, and the one reason why; the source of tests/vectors/poker/receive.json.

Each forgery hands the receiver of one message of a deal another payload in its place. The forger is
a peer who knows its own secrets, so tokens and openings are correct proofs of the wrong thing
wherever that is possible.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from koikoi_sdk.poker import Deal, DealState, group, proofs
from koikoi_sdk.poker.errors import Reason
from koikoi_sdk.poker.layout import HANDS, OTHER, S1_SIZE, SECOND_TOKENS
from koikoi_sdk.poker.transcript import hedge, proof_context
from koikoi_sdk.poker.vectors import Script

DEAL: dict[str, Any] = {
    "mid": "33" * 32,
    "rnd": 2,
    "att": 1,
    "pk0": "44" * 32,
    "pk1": "55" * 32,
    "h": [f"{index:02x}" * 32 for index in range(0xC0, 0xC8)],
    "D": "66" * 32,
    "N": "77" * 32,
    "f": "88" * 32,
    "g": "99" * 32,
}
FRESH = b"x" * 32
NAMES = ("s1", "s2", "s3", "play", "tok", "flip")
Forgery = tuple[str, int, bytes, Reason | int]


def stage(number: int, **changes: Any) -> Script:
    """A deal played honestly up to a message (0 is S1)."""
    script = Script({**DEAL, **changes})
    played = script.messages()
    for _ in range(number):
        next(played)
    return script


def messages(**changes: Any) -> dict[str, bytes]:
    return dict(Script({**DEAL, **changes}).messages())


def patch(payload: bytes, at: int, new: bytes) -> bytes:
    return payload[:at] + new + payload[at + len(new) :]


def swap(payload: bytes, first: int, second: int, size: int = 32) -> bytes:
    a, b = payload[first : first + size], payload[second : second + size]
    return patch(patch(payload, first, b), second, a)


def plus_order(payload: bytes, at: int) -> bytes:
    larger = int.from_bytes(payload[at : at + 32], "little") + group.ORDER
    return patch(payload, at, larger.to_bytes(32, "little"))


def other_head(number: int) -> dict[str, Any]:
    heads = list(DEAL["h"])
    heads[number] = "ee" * 32
    return {"h": heads}


def cancelling(tokens: bytes) -> bytes:
    """Move an error from one token to another; their sum stays the same."""
    error = group.hash_to_point(b"error".ljust(64))
    first, second = group.add(tokens[:32], error), group.subtract(tokens[32:64], error)
    return first + second + tokens[64:]


def bit_255(point: bytes) -> bytes:
    """What libsodium 1.0.18 takes for a second encoding of the same point."""
    return point[:31] + bytes([point[31] | 0x80])


NOT_CANONICAL = b"\xed" + b"\xff" * 30 + b"\x7f"
OTHER_DEALS: dict[str, dict[str, Any]] = {
    "other match": {"mid": "34" * 32},
    "other round": {"rnd": 3},
    "other attempt": {"att": 2},
    "other dealer key": {"pk0": "45" * 32},
    "other opponent key": {"pk1": "56" * 32},
    "keys exchanged": {"pk0": DEAL["pk1"], "pk1": DEAL["pk0"]},
    "other head before the deal": other_head(0),
}


def first_shuffle(honest: dict[str, bytes]) -> Iterator[Forgery]:
    s1, s2 = honest["s1"], honest["s2"]
    yield "S1 as sent", 0, s1, 0
    yield "S1 truncated", 0, s1[:-1], Reason.FORM
    yield "S1 extended", 0, s1 + b"\0", Reason.FORM
    yield "S1 empty", 0, b"", Reason.FORM
    for name, changes in OTHER_DEALS.items():
        yield f"S1 of {name}", 0, stage(0, **changes).dealer.shuffle_first(bytes.fromhex(DEAL["h"][1]), FRESH), 4
    yield "S1 of another head before it", 0, messages(**other_head(1))["s1"], Reason.PROOF
    yield "S1 with the identity as key", 0, patch(s1, 0, group.IDENTITY), Reason.FORM
    yield "S1 with the identity as card", 0, patch(s1, 32 * 4, group.IDENTITY), Reason.FORM
    yield "S1 with a non-canonical card", 0, patch(s1, 32 * 48, NOT_CANONICAL), Reason.FORM
    for part in ("key", "card"):
        yield f"S1 proved for a {part} with bit 255 set", 0, _proved_with_bit_255(part), Reason.FORM
    yield "S1 with s1 + L", 0, plus_order(s1, 32 * (1 + 48 + 96 + 1)), Reason.FORM
    yield "S1 with two cards exchanged", 0, swap(s1, 32, 64), Reason.PROOF
    yield "S1 with one card twice", 0, patch(s1, 32, s1[64:96]), Reason.PROOF
    yield "S1 under the base point", 0, patch(s1, 0, group.GENERATOR), Reason.PROOF
    same = stage(0, D=DEAL["N"]).dealer.shuffle_first(bytes.fromhex(DEAL["h"][1]), FRESH)
    yield "S1 under the receiver's own key", 0, same, Reason.PROOF
    yield "S2 replayed as S1", 0, s2[:S1_SIZE], Reason.PROOF


def _proved_with_bit_255(part: str) -> bytes:
    """S1 with a second encoding of a point, and a proof that hashes just these bytes."""
    dealer, head = stage(0).dealer, bytes.fromhex(DEAL["h"][1])
    statement = dealer._layer.shuffle(dealer.points)
    first, *rest = statement.after
    changes: dict[str, Any] = {"key": {"key": bit_255(statement.key)}, "card": {"after": (bit_255(first), *rest)}}
    return dealer._prove_shuffle(replace(statement, **changes[part]), head, FRESH)


def _with_the_dealers_key() -> bytes:
    """S2 of a peer that somehow has the dealer's secrets: all its proofs hold."""
    dealer, seed, head = stage(1).dealer, bytearray.fromhex(DEAL["D"]), bytes.fromhex(DEAL["h"][2])
    state = DealState(OTHER, dealer.state.did, seed, steps=1, dealer_deck=dealer.state.dealer_deck)
    return Deal(state).shuffle_second(head, FRESH, FRESH)


def second_shuffle(honest: dict[str, bytes]) -> Iterator[Forgery]:
    s1, s2 = honest["s1"], honest["s2"]
    shuffled, tokens = s2[:S1_SIZE], s2[S1_SIZE:]
    yield "S2 as sent", 1, s2, 0
    yield "S2 truncated", 1, s2[:-1], Reason.FORM
    yield "S2 extended", 1, s2 + b"\0", Reason.FORM
    yield "S1 replayed as S2", 1, s1, Reason.FORM
    yield "S1 reflected with tokens", 1, s1 + tokens, Reason.PROOF
    yield "S2 of another head before it", 1, messages(**other_head(2))["s2"], Reason.PROOF
    yield "S2 under the receiver's own key", 1, _with_the_dealers_key(), Reason.PROOF
    yield "S2 with two cards exchanged", 1, swap(s2, 32, 64), Reason.PROOF
    yield "S2 with cancelling token errors", 1, shuffled + cancelling(tokens), Reason.PROOF
    yield "S2 with two tokens exchanged", 1, shuffled + swap(tokens, 0, 32), Reason.PROOF
    yield "S2 with the identity as token", 1, shuffled + group.IDENTITY + tokens[32:], Reason.FORM
    yield "S2 with a non-canonical token", 1, shuffled + NOT_CANONICAL + tokens[32:], Reason.FORM
    yield "S2 with token proof c + L", 1, plus_order(s2, len(s2) - 64), Reason.FORM
    peer, head = stage(2), bytes.fromhex(DEAL["h"][2])
    places = [*SECOND_TOKENS[:-1], 30]
    yield "S2 with the token of a pile card", 1, shuffled + peer.other._release(places, head, FRESH), Reason.PROOF
    places = [*range(16, 24), *range(8)]
    yield "S2 with the field's tokens first", 1, shuffled + peer.other._release(places, head, FRESH), Reason.PROOF


def field_shown(honest: dict[str, bytes]) -> Iterator[Forgery]:
    s3, cards = honest["s3"], 8 * 32 + 64
    yield "S3 as sent", 2, s3, 0
    yield "S3 truncated", 2, s3[:-1], Reason.FORM
    yield "S3 extended", 2, s3 + b"\0", Reason.FORM
    yield "S3 of another head before it", 2, messages(**other_head(3))["s3"], Reason.PROOF
    yield "S3 with cancelling token errors", 2, cancelling(s3), Reason.PROOF
    yield "S3 with two tokens exchanged", 2, swap(s3, 0, 32), Reason.PROOF
    yield "S3 with card number 48", 2, patch(s3, cards, b"\x30"), Reason.CARD
    yield "S3 with card number 255", 2, patch(s3, cards + 7, b"\xff"), Reason.CARD
    yield "S3 with one card twice", 2, patch(s3, cards, s3[cards + 1 : cards + 2]), Reason.POSITION
    yield "S3 with two cards exchanged", 2, swap(s3, cards, cards + 1, 1), Reason.PROOF
    yield "S3 with opening proof s + L", 2, plus_order(s3, len(s3) - 32), Reason.FORM
    dealer, head = stage(2).dealer, bytes.fromhex(DEAL["h"][3])
    opening = dealer._open(range(16, 24), head, FRESH)
    yield "S3 with tokens for its own hand", 2, dealer._release(HANDS[0], head, FRESH) + opening, Reason.PROOF


def played(honest: dict[str, bytes]) -> Iterator[Forgery]:
    script, head = stage(3), bytes.fromhex(DEAL["h"][4])
    dealer, play = script.dealer, honest["play"]
    yield "T1 as sent", 3, play, 0
    yield "T1 truncated", 3, play[:-1], Reason.FORM
    yield "T1 extended", 3, play + b"\0", Reason.FORM
    yield "T1 of another head before it", 3, messages(**other_head(4))["play"], Reason.PROOF
    for position in (8, 16, 24, 48, 255):
        yield f"T1 from position {position}", 3, patch(play, 0, bytes([position])), Reason.POSITION
    yield "T1 with card number 48", 3, patch(play, 1, b"\x30"), Reason.CARD
    yield "T1 with a card of the field", 3, patch(play, 1, bytes([dealer.field[2]])), Reason.POSITION
    yield "T1 with another card of the hand", 3, patch(play, 1, bytes([dealer.hand[1]])), Reason.PROOF
    yield "T1 with proof s + L", 3, plus_order(play, len(play) - 32), Reason.FORM
    opened = dealer._open([1], head, FRESH)
    yield "T1 with the opening of another position", 3, b"\0" + opened, Reason.PROOF
    hand = script.other.hand
    yield "T1 with a card of the receiver", 3, patch(play, 1, bytes([hand[0]])), Reason.PROOF


def token_given(honest: dict[str, bytes]) -> Iterator[Forgery]:
    other, head, tok = stage(4).other, bytes.fromhex(DEAL["h"][5]), honest["tok"]
    yield "T2 as sent", 4, tok, 0
    yield "T2 truncated", 4, tok[:-1], Reason.FORM
    yield "T2 extended", 4, tok + b"\0", Reason.FORM
    yield "T2 of another head before it", 4, messages(**other_head(5))["tok"], Reason.PROOF
    yield "T2 for the next position", 4, other._release([25], head, FRESH), Reason.PROOF
    yield "T2 with the token of the next position", 4, other._release([25], head, FRESH)[:32] + tok[32:], Reason.PROOF
    yield "T2 with a foreign point", 4, patch(tok, 0, group.hash_to_point(b"t" * 64)), Reason.PROOF
    yield "T2 with the identity", 4, patch(tok, 0, group.IDENTITY), Reason.FORM
    yield "T2 with a non-canonical point", 4, patch(tok, 0, NOT_CANONICAL), Reason.FORM
    yield "T2 with a token with bit 255 set", 4, patch(tok, 0, bit_255(tok[:32])), Reason.FORM
    yield "T2 with proof c + L", 4, plus_order(tok, 32), Reason.FORM
    yield "T2 with the proof of another role", 4, tok[:32] + _wrong_role(other, head), Reason.PROOF


def _wrong_role(other: Any, head: bytes) -> bytes:
    """A proof for the right token, but in the context of the other role."""
    image, layer = other.state.deck[24], other._layer
    token = group.multiply(layer.inverse, image)
    claim = proofs.Equality(proof_context(other.state.did, "token", 0, head), b"\x18", layer.key, [token], [image])
    return proofs.prove(claim, layer.secret, hedge(other.state.seed, other.state.did, "token", head, FRESH))


def flipped(honest: dict[str, bytes]) -> Iterator[Forgery]:
    dealer, flip = stage(5).dealer, honest["flip"]
    yield "T3 as sent", 5, flip, 0
    yield "T3 truncated", 5, flip[:-1], Reason.FORM
    yield "T3 extended", 5, flip + b"\0", Reason.FORM
    yield "T3 of another head before it", 5, messages(**other_head(6))["flip"], Reason.PROOF
    yield "T3 with card number 48", 5, patch(flip, 0, b"\x30"), Reason.CARD
    yield "T3 with the card just played", 5, patch(flip, 0, bytes([dealer.hand[0]])), Reason.POSITION
    yield "T3 with another card of the hand", 5, patch(flip, 0, bytes([dealer.hand[3]])), Reason.PROOF
    yield "T3 with the opening of a hand card", 5, dealer._open([1], bytes.fromhex(DEAL["h"][6]), FRESH), Reason.PROOF
    yield "T3 with proof s + L", 5, plus_order(flip, len(flip) - 32), Reason.FORM


SOURCES: tuple[Callable[[dict[str, bytes]], Iterator[Forgery]], ...] = (
    first_shuffle,
    second_shuffle,
    field_shown,
    played,
    token_given,
    flipped,
)


def cases() -> list[dict[str, Any]]:
    """All forgeries in the form of a vector file."""
    honest = messages()
    return [
        {"name": name, "kind": "receive", "deal": DEAL, "message": number, "payload": payload.hex(), "reason": reason}
        for source in SOURCES
        for name, number, payload, reason in source(honest)
    ]
