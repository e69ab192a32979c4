"""What happens when the store lost something: docs/architecture.md section 3, "Resume"."""

import pytest

from services.match.domain import recovery, relay
from services.match.domain.errors import EnvelopeConflict, EnvelopeInvalid, NotYourTurn
from services.match.domain.match import Match
from services.match.domain.outcomes import Ending, Outcome
from tests.unit.match.test_relay import EPOCH, LIMIT_MS, LIMITS, NEW_EPOCH, begun, fresh, join, play, sealed, send


def blank() -> Match:
    return recovery.blank(0, 0, LIMIT_MS, EPOCH, LIMITS)


@pytest.mark.parametrize(("first", "second"), [(20, 20), (20, 21), (20, 22), (22, 20), (21, 20)])
def test_after_total_loss_both_positions_settle_the_number(first: int, second: int):
    match = join(blank(), 0, position=first)
    assert match.is_recovering
    assert match.owing is None
    match = join(match, 1, position=second, now=100)
    assert not match.is_recovering
    assert (match.counter, match.epoch) == (max(first, second), NEW_EPOCH)
    assert match.owing is None  # until the message before has been sent again
    assert (match.sealed, match.before, match.rolling) == (b"", None, bytes(32))


def test_positions_further_apart_change_nothing_and_end_disputed_without_charge():
    match = join(join(blank(), 0, position=20), 1, position=23)
    assert match.is_recovering
    assert (match.epoch, match.counter) == (EPOCH, 0)
    assert relay.expire(match, 59_999) is match
    assert relay.expire(match, 60_000).ending == Ending(Outcome.DISPUTED, 60_000)


def test_one_seat_alone_cannot_recover_a_match():
    match = join(blank(), 0, position=20)
    assert relay.expire(match, 60_000).ending == Ending(Outcome.DISPUTED, 60_000)


def test_a_position_counts_only_while_its_seat_is_connected():
    match = join(blank(), 0, position=20)
    match = relay.depart(match, 0, "c0", 5)
    match = join(match, 1, position=20, now=6)
    assert match.is_recovering
    match = relay.doubt(match, 1, "c1", 7, 7, LIMITS)
    match = join(match, 0, position=20, now=8)
    assert match.is_recovering
    assert not join(match, 1, position=20, now=9).is_recovering


def test_the_owner_of_the_message_before_sends_it_again_with_any_phase():
    match = join(join(blank(), 0, position=20), 1, position=19)
    data = sealed(19)
    for phase in range(1, 7):
        again = send(match, 19, phase, data=data, now=50)
        assert (again.counter, again.sealed, again.phase) == (20, data, phase)
    assert again.recovery is None
    assert again.missed(0, 19)
    with pytest.raises(EnvelopeInvalid):
        send(match, 19, 0)
    with pytest.raises(EnvelopeConflict):
        send(again, 19, 3)


def test_the_next_message_may_come_before_the_one_sent_again():
    match = join(join(blank(), 0, position=20), 1, position=19)
    data = sealed(20)
    match = send(match, 20, 4, data=data)
    assert (match.counter, match.before) == (21, None)
    assert send(match, 19, 3) is match  # nothing is stored: answered like the same bytes again
    assert match.acknowledged(1) is None
    match = play(match, 4)
    assert send(match, 20, 4, data=data) is match


def test_a_message_two_before_is_answered_like_the_same_bytes_again():
    match = join(join(blank(), 0, position=20), 1, position=18)
    assert send(match, 18, 4) is match


def test_what_is_not_sent_again_ends_disputed():
    match = join(join(blank(), 0, position=20, now=0), 1, position=20, now=10_000)
    assert relay.expire(match, 59_999) is match
    assert relay.expire(match, 60_000).ending == Ending(Outcome.DISPUTED, 60_000)


def test_nothing_is_accepted_while_positions_are_awaited():
    match = join(blank(), 0, position=0)
    with pytest.raises(NotYourTurn, match="both seats"):
        send(match, 0, 0)


def test_a_match_lost_before_its_first_message_begins_again():
    match = join(join(blank(), 0), 1, now=100)
    assert match.recovery is None
    assert match.owing == 0
    assert match.due_ms == 100 + 33_000
    assert play(match, 0, 0).counter == 2


def test_a_lost_tail_is_found_by_the_seat_that_is_ahead():
    match = begun()  # counter 7
    match = join(match, 0, position=8, now=100, name="again")
    assert match.is_recovering
    match = join(match, 1, position=8, now=200, name="again")
    assert (match.counter, match.epoch, match.is_recovering) == (8, NEW_EPOCH, False)
    match = send(match, 7, 3)
    assert match.recovery is None
    assert match.recovery_left_ms == 60_000


def vouch(match: Match, seat: int, position: int, *, name: str = "") -> Match:
    return relay.vouch(match, seat, name or f"c{seat}", position, 150, NEW_EPOCH, LIMITS)


