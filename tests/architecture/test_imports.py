"""Who may import whom: the contracts of pyproject.toml hold, and each can fail."""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.architecture.source import ROOT

PROGRAM = """
import sys
sys.path[:0] = ["sdk/python", "gen", "."]
from importlinter.cli import lint_imports_command
lint_imports_command(["--no-cache"])
"""
# Each breaks the contract with this number.
PLANTED = [
    ("1.", "services/lobby/service.py", "services.match.ports"),
    ("2.", "services/ranking/domain/errors.py", "services.ranking.service"),
    ("3.", "services/auth/store/postgres.py", "services.auth.settings"),
    ("4.", "services/match/domain/errors.py", "asyncpg"),
    ("5a.", "services/match/domain/errors.py", "koikoi_sdk.rules"),
    ("5b.", "services/lobby/domain/errors.py", "koikoi_sdk.poker"),
    ("6.", "services/kit/errors.py", "koikoi_sdk.rules"),
    ("7.", "sdk/python/koikoi_sdk/rules/errors.py", "koikoi_sdk.poker"),
    ("8.", "sdk/python/koikoi_sdk/table/errors.py", "services.kit.errors"),
]


def lint(directory: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-c", PROGRAM]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)


def test_all_import_contracts_hold():
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr
    assert " 0 broken" in result.stdout


def test_every_contract_catches_a_planted_import(tmp_path):
    """A contract that cannot fail protects nothing."""
    for folder in ("sdk", "services", "gen", "tools"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for _, file, module in PLANTED:
        with (tmp_path / file).open("a") as target:
            target.write(f"\n\ndef planted() -> None:\n    import {module}\n")
    result = lint(tmp_path)
    broken = {row.partition(" ")[0] for row in result.stdout.splitlines() if row.endswith("BROKEN")}
    assert broken == {number for number, _, _ in PLANTED}, result.stdout
