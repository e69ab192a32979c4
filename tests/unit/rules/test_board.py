"""The state machine of docs/rules.md sections 5, 7, 9 and 11, driven as a seat drives it."""

from __future__ import annotations

import pytest
from koikoi_sdk.rules import Board, Phase, Reason, ResultKind, RulesError, card_number, start, variant
from koikoi_sdk.rules.cards import cards, names_of

FIELD = "01-1 01-2 02-1 02-2 03-1 04-1 05-1 06-1"
THREE = "01-1 01-2 01-3 02-1 02-2 03-1 04-1 05-1"


def board(dealt=FIELD, preset="house", dealer=0, overrides=(), **changes) -> Board:
    begun = start(variant(preset, dict(overrides)), dealer, (25, 25), cards(dealt))
    return Board(**{name: getattr(begun, name) for name in Board.__slots__} | changes)


def c(name):
    return card_number(name)


def refused(reason, field, call, *args):
    with pytest.raises(RulesError) as caught:
        call(*args)
    assert (caught.value.reason, caught.value.field) == (reason, field)


def test_the_dealer_starts():
    assert (board(dealer=1).mover, board(dealer=1).turn, board().phase) == (1, 1, Phase.PLAY)


@pytest.mark.parametrize("size", [7, 9])
def test_a_field_has_eight_cards(size):
    refused(Reason.BAD_FIELD, "field", start, variant("house"), 0, (25, 25), frozenset(range(0, 4 * size, 4)))


def test_a_field_has_cards_only():
    refused(Reason.BAD_FIELD, "field", start, variant("house"), 0, (25, 25), frozenset({48, *range(1, 28, 4)}))


def test_no_match_the_card_stays():
    after = board().play(c("07-1"))
    assert after.phase is Phase.FLIP
    assert after.field == cards(FIELD + " 07-1")
    assert after.captures == (frozenset(), frozenset())


def test_one_match_is_never_optional():
    after = board().play(c("03-2"))
    assert after.captures[0] == cards("03-1 03-2")
    assert after.field == cards(FIELD) - cards("03-1")


def test_two_matches_the_player_chooses():
    assert [names_of([t]) for t in board().choices(c("01-3"))] == [["01-1"], ["01-2"]]
    after = board(dealer=1).play(c("01-3"), c("01-2"))
    assert after.captures == (frozenset(), cards("01-2 01-3"))
    assert c("01-1") in after.field


def test_three_matches_take_all():
    assert board(THREE).choices(c("01-4")) == ()
    assert board(THREE).play(c("01-4")).captures[0] == cards("01-1 01-2 01-3 01-4")


@pytest.mark.parametrize(
    ("card", "target"),
    [("01-3", None), ("01-3", "02-1"), ("03-2", "03-1"), ("07-1", "01-1"), ("07-1", "07-1")],
)
def test_a_wrong_target(card, target):
    refused(Reason.ILLEGAL_ACTION, "target", board().play, c(card), None if target is None else c(target))


@pytest.mark.parametrize("card", [-1, 48, 0])
def test_a_card_that_cannot_come_to_the_table(card):
    refused(Reason.ILLEGAL_ACTION, "card", board().play, card)
    refused(Reason.ILLEGAL_ACTION, "card", board(phase=Phase.FLIP).flip, card)


def test_a_card_that_lies_there_already_cannot_be_turned():
    holding = board(phase=Phase.FLIP, captures=(cards("01-3 07-1"), frozenset()))
    refused(Reason.ILLEGAL_ACTION, "card", holding.flip, c("01-3"))


def test_the_turned_card_may_capture_the_card_just_played():
    after = board().play(c("07-1")).flip(c("07-2"))
    assert after.captures[0] == cards("07-1 07-2")
    assert (after.phase, after.turn, after.mover) == (Phase.PLAY, 2, 1)


def test_the_player_chooses_for_the_turned_card():
    choosing = board().play(c("07-1")).flip(c("02-3"))
    assert (choosing.phase, choosing.drawn, choosing.mover, choosing.turn) == (Phase.DRAW_CHOICE, c("02-3"), 0, 1)
    assert c("02-3") in choosing.seen
    refused(Reason.ILLEGAL_ACTION, "target", choosing.take, c("01-1"))
    after = choosing.take(c("02-2"))
    assert after.captures[0] == cards("02-2 02-3")
    assert after.drawn is None


def test_each_phase_asks_for_its_own_action():
    playing = board()
    for call, args in [(playing.flip, (9,)), (playing.take, (0,)), (playing.shobu, ()), (playing.koikoi, ())]:
        refused(Reason.ILLEGAL_ACTION, "action", call, *args)
    refused(Reason.ILLEGAL_ACTION, "action", playing.play(c("07-1")).play, c("08-1"))


def deciding(turn=1, dealer=0, held="03-1 08-1 09-1", preset="house", **changes):
    """Let the mover capture a plain pair on top of what it holds, in the given turn."""
    mover = dealer if turn % 2 else 1 - dealer
    captures = [frozenset(), frozenset()]
    captures[mover] = cards(held)
    state = {"turn": turn, "mover": mover, "captures": tuple(captures), "field": cards("02-3 04-3")} | changes
    return board(dealer=dealer, preset=preset, **state).play(c("02-4")).flip(c("12-4"))


