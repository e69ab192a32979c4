"""Writes the parts of docs/ that repeat the code, and openapi.json: `python -m tools.reference`, or `make docs`.

A part stands between `<!-- begin KIND SUBJECT -->` and `<!-- end -->`; everything else on a page is written by hand.
What a part says is read from the code: settings from the dataclasses, reasons from the protos and the error classes,
metrics from the calls that make them. A test fails when a page and the code differ.
"""

import ast
import dataclasses
import importlib
import inspect
import itertools
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from types import MappingProxyType

from google.rpc.status_pb2 import Status
from koikoi_sdk.client import errors as client_errors
from koikoi_sdk.rules import Reason as RulesReason
from koikoi_sdk.table import Reason as TableReason

from services.gateway.answers import error_response
from services.kit import errors as kit_errors
from services.kit.errors import Code, ServiceError
from services.match.domain.errors import REASONS
from tools import openapi
from tools.plan import PORTS

__all__ = ["PAGES", "PageError", "main", "metrics_of", "render"]

ROOT = Path(__file__).parents[1]
PAGES = ("docs/errors.md", "docs/operations.md")
_PART = re.compile(r"(<!-- begin (\w+)(?: (\w+))? -->\n).*?(<!-- end -->)", re.DOTALL)
_PROTO_REASON = re.compile(r"((?:  //[^\n]*\n)+)  REASON_(\w+) = \d+;")
_RETRYABLE = {Code.UNAVAILABLE, Code.RESOURCE_EXHAUSTED, Code.DEADLINE_EXCEEDED}
_NEVER = {"BODY_TOO_LARGE"}  # exhausts something that does not come back
_REASON_COLUMNS = ("reason", "gRPC code", "HTTP", "when, and what to do", "again?", "metadata")
_METRIC_KINDS = ("counter", "gauge", "histogram")
_SETTINGS = MappingProxyType(
    {
        "auth": ("services.auth.settings", "Settings"),
        "lobby": ("services.lobby.settings", "Settings"),
        "match": ("services.match.settings", "Settings"),
        "ranking": ("services.ranking.settings", "Settings"),
        "gateway": ("services.gateway.settings", "Settings"),
        "trace": ("services.kit.trace", "Settings"),
        "provider": ("tools.oidc_provider.settings", "ProviderSettings"),
    }
)


class PageError(Exception):
    """A page asks for a part that does not exist, or the code does not document itself; one sentence."""


def render(page: str) -> str:
    """Return a page with every generated part written anew.

    Raises:
        PageError: A part has no such kind or subject, or there is none at all.
    """

    def fill(match: re.Match[str]) -> str:
        begin, kind, subject, end = match.groups()
        try:
            write = _PARTS[kind]
            rows = list(write(subject) if subject else write())
        except (KeyError, TypeError) as error:
            raise PageError(f"There is no generated part {kind} {subject or ''}: {error}.") from error
        return begin + "\n".join(rows) + "\n" + end

    if not _PART.search(page):
        raise PageError("The page has no generated part.")
    return _PART.sub(fill, page)


def main() -> None:
    """Write all pages; what keeps one from being written is one sentence on stderr and exit status 1."""
    openapi.write()
    try:
        for name in PAGES:
            path = ROOT / name
            path.write_text(render(path.read_text(encoding="utf-8")), encoding="utf-8")
    except PageError as error:
        sys.exit(str(error))


def metrics_of(service: str) -> list[tuple[str, str, tuple[str, ...], str]]:
    """Return (name, kind, labels, meaning) of every metric a service makes, as its source says."""
    found = []
    for call in _calls(ROOT / "services" / service, ROOT / "services" / "kit" / "metrics.py"):
        if isinstance(call.func, ast.Attribute) and call.func.attr in _METRIC_KINDS and len(call.args) >= 2:
            name, meaning = ast.literal_eval(call.args[0]), ast.literal_eval(call.args[1])
            labels = tuple(ast.literal_eval(call.args[2])) if len(call.args) > 2 else ()
            found.append((f"koikoi_{service}_{name}", call.func.attr, labels, meaning))
    return sorted(found)


