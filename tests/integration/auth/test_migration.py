"""A database of the release before gains names of devices, and processes of that release go on writing."""

import shutil
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import asyncpg

from services.auth.ports import Request
from services.auth.store.postgres import MIGRATIONS, PostgresAccounts
from services.kit.postgres import migrate, open_pool

SCHEMA = "before"
# As the release before wrote a device and a session.
OLD_DEVICE = "INSERT INTO devices (device_key, account_id, create_time) VALUES ($1, $2, $3)"
OLD_SESSION = """
    INSERT INTO sessions (session_id, device_id, account_id, device_key, device_name, seed, generation, token_hash,
                          rotate_time, expire_time, create_time, challenge_hash, request_id, content_hash,
                          is_new_account)
    VALUES ($1, $2, $3, $4, 'old name', '', 0, '', 10, 1000, 10, $4, 'r', '', true) RETURNING *
"""


async def test_old_devices_are_listed_and_old_processes_go_on(database_url: Callable[..., str], tmp_path: Path):
    url = database_url("auth", role="postgres")
    shutil.copy(MIGRATIONS / "0001_init.sql", tmp_path)
    connection = await asyncpg.connect(url)
    await connection.execute(f"CREATE SCHEMA {SCHEMA}; SET search_path = {SCHEMA}")
    assert await migrate(url, SCHEMA, tmp_path) == ["0001_init.sql"]
    account_id, devices = uuid4(), [uuid4(), uuid4()]
    await connection.execute("INSERT INTO accounts VALUES ($1, 'N', 'crane', 1)", account_id)

    async def sign_in_as_before(number: int) -> None:
        key = bytes([number]) * 32
        await connection.execute(OLD_DEVICE, key, account_id, float(number))
        await connection.fetchrow(OLD_SESSION, uuid4(), devices[number], account_id, key)

    await sign_in_as_before(0)
    assert await migrate(url, SCHEMA, MIGRATIONS) == ["0002_devices.sql"]
    await sign_in_as_before(1)
    pool = await open_pool(url, schema=SCHEMA)
    accounts = PostgresAccounts(pool)
    request = Request(account_id, devices[0], "rename", b"", 20.0)
    assert (await accounts.rename_device(request, devices[1], "new name")).name == "new name"
    listed = await accounts.list_devices(account_id, devices[0], 10, 20.0)
    assert [(one.device_id, one.name, one.is_signed_in) for one in listed] == [
        (devices[0], "old name", True),
        (devices[1], "new name", True),
    ]
    await pool.close()
    await connection.close()
