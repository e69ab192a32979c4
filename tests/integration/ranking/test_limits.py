"""Limits of reading: per address, and per account where a valid access token is shown."""

import itertools
from dataclasses import replace

import grpc
import pytest
from koikoi.ranking.v1 import ranking_service_pb2 as pb

from services.ranking.app import build
from tests.harness import Issuer, make_caller
from tests.integration.ranking.conftest import Refused, connect
from tests.unit.ranking.cases import uuid7

CALLS = {
    "GetLeaderboard": pb.GetLeaderboardRequest(),
    "GetLeaderboardAround": pb.GetLeaderboardAroundRequest(account_id="a"),
    "GetRating": pb.GetRatingRequest(account_id="a"),
    "GetRatingHistory": pb.GetRatingHistoryRequest(account_id="a"),
    "ListMatchResults": pb.ListMatchResultsRequest(account_id="a"),
    "GetMatchResult": pb.GetMatchResultRequest(match_id=uuid7()),
}
ADDRESSES = (f"203.0.113.{number}" for number in itertools.count(1))


async def read(bench, method="GetLeaderboard", *, address=None, token=None):
    """Give the reason of a refusal, or an empty string."""
    metadata = [("x-forwarded-for", address or next(ADDRESSES))]
    if token is not None:
        metadata.append(("authorization", token))
    try:
        await bench.call(getattr(bench.stub, method)(CALLS[method], metadata=metadata))
    except Refused as error:
        refused = error
    else:
        return ""
    is_limit = refused.reason == "RATE_LIMITED"
    assert is_limit == (refused.code is grpc.StatusCode.RESOURCE_EXHAUSTED) == (refused.retry_after_s is not None)
    return refused.reason


@pytest.fixture
async def narrow(bench):
    limits = {"KOIKOI_RANKING_READS_PER_MINUTE": "6", "KOIKOI_RANKING_ACCOUNT_READS_PER_MINUTE": "3"}
    async with build(bench.environ | limits, clock=bench.clock) as app, connect(app) as stub:
        yield replace(bench, app=app, stub=stub)


async def test_all_reading_calls_of_an_address_share_one_limit(narrow):
    answers = [await read(narrow, method, address="2001:db8::1") for method in CALLS]
    assert answers == ["RESULT_NOT_FOUND" if method == "GetMatchResult" else "" for method in CALLS]
    for method in CALLS:
        assert await read(narrow, method, address="2001:db8::2") == "RATE_LIMITED"
    assert await read(narrow) == ""
    narrow.clock.advance(61)
    assert await read(narrow, address="2001:db8::1") == ""


async def test_an_account_is_limited_whatever_its_addresses(narrow):
    one, other = (f"Bearer {narrow.auth.access_token(make_caller())}" for _ in range(2))
    assert [await read(narrow, token=one) for _ in range(4)] == ["", "", "", "RATE_LIMITED"]
    assert await read(narrow, token=other) == ""
    assert await read(narrow) == ""


async def test_a_token_that_is_not_valid_counts_as_none(narrow, tmp_path):
    caller = make_caller()
    expired = f"Bearer {narrow.auth.access_token(caller, lifetime_s=-60)}"
    stranger = f"Bearer {Issuer(tmp_path / 'stranger', narrow.clock).access_token(caller)}"
    elsewhere = f"Bearer {narrow.auth.access_token(caller, audience='koikoi/production')}"
    for token in (expired, stranger, elsewhere, "Bearer x", "Bearer ", "Basic eDp5", ""):
        assert [await read(narrow, token=token) for _ in range(4)] == [""] * 4, token


async def test_reading_goes_on_while_auth_is_away(narrow):
    narrow.auth_teller.is_away = True
    token = f"Bearer {narrow.auth.access_token(make_caller())}"
    assert [await read(narrow, token=token) for _ in range(4)] == [""] * 4
