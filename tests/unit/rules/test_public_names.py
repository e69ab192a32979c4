"""The public surface of `koikoi_sdk.rules`."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest
from koikoi_sdk import rules

FOLDER = Path(rules.__file__).parent


def test_every_public_name_is_there_and_sorted():
    assert all(hasattr(rules, name) for name in rules.__all__)
    assert len(set(rules.__all__)) == len(rules.__all__)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_only_the_standard_library_is_imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            assert name.startswith("koikoi_sdk.rules") or name.split(".")[0] in sys.stdlib_module_names


@pytest.mark.parametrize("preset", rules.PRESETS)
def test_a_rule_set_is_named_in_one_file_only(preset):
    naming = [path.name for path in FOLDER.glob("*.py") if f'"{preset}"' in path.read_text()]
    assert naming == ["variants.py"] or (preset == "house" and set(naming) == {"variants.py", "contract.py"})
