"""The coin toss: commit, reply, open."""

import pytest
from koikoi_sdk.poker import coin
from koikoi_sdk.poker.errors import ProofError, Reason
from koikoi_sdk.poker.transcript import digest

CONTRACT, KEY_A, KEY_B, SHARE_A, SHARE_B = (bytes([value]) * 32 for value in range(1, 6))
COMMITMENT = coin.commit(CONTRACT, KEY_A, KEY_B, SHARE_A)


def test_the_commitment_is_as_written_and_opens() -> None:
    assert digest("coin/commit", CONTRACT, KEY_A, KEY_B, SHARE_A)[:32] == COMMITMENT
    coin.require_opening(COMMITMENT, CONTRACT, KEY_A, KEY_B, SHARE_A)


@pytest.mark.parametrize(
    ("share", "keys", "reason"),
    [
        (SHARE_B, (KEY_A, KEY_B), Reason.PROOF),
        (SHARE_A, (KEY_B, KEY_A), Reason.PROOF),
        (SHARE_A[:-1], (KEY_A, KEY_B), Reason.FORM),
        (SHARE_A + b"\0", (KEY_A, KEY_B), Reason.FORM),
    ],
)
def test_another_opening_is_refused(share: bytes, keys: tuple[bytes, bytes], reason: Reason) -> None:
    with pytest.raises(ProofError) as caught:
        coin.require_opening(COMMITMENT, CONTRACT, *keys, share)
    assert caught.value.reason is reason


def test_both_sides_decide_the_result() -> None:
    results = [[coin.toss(b"s" * 32, bytes([a]) * 32, bytes([b]) * 32) for a in range(40)] for b in range(40)]
    assert all(10 < sum(row) < 30 for row in results)
    assert all(10 < sum(column) < 30 for column in zip(*results, strict=True))
    assert coin.toss(b"s", SHARE_A, SHARE_B) == digest("coin/result", b"s", SHARE_A, SHARE_B)[0] & 1
