"""The OpenAPI document: valid, as the protos say, served; and the page made from it."""

import json
import re
from html.parser import HTMLParser

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from services.gateway.documents import DOCUMENT
from services.gateway.methods import public_methods
from tools.openapi import EXAMPLES, render

TEXT = DOCUMENT.read_text(encoding="utf-8")
READ = json.loads(TEXT)
PLAIN = {"Accept-Encoding": "identity"}


def operations():
    for path, item in READ["paths"].items():
        for verb, operation in item.items():
            yield path, verb, operation


def test_it_fits_the_protos():
    assert render() == TEXT, "services/gateway/openapi.json does not fit proto/: run `make docs` and commit the result"


def test_it_is_valid():
    assert not list(OpenAPIV31SpecValidator(READ).iter_errors())
    assert READ["openapi"].startswith("3.1.")


def test_it_has_every_public_method_and_no_other():
    assert set(READ["paths"]) == set(public_methods())
    for path, method in public_methods().items():
        assert set(READ["paths"][path]) == ({"get", "post"} if method.is_safe else {"post"})
        assert ("x-streaming" in READ["paths"][path]["post"]) is method.is_streaming


def test_everything_is_described():
    silent = [path for path, _, operation in operations() if not operation["summary"]]
    for name, schema in READ["components"]["schemas"].items():
        silent += [name] if not schema["description"] else []
        if name != "ConnectError":
            silent += [
                f"{name}.{one}" for one, field in schema.get("properties", {}).items() if not field["description"]
            ]
    assert not silent


def test_who_may_call_is_told():
    for path, _, operation in operations():
        told = re.search(r"Needs an access token\.|Anybody (who .*)?may call it", operation["description"])
        assert told, f"the comment of {path} must say who may call it"
        assert bool(operation["security"]) is told[0].startswith("Needs")
        if operation["security"] and "x-streaming" not in operation:
            assert "401" in operation["responses"]


def test_every_error_that_a_comment_names_is_known():
    """A reason that the service's enum lacks would vanish from the document."""
    for path, _, operation in operations():
        told = json.dumps(operation["responses"]) + operation["description"]
        named = re.search(r"Errors: (.*)", operation["description"])
        for reasons in re.findall(r"\(([^()]*)\)", named[1] if named else ""):
            for reason in re.findall(r"(?:^|[,;] )([A-Z][A-Z_]{3,})", reasons):
                assert f"`{reason}`" in told, (path, reason)


@pytest.mark.parametrize("kind", ["request", "response"])
def test_examples_are_what_the_schemas_say(kind):
    for name, example in json.loads(EXAMPLES.read_text(encoding="utf-8")).items():
        if (method := public_methods().get(f"/{name}")) is not None:
            message = method.request_type if kind == "request" else method.response_type
            reference = f"#/components/schemas/{message.DESCRIPTOR.full_name}"
            validator = Draft202012Validator({"$ref": reference, "components": READ["components"]})
            assert not list(validator.iter_errors(example[kind])), name


async def test_it_is_served(bench):
    answer = await bench.send("GET", "/openapi.json", headers=PLAIN | {"Origin": "https://play.example"})
    assert answer.json == READ
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    again = await bench.send("GET", "/openapi.json", headers={"If-None-Match": answer.headers["Etag"]})
    assert (again.status, again.body) == (304, b"")
    packed = await bench.send("GET", "/openapi.json", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert len(packed.body) < len(answer.body) / 4


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.ids, self.open = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)
        self.links += [value for name, value in attrs if name in ("href", "src")]
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes something else"


@pytest.mark.parametrize("path", ["/", "/api"])
async def test_pages_need_no_script_and_nobody_else(bench, path):
    answer = await bench.send("GET", path, headers=PLAIN)
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    page = Page(answer.body.decode())
    assert page.open == []
    assert not {"script", "img", "iframe", "link", "form", "object"} & {tag for tag, _ in page.tags}
    assert not [
        attributes
        for _, attributes in page.tags
        if "style" in attributes or any(n.startswith("on") for n in attributes)
    ]
    assert {link for link in page.links if link.startswith("http")} <= {"https://connectrpc.com/docs/protocol"}


async def test_the_page_shows_every_method_and_its_links_lead_somewhere(bench):
    assert 'href="/api"' in (await bench.send("GET", "/")).body.decode()
    text = (await bench.send("GET", "/api", headers=PLAIN)).body.decode()
    page = Page(text)
    for path in public_methods():
        assert f"{path}</code>" in text
    assert len(page.ids) == len(set(page.ids))
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
