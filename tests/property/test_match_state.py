"""What is written to the store is what is read back; recovery never charges."""

import hypothesis.strategies as st
from hypothesis import given, settings

from services.match.domain import recovery, relay
from services.match.domain.contract import Contract
from services.match.domain.deadlines import Clock, Limits
from services.match.domain.match import Attendance, Match, Presence, Recovery
from services.match.domain.outcomes import Ending, Outcome
from services.match.store.state import dump_contract, dump_match, load_contract, load_match

LIMITS = Limits()
seats, times = st.integers(0, 1), st.integers(0, 2**45)
clocks = st.builds(Clock, times, times, st.none() | times)
hashes = st.binary(min_size=32, max_size=32)

matches = st.builds(
    Match,
    first_seat=seats,
    epoch=st.binary(min_size=8, max_size=8),
    counter=st.integers(0, 2**32 - 1),
    created_ms=times,
    limit_ms=times,
    clock=clocks,
    owed_since_ms=times,
    recovery_left_ms=times,
    sealed=st.binary(max_size=9),
    phase=st.none() | st.integers(0, 6),
    before=st.none() | hashes,
    rolling=hashes,
    seats=st.tuples(*(st.builds(Attendance, st.sampled_from(Presence), st.text(), st.text(), times),) * 2),
    closings=st.integers(0, 2),
    closer=st.none() | seats,
    is_doubtful=st.booleans(),
    finished=st.tuples(st.booleans(), st.booleans()),
    resigned=st.none() | seats,
    recovery=st.none() | st.builds(Recovery, st.tuples(*(st.none() | times,) * 2), st.booleans(), st.booleans()),
    suspended=st.none() | clocks,
    ending=st.none() | st.builds(Ending, st.sampled_from(Outcome), times, st.none() | seats, st.integers(0, 13)),
)
contracts = st.builds(
    Contract, st.uuids().map(str), hashes, st.tuples(hashes, hashes), st.tuples(st.text(), st.text()), times, times
)


@given(matches, st.integers(0, 10**6))
def test_a_match_survives_the_store(match: Match, credit_ms: int):
    assert load_match(dump_match(match), match.sealed, 0) == match
    assert load_match(dump_match(match), match.sealed, credit_ms) == match.shifted(credit_ms)


@given(contracts)
def test_a_contract_survives_the_store(contract: Contract):
    assert load_contract(dump_contract(contract)) == contract


# From position 2 on: at 0 there is nothing to recover and the match begins as a fresh one.
steps = st.lists(
    st.tuples(st.sampled_from(["join", "leave", "doubt", "wait"]), seats, st.integers(2, 40), st.integers(0, 20_000)),
    max_size=30,
)


@settings(max_examples=200)
@given(steps)
def test_a_recovered_match_charges_nobody_before_a_new_envelope(script: list[tuple[str, int, int, int]]):
    """Whatever two devices say, and however they come and go: no seat is charged, and it ends within its time."""
    match, now = recovery.blank(0, 0, LIMITS.match_ms, b"blank---", LIMITS), 0
    for index, (what, seat, position, ms) in enumerate(script):
        now += ms
        match = relay.expire(match, now)
        if match.ending is not None:
            break
        if what == "join":
            speaker, epoch = (f"c{index}", "p"), index.to_bytes(8, "big")
            match = relay.join(match, seat, speaker, position, now, epoch, LIMITS)
        elif what == "leave":
            match = relay.depart(match, seat, match.seats[seat].connection, now)
        elif what == "doubt":
            match = relay.doubt(match, seat, match.seats[seat].connection, now, now, LIMITS)
        assert match.owing is None
        assert match.due_ms is not None
        assert match.due_ms <= LIMITS.recovery_ms
    match = relay.expire(match, max(now, LIMITS.recovery_ms))
    assert match.ending is not None
    assert (match.ending.outcome, match.ending.seat) == (Outcome.DISPUTED, None)
