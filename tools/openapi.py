"""Writes the OpenAPI 3.1 document of the gateway from the protos and their comments: part of `make docs`.

Reads proto/ with protoc (which keeps comments only when asked) and the examples in openapi_examples.json, which a test
sends to running services. A method is in the document when the gateway offers it: marked public, and no client stream.
What a method may fail with is read from its comment, `CODE (REASON, REASON: when)`, from its service's, and from the
gateway's own errors; what a reason means is the comment of the reason.
"""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MethodDescriptorProto,
    MethodOptions,
    ServiceDescriptorProto,
)
from koikoi.options.v1 import options_pb2

from services.gateway import errors
from services.gateway.answers import HTTP_STATUS
from services.kit.errors import Code

__all__ = ["DOCUMENT", "EXAMPLES", "render", "write"]

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "services" / "gateway" / "openapi.json"
EXAMPLES = ROOT / "tools" / "openapi_examples.json"
_TOKEN = "Needs an access token."  # noqa: S105 - the words of a comment
_FAILURE = re.compile(rf"\b({'|'.join(code.name for code in Code)}) \(((?:[^()]|\([^()]*\))*)\)")
_REASON = re.compile(r"(?:^|[,;] *)([A-Z][A-Z0-9_]*)\b")
_GATEWAY = {
    "unary": ("RequestInvalid", "BodyTooLarge", "EncodingUnsupported", "BackendUnavailable", "CallTimedOut"),
    "stream": ("TooManyStreams", "GatewayFull", "Draining"),
}
_F = FieldDescriptorProto
_INTEGER32 = {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}
_UNSIGNED32 = {"type": "integer", "minimum": 0, "maximum": 2**32 - 1}
_INTEGER64 = {"type": "string", "pattern": "^-?[0-9]{1,19}$"}
_UNSIGNED64 = {"type": "string", "pattern": "^[0-9]{1,20}$"}
_SCALARS: dict[int, dict[str, Any]] = {
    _F.TYPE_DOUBLE: {"type": "number"},
    _F.TYPE_FLOAT: {"type": "number"},
    _F.TYPE_INT32: _INTEGER32,
    _F.TYPE_SINT32: _INTEGER32,
    _F.TYPE_UINT32: _UNSIGNED32,
    _F.TYPE_INT64: _INTEGER64,
    _F.TYPE_UINT64: _UNSIGNED64,
    _F.TYPE_BOOL: {"type": "boolean"},
    _F.TYPE_STRING: {"type": "string"},
    _F.TYPE_BYTES: {"type": "string", "contentEncoding": "base64"},
}
_WELL_KNOWN = {
    ".google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    ".google.protobuf.Duration": {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]{1,9})?s$"},
}
_ERROR: dict[str, Any] = {
    "type": "object",
    "description": "Is how a failed call is answered. Read `code`, and the reason in the detail google.rpc.ErrorInfo.",
    "required": ["code"],
    "properties": {
        "code": {"enum": ["canceled" if code is Code.CANCELLED else code.name.lower() for code in Code]},
        "message": {"type": "string", "description": "Is one sentence for the person at the keyboard."},
        "details": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["type", "value"],
                "properties": {
                    "type": {"type": "string", "description": "Is ErrorInfo, BadRequest or RetryInfo of google.rpc."},
                    "value": {"type": "string", "description": "Is the detail, binary, in base64 without padding."},
                    "debug": {"type": "object", "description": "Is the same in JSON, for readers."},
                },
            },
        },
    },
}


def render() -> str:
    """Return the document as it must be committed."""
    return json.dumps(_Document(_read_protos()).build(), indent=1, ensure_ascii=False) + "\n"


def write() -> None:
    """Write the document."""
    DOCUMENT.write_text(render(), encoding="utf-8")