def test_a_connected_seat_need_not_join_again_to_say_its_position():
    match = join(begun(), 0, position=8, now=100, name="again")
    settled = vouch(match, 1, 7)
    assert (settled.counter, settled.epoch, settled.is_recovering) == (8, NEW_EPOCH, False)
    assert vouch(match, 1, 7, name="older") is match
    assert vouch(match, 0, 3, name="again") is match  # it said its own
    assert vouch(settled, 1, 7) is settled
    gone = relay.depart(match, 1, "c1", 120)
    assert vouch(gone, 1, 7) is gone
    ended = relay.dispute(match, 1, "c1", 1, 120)
    assert vouch(ended, 1, 7) is ended


def test_an_absent_peer_of_a_seat_that_is_ahead_is_not_charged():
    match = relay.depart(begun(), 1, "c1", 0)
    match = join(match, 0, position=8, now=100, name="again")
    assert relay.expire(match, 60_099) is match
    assert relay.expire(match, 60_100).ending == Ending(Outcome.DISPUTED, 60_100)


def test_a_withdrawn_lie_gains_no_time():
    """Seat 1 owes, lies about its position, waits, and takes it back: its turn goes on where it was."""
    match = begun()
    left = 63_000 - 1000
    for turn in range(2):
        start = 1000 + turn * 20_000
        match = join(match, 1, position=30, now=start, name=f"lie{turn}")
        match = join(match, 1, position=7, now=start + 20_000, name=f"back{turn}")
        assert match.recovery is None
        assert match.deadline_ms == start + 20_000 + left
    assert match.recovery_left_ms == 20_000
    match = join(match, 1, position=30, now=41_000, name="lie3")
    assert relay.expire(match, 61_000).ending == Ending(Outcome.DISPUTED, 61_000)
    late = join(match, 1, position=7, now=70_000, name="late")
    assert late.recovery_left_ms == 0


def test_a_lie_before_every_move_of_the_opponent_delays_the_match_by_one_repair_in_all():
    """Seat 0 keeps seat 1 from sending, again and again; the whole match has one minute for that."""
    match, now = begun(), 0
    for lie in range(3):
        assert match.owing == 1
        match = join(match, 0, position=30, now=now, name=f"lie{lie}")
        match = join(match, 0, position=match.counter, now=now + 19_000, name=f"back{lie}")
        now += 19_000
        match = play(match, 4, 4, now=now)
    assert match.recovery_left_ms == 3_000
    match = join(match, 0, position=30, now=now, name="last")
    assert relay.expire(match, now + 3_000).ending == Ending(Outcome.DISPUTED, now + 3_000)


def test_a_lie_about_a_gone_seat_s_turn_gives_it_no_time_either():
    match = relay.depart(begun(), 1, "c1", 0)
    match = join(match, 0, position=30, now=10_000, name="lie")
    match = join(match, 0, position=7, now=15_000, name="back")
    assert match.deadline_ms == 15_000 + 50_000


def test_a_second_claim_in_the_middle_of_a_repair_asks_both_again():
    match = join(join(blank(), 0, position=20), 1, position=20)
    match = join(match, 0, position=22, now=10, name="more")
    assert match.is_recovering
    match = join(match, 1, position=20, now=20, name="again")
    assert match.counter == 22
    match = join(match, 1, position=23, now=30, name="lie")
    match = join(match, 1, position=20, now=40, name="truth")
    match = join(match, 0, position=20, now=50, name="truth")
    assert match.counter == 20
    assert relay.expire(match, 60_000).ending == Ending(Outcome.DISPUTED, 60_000)


def test_a_seat_that_joins_during_the_repair_at_the_agreed_number_changes_nothing_else():
    match = join(join(blank(), 0, position=20), 1, position=20)
    again = join(match, 0, position=20, now=5, name="again")
    assert (again.recovery, again.counter, again.clock) == (match.recovery, match.counter, match.clock)


def test_a_closing_message_sent_again_may_have_been_the_last_so_it_charges_nobody():
    match = join(join(blank(), 0, position=20), 1, position=20)
    match = send(match, 19, 6)
    assert match.is_doubtful
    assert relay.expire(match, 60_000).ending == Ending(Outcome.FINISHED, 60_000)
    answered = play(match, 6)
    assert answered.closings == 2
    assert not answered.is_doubtful


def test_a_resignation_survives_a_lost_tail():
    match = relay.resign(play(begun(), 6), 1, "c1", 0, LIMITS)
    match = join(join(match, 0, position=9, name="a"), 1, position=9, name="b")
    assert match.counter == 9
    match = send(match, 8, 6, now=0)
    assert relay.expire(match, 60_000).ending == Ending(Outcome.RESIGNED, 60_000, 1)
    early = join(
        join(relay.resign(play(begun(), 6), 1, "c1", 0, LIMITS), 0, position=9, name="a"), 1, position=9, name="b"
    )
    assert send(early, 8, 3, now=5).deadline_ms == 5 + 23_000


def test_positions_at_or_below_the_counter_are_ordinary():
    match = join(fresh(), 0)
    assert match.recovery is None
    match = begun()
    for position in range(8):
        assert join(match, 1, position=position, name="x").recovery is None
