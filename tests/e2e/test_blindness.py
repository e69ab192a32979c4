"""The servers are blind: nothing they hold, during a match or after it, shows anything of the players' secrets.

Two recording devices play a match. At several points in it, and after it, everything the servers hold is searched for
every secret so far: raw, in hex and in base64. Values planted in each place prove that the search would find them.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import shutil
import socket
import string
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest
from koikoi.lobby.v1 import lobby_service_pb2 as lobby
from koikoi.match.v1 import envelope_pb2
from koikoi.match.v1 import match_service_pb2 as match
from koikoi_sdk.client.contract import SignedContract
from koikoi_sdk.client.match import hand_in, payload_of
from koikoi_sdk.client.outbox import Outbox
from koikoi_sdk.client.players import SimpleBot
from koikoi_sdk.client.session import Session
from koikoi_sdk.client.transport import Connection, Transport, open_transport
from koikoi_sdk.table import Kind
from redis import Redis

from tests.e2e import holdings
from tests.e2e.recording import Recorder, RecordingRandom, RecordingSeat
from tests.e2e.search import OVERLAP, Search, cut, write_forms
from tools.bots import Bot, signed_in_bot
from tools.plan import SERVICES
from tools.stack import Stack

pytestmark = pytest.mark.xdist_group("e2e")

POINTS = (Kind.S2, Kind.T2, Kind.AU3)
"""Where the match is stopped and searched: when the relay has just forwarded the first message of a kind."""
PASSWORD = "a password of the room, long enough to search"
ALL_FORMS = set(write_forms(b""))
PLANT, SEALED, CREDENTIAL = "plant", "sealed ", "credential: "
"""Begin the names of what may or must be found somewhere; all others are secrets of the players."""
Found = dict[str, set[tuple[str, str]]]


# The search itself.


@pytest.mark.parametrize("form", sorted(ALL_FORMS))
def test_the_search_finds_every_form_at_every_place(form: str) -> None:
    value, search = secrets.token_bytes(32), Search()
    search.add("value", value)
    for at in [*range(40), 4090, 4096, 65_536 - 7]:
        data = b"\0" * at + write_forms(value)[form] + secrets.token_bytes(50)
        assert ("value", form) in search.find(data), at


def test_the_search_finds_fragments_and_what_lies_across_a_cut() -> None:
    value, search = secrets.token_bytes(96), Search()
    search.add("value", value)
    assert search.find(b"x" + value[32:64].hex().encode()) == {("value", "hex")}
    stream = secrets.token_bytes(1000) + value + secrets.token_bytes(1000)
    for size in (OVERLAP, 600, 1010, 1040):
        assert search.find_all(cut([stream[:1020], stream[1020:]], size)) == {("value", "raw")}


def test_the_search_finds_nothing_where_nothing_is() -> None:
    search = Search()
    for _ in range(1000):
        search.add("value", secrets.token_bytes(32))
    search.add("padding", bytes(64))
    search.add("short", b"fifteen bytes..")
    with pytest.raises(ValueError, match="too short"):
        search.add("neither", b"twenty-two bytes......")
    assert len(search) == 1000
    assert search.find(secrets.token_bytes(1 << 20) + bytes(1 << 20)) == set()


def test_the_search_finds_the_end_of_a_padded_value() -> None:
    value, search = secrets.token_bytes(40), Search()
    search.add("value", value + bytes(100))
    assert search.find(b"x" * 7 + value[8:]) == {("value", "raw")}


def test_base64_forms_are_those_of_the_text_around_a_value() -> None:
    value = secrets.token_bytes(32)
    forms = write_forms(value)
    for before in range(7):
        text = base64.b64encode(secrets.token_bytes(before) + value + secrets.token_bytes(5))
        assert forms[f"base64+{before % 3}"] in text


# The match and what was found.


@dataclass
class Findings:
    """What was found at each point, by place; `after` is the point after the match."""

    recorder: Recorder
    during: dict[Kind, Found] = field(default_factory=dict)
    after: Found = field(default_factory=dict)
    outcomes: list[match.Outcome.ValueType] = field(default_factory=list)
    accepted: int = 0

    def note_credential(self, name: str, value: bytes) -> None:
        """Look for something that its service must know, and nobody else."""
        self.recorder.search.add(f"{CREDENTIAL}{name}", value)


def only(found: Found, wanted: Callable[[str], bool]) -> Found:
    """Give what was found of the wanted names, for every place."""
    return {place: {hit for hit in hits if wanted(hit[0])} for place, hits in found.items()}


def nothing_in(places: Iterable[str]) -> Found:
    return {place: set() for place in places}


def is_secret(name: str) -> bool:
    return not name.startswith((CREDENTIAL, SEALED, PLANT))


@contextmanager
def planted(stack: Stack, client: Redis, text: str) -> Iterator[None]:
    """Plant a text in Redis, Postgres, every log, and the memory of every service while this lasts."""
    with ExitStack() as cleanup:
        client.set("plant", text)
        cleanup.callback(client.delete, "plant")
        stack.postgres.execute(f"CREATE SCHEMA plant; CREATE TABLE plant.plant AS SELECT '{text}'::text AS value")
        cleanup.callback(stack.postgres.execute, "DROP SCHEMA plant CASCADE")
        for file in holdings.log_files(stack).values():
            with file.open("a") as log:
                log.write(text + "\n")
        urls = [*map(stack.plan.probe_url, SERVICES), stack.plan.provider_url]
        for url in urls:  # half a request: the process keeps it until the rest comes
            address = urlsplit(url)
            half = cleanup.enter_context(socket.create_connection((address.hostname, address.port)))
            half.sendall(f"GET / HTTP/1.1\r\nHost: {address.netloc}\r\nX-Plant: {text}\r\n".encode())
        yield


def grow_plant() -> bytes:
    """Draw printable characters whose base64 differs from its URL-safe base64 in all three places."""
    letters = string.ascii_letters + string.digits + "?>~|}"
    while True:
        value = "".join(secrets.choice(letters) for _ in range(32)).encode()
        forms = write_forms(value)
        if len(set(forms.values())) == len(forms):
            return value


@pytest.fixture(scope="module")
def findings(stack: Stack) -> Findings:
    return asyncio.run(_play_and_search(stack))


async def _play_and_search(stack: Stack) -> Findings:
    directory = Path(tempfile.mkdtemp(prefix="koikoi-blind-"))
    plant, findings = grow_plant(), Findings(Recorder())
    findings.recorder.search.add(PLANT, plant)
    text = " ".join(form.decode() for form in write_forms(plant).values())
    with holdings.writing_down(stack) as client, planted(stack, client, text):
        backend = await asyncpg.connect(stack.postgres.url("postgres"))  # one more process of Postgres, which remembers
        try:
            await backend.execute(f"PREPARE plant AS SELECT '{text}'")
            await _play(stack, directory, findings, _Observer(stack, client, findings))
            findings.after = _search_everything(stack, client, findings.recorder.search)
        finally:
            await backend.close()
            shutil.rmtree(directory)
    return findings


class _Observer:
    """Searches the running system where a message of a new kind was forwarded and its receiver has not read it yet."""

    def __init__(self, stack: Stack, client: Redis, findings: Findings) -> None:
        self._stack, self._client, self._findings = stack, client, findings

    def __call__(self, envelope: envelope_pb2.Envelope) -> None:
        kind, search = self._findings.recorder.kinds[envelope.counter], self._findings.recorder.search
        if kind in POINTS and kind not in self._findings.during:
            search.add(f"{SEALED}{kind.name}", envelope.sealed)
            found = _search_memory(self._stack, search)
            found["redis values"] = search.find_all(holdings.redis_values(self._client))
            self._findings.during[kind] = found


def _search_memory(stack: Stack, search: Search) -> Found:
    """Search the memory of every process while all of them stand still."""
    seen: set[tuple[str, str, str]] = set()
    found: Found = {}
    with holdings.paused(stack) as pids:
        for name, family in pids.items():
            hits = [search.find_all(holdings.memory(pid, seen)) for pid in family]
            found[f"memory of {name}"] = set().union(*hits)
    return found


def _search_everything(stack: Stack, client: Redis, search: Search) -> Found:
    places: dict[str, Callable[[], Iterator[bytes]]] = {
        "redis values": lambda: holdings.redis_values(client),
        "redis files": lambda: holdings.redis_files(client),
        "postgres rows": lambda: holdings.postgres_rows(stack),
        "postgres files": lambda: holdings.postgres_files(stack),
        **{f"log of {name}": partial(holdings.log, file) for name, file in holdings.log_files(stack).items()},
        **{f"metrics of {name}": partial(holdings.metrics, stack, name) for name in SERVICES},
    }
    return _search_memory(stack, search) | {place: search.find_all(read()) for place, read in places.items()}


# Two devices that record.


@dataclass(frozen=True)
class Watched:
    """A door whose forwarded envelopes are shown before the session gets them."""

    transport: Transport
    observe: Callable[[envelope_pb2.Envelope], None]

    @property
    def door(self) -> str:
        return self.transport.door

    async def connect(self, match_id: str) -> Connection:
        return WatchedConnection(await self.transport.connect(match_id), self.observe)


@dataclass(frozen=True)
class WatchedConnection:
    connection: Connection
    observe: Callable[[envelope_pb2.Envelope], None]

    async def send(self, frame: match.ClientFrame) -> None:
        await self.connection.send(frame)

    async def receive(self) -> match.ServerFrame:
        frame = await self.connection.receive()
        if frame.WhichOneof("frame") == "envelope":
            self.observe(frame.envelope)
        return frame

    async def close(self) -> None:
        await self.connection.close()


async def _play(stack: Stack, directory: Path, findings: Findings, observe: _Observer) -> None:
    """Play a whole match, one seat over each door, and hand its result in."""
    async with (
        signed_in_bot(stack.plan, directory / "host", "Momiji") as host,
        signed_in_bot(stack.plan, directory / "guest", "Susuki") as guest,
    ):
        for bot in (host, guest):
            await _renew(bot, findings)
        rules = lobby.Rules(preset="boardgameland", rounds=3)
        room = await host.lobby.create_room(rules, is_public=False, password=PASSWORD, leave_other=True)
        contract = await guest.lobby.join_room(room.code, password=PASSWORD, leave_other=True)
        findings.note_credential("password", PASSWORD.encode())
        findings.outcomes = list(
            await asyncio.gather(
                _play_seat(host, contract, open_transport(stack.plan.websocket_url), findings, observe),
                _play_seat(guest, contract, open_transport(stack.plan.grpc_url), findings, observe),
            )
        )
    _note_service_keys(stack.directory / "keys", findings)


async def _renew(bot: Bot, findings: Findings) -> None:
    """Note the device's tokens, then let it renew them as if they had expired, and note the new ones."""
    for is_old in (True, False):
        session = bot.home.load("session") or {}
        for name in ("access_token", "refresh_token"):
            findings.note_credential(name, session[name].encode())
        if is_old:
            bot.home.save("session", {**session, "access_expires": 0})
            await bot.account.ensure_fresh()
            assert (bot.home.load("session") or {})["refresh_token"] != session["refresh_token"]