def _read_protos() -> list[FileDescriptorProto]:
    paths = sorted(str(path.relative_to(ROOT / "proto")) for path in (ROOT / "proto").rglob("*.proto"))
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory) / "set"
        command = [sys.executable, "-m", "grpc_tools.protoc", "-Iproto", "--include_source_info"]
        subprocess.run([*command, f"--descriptor_set_out={target}", *paths], cwd=ROOT, check=True)
        files = FileDescriptorSet.FromString(target.read_bytes())
    return [file for file in files.file if file.package.startswith("koikoi.")]


@dataclass
class _Document:
    files: list[FileDescriptorProto]
    comments: dict[str, str] = field(default_factory=dict)
    messages: dict[str, DescriptorProto] = field(default_factory=dict)
    enums: dict[str, EnumDescriptorProto] = field(default_factory=dict)
    schemas: dict[str, Any] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    examples: dict[str, Any] = field(default_factory=lambda: json.loads(EXAMPLES.read_text(encoding="utf-8")))

    def build(self) -> dict[str, Any]:
        for file in self.files:
            self._index(file)
        paths, tags = {}, []
        for file in self.files:
            for service in file.service:
                name = f".{file.package}.{service.name}"
                methods = [method for method in service.method if _is_offered(method)]
                if methods:
                    tags.append({"name": service.name, "description": self.comments[name]})
                for method in methods:
                    paths[f"/{name[1:]}/{method.name}"] = self._path(name, service, method)
        for name, schema in self.schemas.items():
            if name in self.asked and schema["type"] == "object":
                schema["additionalProperties"] = False  # what we do not know is refused
        return {
            "openapi": "3.1.0",
            "info": {"title": "Koi-Koi Online", "version": "1", "summary": _SUMMARY, "description": _DESCRIPTION},
            "servers": [{"url": "/"}],
            "tags": tags,
            "paths": paths,
            "components": {
                "securitySchemes": {"accessToken": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
                "schemas": {"ConnectError": _ERROR, **dict(sorted(self.schemas.items()))},
            },
        }

    def _index(self, file: FileDescriptorProto) -> None:
        told = {
            tuple(one.path): _paragraphs(one.leading_comments)
            for one in file.source_code_info.location
            if one.leading_comments
        }
        for path, name, one in _members(file):
            self.comments[name] = told.get(path, "")
            if isinstance(one, DescriptorProto):
                self.messages[name] = one
            elif isinstance(one, EnumDescriptorProto):
                self.enums[name] = one

    def _path(
        self, service_name: str, service: ServiceDescriptorProto, method: MethodDescriptorProto
    ) -> dict[str, Any]:
        text = self.comments[f"{service_name}.{method.name}"]
        summary, _, description = text.partition("\n\n")
        operation: dict[str, Any] = {
            "operationId": f"{service.name}_{method.name}",
            "tags": [service.name],
            "summary": summary,
            "description": description,
            "security": [{"accessToken": []}] if _TOKEN in text else [],
        }
        example = self.examples.get(f"{service_name[1:]}/{method.name}", {})
        self._ask(method.input_type)
        request, answer = self._reference(method.input_type), self._reference(method.output_type)
        responses = {"200": {"description": "The answer."}, **self._failures(service_name, text, method)}
        if method.server_streaming:
            operation["x-streaming"] = {"request": request, "message": answer, "example": example}
            operation["requestBody"] = {"required": True, "content": _framed("One envelope with the request.")}
            responses = {"200": {"description": _STREAM_ANSWER, "content": _framed(_STREAM_ANSWER)}} | {
                status: one for status, one in responses.items() if status == "415"
            }
            operation["description"] += "\n\n" + self._told(service_name, text, method)
            return {"post": operation | {"responses": responses}}
        responses["200"]["content"] = _bodies(answer, example.get("response"))
        post = {
            **operation,
            "requestBody": {"required": True, "content": _bodies(request, example.get("request"))},
            "responses": responses,
        }
        if method.options.idempotency_level != MethodOptions.NO_SIDE_EFFECTS:
            return {"post": post}
        get = {**operation, "operationId": f"{operation['operationId']}_GET", "parameters": _query(request, example)}
        return {"get": get | {"responses": responses}, "post": post}

    def _failures(self, service_name: str, text: str, method: MethodDescriptorProto) -> dict[str, Any]:
        """Give the answer of every HTTP status that a method may fail with."""
        by_status: dict[str, list[str]] = {}
        for code, reason, meaning in self._reasons(service_name, text, method):
            line = f"* `{code.name.lower()}` `{reason}`: {meaning}"
            by_status.setdefault(str(HTTP_STATUS[code]), []).append(line)
        schema = {"schema": {"$ref": "#/components/schemas/ConnectError"}}
        found: dict[str, Any] = {"415": {"description": "The content type is not spoken here; see `Accept-Post`."}}
        for status, lines in by_status.items():
            found[status] = {"description": "\n".join(lines), "content": {"application/json": schema}}
            if status in ("429", "503"):
                found[status]["headers"] = {
                    "Retry-After": {"description": "Seconds, where they are known.", "schema": {"type": "string"}}
                }
        return dict(sorted(found.items()))

    def _told(self, service_name: str, text: str, method: MethodDescriptorProto) -> str:
        """Give the same as text, for streams: their errors come in the last envelope."""
        rows = self._reasons(service_name, text, method)
        return "\n".join(f"* `{code.name.lower()}` `{reason}`: {meaning}" for code, reason, meaning in rows)

    def _reasons(self, service_name: str, text: str, method: MethodDescriptorProto) -> Iterator[tuple[Code, str, str]]:
        package = service_name.rpartition(".")[0]
        known = {
            value.name.removeprefix("REASON_"): self.comments[f"{package}.Reason.{value.name}"]
            for value in self.enums.get(f"{package}.Reason", EnumDescriptorProto()).value
        }
        general = self.comments[service_name] if _TOKEN in text else _without_token(self.comments[service_name])
        seen = set()
        for code, reasons in _FAILURE.findall(f"{text} {general}"):
            for reason in _REASON.findall(reasons):  # those that begin a part, not those a part mentions
                if reason in known and (code, reason) not in seen:
                    seen.add((code, reason))
                    yield Code[code], reason, known[reason]
        names = [*_GATEWAY["unary"], *(_GATEWAY["stream"] if method.server_streaming else ())]
        for one in (getattr(errors, name) for name in [*names, "BackendFailed"]):
            yield one.code, one.reason, " ".join((inspect.getdoc(one) or "").split())

    def _ask(self, name: str) -> None:
        """Mark a message of a request, and all within it: what they do not know is refused."""
        if name in self.messages and name[1:] not in self.asked:
            self.asked.add(name[1:])
            for one in self.messages[name].field:
                self._ask(one.type_name)

    def _reference(self, name: str) -> dict[str, Any]:
        if name in _WELL_KNOWN:
            return dict(_WELL_KNOWN[name])
        if name[1:] not in self.schemas:
            self.schemas[name[1:]] = {}  # stops a message that holds itself
            self.schemas[name[1:]] = self._enum(name) if name in self.enums else self._message(name)
        return {"$ref": f"#/components/schemas/{name[1:]}"}

    def _enum(self, name: str) -> dict[str, Any]:
        values = [value.name for value in self.enums[name].value]
        lines = [self.comments[name], *(f"* `{value}`: {self.comments[f'{name}.{value}']}" for value in values)]
        return {"type": "string", "description": "\n".join(lines), "enum": values}

    def _message(self, name: str) -> dict[str, Any]:
        properties = {}
        for one in self.messages[name].field:
            if one.type_name:
                schema = self._reference(one.type_name)
            else:
                schema = dict(_SCALARS[one.type])
            if one.label == _F.LABEL_REPEATED:
                schema = {"type": "array", "items": schema}
            properties[one.json_name] = {"description": self.comments[f"{name}.{one.name}"], **schema}
        return {"type": "object", "description": self.comments[name], "properties": properties}


def _is_offered(method: MethodDescriptorProto) -> bool:
    return bool(method.options.Extensions[options_pb2.public]) and not method.client_streaming


def _members(file: FileDescriptorProto) -> Iterator[tuple[tuple[int, ...], str, Any]]:
    """Yield path (as in source_code_info), full name and descriptor of everything that has a comment."""
    for number, one in enumerate(file.service):
        yield (6, number), f".{file.package}.{one.name}", one
        for inner, method in enumerate(one.method):
            yield (6, number, 2, inner), f".{file.package}.{one.name}.{method.name}", method
    stack: list[tuple[tuple[int, ...], str, Any]] = [
        *(((4, number), f".{file.package}.{one.name}", one) for number, one in enumerate(file.message_type)),
        *(((5, number), f".{file.package}.{one.name}", one) for number, one in enumerate(file.enum_type)),
    ]
    while stack:
        path, name, one = stack.pop()
        yield path, name, one
        parts = one.field if isinstance(one, DescriptorProto) else one.value
        for number, part in enumerate(parts):
            yield (*path, 2, number), f"{name}.{part.name}", part
        if isinstance(one, DescriptorProto):
            stack += [((*path, 3, n), f"{name}.{inner.name}", inner) for n, inner in enumerate(one.nested_type)]
            stack += [((*path, 4, n), f"{name}.{kind.name}", kind) for n, kind in enumerate(one.enum_type)]


def _paragraphs(comment: str) -> str:
    """Join the lines of each paragraph; what is for linters is no text."""
    lines = [line.strip() for line in comment.splitlines() if "buf:lint:" not in line]
    parts = re.split(r"\n{2,}", "\n".join(lines).strip())
    return "\n\n".join(part.replace("\n", " ") for part in parts)


def _without_token(text: str) -> str:
    """Drop the sentence about methods that need a token."""
    return re.sub(r"A method that needs an access token[^.]*\.", "", text)


def _bodies(schema: dict[str, Any], example: object) -> dict[str, Any]:
    json_body = {"schema": schema} | ({} if example is None else {"example": example})
    return {"application/json": json_body, "application/proto": {}}


def _framed(description: str) -> dict[str, Any]:
    schema = {"type": "string", "description": description}
    return {"application/connect+json": {"schema": schema}, "application/connect+proto": {"schema": schema}}


def _query(schema: dict[str, Any], example: dict[str, Any]) -> list[dict[str, Any]]:
    body = {"schema": schema} | ({"example": example["request"]} if "request" in example else {})
    return [
        {"name": "connect", "in": "query", "schema": {"const": "v1"}, "description": "Is the version of the protocol."},
        {"name": "encoding", "in": "query", "required": True, "schema": {"const": "json"},
         "description": "Is `json`, or `proto` with `base64=1` and the binary message in URL-safe base64."},
        {"name": "message", "in": "query", "required": True, "content": {"application/json": body},
         "description": "Is the message; with `compression=gzip` and `base64=1` it may be packed."},
    ]  # fmt: skip


_SUMMARY = "Two players, one blind relay, no trusted dealer: sign-in, rooms, results and ratings."
_STREAM_ANSWER = (
    "Envelopes: a byte of flags (1: packed, 2: the last), the length in four bytes, big-endian, and a message. The "
    "last one is JSON: `{}`, or `error` (a ConnectError) and `metadata` with `retry-after` where it is known."
)
_DESCRIPTION = """\
Every method is called by the [Connect protocol](https://connectrpc.com/docs/protocol): POST a message as JSON
(`application/json`) or binary protobuf (`application/proto`) to its path. Methods without side effects answer a GET,
too. Streams take and give envelopes (`application/connect+json`, `application/connect+proto`).

* A field with its default value may be left out of an answer. Unknown fields of a request are refused.
* `Authorization: Bearer <access token>` where a method needs one.
* `Connect-Timeout-Ms` limits a call, `Content-Encoding: gzip` and `Accept-Encoding: gzip` pack it
  (`Connect-Content-Encoding` and `Connect-Accept-Encoding` for streams).
* A message has at most 64 KiB, also when unpacked.
* A failed call is answered with a [ConnectError](#/components/schemas/ConnectError) and the HTTP status of its code."""
