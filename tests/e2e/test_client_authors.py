"""docs/client-authors: its pages make a second client, which shares nothing with the SDK and plays rated matches."""

import asyncio
import json
import os
import random
import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest
from google.protobuf.descriptor import Descriptor
from koikoi.match.v1 import match_service_pb2 as match
from koikoi_sdk.rules import evaluate, total, variant
from koikoi_sdk.table.codec import FORMS, Kind

from tests.harness.browser import open_browser
from tools.bots import signed_in_bot
from tools.stack import Stack

pytestmark = pytest.mark.xdist_group("e2e")
ROOT = Path(__file__).parents[2]
PAGES = {path.name: path.read_text() for path in sorted((ROOT / "docs" / "client-authors").glob("*.md"))}
BLOCK = re.compile(r"^```(\w+)(?: ([\w.]+))?\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCKS = [found.groups() for text in PAGES.values() for found in BLOCK.finditer(text)]
CALLS = [code for language, _, code in BLOCKS if language == "sh"]
LIMIT_S = 150.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every file that the pages give, in one folder, as a reader would put them."""
    folder = tmp_path_factory.mktemp("client")
    for language, name, code in BLOCKS:
        if language == "python":
            assert name and not (folder / name).exists(), name
            (folder / name).write_text(code)
    return folder


def environ_of(stack: Stack) -> dict[str, str]:
    urls = {"GATEWAY": stack.plan.gateway_url, "RELAY": stack.plan.websocket_url, "PROVIDER": stack.plan.provider_url}
    # Of ours it finds only what protoc made.
    return {**os.environ, "PYTHONPATH": str(ROOT / "gen"), **{f"KOIKOI_{name}": url for name, url in urls.items()}}


def start(stack: Stack, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, *arguments]
    return subprocess.Popen(command, cwd=folder, env=environ_of(stack), stdout=subprocess.PIPE, text=True)


def koikoi(stack: Stack, *arguments: str) -> subprocess.Popen[str]:
    environ = environ_of(stack) | {"PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "gen", ROOT / "sdk/python")))}
    command = [sys.executable, "-m", "koikoi_sdk.cli", *arguments]
    return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)


def log_in(stack: Stack, name: str) -> str:
    async def sign_in() -> None:
        async with signed_in_bot(stack.plan, stack.directory / "players" / name, name):
            pass

    asyncio.run(sign_in())
    return str(stack.directory / "players" / name)


def test_the_client_shares_nothing_with_ours(folder: Path) -> None:
    names = {path.stem for path in folder.glob("*.py")}
    assert len(names) == 12
    imported = {
        name
        for path in folder.glob("*.py")
        for name in re.findall(r"^(?:from|import) ([\w.]+)", path.read_text(), re.MULTILINE)
    }
    assert {name for name in imported if name.startswith("koikoi")} == {"koikoi.match.v1"}
    ours = {"services", "tests", "tools", "bench"}
    assert not ours & {name.partition(".")[0] for name in imported}


@pytest.mark.parametrize("call", CALLS, ids=range(len(CALLS)))
def test_its_calls_are_answered(call: str, stack: Stack, tmp_path: Path) -> None:
    command = ["bash", "-ec", call]
    done = subprocess.run(command, cwd=tmp_path, env=environ_of(stack), capture_output=True, check=False, timeout=30)
    assert done.returncode == 0
    if '"accountId": 7' in call:
        assert json.loads(done.stdout)["code"] == "invalid_argument"
    else:
        assert done.stdout.startswith(b"{") and b'"code"' not in done.stdout[:20]


def test_it_signs_in_in_a_browser_and_renews_its_session(stack: Stack, folder: Path) -> None:
    async def browse(url: str) -> None:
        async with open_browser() as browser:
            page = await browser.get(await browser.sign_in(url, "sumire@example.test"))
            assert page.text == "You can close this window."

    client = start(stack, folder, "redirect.py", "sumire")
    assert client.stdout
    asyncio.run(browse(json.loads(client.stdout.readline())["open"]))
    said = json.loads(client.communicate(timeout=30)[0])
    assert said["profile"]["accountId"] == said["accountId"]


@pytest.mark.parametrize("role", ["host", "join"])
def test_it_plays_a_rated_match_with_our_bot_and_goes_on_when_killed(role: str, stack: Stack, folder: Path) -> None:
    home, device, rng = log_in(stack, f"ours-{role}"), folder / f"theirs-{role}", random.Random(role)
    if role == "host":
        client = start(stack, folder, "client.py", str(device), "host")
        assert client.stdout
        bot = koikoi(stack, "join", json.loads(client.stdout.readline())["code"], "--home", home, "--bot")
    else:
        bot = koikoi(stack, "host", "--home", home, "--bot")
        assert bot.stdout
        while not (code := re.search(r"\b[A-Z0-9]{6}\b", line := bot.stdout.readline())):
            assert line, "the bot opened no room"
        client = start(stack, folder, "client.py", str(device), "join", code[0])
    said, _ = asyncio.run(watch(stack, folder, device, client, [rng.randint(2, 8), *rng.sample(range(9, 120), 4)]))
    ended = json.loads(said.splitlines()[-1])
    assert ended["outcome"] == "OUTCOME_FINISHED"
    result = ended["result"]
    assert result["isRated"] and sum(seat.get("points", 0) for seat in result["seats"]) == 50
    assert "recorded after" in bot.communicate(timeout=LIMIT_S)[0]
    assert not (device / "journal").exists()


async def watch(
    stack: Stack, folder: Path, device: Path, client: subprocess.Popen[str], kills: list[int]
) -> tuple[str, int]:
    """Kill the client each time its journal has so many lines, and start it again; gives what it said last."""
    count = 0
    async with asyncio.timeout(LIMIT_S):
        for lines in sorted(kills):
            while client.poll() is None and length_of(device / "journal") < lines:
                await asyncio.sleep(0.01)
            if client.poll() is None and (device / "contract").exists():
                client.kill()
                client.wait()
                count += 1
                client = start(stack, folder, "client.py", str(device), "resume")
        assert count >= 2, "the match was over before it was killed"
        return (await asyncio.to_thread(client.communicate, timeout=LIMIT_S))[0], count


def length_of(path: Path) -> int:
    try:
        return path.read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


@pytest.mark.parametrize("name", ["redeal", "hand_yaku", "exhausted", "bust", "resign"])
def test_it_checks_every_whole_match(name: str, folder: Path) -> None:
    vector = ROOT / "tests/vectors/matches" / f"{name}.json"
    command = [sys.executable, "check_vector.py", str(vector)]
    said = subprocess.run(command, cwd=folder, env=os.environ | {"PYTHONPATH": ""}, capture_output=True, check=True)
    values = dict(line.rsplit(" ", 1) for line in said.stdout.decode().splitlines())
    whole = json.loads(vector.read_text())
    assert values["session_id"] == whole["session_id"]
    assert values["head_0"] == whole["messages"][2]["head"]
    assert sum(key.startswith("did ") for key in values) == sum(one["kind"] == "S1" for one in whole["messages"])


def test_a_vector_with_a_wrong_byte_does_not_pass(folder: Path, tmp_path: Path) -> None:
    whole = json.loads((ROOT / "tests/vectors/matches/resign.json").read_text())
    payload = bytearray.fromhex(whole["messages"][4]["payload"])
    payload[40] ^= 1
    whole["messages"][4]["payload"] = payload.hex()
    (tmp_path / "wrong.json").write_text(json.dumps(whole))
    command = [sys.executable, "check_vector.py", str(tmp_path / "wrong.json")]
    done = subprocess.run(command, cwd=folder, env=os.environ | {"PYTHONPATH": ""}, capture_output=True, check=False)
    assert b"AssertionError" in done.stderr


@pytest.mark.parametrize("name", ["hand_yaku", "bust"])
def test_it_plays_both_seats_of_a_vector_byte_for_byte(name: str, stack: Stack, folder: Path) -> None:
    vector = ROOT / "tests/vectors/matches" / f"{name}.json"
    client = start(stack, folder, "replay_vector.py", str(vector))
    made = json.loads(client.communicate(timeout=60)[0])
    messages = json.loads(vector.read_text())["messages"]
    kinds = [[one["kind"] for one in messages if one["seat"] == seat] for seat in (0, 1)]
    end = 1 if name == "hand_yaku" else 0  # one seat resigns, which this client does not: there it has to stop
    assert made == [len(own) - end * ("RESIGN" in own) for own in kinds]


def rows_of(page: str, width: int) -> list[list[str]]:
    rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in page.splitlines() if line.startswith("| ")]
    return [row for row in rows if len(row) == width]


def test_the_wire_table_fits_the_code() -> None:
    (head, hello, *rows), (_, *told) = (rows_of(PAGES["wire-table.md"], width) for width in (6, 4))
    assert head[0] == "type" and hello[:3] == ["-", "HELLO", "0"]
    assert [int(row[0]) for row in rows] == [int(kind) for kind in FORMS]
    for number, name, phase, size, sealed, payload in rows:
        form = FORMS[Kind(int(number))]
        assert (Kind(int(number)).name, form.phase, form.size) == (name, int(phase), int(size))
        assert int(sealed) == form.size + 141
        if form.lengths:
            assert payload == " or ".join(map(str, form.lengths))
    assert {row[0] for row in told} == {kind.name for kind in Kind}


def test_the_tables_of_frames_fit_the_protos() -> None:
    rows = rows_of(PAGES["relay.md"], 3)
    client, server = (one.fields_by_name for one in (match.ClientFrame.DESCRIPTOR, match.ServerFrame.DESCRIPTOR))
    for fields, part in ((client, rows[1:5]), (server, rows[6:])):
        assert {row[0]: int(row[1]) for row in part} == {name: field.number for name, field in fields.items()}
        for name, _, members in part:
            kind: Descriptor | None = fields[name].message_type
            if kind is not None and members != "as above: the peer's":
                told = {name: int(number) for name, number in re.findall(r"(\w+) (\d+):", members)}
                assert told == {field.name: field.number for field in kind.fields}


def test_its_rules_are_the_house_rules(folder: Path) -> None:
    code = "import json, sys, house; print(json.dumps([house.points_of(set(one)) for one in json.load(sys.stdin)]))"
    rng, house = random.Random(7), variant("house")
    piles = [rng.sample(range(48), rng.randint(0, 30)) for _ in range(2000)]
    piles += [list(pile) for pile in combinations([0, 8, 28, 40, 44, 32], 4)]
    command = [sys.executable, "-c", code]
    environ = os.environ | {"PYTHONPATH": ""}
    done = subprocess.run(command, cwd=folder, env=environ, input=json.dumps(piles).encode(), stdout=-1, check=True)
    expected = [total(evaluate(house, pile)) for pile in piles]
    assert json.loads(done.stdout) == expected
