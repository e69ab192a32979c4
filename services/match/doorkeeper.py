"""Who may join: the proof of possession (docs/protocol.md section 9, docs/architecture.md section 3).

No token, cookie or secret: the contract says which key owns the seat, and the device signs this connection's challenge.
"""

from collections.abc import Collection

from services.kit.clock import Clock
from services.kit.errors import DocumentInvalid, KeysUnavailable
from services.kit.signatures import tagged, verify
from services.kit.tokens import KeySet, verify_document
from services.match.domain.contract import CONTRACT_TYPE, Contract, read_contract
from services.match.domain.errors import ContractInvalid, FrameInvalid, JoinSignatureInvalid, StoreUnavailable
from services.match.ports import Close, Join

__all__ = ["Doorkeeper", "proves_result"]

CONTRACT_MAX_CHARS = 4096
_VERSION_MAX_CHARS = 64


class Doorkeeper:
    """Checks first frames.

    Args:
        lobby_keys: The lobby's keys; its issuer is pinned.
        door_names: The names under which clients reach this relay, lower-case host[:port].
        clock: Time.
    """

    def __init__(self, lobby_keys: KeySet, door_names: Collection[str], clock: Clock) -> None:
        self._lobby_keys, self._clock = lobby_keys, clock
        self._door_names = frozenset(door_names)

    async def check(self, join: Join, challenge: bytes, match_id: str | None) -> Contract:
        """Return the contract of a join that proves its seat; cheap checks come first.

        Args:
            join: The first frame.
            challenge: What this connection was asked to sign.
            match_id: The match that the path or the metadata names, if any.

        Raises:
            FrameInvalid: A field has a wrong size.
            JoinSignatureInvalid: The door is not one of ours, or the signature does not verify.
            ContractInvalid: The contract is not valid here and now, or is another match's.
            StoreUnavailable: The lobby's keys cannot be read now.
        """
        _check_shape(join)
        if join.door not in self._door_names:
            raise JoinSignatureInvalid("The door is not a name of this relay.", field="join.door")
        try:
            document = await verify_document(
                join.contract, typ=CONTRACT_TYPE, keys=self._lobby_keys, max_chars=CONTRACT_MAX_CHARS
            )
        except DocumentInvalid as error:
            raise ContractInvalid(error.message.replace("document", "contract"), field="join.contract") from None
        except KeysUnavailable as error:
            message = "The relay cannot read the lobby's keys; connect again."
            raise StoreUnavailable(message, retry_after_s=error.retry_after_s) from None
        contract = read_contract(document.payload, document.claims, self._clock.now())
        if match_id is not None and match_id != contract.match_id:
            raise ContractInvalid("The contract is not of the match that was dialed.", field="join.contract")
        signed = tagged(
            "relay-connect", challenge, join.door.encode(), contract.contract_hash, join.seat.to_bytes(1, "big")
        )
        if not verify(contract.keys[join.seat], join.signature, signed):
            raise JoinSignatureInvalid("The signature does not prove this seat on this connection.")
        return contract


def _check_shape(join: Join) -> None:
    if join.seat not in (0, 1):
        raise FrameInvalid("The seat is 0 or 1.", field="join.seat")
    if len(join.signature) != 64:
        raise FrameInvalid("The signature has 64 bytes.", field="join.signature")
    if len(join.epoch) not in (0, 8):
        raise FrameInvalid("The epoch has 8 bytes, or none.", field="join.epoch")
    if len(join.client_version) > _VERSION_MAX_CHARS:
        raise FrameInvalid("The client version has at most 64 characters.", field="join.client_version")


def proves_result(close: Close, contract: Contract) -> bool:
    """Say whether both seats' signatures over the shown T("match-result", ...) value verify; the value stays opaque."""
    return (
        len(close.result_digest) == 64
        and len(close.result_signatures) == 2
        and all(
            verify(key, signature, close.result_digest)
            for key, signature in zip(contract.keys, close.result_signatures, strict=True)
        )
    )
