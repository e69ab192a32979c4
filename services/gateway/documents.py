"""The OpenAPI document, and the page for people made from it: no script, no foreign origin."""

from __future__ import annotations

import hashlib
import html
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from aiohttp import web

from services.gateway.compression import GZIP, pack, wants_gzip
from services.gateway.pages import page_headers

DOCUMENT = Path(__file__).with_name("openapi.json")
_AGE_S = 300
_LINK = re.compile(r"\[([^\]]+)\]\((https://[^)\s]+|#[^)\s]*)\)")
_SCHEMA = "#/components/schemas/"


class ApiDocument:
    """Serves the document that `make docs` writes."""

    def __init__(self) -> None:
        self._json = _File(DOCUMENT.read_bytes(), "application/json", {"X-Content-Type-Options": "nosniff"})
        page = _page(json.loads(DOCUMENT.read_bytes()))
        self._html = _File(page.encode(), "text/html", page_headers(_STYLE))

    async def answer_json(self, request: web.Request) -> web.Response:
        """Answer `/openapi.json`."""
        return self._json.answer(request)

    async def answer_page(self, request: web.Request) -> web.Response:
        """Answer `/api`."""
        return self._html.answer(request)


class _File:
    """Content that never changes while the process lives."""

    def __init__(self, content: bytes, content_type: str, headers: Mapping[str, str]) -> None:
        self._content, self._packed, self._content_type = content, pack(content), content_type
        self._tag = f'W/"{hashlib.sha256(content).hexdigest()[:24]}"'
        self._headers = {
            **headers, "Cache-Control": f"public, max-age={_AGE_S}", "ETag": self._tag, "Vary": "Accept-Encoding",
        }  # fmt: skip

    def answer(self, request: web.Request) -> web.Response:
        if self._tag in request.headers.get("If-None-Match", ""):
            return web.Response(status=304, headers=self._headers)
        is_packed = wants_gzip(request.headers.get("Accept-Encoding"), "")
        headers = {**self._headers, **({"Content-Encoding": GZIP} if is_packed else {})}
        return web.Response(
            body=self._packed if is_packed else self._content,
            content_type=self._content_type,
            charset="utf-8" if self._content_type.startswith("text/") else None,
            headers=headers,
        )


def _page(document: dict[str, Any]) -> str:
    parts = [*_methods(document), *_messages(document)]
    return _PAGE.format(
        style=_STYLE, index=_index(document), about=_text(document["info"]["description"]), parts="\n".join(parts)
    )


def _index(document: dict[str, Any]) -> str:
    rows = []
    for tag in document["tags"]:
        links = [
            f'<li><a href="#{_anchor(path)}">{html.escape(path.rpartition("/")[2])}</a></li>'
            for path, item in document["paths"].items()
            if tag["name"] in item["post"]["tags"]
        ]
        rows.append(f"<li>{html.escape(tag['name'])}<ul>{''.join(links)}</ul></li>")
    return f"<ul>{''.join(rows)}</ul>"


def _methods(document: dict[str, Any]) -> Iterator[str]:
    for tag in document["tags"]:
        yield f"<h2>{html.escape(tag['name'])}</h2>{_text(tag['description'])}"
        for path, item in document["paths"].items():
            if tag["name"] in item["post"]["tags"]:
                yield _method(path, item)