def _note_service_keys(directory: Path, findings: Findings) -> None:
    files = [file for file in directory.rglob("*") if file.is_file()]
    for file in files:
        findings.note_credential("secret file", file.read_bytes())
        if file.suffix == ".json":
            private = json.loads(file.read_bytes())["d"]
            findings.note_credential("signing key", base64.urlsafe_b64decode(private + "=" * (-len(private) % 4)))
    assert len(files) >= 4


async def _play_seat(
    bot: Bot, contract: SignedContract, transport: Transport, findings: Findings, observe: _Observer
) -> match.Outcome.ValueType:
    recorder, random = findings.recorder, RecordingRandom(findings.recorder)
    seed = (bot.home.directory / "device.key").read_bytes()
    recorder.note("device seed", seed)
    findings.note_credential("device seed", seed)
    seat = RecordingSeat.start(contract.payload, bot.account.key, random)
    outbox = Outbox.create(bot.home.matches, contract.match_id, contract.token, seat.dump())
    recorder.note("outbox key", (outbox.directory / "key").read_bytes())
    with outbox.lock():
        loaded = RecordingSeat.load(payload_of(outbox.contract), outbox.load(), bot.account.key, random)
        session = Session(outbox, loaded, bot.account.key, Watched(transport, observe))
        end = await session.play(SimpleBot(len(bot.name)))
    receipt = await hand_in(outbox, bot.ranking)
    findings.accepted += receipt is not None
    return end.outcome


