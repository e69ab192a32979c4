"""The rules of the relay, one promise per test. Times are milliseconds; the clock starts at 0."""

import secrets
from dataclasses import replace

import pytest

from services.match.domain import recovery, relay
from services.match.domain.deadlines import Clock, Limits
from services.match.domain.envelope import Envelope, digest
from services.match.domain.errors import (
    EnvelopeConflict,
    EnvelopeInvalid,
    FrameInvalid,
    MatchClosed,
    NotYourTurn,
    Superseded,
)
from services.match.domain.match import Match, Presence
from services.match.domain.outcomes import Ending, Outcome

LIMITS = Limits()
EPOCH, NEW_EPOCH = b"epoch--0", b"epoch--1"
LIMIT_MS = 7_200_000


def sealed(number: int, size: int = 653) -> bytes:
    return secrets.token_bytes(131 if number < 2 else size)


def join(match: Match, seat: int, *, position: int = 0, now: int = 0, name: str = "", process: str = "p") -> Match:
    return relay.join(match, seat, (name or f"c{seat}", process), position, now, NEW_EPOCH, LIMITS)


def fresh(first_seat: int = 0) -> Match:
    return relay.create(first_seat, 0, LIMIT_MS, EPOCH, LIMITS)


def both(first_seat: int = 0) -> Match:
    return join(join(fresh(first_seat), 0), 1)


def send(match: Match, number: int, phase: int, *, now: int = 0, data: bytes | None = None, seat: int | None = None):
    seat = match.owner(number) if seat is None else seat
    data = sealed(number) if data is None else data
    return relay.accept(match, seat, match.seats[seat].connection, Envelope(number, phase, data), now, LIMITS)


def play(match: Match, *phases: int, now: int = 0) -> Match:
    for phase in phases:
        match = send(match, match.counter, phase, now=now)
    return match


def begun(now: int = 0) -> Match:
    """Both HELLOs, coin, four messages of the deal: seat 1 owes number 7 after phase 3."""
    return play(both(), 0, 0, 1, 2, 2, 3, 3, now=now)


# --- order -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first_seat", [0, 1])
def test_device_a_sends_even_numbers_and_b_odd_ones(first_seat: int):
    match = both(first_seat)
    assert match.owing == first_seat
    assert [match.owner(number) for number in range(3)] == [first_seat, 1 - first_seat, first_seat]
    match = play(match, 0)
    assert match.owing == 1 - first_seat


def test_a_seat_cannot_send_the_number_its_opponent_owes():
    """Only the seat that owes can advance the match."""
    match = both()
    with pytest.raises(NotYourTurn, match="other seat"):
        send(match, 0, 0, seat=1)


@pytest.mark.parametrize("number", [3, 9, 2**32 - 1])
def test_a_number_ahead_is_refused(number: int):
    with pytest.raises(NotYourTurn, match="expects number 1"):
        send(play(both(), 0), number, 1)


def test_a_number_long_gone_is_refused():
    with pytest.raises(NotYourTurn, match="expects number 7"):
        send(begun(), 2, 1)


def test_the_highest_number_is_never_accepted():
    match = replace(begun(), counter=2**32 - 1)
    with pytest.raises(NotYourTurn):
        send(match, 2**32 - 1, 3)


def test_the_same_envelope_again_changes_nothing():
    data = sealed(0)
    match = send(both(), 0, 0, data=data)
    assert send(match, 0, 0, data=data, now=500) is match
    match = play(match, 0)
    assert send(match, 0, 0, data=data, now=900) is match  # also after the answer


def test_other_bytes_under_a_stored_number_conflict():
    match = send(both(), 0, 0)
    with pytest.raises(EnvelopeConflict):
        send(match, 0, 0)
    with pytest.raises(EnvelopeConflict):
        send(play(match, 0), 0, 0)


def test_an_append_moves_everything_that_depends_on_it():
    first, second = sealed(0), sealed(1)
    one = send(both(), 0, 0, data=first, now=10)
    two = send(one, 1, 0, data=second, now=30)
    assert (two.counter, two.sealed, two.phase, two.before) == (2, second, 0, digest(first))
    assert two.owed_since_ms == 30
    rolling = digest(bytes(32) + bytes(4) + digest(first))
    assert two.rolling == digest(rolling + b"\0\0\0\1" + digest(second))


