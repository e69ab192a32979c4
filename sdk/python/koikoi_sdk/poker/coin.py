"""The coin toss that decides who deals first: commit, reply, open (docs/protocol.md section 8).

Device A is the one with the smaller public key. A learns the result first and can only refuse to
open it, which counts as abandoning.
"""

import hmac

from koikoi_sdk.poker.errors import Reason, require
from koikoi_sdk.poker.transcript import digest

SIZE = 32
"""Bytes of a share and of a commitment."""


def commit(contract_hash: bytes, key_a: bytes, key_b: bytes, share_a: bytes) -> bytes:
    """Give A's commitment to its 32 random bytes; it travels as the nonce of A's HELLO."""
    return digest("coin/commit", contract_hash, key_a, key_b, share_a)[:SIZE]


def require_opening(commitment: bytes, contract_hash: bytes, key_a: bytes, key_b: bytes, share_a: bytes) -> None:
    """Refuse a share of A that is not the committed one.

    Raises:
        ProofError: FORM for a wrong length, PROOF for another share.
    """
    require(len(share_a) == SIZE, Reason.FORM, f"a coin share has {SIZE} bytes")
    expected = commit(contract_hash, key_a, key_b, share_a)
    same = hmac.compare_digest(expected, commitment)
    require(same, Reason.PROOF, "the coin's opening does not fit its commitment")


def toss(session_id: bytes, share_a: bytes, share_b: bytes) -> int:
    """Give who deals the first round: 0 for device A, 1 for device B."""
    return digest("coin/result", session_id, share_a, share_b)[0] & 1
