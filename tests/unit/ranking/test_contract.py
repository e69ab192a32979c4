"""A contract payload whose signature verified is still read strictly."""

import hashlib
import json

import pytest

from services.ranking.domain.contract import check_age, parse_contract
from services.ranking.domain.errors import ContractInvalid, ContractTooOld
from tests.unit.ranking.cases import LOBBY_ISSUER, NOW, Device, contract_members, encode_json, rules_text

TARO, HANA = Device(name="Taro"), Device(name="花")
WEEK = 7 * 24 * 3600


def parse(**changes):
    return parse_contract(encode_json(contract_members(TARO, HANA, **changes)), issuer=LOBBY_ISSUER)


def seats(**changes):
    return [TARO.seat() | changes, HANA.seat()]


def without(members, name):
    return {key: value for key, value in members.items() if key != name}


def test_a_contract_reads_as_the_lobby_wrote_it():
    payload = encode_json(contract_members(TARO, HANA))
    contract = parse_contract(payload, issuer=LOBBY_ISSUER)
    assert str(contract.match_id) == json.loads(payload)["jti"]
    assert contract.hash == hashlib.sha256(payload).digest()
    assert contract.is_ranked
    assert contract.create_time == NOW
    assert (contract.rules.preset, contract.rules.rounds) == ("house", 6)
    assert [(seat.account_id, seat.display_name, seat.key) for seat in contract.seats] == [
        (TARO.account, "Taro", TARO.public_key),
        (HANA.account, "花", HANA.public_key),
    ]


def test_an_unranked_contract_may_have_ranked_rules():
    assert not parse(ranked=False).is_ranked


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"iss": "https://lobby.koikoi/production"}, "iss"),
        ({"iss": None}, "iss"),
        ({"jti": "0190163d-8694-4000-8000-000000000000"}, "jti"),
        ({"jti": "0190163D-8694-7000-8000-00000000000F"}, "jti"),
        ({"jti": "0190163d869470008000000000000000"}, "jti"),
        ({"jti": "x"}, "jti"),
        ({"jti": 7}, "jti"),
        ({"iat": 1.5}, "iat"),
        ({"iat": True}, "iat"),
        ({"iat": -1}, "iat"),
        ({"iat": NOW + 3 * 3600}, "iat"),
        ({"exp": "soon"}, "iat"),
        ({"ranked": 1}, "ranked"),
        ({"ranked": True, "rules": rules_text("nintendo", 12)}, "ranked"),
        ({"ranked": True, "rules": rules_text(double_at=None)}, "ranked"),
        ({"rules": {"preset": "house"}}, "rules"),
        ({"rules": rules_text("chess")}, "rules.preset"),
        ({"rules": rules_text(rounds=7)}, "rules.rounds"),
        ({"rules": rules_text() + " "}, "rules.rules"),
        ({"extra": 1}, "payload"),
        ({"seats": []}, "seats"),
        ({"seats": {}}, "seats"),
        ({"seats": [TARO.seat()] * 3}, "seats"),
        ({"seats": [TARO.seat(), TARO.seat()]}, "seats"),
        ({"seats": seats(account=HANA.account)}, "seats"),
        ({"seats": seats(key=HANA.seat()["key"])}, "seats"),
        ({"seats": [1, 2]}, "seats[0]"),
        ({"seats": seats(extra="")}, "seats[0]"),
        ({"seats": [without(TARO.seat(), "name"), HANA.seat()]}, "seats[0]"),
        ({"seats": seats(account="")}, "seats[0].account"),
        ({"seats": seats(account=5)}, "seats[0].account"),
        ({"seats": seats(account="a" * 257)}, "seats[0].account"),
        ({"seats": seats(name="a\0b")}, "seats[0].name"),
        ({"seats": seats(name="\ud800")}, "seats[0].name"),
        ({"seats": seats(avatar=None)}, "seats[0].avatar"),
        ({"seats": seats(key=TARO.seat()["key"] + "=")}, "seats[0].key"),
        ({"seats": seats(key=TARO.seat()["key"][:-1])}, "seats[0].key"),
        ({"seats": seats(key="é")}, "seats[0].key"),
        ({"seats": seats(key=5)}, "seats[0].key"),
    ],
)
def test_what_breaks_the_format_is_refused_by_name(changes, field):
    with pytest.raises(ContractInvalid) as caught:
        parse(**changes)
    assert caught.value.metadata["part"] == field
    assert caught.value.field == "contract"


@pytest.mark.parametrize("payload", [b"", b"[]", b"null", b"{", b"\xff", b"[" * 4000, b'{"iss":1,"iss":2}', b"{}"])
def test_what_is_no_contract_at_all_is_refused(payload):
    with pytest.raises(ContractInvalid):
        parse_contract(payload, issuer=LOBBY_ISSUER)


def test_results_are_taken_for_seven_days_whatever_the_contract_says_of_itself():
    contract = parse()
    check_age(contract, NOW - 60)
    check_age(contract, NOW + WEEK)
    with pytest.raises(ContractTooOld):
        check_age(contract, NOW + WEEK + 1)
    with pytest.raises(ContractInvalid):
        check_age(contract, NOW - 61)