@pytest.mark.parametrize("size", [*range(131, 146, 2)])
def test_hello_sizes(size: int):
    assert send(both(), 0, 0, data=bytes(size)).counter == 1


@pytest.mark.parametrize("size", [0, 1, 130, 132, 144, 146, 147, 653, 3725, 9357, 16_000])
def test_other_sizes_are_no_hello(size: int):
    with pytest.raises(EnvelopeInvalid) as caught:
        send(both(), 0, 0, data=bytes(size))
    assert caught.value.field == "envelope.sealed"


@pytest.mark.parametrize("size", [653, 3725, 9357])
def test_sealed_sizes(size: int):
    assert send(play(both(), 0, 0), 2, 1, data=bytes(size)).counter == 3


@pytest.mark.parametrize("size", [0, 131, 145, 652, 654, 3724, 3726, 9356, 9358])
def test_other_sizes_are_no_sealed_message(size: int):
    with pytest.raises(EnvelopeInvalid):
        send(play(both(), 0, 0), 2, 1, data=bytes(size))


@pytest.mark.parametrize(("number", "phase"), [(0, 1), (0, 6), (1, 1), (2, 0), (2, 7), (2, 255)])
def test_phase_zero_belongs_to_numbers_zero_and_one(number: int, phase: int):
    match = play(both(), *(0,) * number)
    with pytest.raises(EnvelopeInvalid) as caught:
        send(match, number, phase)
    assert caught.value.field == "envelope.phase"


SUCCESSIONS = {"00", "01", "12", "22", "23", "32", "33", "34", "35", "44", "45", "55", "52", "66"} | {
    f"{phase}6" for phase in range(6)
}


@pytest.mark.parametrize("last", range(7))
@pytest.mark.parametrize("phase", range(1, 7))
def test_only_the_listed_successions(last: int, phase: int):
    match = replace(play(both(), 0, 0), phase=last)
    if f"{last}{phase}" in SUCCESSIONS:
        assert send(match, 2, phase).phase == phase
    else:
        with pytest.raises(EnvelopeInvalid, match="cannot follow"):
            send(match, 2, phase)


def test_after_the_second_envelope_of_phase_6_nobody_owes_and_no_number_is_accepted():
    match = play(begun(), 6, 6)
    assert match.owing is None
    with pytest.raises(NotYourTurn):
        play(match, 6)


def test_nothing_is_stored_in_a_closed_match():
    match = relay.dispute(begun(), 0, "c0", 4, 5)
    for act in (
        lambda: send(match, 7, 3),
        lambda: relay.finish(match, 0, "c0", 6, is_proved=True),
        lambda: relay.resign(match, 0, "c0", 6, LIMITS),
        lambda: relay.dispute(match, 1, "c1", 1, 6),
    ):
        with pytest.raises(MatchClosed):
            act()


# --- presence --------------------------------------------------------------------------------------------------------


def test_a_newer_connection_supersedes_the_older():
    match = join(both(), 0, name="newer")
    with pytest.raises(Superseded):
        relay.accept(match, 0, "c0", Envelope(0, 0, sealed(0)), 0, LIMITS)
    assert relay.depart(match, 0, "c0", 5) is match  # the older one's end says nothing
    assert match.seats[0].joins == 2


def test_going_and_coming_back():
    match = relay.depart(both(), 1, "c1", 5)
    assert match.seats[1].presence is Presence.GONE
    assert relay.depart(match, 1, "c1", 6) is match
    assert join(match, 1, now=7, name="again").seats[1].is_connected


def test_only_the_owing_seat_s_presence_moves_the_clock():
    match = both()
    assert relay.depart(match, 1, "c1", 500).clock == match.clock
    assert relay.depart(match, 0, "c0", 500).clock == Clock(500, 33_000 - 500, 60_000)


