"""The project's own source files, for the tests beside this one."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE_FOLDERS = ("sdk/python/koikoi_sdk", "services", "tools", "bench")


def files(*folders: str) -> list[Path]:
    """Return the hand-written Python files under these folders."""
    return sorted(path for folder in folders or SOURCE_FOLDERS for path in (ROOT / folder).rglob("*.py"))


def module_name(path: Path) -> str:
    """Return the name to import a source file by."""
    base = ROOT / "sdk" / "python" if path.is_relative_to(ROOT / "sdk" / "python") else ROOT
    parts = path.relative_to(base).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def code_lines(path: Path) -> int:
    """Count the lines that are neither blank nor comment nor docstring."""
    text = path.read_text(encoding="utf-8")
    prose: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                prose.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines = enumerate(text.splitlines(), start=1)
    return sum(bool(line.strip()) and not line.lstrip().startswith("#") and n not in prose for n, line in lines)
