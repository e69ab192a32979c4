"""Whole matches and rounds of two honest seats over a fake wire."""

import pytest
from koikoi_sdk.poker import verify
from koikoi_sdk.rules import PRESETS, Phase, ResultKind
from koikoi_sdk.table import (
    TRANSITIONS,
    Choose,
    Ending,
    Finished,
    Flip,
    Kind,
    LocalProtocolError,
    Play,
    Reason,
    Rejected,
    Seat,
    Send,
    Wait,
)
from koikoi_sdk.table.codec import phase_of

from tests.unit.table.pair import (
    Pair,
    audited,
    contract_payload,
    first,
    fresh,
    has_four,
    has_teshi,
    is_kuttsuki,
    is_plain,
    opened,
    picker,
    reached,
    started,
)

VOID = lambda cards: has_four(cards[16:24])  # noqa: E731
PLAIN = lambda cards: is_plain(cards[:8]) and is_plain(cards[8:16]) and not has_four(cards[16:24])  # noqa: E731

HANDS = {
    "dealer's teshi": has_teshi,
    "dealer's kuttsuki": lambda cards: is_kuttsuki(cards[:8]) and not has_four(cards[16:24]),
    "other's teshi": lambda cards: is_plain(cards[:8]) and has_four(cards[8:16]) and not has_four(cards[16:24]),
    "other's kuttsuki": lambda cards: is_plain(cards[:8]) and is_kuttsuki(cards[8:16]) and not has_four(cards[16:24]),
    "both": lambda cards: has_four(cards[:8]) and not is_plain(cards[8:16]) and not has_four(cards[16:24]),
}


def shobu(seat, options):
    return options[0]


def assert_finished(pair: Pair) -> Finished:
    """Both seats hold the same statement and two valid signatures, and nothing secret any more."""
    step = pair.run()
    assert isinstance(step, Finished), step
    results = [seat.result for seat in pair.seats]
    assert results[0] == results[1] == step.result
    statement = step.result.statement
    for seat, signature in zip(pair.seats, step.result.signatures, strict=True):
        key = seat.contract.keys[seat.seat]
        assert verify(key, signature, "match-result", statement.encode())
        assert not seat._table.deals
        assert seat.view().points == statement.points
        assert seat.has_resigned <= (statement.ending is Ending.RESIGNED)
    return step


def assert_flow(pair: Pair) -> None:
    """Every message is one that the table of transitions and the alternation allow."""
    for index, (message, kind) in enumerate(zip(pair.log, pair.kinds, strict=True)):
        assert message.counter == index
        assert message.phase == phase_of(kind)
        if index:
            before = pair.kinds[index - 1]
            restart = kind is Kind.AU1 and before in (Kind.AU2, Kind.AU3)
            assert kind in TRANSITIONS[before] or kind is Kind.RESIGN or restart


def test_a_whole_house_match():
    """Six rounds of real cryptography, the one long test."""
    pair = Pair(seed=7, pick=picker(7))
    sides = set()
    for step in pair.steps():  # noqa: B007 - the last one is looked at below
        owing = [seat for seat in pair.seats if isinstance(seat.step, Choose)]
        assert len(owing) <= 1
        sides.add(pair.sender.seat)
        positions = [seat.position for seat in pair.seats]
        assert abs(positions[0] - positions[1]) <= 1
    assert isinstance(step, Finished)
    assert sides == {0, 1}
    statement = step.result.statement
    assert sum(statement.points) == 50
    assert len(statement.rounds) == 6 or 0 in statement.points
    assert_flow(pair)
    assert {len(m.envelope) for m in pair.log[2:]} == {653, 3725, 9357}


@pytest.mark.parametrize(("preset", "swapped"), [*((preset, False) for preset in PRESETS), ("house", True)])
def test_the_last_round_of_every_preset(preset: str, swapped: bool):
    pair = started(preset, swapped=swapped, pick=picker(3 + swapped))
    rounds = pair.seats[0].contract.rules.rounds
    pair.skip(rounds - 1)
    points = pair.seats[0].view().points
    step = assert_finished(pair)
    statement = step.result.statement
    last = pair.seats[0].view().results[-1]
    assert statement.points == last.points_after == (points[0] + last.delta[0], points[1] + last.delta[1])
    assert len(statement.rounds) == rounds
    assert statement.ending is Ending.PLAYED
    assert_flow(pair)