def _settings(service: str) -> Iterator[str]:
    module, name = _SETTINGS[service]
    cls = getattr(importlib.import_module(module), name)
    yield from _head("variable", "default", "meaning")
    for field in dataclasses.fields(cls):
        variable = f"KOIKOI_{service.upper()}_{field.name.upper()}"
        if "doc" not in field.metadata:
            raise PageError(f"The setting {variable} has no metadata `doc`.")
        yield _row(f"`{variable}`", _default(field), field.metadata["doc"] + _bounds(field.metadata))


def _default(field: "dataclasses.Field[object]") -> str:
    if field.default is dataclasses.MISSING:
        return "**must be set**"
    text = ",".join(map(str, field.default)) if isinstance(field.default, tuple) else str(field.default)
    return f"`{text}`" if text else "empty"


def _bounds(metadata: Mapping[str, object]) -> str:
    words = {"min": "At least", "max": "At most"}
    return "".join(f" {word} {metadata[name]}." for name, word in words.items() if name in metadata)


def _ports() -> Iterator[str]:
    yield from _head("port", "what", "moved by")
    for variable, (what, port) in PORTS.items():
        yield _row(str(port), what, f"`{variable}`")


def _metrics(service: str) -> Iterator[str]:
    yield from _head("metric", "type", "labels", "meaning")
    for name, kind, labels, meaning in metrics_of(service):
        yield _row(f"`{name}`", kind, ", ".join(labels) or "-", meaning)


def _reasons(service: str) -> Iterator[str]:
    """Write one row per reason of a service that has a proto."""
    classes = _classes("services.kit.errors") | _classes(f"services.{service}.domain.errors")
    metadata = _metadata_keys(service)
    yield from _head(*_REASON_COLUMNS)
    for reason, text in _proto_reasons(service).items():
        yield _reason_row(classes[reason], text, metadata)


def _own_reasons(service: str) -> Iterator[str]:
    """Write one row per reason of a service without a proto of its own: the class says when."""
    metadata = _metadata_keys(service)
    yield from _head(*_REASON_COLUMNS)
    for one in _classes(f"services.{service}.errors").values():
        yield _reason_row(one, _first_paragraph(one), metadata)


def _reason_row(one: type[ServiceError], text: str, metadata: Mapping[str, set[str]]) -> str:
    keys = _code_list(metadata.get(one.__name__, set()))
    again = "yes" if one.code in _RETRYABLE and one.reason not in _NEVER else "no"
    return _row(f"`{one.reason}`", one.code.name, str(_http_status(one.code)), text, again, keys)


def _http_status(code: Code) -> int:
    return error_response(Status(code=int(code))).status


def _close_codes() -> Iterator[str]:
    metadata, texts = _metadata_keys("match"), _proto_reasons("match")
    yield from _head("close code", "reason", "gRPC code", "when, and what to do", "then", "metadata")
    for one in sorted(REASONS, key=lambda one: (one.close_code or 9999, one.reason)):
        then = "the connection stays"
        keys = metadata.get(one.__name__, set())
        if one.close_code:
            then, keys = ("come back" if one.close_code < 4500 else "stop"), {"close_code", *keys}
        code = str(one.close_code or "-")
        yield _row(code, f"`{one.reason}`", one.code.name, texts[one.reason], then, _code_list(keys))


def _reject_reasons() -> Iterator[str]:
    yield from _head("byte", "name", "what was wrong")
    for member, text in _members(TableReason):
        yield _row(str(member.value), f"`{member.name}`", text)


def _rules_reasons() -> Iterator[str]:
    yield from _head("reason", "when")
    for member, text in _members(RulesReason):
        yield _row(f"`{member.value}`", text)