# What must be so.


def test_the_match_was_a_whole_one_and_every_kind_of_secret_was_recorded(findings: Findings) -> None:
    assert findings.outcomes == [match.OUTCOME_FINISHED] * 2
    assert findings.accepted == 2
    counts, deals = findings.recorder.counts, findings.recorder.counts["seed"] // 2
    assert deals >= 3
    exact: Mapping[str, int] = {
        "device seed": 2, "outbox key": 2, "drawn: x25519": 2, "x25519 shared": 2, "coin share": 1, "envelope key": 4,
        "drawn: seed": 2 * deals, "seed": 2 * deals, "k": 4 * deals, "permutation": 2 * deals, "token": 96 * deals,
        "hedged randomness": 2 * deals, "shuffle nonce": 2 * 196 * deals, "shuffle proof": 2 * 101 * deals,
        "audit master": 2 * deals, "audit seed": 80 * deals, "audit factor": 80 * deals, "drawn: challenge": 2 * deals,
    }  # fmt: skip
    assert {name: counts[name] for name in exact} == exact
    assert counts["equality nonce"] >= 3 * deals
    assert counts["body"] == len(findings.recorder.kinds) - 2  # all but the greetings, which travel openly
    assert set(findings.during) >= set(POINTS) - {Kind.T2}  # a hand yaku in every round leaves no turn


