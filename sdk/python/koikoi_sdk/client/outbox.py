"""A match on disk: written before anything is sent, so that a killed client goes on where it was.

One directory per match, below the device's home:

    contract    the signed contract (no secret)
    key         32 random bytes; the state is encrypted under it, and erased by destroying it
    state       the seat's snapshot, XChaCha20-Poly1305, replaced atomically at every step
    result      statement and both signatures, until the ranking has them
    evidence    what the opponent signed that was refused; kept for the player
    receipts    what the relay signed about a slow or dishonest opponent, one per line; kept until a result is recorded
    lock        held while a process plays this match, so that two never fork it

docs/protocol.md section 11. File systems and flash keep old blocks: erasing the one small key is what counts.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nacl import bindings
from nacl.exceptions import CryptoError

from koikoi_sdk.client.errors import StorageError
from koikoi_sdk.client.home import cannot_use, write_private
from koikoi_sdk.table import Evidence, SignedResult

_KEY_SIZE = 32
_NONCE_SIZE = 24
_REST_AGE_S = 86_400.0
MAX_RECEIPTS = 16
"""Kept of one match, the newest."""


class Outbox:
    """The stored state of one match of one device."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @classmethod
    def create(cls, matches: Path, match_id: str, contract: str, state: bytes) -> Outbox:
        """Store a new match; one that is stored already is opened as it is.

        The directory appears whole or not at all: it is made under another name and then renamed.
        """
        final = matches / match_id
        if not final.exists():
            draft = matches / f".{match_id}.{secrets.token_hex(4)}"
            try:
                draft.mkdir(mode=0o700)
            except OSError as error:
                raise cannot_use(draft, error) from error
            write_private(draft / "key", secrets.token_bytes(_KEY_SIZE))
            write_private(draft / "contract", contract.encode())
            cls(draft).save(state)
            try:
                draft.rename(final)
            except OSError:  # another process was faster
                _remove(draft)
        return cls(final)

    @classmethod
    def stored(cls, matches: Path) -> list[Outbox]:
        """Give all matches on disk, oldest first (match ids are UUIDv7).

        What a process that was killed left half made is removed, once it is older than any such making takes, and so
        are notes about matches that were forgotten.
        """
        for rest in matches.glob(".*"):
            with contextlib.suppress(FileNotFoundError):
                if time.time() - rest.stat().st_mtime < _REST_AGE_S:
                    continue
                if rest.is_dir():
                    _remove(rest)
                else:
                    rest.unlink()
        return [cls(path) for path in sorted(matches.iterdir()) if path.is_dir() and not path.name.startswith(".")]

    @classmethod
    def knows(cls, matches: Path, match_id: str) -> bool:
        """Tell whether a match is or was on this device, also one that was forgotten within the last day."""
        return (matches / match_id).exists() or _note(matches, match_id).exists()

    @property
    def match_id(self) -> str:
        """Give the match's id."""
        return self.directory.name

    @property
    def contract(self) -> str:
        """Give the signed contract.

        Raises:
            StorageError: It is gone or damaged.
        """
        try:
            return self._read("contract").decode("ascii")
        except ValueError as error:
            raise StorageError(f"the contract of match {self.match_id} is damaged") from error

    @property
    def is_open(self) -> bool:
        """Tell whether there is a state to go on from: the key is there, and was not being erased when we died."""
        return (self.directory / "key").exists() and any(self._key())

    @property
    def is_pending(self) -> bool:
        """Tell whether there is something to do: play on, or hand a result in."""
        return self.is_open or (self.directory / "result").exists()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep every other process out of this match; the operating system lets go when this one dies.

        Raises:
            StorageError: Another process plays this match.
        """
        path = self.directory / "lock"
        try:
            file = path.open("wb")
        except OSError as error:
            raise cannot_use(path, error) from error
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise StorageError(f"match {self.match_id} is being played by another process") from None
            yield

    def save(self, state: bytes) -> None:
        """Store a state; once this returns it survives a crash."""
        nonce = secrets.token_bytes(_NONCE_SIZE)
        box = bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(state, None, nonce, self._key())
        write_private(self.directory / "state", nonce + box)

    def load(self) -> bytes:
        """Give the state stored last.

        Raises:
            StorageError: It is gone or damaged.
        """
        data = self._read("state")
        try:
            return bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(
                data[_NONCE_SIZE:], None, data[:_NONCE_SIZE], self._key()
            )
        except (CryptoError, ValueError) as error:
            raise StorageError(f"the state of match {self.match_id} is damaged") from error

    def save_result(self, result: SignedResult) -> None:
        """Keep a signed result until the ranking has it."""
        members = {
            "statement": result.statement.encode().hex(),
            "signatures": [signature.hex() for signature in result.signatures],
        }
        write_private(self.directory / "result", json.dumps(members).encode())

    def load_result(self) -> tuple[bytes, tuple[bytes, bytes]] | None:
        """Give statement and signatures when there is a result that was not handed in."""
        if not (self.directory / "result").exists():
            return None
        try:
            members: dict[str, Any] = json.loads(self._read("result"))
            first, second = members["signatures"]
            return bytes.fromhex(members["statement"]), (bytes.fromhex(first), bytes.fromhex(second))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise StorageError(f"the result of match {self.match_id} is damaged") from error

    def save_evidence(self, evidence: Evidence) -> None:
        """Keep what the opponent signed and why it was refused; with the contract beside it others can check it."""
        members = {
            "reason": int(evidence.reason),
            "check": evidence.check,
            "session_id": evidence.session_id.hex(),
            "head": evidence.head.hex(),
            "body": base64.b64encode(evidence.body).decode(),
            "signature": evidence.signature.hex(),
            "answered": base64.b64encode(evidence.answered).decode(),
        }
        write_private(self.directory / "evidence", json.dumps(members).encode())

    def save_receipt(self, token: str) -> None:
        """Keep a verified receipt of the relay beside earlier ones."""
        kept = [*self.receipts, token][-MAX_RECEIPTS:]
        write_private(self.directory / "receipts", "".join(f"{one}\n" for one in kept).encode())

    @property
    def receipts(self) -> list[str]:
        """Give the receipts that were kept, oldest first."""
        return self._read("receipts").decode("ascii").split() if (self.directory / "receipts").exists() else []

    def erase(self) -> None:
        """Destroy the key and the state: nobody can read this match's cards any more."""
        path = self.directory / "key"
        try:
            if path.exists():
                with path.open("r+b") as file:
                    file.write(bytes(_KEY_SIZE))
                    file.flush()
                    os.fsync(file.fileno())
                path.unlink()
            (self.directory / "state").unlink(missing_ok=True)
        except OSError as error:
            raise cannot_use(path, error) from error

    def remove(self, *, is_recorded: bool = False) -> None:
        """Forget the match, but keep evidence of a refused message, and receipts where no result is recorded."""
        self.erase()
        note = _note(self.directory.parent, self.match_id)
        try:
            note.touch(mode=0o600)  # first: a match is never begun a second time
        except OSError as error:
            raise cannot_use(note, error) from error
        (self.directory / "result").unlink(missing_ok=True)
        if is_recorded:
            (self.directory / "receipts").unlink(missing_ok=True)
        if not any((self.directory / name).exists() for name in ("evidence", "receipts")):
            _remove(self.directory)

    def _key(self) -> bytes:
        return self._read("key")

    def _read(self, name: str) -> bytes:
        try:
            return (self.directory / name).read_bytes()
        except OSError as error:
            raise StorageError(f"match {self.match_id} has no {name} on this device") from error


def _note(matches: Path, match_id: str) -> Path:
    """Give the file that says: this match was here and is over. Contracts are good for hours only."""
    return matches / f".over.{match_id}"


def _remove(directory: Path) -> None:
    try:
        for path in directory.iterdir():
            path.unlink()
        directory.rmdir()
    except FileNotFoundError:  # another process does the same
        pass
    except OSError as error:
        raise cannot_use(directory, error) from error