def test_a_second_round_is_dealt_by_the_winner():
    dealers = []
    for seed in (1, 2):
        pair = started(seed=seed, pick=shobu).skip(4)
        pair.run_to(Kind.AU4)
        winner = pair.other(pair.sender)._table.board.result.next_dealer
        pair.advance()
        kind = pair.flying_kind
        assert kind is (Kind.S1 if pair.sender.seat == winner else Kind.NEXT)
        pair.run_to(Kind.S1)
        assert pair.sender.seat == winner
        assert pair.sender._table.round.number == 6
        dealers.append(kind)
    assert_flow(pair)


def test_a_bust_ends_the_match_at_once():
    for rounds_before in (1, 5):
        pair = started()
        loser = pair.sender._table.round.dealer
        pair.skip(rounds_before, points=(1, 49) if loser == 0 else (49, 1)).stack(HANDS["other's teshi"])
        statement = assert_finished(pair).result.statement
        assert statement.points[loser] == 0
        assert sum(statement.points) == 50
        assert statement.ending is Ending.BUST
        assert statement.winner == 1 - loser
        assert len(statement.rounds) == rounds_before + 1


# Hand yaku and redeals


@pytest.mark.parametrize("case", HANDS)
def test_a_hand_yaku_ends_the_round(case: str):
    pair = started().skip(5).stack(HANDS[case])
    dealer = pair.sender._table.round.dealer
    pair.run_to(Kind.AU1)
    assert Kind.T1 not in pair.kinds
    board = pair.seats[0]._table.board
    assert board == pair.seats[1]._table.board
    assert board.result.kind is ResultKind.TEYAKU
    owner = 1 - dealer if case.startswith("other") else dealer
    assert board.result.winner == owner
    other = pair.seats[1 - owner].view().round
    assert sorted(other.peer_hand) == sorted(pair.seats[owner]._table.deal.hand)
    assert other.hand_counts == (8, 8)
    assert other.stock_count == 24
    step = assert_finished(pair)
    assert step.result.statement.rounds[-1][0] == 2


def test_both_hand_yaku_show_only_the_dealers_hand():
    pair = started().stack(HANDS["both"]).run_to(Kind.AU1)
    sizes = [
        len(opened(pair.seats[m.counter % 2 if pair.a.seat == 0 else 1 - m.counter % 2], m).payload)
        for m in pair.log[-2:]
    ]
    assert sizes == [464, 1]


def test_a_void_field_is_dealt_again():
    pair = started().stack(VOID).run_to(Kind.S4)
    assert pair.other(pair.sender)._table.board.result.why == ("field",)
    pair.stack(PLAIN)
    pair.run_to(Kind.T1)
    assert pair.kinds[-8:] == [Kind.S1, Kind.S2, Kind.S3, Kind.S4] * 2
    states = [seat._state.round for seat in pair.seats]
    assert [state.attempts for state in states] == [2, 2]
    assert states[0].deals[0].did != states[0].deals[1].did
    assert states[0].deals[0].seed != states[0].deals[1].seed


@pytest.mark.parametrize("owner", [slice(0, 8), slice(8, 16)])
def test_a_hand_of_four_is_dealt_again_in_boardgameland(owner: slice):
    pair = started("boardgameland").stack(lambda cards: has_four(cards[owner]) and not has_four(cards[16:24]))
    pair.run_to(Kind.S4)
    assert opened(pair.sender, pair.flying).payload[:1] == b"\1"
    pair.stack(PLAIN)
    assert isinstance(pair.run_to(Kind.T1).sender, Seat)
    assert pair.kinds.count(Kind.S1) == 2


def test_each_attempt_is_audited():
    pair = started().skip(5)
    void_deals(pair, 2).stack(HANDS["dealer's teshi"])
    assert_finished(pair)
    audits = [Kind.AU1, Kind.AU2, Kind.AU3, Kind.AU4]
    assert pair.kinds[-14:] == [*audits * 3, Kind.RESULT_SIGN, Kind.RESULT_SIGN]
    assert_flow(pair)


def void_deals(pair: Pair, count: int) -> Pair:
    """Deal in vain so many times; the last flagged S4 is in flight."""
    for deal in range(count):
        pair.stack(VOID).run_to(Kind.S4, 2 if deal else 1)
    return pair