def test_planted_values_are_found_in_every_place_in_every_form(findings: Findings) -> None:
    everything = {(PLANT, form) for form in ALL_FORMS}
    places = {f"memory of {name}" for name in holdings.PROCESSES} | {"redis values"}
    for kind, found in findings.during.items():
        assert only(found, PLANT.__eq__) == dict.fromkeys(places, everything), kind.name
    places |= {"redis files", "postgres rows", "postgres files"} | {f"log of {name}" for name in holdings.PROCESSES}
    found = only(findings.after, PLANT.__eq__)
    assert {place: found[place] for place in places} == dict.fromkeys(places, everything)


@pytest.mark.parametrize("service", SERVICES)
def test_metrics_are_read_where_the_service_counts(stack: Stack, service: str) -> None:
    search = Search()
    search.add("metric", f"koikoi_{service}_rpc_seconds"[:32].encode())
    assert search.find_all(holdings.metrics(stack, service)) == {("metric", "raw")}


def test_the_sealed_envelope_is_found_where_the_relay_keeps_it(findings: Findings) -> None:
    for kind, found in findings.during.items():
        for place in ("memory of match", "memory of valkey", "redis values"):
            assert (f"{SEALED}{kind.name}", "raw") in found[place], f"{kind.name}: {place}"


def test_nothing_shows_during_the_match(findings: Findings) -> None:
    for kind, found in findings.during.items():
        assert only(found, is_secret) == nothing_in(found), kind.name


def test_nothing_shows_after_the_match(findings: Findings) -> None:
    assert only(findings.after, is_secret) == nothing_in(findings.after)


def test_no_credential_is_in_logs_and_metrics(findings: Findings) -> None:
    found = only(findings.after, lambda name: name.startswith(CREDENTIAL))
    places = [place for place in found if place.startswith(("log of ", "metrics of "))]
    assert len(places) >= len(holdings.PROCESSES) + len(SERVICES)
    assert {place: found[place] for place in places} == nothing_in(places)


@pytest.mark.parametrize("place", ["redis values", "redis files", "postgres rows", "postgres files"])
def test_refresh_tokens_passwords_and_private_keys_are_stored_nowhere(findings: Findings, place: str) -> None:
    kept = [CREDENTIAL + name for name in ("refresh_token", "password", "signing key")]
    assert only(findings.after, kept.__contains__)[place] == set()


def test_the_credentials_are_the_real_ones(findings: Findings) -> None:
    """The memory of the services that sign shows their keys; nobody else's does."""
    key = f"{CREDENTIAL}signing key"
    holders = {place for place, hits in only(findings.after, key.__eq__).items() if hits}
    assert holders == {f"memory of {name}" for name in ("auth", "lobby", "match", "provider")}
