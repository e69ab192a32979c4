"""A result on its way in and as it is kept."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from services.kit.signatures import tagged, verify
from services.ranking.domain.contract import Contract
from services.ranking.domain.errors import ContractMismatch, SignatureInvalid, field_invalid
from services.ranking.domain.statement import MAX_SIZE, Ending, Statement, check, decode

SIGNATURE_SIZE = 64
MAX_CONTRACT_CHARS = 4096


@dataclass(frozen=True, slots=True)
class Claim:
    """What somebody hands in: nothing of it is believed yet."""

    contract: str
    statement: bytes
    signatures: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Proof:
    """A result of which everything was verified, with what it takes to verify it again later.

    `key_id` and `public_key` are the lobby's key under which the contract verified.
    """

    claim: Claim
    contract: Contract
    statement: Statement
    key_id: str
    public_key: bytes


@dataclass(frozen=True, slots=True)
class SeatReceipt:
    """What the match meant for one seat; ratings are the shown numbers."""

    account_id: str
    display_name: str
    points: int
    rating_before: int
    rating_after: int


@dataclass(frozen=True, slots=True)
class Receipt:
    """A recorded result. `winner` is a seat, or None for a draw; `create_time` in unix seconds."""

    match_id: uuid.UUID
    order_number: int
    is_rated: bool
    ending: Ending
    winner: int | None
    rounds: int
    seats: tuple[SeatReceipt, SeatReceipt]
    create_time: float


def check_sizes(claim: Claim) -> None:
    """Check what can be checked without any work.

    Raises:
        FieldInvalid: A field is missing or has a size that no valid one has.
    """
    if not 0 < len(claim.contract) <= MAX_CONTRACT_CHARS:
        raise field_invalid("contract", f"a compact JWS of at most {MAX_CONTRACT_CHARS} characters")
    if not 0 < len(claim.statement) <= MAX_SIZE:
        raise field_invalid("statement", f"at most {MAX_SIZE} bytes")
    if [len(signature) for signature in claim.signatures] != [SIGNATURE_SIZE] * 2:
        raise field_invalid("signatures", f"two of {SIGNATURE_SIZE} bytes, of seat 0 and seat 1")


def prove(claim: Claim, contract: Contract, *, key_id: str, public_key: bytes) -> Proof:
    """Check a claim against its verified contract, the cheap things first.

    Raises:
        StatementMalformed: Not the fixed layout.
        ContractMismatch: The statement names another contract.
        StatementImpossible: The rules do not allow what it says.
        SignatureInvalid: A seat's device did not sign it; metadata names the seat.
    """
    statement = decode(claim.statement)
    if statement.contract_hash != contract.hash:
        raise ContractMismatch("The statement belongs to another contract.", field="statement")
    check(statement, contract.rules.variant)
    digest = tagged("match-result", claim.statement)
    for seat, (player, signature) in enumerate(zip(contract.seats, claim.signatures, strict=True)):
        if not verify(player.key, signature, digest):
            raise SignatureInvalid(
                f"The signature of seat {seat} does not verify under the device key in the contract.",
                field="signatures",
                metadata={"seat": str(seat)},
            )
    return Proof(claim, contract, statement, key_id, public_key)
