"""Error bodies of the Connect protocol."""

import base64
import json

import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status

from services.gateway.answers import error_response, own_status
from services.gateway.errors import BackendUnavailable
from services.kit.errors import Code

TABLE = {
    "canceled": 499,
    "unknown": 500,
    "invalid_argument": 400,
    "deadline_exceeded": 504,
    "not_found": 404,
    "already_exists": 409,
    "permission_denied": 403,
    "resource_exhausted": 429,
    "failed_precondition": 400,
    "aborted": 409,
    "out_of_range": 400,
    "unimplemented": 501,
    "internal": 500,
    "unavailable": 503,
    "data_loss": 500,
    "unauthenticated": 401,
}


def body_of(response):
    assert response.content_type == "application/json"
    return json.loads(response.body)


@pytest.mark.parametrize(("name", "http_status"), TABLE.items())
def test_every_code_has_its_name_and_http_status(name, http_status):
    number = list(TABLE).index(name) + 1
    response = error_response(Status(code=number, message="花"))
    assert response.status == http_status
    assert body_of(response) == {"code": name, "message": "花"}
    assert number == Code(number)


@pytest.mark.parametrize("number", [0, 17, -1])
def test_a_code_that_is_no_error_is_unknown(number):
    assert body_of(error_response(Status(code=number)))["code"] == "unknown"


def test_details_carry_type_bytes_and_a_readable_form():
    response = error_response(own_status(BackendUnavailable("Away.", retry_after_s=1.5, metadata={"a": "b"})))
    info, retry = body_of(response)["details"]
    assert info["type"] == "google.rpc.ErrorInfo"
    assert info["debug"] == {
        "reason": "BACKEND_UNAVAILABLE",
        "domain": "gateway.koikoi",
        "metadata": {"a": "b"},
    }
    assert "=" not in info["value"]
    decoded = error_details_pb2.ErrorInfo.FromString(base64.b64decode(info["value"] + "=" * (-len(info["value"]) % 4)))
    assert decoded.reason == "BACKEND_UNAVAILABLE"
    assert retry["type"] == "google.rpc.RetryInfo"
    assert retry["debug"] == {"retryDelay": "1.500s"}
    assert response.headers["Retry-After"] == "2"


def test_a_detail_nobody_knows_is_passed_on_as_bytes():
    unknown = AnyMessage(type_url="type.googleapis.com/a.Future", value=b"\1")
    broken = AnyMessage(type_url="type.googleapis.com/google.rpc.ErrorInfo", value=b"\xff")
    response = error_response(Status(code=13, details=[unknown, broken]))
    assert body_of(response)["details"] == [
        {"type": "a.Future", "value": "AQ"},
        {"type": "google.rpc.ErrorInfo", "value": "/w"},
    ]