def test_a_yaku_leads_to_a_decision_once_both_cards_are_resolved():
    after = deciding()
    assert (after.phase, after.options(), after.base) == (Phase.DECISION, ("shobu", "koikoi"), (10, 0))
    assert after.yaku(0) == (("hanami", 5), ("tsukimi", 5))


def test_no_evaluation_between_the_two_cards():
    halfway = board(captures=(cards("08-1 03-3"), frozenset()), field=cards("09-1 03-1")).play(c("09-2"))
    assert (halfway.phase, halfway.options(), halfway.base) == (Phase.FLIP, (), (5, 0))


def test_koikoi_raises_the_threshold_and_passes():
    after = deciding().koikoi()
    assert (after.phase, after.turn, after.mover) == (Phase.PLAY, 2, 1)
    assert (after.koikoi_count, after.thresholds) == ((1, 0), (10, 0))


def test_a_total_that_did_not_rise_since_the_own_koikoi_is_no_decision():
    assert deciding(thresholds=(10, 0)).phase is Phase.PLAY
    assert deciding(thresholds=(9, 0)).phase is Phase.DECISION
    assert deciding(thresholds=(0, 99)).phase is Phase.DECISION


def test_the_opponents_yaku_never_trigger_a_decision():
    holding = board(captures=(frozenset(), cards("03-2 08-1 09-1 12-1 01-1 03-1")), field=cards("02-3 04-3"))
    assert holding.play(c("02-4")).flip(c("12-4")).phase is Phase.PLAY


def test_a_decision_cannot_be_declined():
    for call in (deciding().play, deciding().flip, deciding().take):
        refused(Reason.ILLEGAL_ACTION, "action", call, c("05-4"))


def test_koikoi_any_number_of_times_by_both_in_house():
    assert deciding(koikoi_count=(3, 4), thresholds=(5, 5)).options() == ("shobu", "koikoi")


def test_only_shobu_on_the_last_turn():
    last = deciding(turn=16)
    assert (last.mover, last.options()) == (1, ("shobu",))
    refused(Reason.ILLEGAL_ACTION, "action", last.koikoi)
    assert last.shobu().result.winner == 1


def test_the_dealer_may_go_on_in_turn_15():
    assert deciding(turn=15).options() == ("shobu", "koikoi")
    assert deciding(turn=15).koikoi().turn == 16


@pytest.mark.parametrize("counts", [(1, 0), (0, 1)])
def test_nintendo_forces_shobu_after_any_koikoi(counts):
    assert deciding(preset="nintendo").options() == ("shobu", "koikoi")
    forced = deciding(preset="nintendo", koikoi_count=counts, thresholds=(1, 1))
    assert forced.options() == ("shobu",)
    refused(Reason.ILLEGAL_ACTION, "action", forced.koikoi)


def test_wikipedia_en_lets_a_player_repeat():
    assert deciding(preset="wikipedia_en", koikoi_count=(3, 0)).options() == ("shobu", "koikoi")


def test_shobu_ends_the_round():
    over = deciding().shobu()
    assert (over.phase, over.result.kind, over.result.winner, over.turn) == (Phase.OVER, ResultKind.SHOBU, 0, 1)
    for call, args in [(over.play, (1,)), (over.flip, (1,)), (over.take, (1,)), (over.shobu, ()), (over.koikoi, ())]:
        refused(Reason.ROUND_OVER, "action", call, *args)
    refused(Reason.ROUND_OVER, "action", over.void, "hand")
    refused(Reason.ROUND_OVER, "action", over.claim, ("teshi", None))


def test_turn_16_without_a_decision_exhausts_the_round():
    over = deciding(turn=16, held="", koikoi_count=(1, 2))
    assert (over.phase, over.result.kind, over.result.koikoi) == (Phase.OVER, ResultKind.EXHAUSTED, (1, 2))


def test_three_of_a_month_on_the_field_is_a_valid_deal():
    assert board(THREE).phase is Phase.PLAY


@pytest.mark.parametrize("preset", ["house", "nintendo", "sdin", "boardgameland", "wikipedia_ja", "wikipedia_en"])
def test_four_of_a_month_on_the_field_void_the_deal(preset):
    void = board("01-1 01-2 01-3 01-4 02-1 03-1 04-1 05-1", preset, dealer=1)
    assert (void.phase, void.turn, void.result.kind, void.result.why) == (
        Phase.OVER,
        0,
        ResultKind.REDEAL,
        ("field",),
    )
    assert (void.result.next_dealer, void.result.points_after) == (1, (25, 25))
    assert void.void("hand").result.why == ("field", "hand")
    refused(Reason.ROUND_OVER, "action", void.claim, ("teshi", None))


def test_a_hand_that_voids_the_deal_is_told():
    void = board(preset="boardgameland").void("hand")
    assert (void.result.kind, void.result.why, void.turn) == (ResultKind.REDEAL, ("hand",), 0)


def test_a_hand_yaku_is_told():
    over = board().claim((None, "kuttsuki"))
    assert (over.phase, over.turn, over.result.kind, over.result.winner) == (Phase.OVER, 1, ResultKind.TEYAKU, 1)


def test_nothing_is_told_after_the_first_play():
    for later in (board().play(c("07-1")), board().play(c("07-1")).flip(c("08-1"))):
        refused(Reason.ILLEGAL_ACTION, "action", later.claim, ("teshi", None))
        refused(Reason.ILLEGAL_ACTION, "action", later.void, "hand")
