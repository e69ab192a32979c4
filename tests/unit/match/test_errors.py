"""The one table of reasons and close codes."""

from koikoi.match.v1 import match_service_pb2 as pb

from services.match.domain import errors


def test_reasons_and_the_proto_enum_are_the_same_list():
    assert {f"REASON_{error.reason}" for error in errors.REASONS} | {"REASON_UNSPECIFIED"} == set(pb.Reason.keys())


def test_every_class_is_in_the_table():
    classes = {
        value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, errors.RelayError)
    }
    assert classes - {errors.RelayError} == set(errors.REASONS)


def test_the_range_of_a_close_code_says_come_back_or_stop():
    codes = [error.close_code for error in errors.REASONS if error.close_code]
    assert len(codes) == len(set(codes))
    for error in errors.REASONS:
        if error.close_code:
            assert error.close_code in range(4000, 4100) or error.close_code in range(4500, 4600)
            assert error("x").metadata["close_code"] == str(error.close_code)
        else:
            assert "close_code" not in error("x").metadata


def test_come_back_and_stop():
    come_back = {error.reason for error in errors.REASONS if 4000 <= error.close_code < 4100}
    assert come_back == {"JOIN_TIMEOUT", "SLOW_CONSUMER", "DRAINING", "STORE_UNAVAILABLE", "RATE_LIMITED"}


def test_metadata_of_the_caller_is_kept():
    error = errors.FrameInvalid("x", metadata={"limit": "1"}, field="f", retry_after_s=2.0)
    assert error.metadata == {"close_code": "4501", "limit": "1"}
    assert (error.field, error.retry_after_s) == ("f", 2.0)
