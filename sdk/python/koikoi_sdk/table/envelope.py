"""Sealed messages: signed, hash-chained, padded and encrypted for the other device (section 9).

    content  = u16 length | payload | zero bytes up to the class size
    body     = type(1) | counter(4) | head(32) | content
    sig      = Ed25519( T("msg", session_id, pk_sender, pk_recipient, body) )
    envelope = nonce(24) | XChaCha20-Poly1305(body | sig, associated data = session_id)
    head'    = T("head", head, body, sig)[:32]

Signing is inside the encryption and names the recipient: the server sees no signatures and nobody
can address a message anew. Since a body holds the head, each message counter-signs all before it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from nacl import bindings
from nacl.exceptions import CryptoError

from koikoi_sdk.poker import DeviceKey, digest, verify
from koikoi_sdk.table.codec import FORMS, Kind
from koikoi_sdk.table.errors import Reason, TransportError, require

NONCE_SIZE = 24
TAG_SIZE = 16
SIGNATURE_SIZE = 64
HEADER_SIZE = 1 + 4 + 32
OVERHEAD = NONCE_SIZE + TAG_SIZE + HEADER_SIZE + SIGNATURE_SIZE
"""Bytes of an envelope beyond its class size: 141."""


@dataclass(frozen=True, slots=True)
class Signed:
    """One message as its sender signed it; what is kept as evidence when it is refused."""

    body: bytes
    signature: bytes

    @classmethod
    def cut(cls, plaintext: bytes) -> Signed:
        """Cut a decrypted envelope."""
        return cls(plaintext[:-SIGNATURE_SIZE], plaintext[-SIGNATURE_SIZE:])

    @property
    def counter(self) -> int:
        """Give the number inside."""
        return int.from_bytes(self.body[1:5], "big")

    @property
    def head(self) -> bytes:
        """Give the transcript head before this message."""
        return self.body[5:HEADER_SIZE]

    @property
    def fingerprint(self) -> bytes:
        """Give the hash by which another body under the same number is recognised."""
        return hashlib.sha256(self.body).digest()

    def next_head(self) -> bytes:
        """Give the transcript head after this message."""
        return digest("head", self.head, self.body, self.signature)[:32]

    @property
    def payload(self) -> bytes:
        """Give the payload.

        Raises:
            RemoteProtocolError: FORM, the length does not fit or the padding is not zero.
        """
        length = int.from_bytes(self.body[HEADER_SIZE : HEADER_SIZE + 2], "big")
        content = self.body[HEADER_SIZE + 2 :]
        require(length <= len(content), Reason.FORM, "the content's length exceeds its class")
        require(not any(content[length:]), Reason.FORM, "the padding is not zero")
        return content[:length]


@dataclass(frozen=True, slots=True, repr=False)
class Channel:
    """The two keys of a session and whom they belong to; made after the greetings, secret."""

    session_id: bytes
    sending: bytes
    receiving: bytes
    own_key: bytes
    peer_key: bytes

    def sign(self, device: DeviceKey, kind: Kind, counter: int, head: bytes, payload: bytes) -> Signed:
        """Make a message; its payload must fit its class."""
        size = FORMS[kind].size
        content = (len(payload).to_bytes(2, "big") + payload).ljust(size, b"\0")
        body = bytes([kind]) + counter.to_bytes(4, "big") + head + content
        return Signed(body, device.sign("msg", self.session_id, self.own_key, self.peer_key, body))

    def seal(self, message: Signed, nonce: bytes) -> bytes:
        """Encrypt a message; `nonce` is 24 fresh random bytes."""
        plaintext = message.body + message.signature
        return nonce + bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(
            plaintext, self.session_id, nonce, self.sending
        )

    def decrypt(self, envelope: bytes) -> bytes:
        """Give what the peer sealed, unchecked.

        Raises:
            TransportError: It was not sealed by the peer in this session.
        """
        return self._decrypt(envelope, self.receiving)

    def reopen(self, envelope: bytes) -> bytes:
        """Give the inside of an envelope that this device sealed."""
        return self._decrypt(envelope, self.sending)

    def _decrypt(self, envelope: bytes, key: bytes) -> bytes:
        nonce, sealed = envelope[:NONCE_SIZE], envelope[NONCE_SIZE:]
        if len(sealed) < TAG_SIZE:
            raise TransportError("the envelope is too short")
        try:
            return bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(sealed, self.session_id, nonce, key)
        except CryptoError:
            raise TransportError("the envelope does not open") from None

    def is_signed(self, message: Signed) -> bool:
        """Tell whether the peer signed a message for this device in this session."""
        fields = (self.session_id, self.peer_key, self.own_key, message.body)
        return verify(self.peer_key, message.signature, "msg", *fields)


def kind_of(plaintext: bytes) -> Kind:
    """Give the kind of a decrypted message and check its size (section 10, check 1b).

    Raises:
        RemoteProtocolError: FORM, an unknown type or another size than the type's.
    """
    code = plaintext[0] if plaintext else 0
    require(code in _SIZES, Reason.FORM, "the type is unknown")
    require(len(plaintext) == _SIZES[code], Reason.FORM, "the size is not that of the type")
    return Kind(code)


_SIZES = {int(kind): HEADER_SIZE + SIGNATURE_SIZE + form.size for kind, form in FORMS.items()}
