"""A claim counts only when both devices of its contract signed exactly its statement."""

import hashlib
from dataclasses import replace

import pytest
from nacl import bindings

from services.kit.signatures import tagged, verify
from services.ranking.domain.contract import parse_contract
from services.ranking.domain.errors import (
    ContractMismatch,
    FieldInvalid,
    RankingError,
    SignatureInvalid,
    StatementImpossible,
    StatementMalformed,
)
from services.ranking.domain.result import Claim, check_sizes, prove
from tests.unit.ranking.cases import (
    LOBBY_ISSUER,
    TORSION,
    Device,
    add_order,
    encode,
    make_game,
    play,
    sign_game,
    sign_with_point,
)


def claim_of(game, **changes):
    return replace(Claim("contract", game.statement, game.signatures), **changes)


def prove_game(game, **changes):
    contract = parse_contract(game.payload, issuer=LOBBY_ISSUER)
    return prove(claim_of(game, **changes), contract, key_id="k", public_key=bytes(32))


def test_an_honest_result_is_proven():
    game = make_game()
    proof = prove_game(game)
    assert proof.statement.winner == 1
    assert proof.contract.seats[0].account_id == game.devices[0].account
    assert (proof.key_id, proof.public_key) == ("k", bytes(32))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"contract": ""}, "contract"),
        ({"contract": "c" * 4097}, "contract"),
        ({"statement": b""}, "statement"),
        ({"statement": bytes(513)}, "statement"),
        ({"signatures": ()}, "signatures"),
        ({"signatures": (bytes(64),)}, "signatures"),
        ({"signatures": (bytes(64), b"")}, "signatures"),
        ({"signatures": (bytes(63), bytes(64))}, "signatures"),
        ({"signatures": (bytes(64), bytes(65))}, "signatures"),
        ({"signatures": (bytes(64),) * 3}, "signatures"),
    ],
)
def test_sizes_are_checked_before_anything_else(changes, field):
    with pytest.raises(FieldInvalid) as caught:
        check_sizes(replace(Claim("c", bytes(104), (bytes(64),) * 2), **changes))
    assert caught.value.field == field


def test_sizes_of_an_honest_claim_are_fine():
    check_sizes(Claim("c" * 4096, bytes(512), (bytes(64),) * 2))


def bad_signatures(game):
    (first, second), statement = game.signatures, game.statement
    digest, stranger = tagged("match-result", statement), Device()
    flipped = bytearray(second)
    flipped[40] ^= 1
    return {
        "swapped": ((second, first), 0),
        "one device signed both": ((first, game.devices[0].sign(statement)), 1),
        "a stranger's": ((first, stranger.sign(statement)), 1),
        "zeros": ((bytes(64), second), 0),
        "S + L": ((first, add_order(second)), 1),
        "R with torsion": ((sign_with_point(game.devices[0], digest, TORSION), second), 0),
        "R of small order": ((first, sign_with_point(game.devices[1], digest, None, has_nonce=False)), 1),
        "a flipped bit": ((first, bytes(flipped)), 1),
        "another label": ((bytes(game.devices[0].key.sign(tagged("msg", statement)).signature), second), 0),
        "the bare statement": ((bytes(game.devices[0].key.sign(statement).signature), second), 0),
        "another statement": ((first, game.devices[1].sign(statement[:-1] + b"x")), 1),
    }


@pytest.mark.parametrize("name", sorted(bad_signatures(make_game())))
def test_a_bad_signature_is_refused_and_its_seat_named(name):
    game = make_game()
    signatures, seat = bad_signatures(game)[name]
    with pytest.raises(SignatureInvalid) as caught:
        prove_game(game, signatures=signatures)
    assert caught.value.metadata == {"seat": str(seat)}


def test_signatures_made_by_hand_are_good_ones_without_the_trick():
    """The torsion case would be worthless if the hand-made signature failed for another reason."""
    device = Device()
    assert verify(device.public_key, sign_with_point(device, b"m", None), b"m")
    assert not verify(device.public_key, sign_with_point(device, b"m", TORSION), b"m")
    point = TORSION
    for _ in range(3):  # doubled three times, a point of order 8 is the identity
        point = bindings.crypto_core_ed25519_add(point, point)
    assert point == bytes([1]) + bytes(31)


def test_every_flipped_byte_of_the_statement_is_refused():
    game = make_game()
    for position in range(len(game.statement)):
        for mask in (0x01, 0x80, 0xFF):
            doctored = bytearray(game.statement)
            doctored[position] ^= mask
            with pytest.raises(RankingError):
                prove_game(game, statement=bytes(doctored))


def test_a_statement_of_another_contract_is_refused_though_both_signed_it():
    game, other = make_game(), make_game()
    moved = sign_game(game.devices, game.payload, other.statement)
    with pytest.raises(ContractMismatch):
        prove_game(moved)


def test_impossible_points_are_refused_though_both_signed_them():
    with pytest.raises(StatementImpossible):
        prove_game(make_game(lies={"points": (50, 0), "ending": 1, "winner": 0}))


def test_a_malformed_statement_is_refused_though_both_signed_it():
    game = make_game()
    with pytest.raises(StatementMalformed):
        prove_game(sign_game(game.devices, game.payload, game.statement + b"\0"))


def test_the_rules_are_those_of_the_contract():
    """A result that is fine in 12 rounds is not one of a contract of 6."""
    devices = (Device(), Device())
    payload = make_game(*devices).payload
    match = play("house", *[("exhausted",)] * 12, count=12)
    statement = encode(match, hashlib.sha256(payload).digest())
    with pytest.raises(StatementImpossible):
        prove_game(sign_game(devices, payload, statement))
