"""Postgres and Redis as services meet them."""

import asyncio

import asyncpg
import pytest
from redis.exceptions import RedisError

from services.kit.errors import Code, ServiceError
from services.kit.limits import Limiter
from services.kit.postgres import MigrationError, check_migrations, migrate, open_pool
from services.kit.redis import is_outage, load_script, open_client
from services.kit.settings import SettingsError
from tests.harness import FakeClock


class TooMany(ServiceError):
    code = Code.RESOURCE_EXHAUSTED
    reason = "RATE_LIMITED"


@pytest.fixture
def plain_url(stores):
    """An empty database without any migration, as the superuser."""
    stores._clone("koikoi", "plain")
    yield lambda role: stores.postgres.url(role, "plain")
    stores.drop_database("plain")


async def test_migrations_apply_once_and_in_order(plain_url, tmp_path):
    directory = tmp_path / "sql"
    directory.mkdir()
    (directory / "0001_init.sql").write_text("CREATE TABLE thing (id int);")
    assert await migrate(plain_url("auth_owner"), "auth", directory) == ["0001_init.sql"]
    (directory / "0002_more.sql").write_text("ALTER TABLE thing ADD name text; INSERT INTO thing VALUES (1, 'a');")
    assert await migrate(plain_url("auth_owner"), "auth", directory) == ["0002_more.sql"]
    assert await migrate(plain_url("auth_owner"), "auth", directory) == []
    assert await migrate(plain_url("auth"), "auth", directory) == [], "the service's role may look"


async def test_twenty_processes_migrate_at_once(plain_url, tmp_path):
    (tmp_path / "0001_init.sql").write_text("CREATE TABLE thing (id int);")
    answers = await asyncio.gather(*(migrate(plain_url("lobby_owner"), "lobby", tmp_path) for _ in range(20)))
    assert sorted(answers) == [[]] * 19 + [["0001_init.sql"]]


async def test_a_failing_migration_leaves_nothing(plain_url, tmp_path):
    (tmp_path / "0001_init.sql").write_text("CREATE TABLE thing (id int);")
    (tmp_path / "0002_bad.sql").write_text("CREATE TABLE other (id int); SELECT nonsense;")
    with pytest.raises(asyncpg.PostgresError):
        await migrate(plain_url("auth_owner"), "auth", tmp_path)
    connection = await asyncpg.connect(plain_url("postgres"))
    assert await connection.fetchval("SELECT to_regclass('auth.thing')") is None
    await connection.close()


async def test_changed_and_misnumbered_migrations_are_refused(plain_url, tmp_path):
    (tmp_path / "0001_init.sql").write_text("CREATE TABLE thing (id int);")
    await migrate(plain_url("auth_owner"), "auth", tmp_path)
    (tmp_path / "0001_init.sql").write_text("CREATE TABLE thing (id bigint);")
    with pytest.raises(MigrationError, match="was changed"):
        await migrate(plain_url("auth_owner"), "auth", tmp_path)
    (tmp_path / "0003_gap.sql").write_text("")
    with pytest.raises(MigrationError, match="0002_what"):
        await migrate(plain_url("auth_owner"), "auth", tmp_path)
    with pytest.raises(MigrationError, match="not a schema name"):
        await migrate(plain_url("auth_owner"), 'a"b', tmp_path / "none")


async def test_a_service_checks_its_schema_at_start(plain_url, tmp_path):
    (tmp_path / "0001_init.sql").write_text("CREATE TABLE thing (id int);")
    pool = await open_pool(plain_url("match"), schema="match")
    with pytest.raises(MigrationError, match="is empty"):
        await check_migrations(pool, "match", tmp_path)
    await migrate(plain_url("match_owner"), "match", tmp_path)
    await check_migrations(pool, "match", tmp_path)
    (tmp_path / "0002_more.sql").write_text("SELECT 1;")
    with pytest.raises(MigrationError, match="lacks 0002_more"):
        await check_migrations(pool, "match", tmp_path)
    await migrate(plain_url("match_owner"), "match", tmp_path)
    (tmp_path / "0002_more.sql").unlink()
    await check_migrations(pool, "match", tmp_path)  # a newer schema than this code knows
    await pool.close()