def test_a_sixth_deal_is_not_begun():
    pair = void_deals(started(), 5)
    other = pair.sender
    assert len(other.dump()) < 60_000
    step = pair.advance()
    assert isinstance(step, Rejected)
    assert step.evidence.reason is Reason.ATTEMPTS
    assert step.evidence.body == b""
    assert isinstance(pair.other(other).step, Rejected)


def test_a_sixth_deal_is_refused():
    pair = void_deals(started(), 5)
    sender = pair.sender
    cheater = pair.other(sender)
    cheater._state.round.attempts = 4
    pair.advance()
    assert pair.flying_kind is Kind.S1
    cheater._state.round.attempts = 6
    step = pair.deliver(cheater, pair.flying)
    assert isinstance(step, Rejected)
    assert step.evidence.reason is Reason.ATTEMPTS


def test_nobody_resigns_instead_of_a_sixth_deal():
    pair = void_deals(started(), 5)
    cheater = pair.other(pair.sender)
    cheater._state.round.attempts = 4
    cheater._state.is_resigning = True
    pair.advance()
    assert pair.flying_kind is Kind.RESIGN
    step = pair.deliver(cheater, pair.flying)
    assert isinstance(step, Rejected)
    assert step.evidence.reason is Reason.FORM


def test_a_player_who_wants_to_resign_cannot_avoid_the_dispute_of_a_sixth_deal():
    pair = void_deals(started(), 5)
    pair.other(pair.sender).resign()
    step = pair.advance()
    assert isinstance(step, Rejected)
    assert step.evidence.reason is Reason.ATTEMPTS


# The audit's restarts


def test_a_device_without_its_master_begins_the_audit_anew():
    for kind in (Kind.AU2, Kind.AU3):
        pair = audited(kind)
        restarting = pair.other(pair.sender).seat
        pair.reload(pair.seats[restarting])
        pair.advance()
        assert pair.flying_kind is Kind.AU1
        assert pair.sender.seat == restarting
        assert pair.sender._state.round.restarts[restarting] == 1
        pair.advance()
        assert [seat._state.round.restarts[restarting] for seat in pair.seats] == [1, 1]
    assert_finished(pair)
    assert_flow(pair)


def test_the_outbox_is_sent_again_unchanged_after_a_restart():
    """AU3 and AU4 that were made are never made again."""
    pair = audited(Kind.AU3)
    for kind in (Kind.AU3, Kind.AU4):
        pair.run_to(kind)
        before = pair.flying
        pair.reload(pair.sender)
        assert pair.flying == before
        assert isinstance(pair.advance(), Send)


def restart(pair: Pair, seat: int, kind: Kind) -> None:
    """Let the device restart while it owes, or is about to owe, its answer."""
    pair.run_to(kind)
    assert pair.sender.seat != seat
    pair.reload(pair.seats[seat])
    pair.advance()


def test_each_device_may_restart_twice():
    pair = audited(Kind.AU2)
    me = pair.other(pair.sender).seat
    restart(pair, me, Kind.AU2)
    restart(pair, me, Kind.AU2)
    restart(pair, 1 - me, Kind.AU3)
    restart(pair, 1 - me, Kind.AU2)
    assert pair.sender._state.round.restarts == [2, 2]
    assert_finished(pair)
    assert pair.kinds.count(Kind.AU1) == 5


def test_a_third_restart_is_refused_by_both_sides():
    pair = audited(Kind.AU2)
    me = pair.other(pair.sender).seat
    restart(pair, me, Kind.AU2)
    restart(pair, me, Kind.AU2)
    pair.run_to(Kind.AU2)
    seat = pair.reload(pair.seats[me])
    step = pair.advance()
    assert isinstance(step, Rejected)
    assert step.evidence.reason is Reason.ATTEMPTS
    assert seat.step == step


def test_a_third_restart_is_rejected_before_its_content_is_checked():
    pair = audited(Kind.AU2)
    me = pair.other(pair.sender).seat
    restart(pair, me, Kind.AU2)
    restart(pair, me, Kind.AU2)
    pair.run_to(Kind.AU3)
    step = pair.cheat(lambda payload: b"", Kind.AU1)
    assert isinstance(step, Rejected)
    assert step.evidence.reason is Reason.ATTEMPTS


