"""The curl calls of docs/api.md, as they stand, against the running services."""

import json
import re
import subprocess
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "api.md").read_text(encoding="utf-8")
CALLS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def run(call, running):
    command = call.replace("http://127.0.0.1:8080", running.plan.gateway_url)
    return subprocess.run(["bash", "-c", command], capture_output=True, check=False, timeout=30)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.rstrip().rpartition("/")[2][:30])
def test_it_is_answered(running, call):
    done = run(call, running)
    assert (done.returncode, done.stderr) == (0, b"")
    if "accountId" in call:
        error = json.loads(done.stdout)
        assert error["code"] == "invalid_argument"
        assert error["details"][0]["debug"]["metadata"]["field"] == "account_id"
    else:
        assert isinstance(json.loads(done.stdout), dict)


def test_there_are_some():
    assert len(CALLS) == 3
