"""The shape of the source: small kit, short files, listed exports, no trace of any one machine."""

import ast
import importlib
import re
import subprocess

import pytest

from tests.architecture.source import ROOT, code_lines, files, module_name

KIT = files("services/kit")
GAME_NOUN = re.compile(r"\b(card|deck|seat|yaku|envelope|contract)s?\b", re.IGNORECASE)
VAGUE = {"utils", "util", "helpers", "helper", "manager", "common", "misc"}


def test_kit_stays_small():
    assert len(KIT) <= 15, [path.name for path in KIT]
    assert sum(code_lines(path) for path in KIT) <= 1300


@pytest.mark.parametrize("path", KIT, ids=lambda path: path.name)
def test_kit_knows_no_noun_of_the_game(path):
    found = GAME_NOUN.findall(path.read_text().replace("import contract", "").replace("_", " "))
    assert not found


@pytest.mark.parametrize("name", ["errors", "clock"])
def test_what_domains_use_of_kit_is_standard_library_only(name):
    import sys

    tree = ast.parse((ROOT / "services" / "kit" / f"{name}.py").read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert {str(module).partition(".")[0] for module in imported} <= set(sys.stdlib_module_names)


def test_files_and_functions_are_short():
    long_files = {str(path.relative_to(ROOT)): n for path in files() if (n := len(path.read_text().splitlines())) > 400}
    assert not long_files
    long_functions = {}
    for path in files():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                start = node.body[0]
                first = start.end_lineno if ast.get_docstring(node) else start.lineno - 1
                if (length := (node.end_lineno or 0) - (first or 0)) > 40:
                    long_functions[f"{path.relative_to(ROOT)}:{node.name}"] = length
    assert not long_functions


def test_modules_are_named_for_what_they_are():
    assert not [path for path in files() if path.stem in VAGUE or VAGUE & set(path.relative_to(ROOT).parts)]


@pytest.mark.parametrize("path", [p for p in files() if "__all__" in p.read_text()], ids=module_name)
def test_exported_names_exist_and_are_sorted(path):
    module = importlib.import_module(module_name(path))
    exported = list(module.__all__)
    missing = [name for name in exported if not hasattr(module, name)]
    if missing and hasattr(module, "__path__"):  # a package may list its modules without importing them
        missing = [name for name in missing if importlib.util.find_spec(f"{module.__name__}.{name}") is None]
    assert not missing
    assert len(set(exported)) == len(exported)


@pytest.mark.parametrize("package", ["rules", "poker", "table", "client"])
def test_the_public_packages_of_the_sdk_list_their_surface(package):
    module = importlib.import_module(f"koikoi_sdk.{package}")
    assert module.__all__


def test_every_module_says_what_it_is():
    silent = [module_name(path) for path in files() if not ast.get_docstring(ast.parse(path.read_text()))]
    assert not silent


def tracked() -> list[str]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode:
        pytest.fail("not a git checkout: " + listing.stderr)
    return [name for name in listing.stdout.split("\0") if name]


def test_no_file_knows_the_machine_it_was_written_on():
    """Neither absolute paths of one machine nor the name of a package host."""
    # Written in pieces, so that this file does not find itself.
    words = [
        "/wo" + "rk/",
        "../sha" + "red",
        "/ro" + "ot/",
        "/ho" + "me/",
        "pypi" + ".org",
        "python" + "hosted",
        "artif" + "actory",
    ]
    found = {}
    for name in tracked():
        path = ROOT / name
        if path.is_file() and not name.startswith("gen/"):
            text = path.read_text(encoding="utf-8", errors="ignore")
            hits = [word for word in words if word in text]
            if hits:
                found[name] = hits
    assert not found


def test_locks_are_complete_and_name_no_host():
    for name in ("run", "dev"):
        text = (ROOT / "requirements" / f"{name}.lock").read_text()
        assert "://" not in text
        for entry in re.split(r"\n(?=[a-z])", text.strip()):
            assert re.match(r"[A-Za-z0-9._-]+==\S+", entry), entry
            assert "--hash=sha256:" in entry, entry


def test_unfinished_work_names_its_issue():
    mark = re.compile(r"\b(TODO|FIXME|XXX)\b(?!\(#\d+\))")
    assert not [str(path.relative_to(ROOT)) for path in files() if mark.search(path.read_text())]
