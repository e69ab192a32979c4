from koikoi_sdk.poker import digest
from koikoi_sdk.rules import variant
from koikoi_sdk.rules.scoring import settle_exhausted, settle_shobu, settle_teyaku
from koikoi_sdk.table import Ending, SignedResult, Statement
from koikoi_sdk.table.statement import encode_round, hash_round

HOUSE = variant("house")


def test_a_shobu_says_score_before_the_cap():
    result = settle_shobu(HOUSE, (30, 20), (0, 1), 0, (("goko", 10),))
    assert encode_round(result).hex() == "00000028001400320000"  # 40 points, 20 paid


def test_an_exhausted_round_has_no_winner():
    assert encode_round(settle_exhausted(HOUSE, (30, 20), (0, 0), 0)).hex() == "01ff00000000001e0014"


def test_an_awarded_exhausted_round_has_its_receiver():
    result = settle_exhausted(variant("wikipedia_en"), (3, 4), (0, 0), 1)
    assert encode_round(result).hex() == "01010001000100030005"


def test_a_hand_yaku_has_kind_2():
    result = settle_teyaku(HOUSE, (25, 25), 0, (None, "teshi"))
    assert encode_round(result).hex() == "0201000600060013001f"


def test_a_rounds_hash_binds_match_and_number():
    hashes = {hash_round(mid, number, b"r") for mid in (b"m" * 32, b"n" * 32) for number in (1, 2)}
    assert len(hashes) == 4
    assert hash_round(b"m" * 32, 258, b"r") == digest("round-result", b"m" * 32, b"\x01\x02", b"r")[:32]


def test_the_statement_has_one_layout():
    statement = Statement(b"c" * 32, b"s" * 32, Ending.BUST, 1, (0, 50), (b"r" * 10, b"q" * 10), b"h" * 32)
    assert statement.encode() == (
        b"\x01"
        + b"c" * 32
        + b"s" * 32
        + b"\x01\x01"
        + b"\x00\x00\x00\x32"
        + b"\x02"
        + b"r" * 10
        + b"q" * 10
        + b"h" * 32
    )
    result = SignedResult(statement, (b"a" * 64, b"b" * 64))
    assert result.digest == digest("match-result", statement.encode())


def test_a_draw_is_winner_2():
    statement = Statement(b"c" * 32, b"s" * 32, Ending.PLAYED, None, (25, 25), (), b"h" * 32)
    assert statement.encode()[65:72].hex() == "00020019001900"
