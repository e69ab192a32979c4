"""Refresh tokens: form, recognition, and the table of decisions."""

import itertools
from dataclasses import replace
from uuid import UUID

import pytest

from services.auth.domain.errors import RefreshTokenInvalid
from services.auth.domain.sessions import (
    REPLY_GRACE_S,
    Decision,
    RefreshTokens,
    Session,
    parse_refresh_token,
    token_hash,
)

NOW = 1_800_000_000.0
TOKENS = RefreshTokens(b"s" * 32)
ID, SEED = UUID(int=7, version=4), b"e" * 32


def session(generation: int, **changes: object) -> Session:
    previous = token_hash(TOKENS.make(ID, SEED, generation - 1)) if generation else None
    fresh = Session(
        session_id=ID,
        device_id=UUID(int=1),
        account_id=UUID(int=2),
        device_key=b"k" * 32,
        seed=SEED,
        generation=generation,
        token_hash=token_hash(TOKENS.make(ID, SEED, generation)),
        previous_hash=previous,
        rotate_time=NOW - 10,
        expire_time=NOW + 1000,
    )
    return replace(fresh, **changes)  # type: ignore[arg-type]


def decide(known: Session | None, token: str, *, is_signed: bool = True, now: float = NOW) -> Decision:
    return TOKENS.decide(known, parse_refresh_token(token), is_signed, now)


def test_a_token_says_its_session_and_generation_and_nothing_else():
    token = TOKENS.make(ID, SEED, 300)
    shown = parse_refresh_token(token)
    assert (shown.text, shown.session_id, shown.generation) == (token, ID, 300)
    assert token.startswith("kkr_")
    assert token == TOKENS.make(ID, SEED, 300)


def test_tokens_differ_by_session_seed_generation_and_secret():
    made = [
        tokens.make(identity, seed, generation)
        for tokens, identity, seed, generation in itertools.product(
            (TOKENS, RefreshTokens(b"t" * 32)), (ID, UUID(int=8)), (SEED, b"f" * 32), (0, 1)
        )
    ]
    assert len({token[-43:] for token in made}) == 16


@pytest.mark.parametrize(
    "text",
    [
        "", "kkr_", "kkr_" + "A" * 69, "kkr_" + "A" * 71, "xkr_" + "A" * 70, "kkr_" + "A" * 69 + "!",
        "kkr_" + "A" * 69 + "=", "kkr_" + "A" * 69 + "é", "kkr_" + "A" * 69 + "B", "kkr_" + "+" * 70,
        "kkr_" + "A" * 65 + "!!!!!", "eyJhbGciOiJub25lIn0.e30.", "A" * 100_000,
    ],
)  # fmt: skip
def test_text_of_another_form_is_no_token(text: str):
    with pytest.raises(RefreshTokenInvalid):
        parse_refresh_token(text)


def test_the_newest_token_rotates_when_signed_and_changes_nothing_otherwise():
    token = TOKENS.make(ID, SEED, 4)
    assert decide(session(4), token) is Decision.ROTATE
    assert decide(session(4), token, is_signed=False) is Decision.UNSIGNED
    assert decide(session(0), TOKENS.make(ID, SEED, 0)) is Decision.ROTATE


def test_a_lost_reply_is_repeated_for_thirty_seconds_with_a_signature():
    token = TOKENS.make(ID, SEED, 3)
    known = session(4, rotate_time=NOW - REPLY_GRACE_S)
    assert decide(known, token) is Decision.REPEAT
    assert decide(known, token, is_signed=False) is Decision.REUSED
    assert decide(known, token, now=NOW + 0.001) is Decision.REUSED


def test_an_older_token_of_the_family_is_reuse():
    for generation, is_signed in itertools.product((0, 1, 2), (True, False)):
        assert decide(session(4), TOKENS.make(ID, SEED, generation), is_signed=is_signed) is Decision.REUSED


def test_a_forged_token_ends_nothing():
    newest = TOKENS.make(ID, SEED, 4)
    forged = newest[:-5] + ("A" if newest[-5] != "A" else "B") + newest[-4:]
    for token in (
        forged,
        RefreshTokens(b"t" * 32).make(ID, SEED, 4),
        RefreshTokens(b"t" * 32).make(ID, SEED, 1),
        TOKENS.make(ID, b"f" * 32, 1),
        TOKENS.make(ID, SEED, 5),  # a generation that never was
    ):
        assert decide(session(4), token) is Decision.INVALID
    assert decide(session(0), TOKENS.make(ID, b"f" * 32, 0)) is Decision.INVALID


def test_unknown_ended_and_expired_sessions_are_over():
    token = TOKENS.make(ID, SEED, 4)
    assert decide(None, token) is Decision.INVALID
    assert decide(session(4, is_ended=True), token) is Decision.INVALID
    assert decide(session(4, expire_time=NOW), token) is Decision.INVALID
    assert decide(session(4, expire_time=NOW + 0.1), token) is Decision.ROTATE
    assert decide(session(4, is_ended=True), TOKENS.make(ID, SEED, 1)) is Decision.INVALID


def test_the_newest_token_can_be_made_again_only_under_the_same_secret():
    assert TOKENS.newest(session(4)) == TOKENS.make(ID, SEED, 4)
    with pytest.raises(RefreshTokenInvalid):
        RefreshTokens(b"t" * 32).newest(session(4))