def test_the_turn_waits_while_the_owing_seat_is_gone_and_both_are_budgets():
    match = begun()
    assert match.owing == 1
    assert match.deadline_ms == 63_000
    match = relay.depart(match, 1, "c1", 40_000)
    assert match.deadline_ms == 100_000
    match = join(match, 1, position=7, now=90_000)
    assert match.deadline_ms == 90_000 + 23_000
    match = relay.depart(match, 1, "c1", 100_000)
    assert match.deadline_ms == 100_000 + 10_000  # 50 s of being gone are used up


def test_time_never_runs_backwards():
    match = relay.depart(begun(now=1000), 1, "c1", 400)
    assert match.clock == Clock(1000, 63_000, 60_000)
    assert join(match, 1, position=7, now=300).clock == Clock(1000, 63_000, 60_000)


def test_a_departure_that_the_store_could_not_take_does_not_charge_the_outage():
    """Seat 1 owes and leaves at 5 s; the store is away from 1 s to 71 s, which was credited before it is told."""
    match = relay.depart(begun().shifted(70_000), 1, "c1", 5_000)
    assert relay.expire(match, 71_000) is match
    assert match.deadline_ms == 70_000 + 60_000


def test_a_dead_process_makes_presence_unknown_and_charges_nothing_since_it_was_heard():
    match = begun()
    after = relay.lose_processes(match, {"p": 10_000}, 13_500, LIMITS)
    assert [seat.presence for seat in after.seats] == [Presence.UNKNOWN] * 2
    assert after.clock == Clock(13_500, 53_000, 60_000)
    assert relay.lose_processes(match, {"other": 1}, 13_500, LIMITS) is match


def test_a_doubted_seat_that_was_gone_before_has_its_whole_gone_time():
    match = join(relay.depart(begun(), 1, "c1", 0), 1, position=7, now=50_000)
    after = relay.doubt(match, 1, "c1", 50_000, 50_000, LIMITS)
    assert after.deadline_ms == 110_000


def test_doubt_says_nothing_about_another_connection_or_a_seat_that_is_gone():
    match = begun()
    assert relay.doubt(match, 1, "other", 0, 0, LIMITS) is match
    gone = relay.depart(match, 1, "c1", 0)
    assert relay.doubt(gone, 1, "c1", 0, 0, LIMITS) is gone


def test_a_process_that_lives_after_all_speaks_up():
    match = relay.doubt(begun(), 1, "c1", 5, 5, LIMITS)
    assert relay.summon(match, 1, "c1", 9).seats[1].is_connected
    assert relay.summon(match, 1, "other", 9) is match
    assert relay.summon(match, 0, "c0", 9) is match  # was never doubted
    ended = relay.expire(match, LIMIT_MS)
    assert relay.summon(ended, 1, "c1", 9) is ended


def test_a_doubt_while_a_clock_runs_that_charges_nobody_leaves_it():
    match = play(begun(), 6)
    match = relay.resign(match, 1, "c1", 50, LIMITS)
    assert match.owing == 0
    assert relay.doubt(match, 0, "c0", 50, 60, LIMITS).clock == match.clock
    assert relay.depart(match, 0, "c0", 60).clock == match.clock


def test_a_closed_match_ignores_coming_and_going():
    match = relay.dispute(begun(), 0, "c0", 4, 5)
    assert join(match, 0, name="x") is match
    assert relay.depart(match, 0, "c0", 9) is match
    assert relay.lose_processes(match, {"p": 1}, 9, LIMITS) is match
    assert relay.expire(match, LIMIT_MS * 2) is match
    assert relay.revoke(match, 0, 9) is match
    assert match.owing is None
    assert match.due_ms is None
    assert match.shown_left_ms(0, LIMITS) is None


# --- deadlines -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phases", "turn_ms"),
    [
        ((), 30_000),
        ((0,), 20_000),
        ((0, 0), 20_000),
        ((0, 0, 1), 20_000),
        ((0, 0, 1, 2), 20_000),
        ((0, 0, 1, 2, 3), 60_000),
        ((0, 0, 1, 2, 3, 4), 60_000),
        ((0, 0, 1, 2, 3, 5), 20_000),
        ((0, 0, 6), 20_000),
    ],
)
def test_the_deadline_follows_the_last_envelope_s_phase(phases: tuple[int, ...], turn_ms: int):
    match = play(both(), *phases)
    assert match.due_ms == turn_ms + 3000
    assert match.shown_left_ms(0, LIMITS) == turn_ms  # the lag grace is not shown


