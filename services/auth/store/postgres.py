"""Accounts, identities, device keys, sessions and answered requests in Postgres (schema `auth`).

Every method is one transaction; concurrent calls for one device, account or session are put in order by row locks,
always taken in the order identity, device, account, session. Times are unix seconds.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias
from uuid import UUID

from asyncpg import Record
from asyncpg.pool import PoolConnectionProxy

from services.auth.domain.challenges import challenge_hash, challenge_invalid
from services.auth.domain.devices import Device, device_unknown
from services.auth.domain.errors import DeviceKeyTaken, RequestIdReused
from services.auth.domain.identity import Identity
from services.auth.domain.profiles import Profile
from services.auth.domain.sessions import REPLY_GRACE_S, Session, signed_out
from services.auth.ports import Request, Revocation, Rotation, SignedIn, SignInRecord
from services.kit.postgres import Pool

SCHEMA = "auth"
MIGRATIONS = Path(__file__).parent / "sql"

_KEEP_SESSION_S = 7 * 86_400.0
_KEEP_REQUEST_S = 86_400.0

_IS_SIGNED_IN = """
    SELECT EXISTS (SELECT FROM sessions WHERE account_id = $1 AND device_id = $2 AND end_time IS NULL)
"""

# One row per device key: its live session, else its last one.
_DEVICES = """
    SELECT device_id, name, create_time, last_use_time, is_signed_in FROM (
        SELECT DISTINCT ON (device_key)
            sessions.device_id, coalesce(devices.name, sessions.device_name) AS name, devices.create_time,
            sessions.rotate_time AS last_use_time,
            sessions.end_time IS NULL AND sessions.expire_time > $2 AS is_signed_in
        FROM sessions JOIN devices USING (device_key)
        WHERE sessions.account_id = $1 AND ($3::bytea IS NULL OR device_key = $3)
        ORDER BY device_key, sessions.end_time IS NULL DESC, sessions.create_time DESC
    ) AS latest ORDER BY device_id = $4 DESC, last_use_time DESC, device_id LIMIT $5