def test_an_unscheduled_au1_is_accepted_only_where_an_answer_is_owed():
    for kind in (Kind.AU2, Kind.RESULT_SIGN):
        step = audited(kind).cheat(lambda payload: bytes(64), Kind.AU1)
        assert isinstance(step, Rejected)
        assert step.evidence.reason is Reason.FORM


def test_restarts_are_counted_per_attempt():
    pair = started().skip(5)
    pair.stack(VOID).run_to(Kind.S4).stack(HANDS["dealer's teshi"])
    pair.run_to(Kind.AU2)
    me = pair.other(pair.sender).seat
    restart(pair, me, Kind.AU2)
    pair.run_to(Kind.AU4)
    pair.advance()
    assert pair.flying_kind is Kind.AU1
    assert [seat._state.round.restarts for seat in pair.seats][pair.sender.seat] == [0, 0]
    assert_finished(pair)


def test_the_audit_master_is_never_stored():
    pair = audited(Kind.AU1)
    commitment = pair.sender._table.commitment
    assert commitment is not None
    assert commitment._seeds
    stored = pair.sender.dump()
    assert not any(seed.hex().encode() in stored for seed in commitment._seeds)
    assert pair.reload(pair.sender)._table.commitment is None


# Resigning


@pytest.mark.parametrize(
    "kind", [Kind.COIN_OPEN, Kind.NEXT, Kind.S1, Kind.S2, Kind.S3, Kind.S4, Kind.T2, Kind.T3, Kind.T1]
)
def test_a_player_may_resign_whenever_it_owes(kind: Kind):
    """The wish is kept until the next own message and takes its place."""
    pair = Pair() if kind is Kind.COIN_OPEN else fresh()
    while pair.flying and pair.sender._state.due is not kind:
        pair.advance()
    loser = pair.other(pair.sender)
    assert loser.resign() == Wait()
    before = pair.flying
    pair.reload(loser)
    assert pair.flying == before, "nothing in the outbox is replaced"
    pair.advance()
    assert pair.flying_kind is Kind.RESIGN
    step = assert_finished(pair)
    statement = step.result.statement
    assert [seat.has_resigned for seat in pair.seats] == [seat.seat == loser.seat for seat in pair.seats]
    assert statement.ending is Ending.RESIGNED
    assert statement.winner == 1 - loser.seat
    assert statement.points == (25, 25)
    assert statement.rounds == ()
    assert pair.kinds[-2:] == [Kind.RESIGN, Kind.RESULT_SIGN]
    assert statement.head == opened(pair.seats[loser.seat], pair.log[-2]).head


def test_a_player_resigns_at_once_when_a_choice_is_due():
    pair = reached(Kind.S4)
    pair.advance()
    seat = pair.sender
    assert isinstance(seat.step, Choose)
    assert isinstance(seat.resign(), Send)
    assert assert_finished(pair).result.statement.winner == 1 - seat.seat
    with pytest.raises(LocalProtocolError):
        seat.resign()


def test_resigning_lists_the_rounds_that_are_over():
    pair = started().skip(4).stack(HANDS["dealer's teshi"])
    dealer = pair.sender._table.round.dealer
    pair.run_to(Kind.AU4)
    pair.other(pair.sender).resign()
    pair.advance()
    assert pair.flying_kind is Kind.RESIGN
    statement = assert_finished(pair).result.statement
    assert len(statement.rounds) == 5
    assert sorted(statement.points) == [19, 31]
    assert statement.points[dealer] == 31


@pytest.mark.parametrize("kind", [Kind.S4, Kind.AU1, Kind.AU2, Kind.AU3])
def test_an_undecided_rounds_audit_may_be_left_by_resigning(kind: Kind):
    pair = started().skip(4).stack(HANDS["dealer's teshi"]).run_to(kind)
    pair.other(pair.sender).resign()
    pair.advance()
    assert pair.flying_kind is Kind.RESIGN
    statement = assert_finished(pair).result.statement
    assert len(statement.rounds) == 4
    assert statement.points == (25, 25)