def test_a_deadline_is_not_over_before_its_time():
    match = begun()
    assert relay.expire(match, 62_999) is match
    assert relay.expire(match, 63_000).ending == Ending(Outcome.STALLED, 63_000, 1)


def test_a_gone_seat_that_owes_is_charged_for_abandoning():
    match = relay.depart(begun(), 1, "c1", 1000)
    assert relay.expire(match, 60_999) is match
    assert relay.expire(match, 61_000).ending == Ending(Outcome.ABANDONED, 61_000, 1)
    assert match.shown_left_ms(1000, LIMITS) == 60_000


def test_a_gone_seat_that_does_not_owe_is_not_charged():
    match = relay.depart(begun(), 0, "c0", 0)
    assert relay.expire(match, 63_000).ending == Ending(Outcome.STALLED, 63_000, 1)


@pytest.mark.parametrize("phases", [(), (0,)])
def test_before_both_hellos_nobody_is_charged(phases: tuple[int, ...]):
    assert relay.expire(play(both(), *phases), 63_000).ending == Ending(Outcome.NEVER_STARTED, 63_000)
    assert relay.expire(play(join(fresh(), 0), *phases), 63_000).ending == Ending(Outcome.NEVER_STARTED, 63_000)


def test_leaving_after_both_hellos_counts():
    match = relay.depart(play(both(), 0, 0), 0, "c0", 0)
    assert relay.expire(match, 60_000).ending == Ending(Outcome.ABANDONED, 60_000, 0)


def test_the_whole_match_is_limited_and_that_charges_nobody():
    match = begun(now=LIMIT_MS - 100)
    assert match.due_ms == LIMIT_MS
    assert relay.expire(match, LIMIT_MS).ending == Ending(Outcome.EXPIRED, LIMIT_MS)


def test_time_in_which_the_relay_could_not_serve_moves_all_deadlines():
    match = begun().shifted(8000)
    assert (match.deadline_ms, match.limit_ms) == (71_000, LIMIT_MS + 8000)
    suspended = join(begun(), 0, position=8, now=0).shifted(8000)
    assert suspended.suspended is not None
    assert suspended.suspended.since_ms == 8000


# --- outcomes --------------------------------------------------------------------------------------------------------


def test_finished_needs_both_seats():
    match = play(begun(), 6, 6)
    one = relay.finish(match, 0, "c0", 5, is_proved=False)
    assert one.ending is None
    assert relay.finish(one, 0, "c0", 6, is_proved=False) is one
    assert relay.finish(one, 1, "c1", 7, is_proved=False).ending == Ending(Outcome.FINISHED, 7)


def test_finished_by_one_seat_with_both_signatures():
    match = play(begun(), 6)
    assert relay.finish(match, 0, "c0", 5, is_proved=True).ending == Ending(Outcome.FINISHED, 5)


def test_without_a_close_a_signed_match_is_finished_and_nobody_charged():
    match = relay.depart(play(begun(), 6, 6), 0, "c0", 1)
    assert relay.expire(match, 59_999) is match
    assert relay.expire(match, 60_000).ending == Ending(Outcome.FINISHED, 60_000)


def test_refusing_to_sign_is_a_stall():
    match = play(begun(), 6)
    assert relay.expire(match, 23_000).ending == Ending(Outcome.STALLED, 23_000, 0)


def test_a_resignation_stays_open_for_the_peer_s_one_envelope():
    match = relay.resign(play(begun(), 6), 1, "c1", 100, LIMITS)
    assert match.ending is None
    assert match.owing == 0
    assert relay.resign(match, 1, "c1", 900, LIMITS) is match
    assert play(match, 6, now=200).ending == Ending(Outcome.RESIGNED, 200, 1)
    assert relay.expire(match, 23_100).ending == Ending(Outcome.RESIGNED, 23_100, 1)