"""

_Connection: TypeAlias = "PoolConnectionProxy[Record]"


class PostgresAccounts:
    """Implements `ports.Accounts`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def has_identity(self, identity: Identity) -> bool:
        """Say whether the identity already has an account."""
        query = "SELECT EXISTS (SELECT FROM identities WHERE issuer = $1 AND subject = $2)"
        return bool(await self._pool.fetchval(query, identity.issuer, identity.subject))

    async def sign_in(self, record: SignInRecord, now: float) -> SignedIn:
        """Store a sign-in in one step, or return the stored one when this is the same request again."""
        async with self._pool.acquire() as connection, connection.transaction():
            account_id = await _claim_identity(connection, record, now)
            await _claim_device(connection, record.session.device_key, account_id, now)
            stored = await _find_attempt(connection, record)
            if stored is None:
                if record.challenge.expire_time <= now:
                    raise challenge_invalid()
                is_new_account = account_id == record.profile.account_id
                stored = await _open_session(connection, record, account_id, is_new_account, now)
            else:
                _check_repeated(stored, record, now)
            profile = await _profile(connection, account_id)
        assert profile is not None, "an identity always has an account"
        return SignedIn(_session(stored), profile, stored["is_new_account"])

    async def find_session(self, session_id: UUID) -> Session | None:
        """Return a session, ended or not."""
        row = await self._pool.fetchrow("SELECT * FROM sessions WHERE session_id = $1", session_id)
        return None if row is None else _session(row)

    async def rotate(self, rotation: Rotation) -> bool:
        """Move a session on; False when it is no longer at that generation, or has ended."""
        moved = await self._pool.fetchval(
            """
            UPDATE sessions SET generation = generation + 1, previous_hash = token_hash, token_hash = $3,
                                rotate_time = $4, expire_time = $5
            WHERE session_id = $1 AND generation = $2 AND end_time IS NULL RETURNING true
            """,
            rotation.session_id,
            rotation.from_generation,
            rotation.token_hash,
            rotation.rotate_time,
            rotation.expire_time,
        )
        return bool(moved)

    async def end_family(self, session_id: UUID, now: float) -> None:
        """End a session whose refresh token was shown twice."""
        await self._pool.execute(
            "UPDATE sessions SET end_time = $2, end_reason = 'reused' WHERE session_id = $1 AND end_time IS NULL",
            session_id,
            now,
        )

    async def find_profile(self, account_id: UUID) -> Profile | None:
        """Return the profile of an account."""
        async with self._pool.acquire() as connection:
            return await _profile(connection, account_id)

    async def update_profile(self, request: Request, display_name: str | None, avatar: str | None) -> Profile:
        """Change what is given, once per request; returns the profile as it is now."""
        async with self._pool.acquire() as connection, connection.transaction():
            if not await connection.fetchval(_IS_SIGNED_IN, request.account_id, request.device_id):
                raise signed_out()
            if await _is_first(connection, request):
                await connection.execute(
                    """
                    UPDATE accounts SET display_name = coalesce($2, display_name), avatar = coalesce($3, avatar)
                    WHERE account_id = $1
                    """,
                    request.account_id,
                    display_name,
                    avatar,
                )
            profile = await _profile(connection, request.account_id)
        assert profile is not None, "a session always has an account"
        return profile

    async def sign_out(self, request: Request, *, all_devices: bool) -> int:
        """End the session of the calling device, or all, once per request; returns how many this call ended.

        A device that is signed out cannot end the others. That is refused within the transaction, so that the request
        is not taken for done when it comes again after the next sign-in.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            if not await _is_first(connection, request):
                return 0
            if not await connection.fetchval(_IS_SIGNED_IN, request.account_id, request.device_id):
                if all_devices:
                    raise signed_out()
                return 0
            ended = await connection.fetch(
                """
                UPDATE sessions SET end_time = $3, end_reason = 'signed_out'
                WHERE account_id = $1 AND ($4 OR device_id = $2) AND end_time IS NULL
                RETURNING expire_time
                """,
                request.account_id,
                request.device_id,
                request.time,
                all_devices,
            )
        return len([row for row in ended if row["expire_time"] > request.time])

    async def list_devices(self, account_id: UUID, device_id: UUID, limit: int, now: float) -> Sequence[Device]:
        """Return the account's devices that have a session or had one lately: `device_id` first, then the last used."""
        async with self._pool.acquire() as connection, connection.transaction():
            if not await connection.fetchval(_IS_SIGNED_IN, account_id, device_id):
                raise signed_out()
            rows = await connection.fetch(_DEVICES, account_id, now, None, device_id, limit)
        return [Device(*row) for row in rows]

    async def rename_device(self, request: Request, renamed_id: UUID, name: str) -> Device:
        """Name a device of the account, once per request; an empty name gives it back its own."""
        async with self._pool.acquire() as connection, connection.transaction():
            device_key = await _lock_device(connection, request.account_id, renamed_id)
            is_first = await _is_first(connection, request)
            if not await connection.fetchval(_IS_SIGNED_IN, request.account_id, request.device_id):
                raise signed_out()
            if is_first:
                query = "UPDATE devices SET name = nullif($2, '') WHERE device_key = $1"
                await connection.execute(query, device_key, name)
            row = await connection.fetchrow(_DEVICES, request.account_id, request.time, device_key, renamed_id, 1)
        assert row is not None, "a locked device has a session"
        return Device(*row)

    async def revoke_device(self, request: Request, revoked_id: UUID) -> bool:
        """End the session of a device of the account, once per request; says whether this call ended a live one.

        Of two devices that revoke each other at once, the account's lock lets one win; the other is signed out by then.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            await _lock_device(connection, request.account_id, revoked_id)
            if not await _is_first(connection, request):
                return False
            if not await connection.fetchval(_IS_SIGNED_IN, request.account_id, request.device_id):
                raise signed_out()
            was_live = await connection.fetchval(
                """
                UPDATE sessions SET end_time = $3, end_reason = 'signed_out'
                WHERE account_id = $1 AND device_id = $2 AND end_time IS NULL RETURNING expire_time > $3
                """,
                request.account_id,
                revoked_id,
                request.time,
            )
        return bool(was_live)

    async def unannounced(self, limit: int) -> Sequence[Revocation]:
        """Return sign-outs that were not announced yet, the oldest first."""
        rows = await self._pool.fetch(
            """
            SELECT session_id, account_id, device_id, device_key, end_time FROM sessions
            WHERE end_reason = 'signed_out' AND NOT is_announced ORDER BY end_time LIMIT $1
            """,
            limit,
        )
        return [
            Revocation(row["session_id"], row["account_id"], row["device_id"], row["device_key"], row["end_time"])
            for row in rows
        ]

    async def mark_announced(self, session_ids: Sequence[UUID]) -> None:
        """Note that these sign-outs were announced."""
        await self._pool.execute("UPDATE sessions SET is_announced = true WHERE session_id = ANY($1)", session_ids)

    async def purge(self, now: float) -> None:
        """Delete sessions that ended or expired a week ago, and answered requests of the day before."""
        await self._pool.execute(
            """
            DELETE FROM sessions WHERE coalesce(end_time, expire_time) < $1
                AND (end_reason IS DISTINCT FROM 'signed_out' OR is_announced)
            """,
            now - _KEEP_SESSION_S,
        )
        await self._pool.execute("DELETE FROM requests WHERE create_time < $1", now - _KEEP_REQUEST_S)


async def _claim_identity(connection: _Connection, record: SignInRecord, now: float) -> UUID:
    """Return the account of the identity; created here when this sign-in is the first. Waits for a concurrent first."""
    identity, profile = record.identity, record.profile
    claimed = await connection.fetchval(
        """
        INSERT INTO identities (issuer, subject, account_id) VALUES ($1, $2, $3)
        ON CONFLICT (issuer, subject) DO NOTHING RETURNING account_id
        """,
        identity.issuer,
        identity.subject,
        profile.account_id,
    )
    if claimed is None:
        query = "SELECT account_id FROM identities WHERE issuer = $1 AND subject = $2"
        known = await connection.fetchval(query, identity.issuer, identity.subject)
        assert isinstance(known, UUID), "identities are never deleted"
        return known
    await connection.execute(
        "INSERT INTO accounts (account_id, display_name, avatar, create_time) VALUES ($1, $2, $3, $4)",
        profile.account_id,
        profile.display_name,
        profile.avatar,
        now,
    )
    return profile.account_id


async def _claim_device(connection: _Connection, device_key: bytes, account_id: UUID, now: float) -> None:
    """Bind the key to the account for ever, or check that it is; locks the device until the transaction ends."""
    await connection.execute(
        """
        INSERT INTO devices (device_key, account_id, create_time) VALUES ($1, $2, $3)
        ON CONFLICT (device_key) DO NOTHING
        """,
        device_key,
        account_id,
        now,
    )
    owner = await connection.fetchval("SELECT account_id FROM devices WHERE device_key = $1 FOR UPDATE", device_key)
    if owner != account_id:
        raise DeviceKeyTaken("The device key belongs to another account; create a new device key.", field="device_key")


async def _lock_device(connection: _Connection, account_id: UUID, device_id: UUID) -> bytes:
    """Return the key of a device of the account; no sign-in of the device goes on until the transaction ends."""
    device_key = await connection.fetchval(
        """
        SELECT device_key FROM devices WHERE device_key =
            (SELECT device_key FROM sessions WHERE account_id = $1 AND device_id = $2 LIMIT 1)
        FOR UPDATE
        """,
        account_id,
        device_id,
    )
    if device_key is None:
        raise device_unknown()
    return bytes(device_key)


async def _find_attempt(connection: _Connection, record: SignInRecord) -> Record | None:
    """Return the session this attempt opened before, or the one that makes it impossible."""
    return await connection.fetchrow(
        """
        SELECT * FROM sessions WHERE (device_key = $1 AND request_id = $2) OR challenge_hash = $3
        ORDER BY challenge_hash = $3 AND request_id = $2 DESC, request_id = $2 DESC LIMIT 1
        """,
        record.session.device_key,
        record.request_id,
        challenge_hash(record.challenge.value),
    )


def _check_repeated(stored: Record, record: SignInRecord, now: float) -> None:
    """Let only the same request through, while its reply may still be on its way and nothing happened since."""
    if stored["request_id"] == record.request_id and stored["content_hash"] != record.content_hash:
        raise RequestIdReused("The request_id was used for another sign-in; send a new one.", field="request_id")
    is_fresh = now - stored["create_time"] <= REPLY_GRACE_S and stored["generation"] == 0 and stored["end_time"] is None
    if stored["request_id"] != record.request_id or not is_fresh:
        raise challenge_invalid()


async def _open_session(
    connection: _Connection, record: SignInRecord, account_id: UUID, is_new_account: bool, now: float
) -> Record:
    """Store the session; it replaces the device's live one and takes over its device id."""
    session = record.session
    replaced = await connection.fetchval(
        """
        UPDATE sessions SET end_time = $2, end_reason = 'replaced' WHERE device_key = $1 AND end_time IS NULL
        RETURNING device_id
        """,
        session.device_key,
        now,
    )
    opened = await connection.fetchrow(
        """
        INSERT INTO sessions (session_id, device_id, account_id, device_key, device_name, seed, generation, token_hash,
                              rotate_time, expire_time, create_time, challenge_hash, request_id, content_hash,
                              is_new_account)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $9, $11, $12, $13, $14) RETURNING *
        """,
        session.session_id,
        replaced or session.device_id,
        account_id,
        session.device_key,
        record.device_name,
        session.seed,
        session.generation,
        session.token_hash,
        session.rotate_time,
        session.expire_time,
        challenge_hash(record.challenge.value),
        record.request_id,
        record.content_hash,
        is_new_account,
    )
    assert opened is not None, "INSERT ... RETURNING gives its row"
    return opened