def _sdk_errors() -> Iterator[str]:
    yield from _head("class", "is a", "when")
    for name, one in inspect.getmembers(client_errors, inspect.isclass):
        if issubclass(one, client_errors.KoikoiError):
            yield _row(f"`{name}`", f"`{one.__bases__[0].__name__}`", _first_paragraph(one))


_PARTS: Mapping[str, Callable[..., Iterable[str]]] = MappingProxyType(
    {
        "settings": _settings,
        "ports": _ports,
        "metrics": _metrics,
        "reasons": _reasons,
        "own_reasons": _own_reasons,
        "close_codes": _close_codes,
        "reject_reasons": _reject_reasons,
        "rules_reasons": _rules_reasons,
        "sdk_errors": _sdk_errors,
    }
)


def _proto_reasons(service: str) -> dict[str, str]:
    """Return the comment of every reason in a service's proto: it says when, and what to do."""
    proto = ROOT / "proto" / "koikoi" / service / "v1" / f"{service}_service.proto"
    return {
        reason: " ".join(line.removeprefix("  //").strip() for line in comment.splitlines())
        for comment, reason in _PROTO_REASON.findall(proto.read_text(encoding="utf-8"))
        if reason != "UNSPECIFIED"
    }


def _classes(module_name: str) -> dict[str, type[ServiceError]]:
    """Return the error classes a module defines, by reason, in the order of the source."""
    module = importlib.import_module(module_name)
    own = (one for one in vars(module).values() if inspect.isclass(one) and one.__module__ == module_name)
    found = [one for one in own if issubclass(one, ServiceError) and "reason" in vars(one) and one is not ServiceError]
    assert found or module is kit_errors, f"{module_name} defines no reason"
    return {one.reason: one for one in found}


def _metadata_keys(service: str) -> dict[str, set[str]]:
    """Return the metadata keys that errors carry, by class name: those of every place that makes one."""
    keys: dict[str, set[str]] = {}
    for call in _calls(ROOT / "services" / service):
        if isinstance(call.func, ast.Name):
            keys.setdefault(call.func.id, set()).update(_keys_of(call))
    for path in (ROOT / "services" / service).rglob("errors.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                for call in (inner for inner in ast.walk(node) if isinstance(inner, ast.Call)):
                    keys.setdefault(node.name, set()).update(_keys_of(call))
    return keys


def _keys_of(call: ast.Call) -> Iterator[str]:
    for keyword in call.keywords:
        if keyword.arg == "field":
            yield "field"
        if keyword.arg == "metadata" and isinstance(keyword.value, ast.Dict):
            yield from (key.value for key in keyword.value.keys if isinstance(key, ast.Constant))  # type: ignore[misc]


def _calls(*places: Path) -> Iterator[ast.Call]:
    for place in places:
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call):
                    yield node


def _members(enum: type[Enum]) -> Iterator[tuple[Enum, str]]:
    """Yield the members of an enum with the docstring below each.

    Raises:
        PageError: One has none.
    """
    (body,) = (node.body for node in ast.parse(inspect.getsource(enum)).body if isinstance(node, ast.ClassDef))
    texts = {
        first.targets[0].id: second.value.value
        for first, second in itertools.pairwise(body)
        if isinstance(first, ast.Assign)
        and isinstance(first.targets[0], ast.Name)
        and isinstance(second, ast.Expr)
        and isinstance(second.value, ast.Constant)
    }
    for member in enum:
        if member.name not in texts:
            raise PageError(f"{enum.__qualname__}.{member.name} has no docstring below it.")
        yield member, " ".join(str(texts[member.name]).split())


def _first_paragraph(one: type) -> str:
    return " ".join((inspect.getdoc(one) or "").partition("\n\n")[0].split())


def _code_list(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in sorted(words)) or "-"


def _head(*names: str) -> tuple[str, str]:
    return _row(*names), "|" + "---|" * len(names)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


if __name__ == "__main__":
    main()