def test_finished_shown_by_the_peer_does_not_change_a_resignation():
    match = relay.resign(play(begun(), 6), 1, "c1", 100, LIMITS)
    match = relay.finish(match, 0, "c0", 150, is_proved=True)
    match = relay.finish(match, 1, "c1", 160, is_proved=False)
    assert match.ending is None
    assert relay.expire(match, 23_100).ending == Ending(Outcome.RESIGNED, 23_100, 1)


def test_a_resignation_said_after_the_peer_signed_closes_at_once():
    match = play(begun(), 6, 6)
    assert relay.resign(match, 1, "c1", 9, LIMITS).ending == Ending(Outcome.RESIGNED, 9, 1)


@pytest.mark.parametrize("phases", [(), (6,), (6, 6)])
def test_only_the_sender_of_the_first_closing_envelope_can_resign(phases: tuple[int, ...]):
    with pytest.raises(FrameInvalid) as caught:
        relay.resign(play(begun(), *phases), 0, "c0", 9, LIMITS)
    assert caught.value.field == "close.outcome"


@pytest.mark.parametrize("reason", [1, 13])
def test_a_dispute_by_either_closes_at_once(reason: int):
    for seat in (0, 1):
        ended = relay.dispute(begun(), seat, f"c{seat}", reason, 9)
        assert ended.ending == Ending(Outcome.DISPUTED, 9, None, reason)


@pytest.mark.parametrize("reason", [0, 14, 255])
def test_a_dispute_needs_a_reason_of_the_list(reason: int):
    with pytest.raises(FrameInvalid) as caught:
        relay.dispute(begun(), 0, "c0", reason, 9)
    assert caught.value.field == "close.dispute_reason"


def test_who_resigned_cannot_dispute_but_the_peer_can():
    match = relay.resign(play(begun(), 6), 1, "c1", 100, LIMITS)
    with pytest.raises(FrameInvalid, match="stands"):
        relay.dispute(match, 1, "c1", 1, 101)
    assert relay.dispute(match, 0, "c0", 10, 101).ending == Ending(Outcome.DISPUTED, 101, None, 10)


def test_a_revoked_device_abandons():
    assert relay.revoke(begun(), 0, 9).ending == Ending(Outcome.ABANDONED, 9, 0)
    assert relay.revoke(play(both(), 0), 0, 9).ending == Ending(Outcome.NEVER_STARTED, 9)
    assert relay.revoke(recovery.blank(0, 0, LIMIT_MS, EPOCH, LIMITS), 0, 9).ending == Ending(Outcome.ABANDONED, 9, 0)


@pytest.mark.parametrize("seat", [0, 1])
def test_signing_out_after_the_play_is_over_abandons_nothing(seat: int):
    assert relay.revoke(play(begun(), 6, 6), seat, 9).ending == Ending(Outcome.FINISHED, 9)
    resigned = relay.resign(play(begun(), 6), 1, "c1", 0, LIMITS)
    assert relay.revoke(resigned, seat, 9).ending == Ending(Outcome.RESIGNED, 9, 1)
    assert relay.revoke(play(begun(), 6), seat, 9).ending == Ending(Outcome.ABANDONED, 9, seat)


# --- what a seat is told ---------------------------------------------------------------------------------------------


def test_a_seat_misses_at_most_the_last_envelope_of_the_other():
    match = begun()
    assert match.missed(1, 6)
    assert match.missed(1, 5)
    assert not match.missed(1, 7)  # it has it
    assert not match.missed(0, 6)  # it sent it
    assert not both().missed(0, 0)  # there is none


def test_acknowledgements_name_the_last_stored_envelope_of_a_seat():
    match = both()
    assert (match.acknowledged(0), match.acknowledged(1)) == (None, None)
    match = play(match, 0)
    assert (match.acknowledged(0), match.acknowledged(1)) == (1, None)
    match = play(match, 0)
    assert (match.acknowledged(0), match.acknowledged(1)) == (1, 2)