async def _is_first(connection: _Connection, request: Request) -> bool:
    """Lock the account and note the request; False when it was answered before."""
    await connection.execute("SELECT FROM accounts WHERE account_id = $1 FOR NO KEY UPDATE", request.account_id)
    known = await connection.fetchval(
        "SELECT content_hash FROM requests WHERE account_id = $1 AND request_id = $2",
        request.account_id,
        request.request_id,
    )
    if known is None:
        await connection.execute(
            """
            INSERT INTO requests (account_id, request_id, content_hash, create_time)
            SELECT account_id, $2, $3, $4 FROM accounts WHERE account_id = $1
            """,
            request.account_id,
            request.request_id,
            request.content_hash,
            request.time,
        )
    elif known != request.content_hash:
        raise RequestIdReused("The request_id was used for another change; send a new one.", field="request_id")
    return known is None


async def _profile(connection: _Connection, account_id: UUID) -> Profile | None:
    row = await connection.fetchrow(
        "SELECT account_id, display_name, avatar, create_time FROM accounts WHERE account_id = $1", account_id
    )
    return None if row is None else Profile(*row)


def _session(row: Record) -> Session:
    return Session(
        session_id=row["session_id"],
        device_id=row["device_id"],
        account_id=row["account_id"],
        device_key=row["device_key"],
        seed=row["seed"],
        generation=row["generation"],
        token_hash=row["token_hash"],
        previous_hash=row["previous_hash"],
        rotate_time=row["rotate_time"],
        expire_time=row["expire_time"],
        is_ended=row["end_time"] is not None,
    )