async def test_a_service_role_has_rows_but_no_tables_and_no_neighbours(plain_url, tmp_path):
    (tmp_path / "0001_init.sql").write_text("CREATE TABLE thing (id int);")
    for service in ("auth", "lobby"):
        await migrate(plain_url(f"{service}_owner"), service, tmp_path)
    pool = await open_pool(plain_url("auth"), schema="auth")
    await pool.execute("INSERT INTO thing VALUES (1)")
    assert await pool.fetchval("SELECT count(*) FROM auth.thing") == 1
    for forbidden in (
        "DROP TABLE thing",
        "TRUNCATE thing",
        "CREATE TABLE other (id int)",
        "CREATE TABLE public.other (id int)",
        "SELECT * FROM lobby.thing",
        "ALTER TABLE thing ADD x int",
        "CREATE SCHEMA x",
        "CREATE TEMP TABLE x (id int)",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await pool.execute(forbidden)
    await pool.close()


async def test_one_superuser_for_all_schemas_works_too(plain_url, tmp_path):
    (tmp_path / "0001_init.sql").write_text("CREATE TABLE thing (id int);")
    await migrate(plain_url("postgres"), "ranking", tmp_path)
    pool = await open_pool(plain_url("postgres"), schema="ranking")
    assert await pool.fetchval("SELECT count(*) FROM thing") == 0
    await pool.close()


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("postgresql://u:hidden@127.0.0.1:1/koikoi", "Connect"),
        ("postgresql://u:hidden@nowhere.invalid/koikoi", "."),
        ("postgresql://u:hid/den@127.0.0.1/koikoi", "cannot be read"),
        ("{nobody}", 'role "nobody" does not exist'),
        ("{no_database}", 'database "nothing" does not exist'),
    ],
)
async def test_a_postgres_that_does_not_serve_us_is_one_sentence(stores, tmp_path, url, why):
    at = url.format(nobody=stores.postgres.url("nobody"), no_database=stores.postgres.url("auth", "nothing"))
    for attempt in (open_pool(at, schema="auth"), migrate(at, "auth", tmp_path)):
        with pytest.raises(ConnectionError) as caught:
            await attempt
        text = str(caught.value)
        assert text.startswith("KOIKOI_AUTH_DATABASE_URL leads to no Postgres that serves us: ")
        assert why in text
        assert "hid" not in text
        assert "\n" not in text


def test_a_url_that_is_none_of_redis_is_one_sentence():
    for url in ("localhost:6379", "http://localhost", "redis://:hidden@localhost:port", ""):
        with pytest.raises(SettingsError, match="must be like redis://") as caught:
            open_client(url)
        assert "hidden" not in str(caught.value)


async def test_a_script_is_sent_again_when_the_server_forgot_it(redis_url):
    client = open_client(redis_url)
    script = load_script(client, "return {KEYS[1], ARGV[1]}")
    assert await script(["a"], ["b"]) == [b"a", b"b"]
    await client.script_flush()
    assert await script([b"a"], [7]) == [b"a", b"7"]
    await client.aclose()


@pytest.mark.parametrize("setting", ["maxmemory", "min-replicas-to-write"])
async def test_a_redis_that_takes_no_writes_is_an_outage(redis_url, setting):
    client = open_client(redis_url)
    await client.config_set(setting, "1")
    error = await outcome(client.set("x", "1"))
    await client.config_set(setting, "0")
    assert is_outage(error), error
    assert not is_outage(await outcome(client.set("x", "1", px=0))), "a command that is wrong"
    await client.aclose()


async def test_a_redis_that_is_busy_with_a_script_is_an_outage(redis_url):
    client = open_client(redis_url)
    before = (await client.config_get("busy-reply-threshold"))["busy-reply-threshold"]
    await client.config_set("busy-reply-threshold", "10")
    hog = asyncio.create_task(client.eval("while true do end", 0))
    try:
        while not isinstance(error := await outcome(client.get("x")), RedisError):
            pass
        assert is_outage(error), error
    finally:
        await client.script_kill()
        assert not is_outage(await outcome(hog)), "a script that was killed"
        await client.config_set("busy-reply-threshold", before)
        await client.aclose()


async def outcome(call):
    try:
        return await call
    except RedisError as error:
        return error


async def test_a_limit_is_exact_in_every_window(redis_url, fake_clock: FakeClock):
    client = open_client(redis_url)
    limiter = Limiter(client, fake_clock, "test:")
    for _ in range(5):
        await limiter.check("a", 5, 60, TooMany)
        await limiter.take("a", 5, 60, TooMany)
        fake_clock.advance(10)
    for ask in (limiter.take, limiter.check):
        with pytest.raises(TooMany) as caught:
            await ask("a", 5, 60, TooMany)
        assert caught.value.retry_after_s == 10
    await limiter.take("b", 5, 60, TooMany)
    fake_clock.advance(9.999)
    with pytest.raises(TooMany):
        await limiter.take("a", 5, 60, TooMany)
    fake_clock.advance(0.001)
    await limiter.take("a", 5, 60, TooMany)
    with pytest.raises(TooMany) as caught:
        await limiter.take("a", 5, 60, lambda wait_s: TooMany("slow", metadata={"wait": str(wait_s)}))
    assert caught.value.metadata == {"wait": "10.0"}
    await limiter.forget("a")
    await limiter.take("a", 5, 60, TooMany)
    await client.aclose()


async def test_fifty_at_once_get_exactly_the_limit(redis_url, fake_clock: FakeClock):
    client = open_client(redis_url)
    limiter = Limiter(client, fake_clock, "test:")
    answers = await asyncio.gather(*(limiter.take("a", 7, 60, TooMany) for _ in range(50)), return_exceptions=True)
    assert sum(answer is None for answer in answers) == 7
    assert 0 < await client.pttl("test:{a}") <= 60_000
    await client.aclose()


async def test_more_commands_at_once_than_connections_wait_their_turn(redis_url):
    client = open_client(redis_url, max_connections=4)
    slow = load_script(client, "local n = 0 for i = 1, 20000 do n = n + i end return n")
    try:
        assert await asyncio.gather(*(slow(["k"]) for _ in range(300))) == [200_010_000] * 300
        assert len(await client.client_list()) <= 4
    finally:
        await client.aclose()