def test_the_deciding_rounds_first_au1_may_still_be_replaced():
    pair = audited(Kind.S4)
    pair.other(pair.sender).resign()
    pair.advance()
    assert pair.flying_kind is Kind.RESIGN
    assert len(assert_finished(pair).result.statement.rounds) == 5


@pytest.mark.parametrize("kind", [Kind.AU1, Kind.AU2, Kind.AU3, Kind.AU4])
def test_a_decided_match_cannot_be_resigned(kind: Kind):
    """The wish has no place any more; the match ends as it stands."""
    pair = audited(kind)
    for seat in pair.seats:
        seat.resign()
    statement = assert_finished(pair).result.statement
    assert statement.ending is Ending.PLAYED
    assert len(statement.rounds) == 6


def test_a_decided_match_cannot_be_resigned_in_a_later_attempts_audit():
    pair = started().skip(5)
    pair.stack(VOID).run_to(Kind.S4).stack(HANDS["dealer's teshi"])
    pair.run_to(Kind.AU4)
    for seat in pair.seats:
        seat.resign()
    assert_finished(pair)
    assert Kind.RESIGN not in pair.kinds


# Choices and the view


def test_only_a_legal_choice_that_is_due_is_taken():
    pair = reached(Kind.S4)
    pair.advance()
    seat, waiting = pair.sender, pair.other(pair.sender)
    before = [seat.dump(), waiting.dump()]
    hidden = next(card for card in range(48) if card not in seat._table.deal.hand)
    for choice in (Play(hidden), Play(99), Play(seat._table.deal.hand[0], 47), Flip(), None, "koikoi"):
        with pytest.raises(LocalProtocolError):
            seat.act(choice)
    with pytest.raises(LocalProtocolError):
        waiting.act(seat.step.options[0])
    assert [seat.dump(), waiting.dump()] == before
    with pytest.raises(LocalProtocolError):
        Pair().a.act(Flip())


def test_the_view_shows_what_the_seat_may_know_and_no_more():
    pair = started(pick=picker(11)).stack(PLAIN)
    assert [seat.view().round for seat in pair.seats] == [None, None]
    pair.run_to(Kind.S3)
    pair.advance()
    seen_decisions = 0
    while pair.flying_kind is not Kind.AU1:
        seats = pair.seats
        views = [seat.view().round for seat in seats]
        for seat, view in zip(seats, views, strict=True):
            board = seat._table.board
            assert len(view.hand) == view.hand_counts[seat.seat]
            cards = [
                *view.hand,
                *view.field,
                *view.captures[0],
                *view.captures[1],
                *([] if view.turned is None else [view.turned]),
            ]
            assert len(cards) == len(set(cards))
            turned = view.turned is not None
            assert len(cards) - turned + view.hand_counts[1 - seat.seat] + view.stock_count == 48
            assert view.peer_hand == ()
            assert view.mover == board.mover
        hands = [seat._table.deal.hand for seat in seats]
        assert not set(views[0].hand) & set(hands[1])
        step = pair.advance()
        if isinstance(step, Choose):
            seat = pair.sender
            assert seat.view().options == step.options
            seen_decisions += isinstance(step.options[0], Flip)
            assert (seat.view().round.turned is not None) == isinstance(step.options[0], Flip)
    assert seen_decisions


def test_the_view_outlives_the_match():
    pair = audited(Kind.RESULT_SIGN)
    assert_finished(pair)
    for seat in pair.seats:
        view = seat.view()
        assert view.options == ()
        assert len(view.results) == 6
        assert view.round.hand == view.round.peer_hand == ()
        assert view.round.result.kind is ResultKind.TEYAKU
        assert view.round.number == 6
    assert Pair().a.view().results == ()


def test_an_exhausted_round_is_played_to_its_last_card():
    """Nobody captures more than needed, so that hardly any yaku is made."""

    def shy(seat, options):
        if isinstance(options[0], Flip):
            return options[-1]
        return min(options, key=lambda option: len(seat._table.board.captured_by(option.card, option.target)))

    for seed in range(1, 6):
        pair = started(seed=seed, pick=shy).skip(5)
        pair.run_to(Kind.AU1)
        result = pair.seats[0]._table.board.result
        assert result == pair.seats[1]._table.board.result
        if result.kind is ResultKind.EXHAUSTED:
            break
    assert pair.kinds.count(Kind.T1) == pair.kinds.count(Kind.T3) == 16
    assert pair.seats[0].view().round.hand_counts == (0, 0)
    assert pair.seats[0].view().round.stock_count == 8
    assert pair.seats[0]._table.board.phase is Phase.OVER
    assert assert_finished(pair).result.statement.rounds[-1][:2] == b"\x01\xff"


