"""schemathesis makes up requests from the OpenAPI document: no 5xx, no answer that the document does not tell of."""

import asyncio
import json
import os

import aiohttp
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from services.gateway.documents import DOCUMENT
from tests.integration.gateway.players import Player

READ = json.loads(DOCUMENT.read_text(encoding="utf-8"))
EXAMPLES = int(os.environ.get("KOIKOI_FUZZ", "12"))
CHECKS = (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance)
STREAMS = {path for path, item in READ["paths"].items() if "x-streaming" in item["post"]}
ENDS_THE_SESSION = ("SignOut", "RevokeDevice")


@schemathesis.serializer("application/proto")
def bytes_as_they_are(_context, value):
    return value if isinstance(value, bytes) else json.dumps(value).encode()


def operations():
    schema = schemathesis.openapi.from_dict(READ)
    found = [result.ok() for result in schema.get_all_operations()]
    assert len(found) >= len(READ["paths"])
    calls = [one for one in found if one.path not in STREAMS]
    return sorted(calls, key=lambda one: one.path.endswith(ENDS_THE_SESSION))


@pytest.fixture(scope="module")
def token(running):
    async def sign_in():
        async with aiohttp.ClientSession() as http:
            player = Player("fuzz", running.plan, http, set(), READ)
            await player.sign_in()
            return player.token

    return asyncio.run(sign_in())


@pytest.mark.timeout(240)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda mode: mode.value)
@pytest.mark.parametrize("operation", operations(), ids=lambda one: one.label)
def test_no_answer_is_a_surprise(running, token, operation, mode):
    if mode is GenerationMode.NEGATIVE and not operation.body and not operation.query:
        pytest.skip("nothing to make wrong")

    @seed(20260712)
    @settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def run(case):
        headers = {"Authorization": f"Bearer {token}"} if operation.definition.raw["security"] else {}
        response = case.call(base_url=running.plan.gateway_url, headers=headers, timeout=20)
        case.validate_response(response, checks=CHECKS)

    run()