def _method(path: str, item: dict[str, Any]) -> str:
    post, streaming = item["post"], item["post"].get("x-streaming")
    verbs = "POST, GET" if "get" in item else "POST"
    token = "needs an access token" if post["security"] else "no access token"
    body = post["requestBody"]["content"].get("application/json", {})
    answer = post["responses"]["200"]["content"].get("application/json", {})
    asked = streaming["request"] if streaming else body["schema"]
    told = streaming["message"] if streaming else answer["schema"]
    examples = (
        streaming["example"] if streaming else {"request": body.get("example"), "response": answer.get("example")}
    )
    shown = "".join(
        f"<h4>{title}</h4><pre>{html.escape(json.dumps(examples[name], indent=1, ensure_ascii=False))}</pre>"
        for name, title in (("request", "Example"), ("response", "Answer"))
        if examples.get(name) is not None
    )
    failures = "".join(
        f"<h4>{status}</h4>{_text(one['description'])}" for status, one in post["responses"].items() if status != "200"
    )
    return (
        f'<section id="{_anchor(path)}"><h3>{html.escape(path.rpartition("/")[2])}</h3>'
        f"<p><code>{verbs} {html.escape(path)}</code> · {token}{' · answers with a stream' if streaming else ''}</p>"
        f"<p>{_inline(post['summary'])}</p>{_text(post['description'])}"
        f"<p>Takes {_kind(asked)}, gives {_kind(told)}.</p>{shown}"
        f"<details><summary>What may go wrong</summary>{failures}</details></section>"
    )


def _messages(document: dict[str, Any]) -> Iterator[str]:
    yield "<h2>Messages</h2>"
    for name, schema in document["components"]["schemas"].items():
        rows = "".join(
            f"<tr><td><code>{html.escape(field)}</code></td><td>{_kind(one)}</td>"
            f"<td>{_text(one.get('description', ''))}</td></tr>"
            for field, one in schema.get("properties", {}).items()
        )
        table = f"<table>{rows}</table>" if rows else ""
        anchor = _anchor(_SCHEMA + name)
        yield f'<section id="{anchor}"><h3>{html.escape(name)}</h3>{_text(schema["description"])}{table}</section>'


def _kind(schema: dict[str, Any]) -> str:
    """Name a type, as a link where it is a message."""
    if "$ref" in schema:
        reference = schema["$ref"]
        return f'<a href="#{_anchor(reference)}">{html.escape(reference.rpartition(".")[2])}</a>'
    if schema.get("type") == "array":
        return f"list of {_kind(schema['items'])}"
    if "contentEncoding" in schema:
        return "base64"
    return html.escape(str(schema.get("format") or schema.get("type") or "one of a list"))


def _anchor(reference: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", reference.removeprefix(_SCHEMA)).strip("-")


def _text(markdown: str) -> str:
    """Write the little Markdown there is: paragraphs, lists, code, links."""
    written = []
    for part in markdown.split("\n\n"):
        if part.startswith("* "):
            items = "".join(f"<li>{_inline(item)}</li>" for item in re.split(r"(?:^|\n)\* ", part) if item)
            written.append(f"<ul>{items}</ul>")
        elif part:
            head, _, points = part.partition("\n* ")
            written.append(f"<p>{_inline(head)}</p>" + (_text("* " + points) if points else ""))
    return "".join(written)


def _inline(text: str) -> str:
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))

    def link(found: re.Match[str]) -> str:
        target = found[2] if found[2].startswith("https:") else f"#{_anchor(found[2])}"
        return f'<a href="{target}">{found[1]}</a>'

    return _LINK.sub(link, text)


_STYLE = (
    "body{font:1rem/1.6 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem;color:#1c1c1c;"
    "background:#fff}h2{margin-top:3rem;border-bottom:2px solid #a8201a}section{margin:2rem 0}"
    "pre{background:#f4f1ea;padding:.8rem;overflow-x:auto}code{background:#f4f1ea;overflow-wrap:anywhere}"
    "td{vertical-align:top;padding:.2rem .6rem .2rem 0}td p{margin:0}a{color:#8c1b16}:target{background:#fff8e1}"
)
_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Koi-Koi Online: API</title>
<style>{style}</style></head>
<body>
<p><a href="/">Koi-Koi Online</a></p>
<h1>API</h1>
<p>The same for machines: <a href="/openapi.json">openapi.json</a>.</p>
{about}
<nav>{index}</nav>
{parts}
</body>
</html>
"""
