"""Checks the lobby's signature on match contracts, with keys asked from the lobby."""

from __future__ import annotations

from services.kit.errors import DocumentInvalid
from services.kit.tokens import KeySet, verify_document
from services.ranking.domain.contract import TYP
from services.ranking.domain.errors import ContractInvalid
from services.ranking.domain.result import MAX_CONTRACT_CHARS
from services.ranking.ports import VerifiedContract


class LobbyContracts:
    """Knows the lobby's keys. The contract's own expiry is not looked at here."""

    def __init__(self, keys: KeySet) -> None:
        self._keys = keys

    async def verify(self, compact: str) -> VerifiedContract:
        """Check type, signature and issuer of a contract.

        Raises:
            ContractInvalid: One of them is wrong; the message says which.
            KeysUnavailable: The lobby's keys cannot be read now.
        """
        try:
            document = await verify_document(compact, typ=TYP, keys=self._keys, max_chars=MAX_CONTRACT_CHARS)
        except DocumentInvalid as error:
            raise ContractInvalid(error.message.replace("document", "contract"), field="contract") from None
        return VerifiedContract(document.payload, document.kid, document.public_key)