# Restarts and the end


def test_dump_and_load_at_every_message_gives_the_identical_continuation():
    """Until the audit, whose master is not stored: there the audit starts over (tested above)."""
    straight, restarted = (started(seed=3, pick=picker(5)).skip(5) for _ in range(2))
    straight.run_to(Kind.AU1)
    while restarted.flying_kind is not Kind.AU1:
        for seat in list(restarted.seats):
            restarted.reload(seat)
        restarted.advance()
    assert restarted.log == straight.log
    assert [seat.dump() for seat in restarted.seats] == [seat.dump() for seat in straight.seats]


def test_dump_and_load_around_the_end():
    pair = audited(Kind.AU4)
    pair.advance()
    while True:
        for seat in list(pair.seats):
            pair.reload(seat)
        step = pair.advance()
        if isinstance(step, Finished):
            break
    for seat in list(pair.seats):
        assert pair.reload(seat).result == step.result
    assert [type(seat.step) for seat in pair.seats].count(Finished) == 1, "the second signer still sends"


def test_closing_erases_keys_and_outbox():
    pair = audited(Kind.RESULT_SIGN)
    result = assert_finished(pair).result
    for seat in list(pair.seats):
        seat.close()
        assert seat._state.channel is None
        assert seat._state.outbox is None
        assert pair.reload(seat).result == result
        assert pair.seats[seat.seat].step == Finished(result)
        assert seat.receive(5, 4, b"late") == Wait()
    early = reached(Kind.T1)
    for seat in early.seats:
        seat.close()
        assert not seat._table.deals
        assert not seat._state.round.deals
        assert seat.step == Wait()
        assert seat.view().options == ()
        with pytest.raises(LocalProtocolError):
            seat.act(Play(0))


def test_secrets_are_erased_when_they_are_not_needed():
    pair = audited(Kind.AU3)
    seeds = [seat._table.deals[0].state.seed for seat in pair.seats]
    assert [len(seed) for seed in seeds] == [32, 32]
    pair.run_to(Kind.AU4)
    assert sorted(map(len, seeds)) == [0, 32], "the sender of AU4 is done"
    pair.advance()
    assert [bytes(seed) for seed in seeds] == [b"", b""]
    assert not pair.a._state.share
    assert not pair.a._state.secret


def test_every_random_byte_has_a_label_and_a_number():
    """docs/protocol.md section 18, whole-match vectors."""
    pair = fresh().run_to(Kind.NEXT).skip(5).stack(HANDS["other's teshi"])
    pair.run()
    kinds = dict(enumerate(pair.kinds))
    uses: dict[Kind, list[tuple[str, int, int]]] = {}
    for random in pair.randoms:
        for label, number, index, size in random.log:
            uses.setdefault(kinds[number], []).append((label, index, size))
    aead = ("aead", 0, 24)
    proofs = [("fresh", index, 32) for index in range(3)]
    expected = {
        Kind.NEXT: [],
        Kind.S1: [("seed", 0, 32), proofs[0]],
        Kind.S2: [("seed", 0, 32), *proofs[:2]],
        Kind.S3: proofs[:2],
        Kind.S4: proofs[:1],
        Kind.AU1: proofs[:1],
        Kind.AU2: [("challenge", 0, 32), proofs[0]],
        Kind.AU3: [("challenge", 0, 32)],
        Kind.AU4: [],
    }
    for kind, draws in expected.items():
        assert uses[kind] == [*draws, aead], kind
    early = Pair()
    early.run_to(Kind.COIN_OPEN)
    assert {use for random in early.randoms for use in random.log if use[1] < 2} == {
        (label, number, 0, 32) for label in ("x25519", "hello") for number in (0, 1)
    }


def test_the_same_randomness_gives_the_same_match():
    logs = []
    for _ in range(2):
        pair = Pair(contract_payload("boardgameland"), seed=4, pick=first)
        pair.run_to(Kind.T3, 3)
        logs.append(pair.log)
    assert logs[0] == logs[1]
