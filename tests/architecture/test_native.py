"""The project's own C: built wherever it can be, and given nothing that is secret."""

import ast
import os
import shlex
import subprocess
import sysconfig
from pathlib import Path

from koikoi_sdk.poker import group

from tests.architecture.source import files

NEEDED = "#include <stdint.h>\nunsigned __int128 high(uint64_t a) { return (unsigned __int128)a * a; }\n"


def compiler_works(directory: Path) -> bool:
    """Whether the compiler that setup would use makes libraries here."""
    (directory / "some.c").write_text(NEEDED)
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    command = [*compiler, "-shared", "-fPIC", "-o", "some.so", "some.c"]
    try:
        return subprocess.run(command, cwd=directory, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def test_the_c_library_is_built_where_there_is_a_compiler(tmp_path):
    built = group.ACCELERATED or not compiler_works(tmp_path)
    assert built, "there is a C compiler, but the library is missing or wrong: make clean, then make setup"


def test_only_what_checks_proofs_uses_variable_time():
    """Secrets stay with libsodium's constant-time code (docs/adr/0017)."""
    variable = {"public_weighted_sum", "portable_weighted_sum", "native_weighted_sum", "_public_product"}
    users = set()
    for path in files("sdk/python/koikoi_sdk", "services", "tools"):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                names = {getattr(node, "id", getattr(node, "attr", None)) for node in ast.walk(function)}
                users |= {(path.stem, getattr(function, "name", "lambda"))} if names & variable else set()
    assert users == {
        ("group", "public_weighted_sum"),
        ("group", "_gives_the_known_sum"),
        ("audit", "_public_product"),
        ("audit", "_from_link"),  # of the opponent's answers
        ("audit", "check"),
        ("proofs", "verify"),
        ("shuffle", "recompute"),
    }
