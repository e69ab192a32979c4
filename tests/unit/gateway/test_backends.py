"""What the gateway says for a service that said nothing."""

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo
from grpc.aio import AioRpcError, Metadata

from services.gateway.backends import _status
from services.gateway.methods import public_methods


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (grpc.StatusCode.UNAVAILABLE, "BACKEND_UNAVAILABLE"),
        (grpc.StatusCode.CANCELLED, "BACKEND_UNAVAILABLE"),  # a service that stops gives its open calls up
        (grpc.StatusCode.DEADLINE_EXCEEDED, "CALL_TIMED_OUT"),
        (grpc.StatusCode.UNKNOWN, "BACKEND_FAILED"),
    ],
)
def test_a_status_of_grpc_itself_says_whether_to_come_again(code, reason):
    method = next(iter(public_methods().values()))
    status = _status(method, AioRpcError(code, Metadata(), Metadata(), "secret host"))
    info = ErrorInfo()
    assert next(detail for detail in status.details if detail.Is(ErrorInfo.DESCRIPTOR)).Unpack(info)
    assert info.reason == reason
    assert "secret" not in status.message
