"""Links of invitations: what is one, and whether its host is the one of the contract."""

from __future__ import annotations

import base64
import json

import pytest
from koikoi_sdk.client.contract import SignedContract
from koikoi_sdk.client.errors import LocalProtocolError, ServerError
from koikoi_sdk.client.invites import Invite, check_host, fingerprint, parse_invite

SECRET = "AAECAwQFBgcICQoLDA0ODw"
KEY = bytes(range(32))


def contract(key: object) -> SignedContract:
    return SignedContract("token", json.dumps({"seats": [{"key": key}, {"key": "other"}]}).encode(), "match")


def test_a_link_is_read_as_it_was_made() -> None:
    invite = Invite("7KWQ3X", SECRET, fingerprint(KEY))
    for start in ("https://play.example", "http://127.0.0.1:8080", "https://play.example/koikoi"):
        assert parse_invite(f" {start}/i/7kwq3x.{SECRET}#{fingerprint(KEY)}\n") == invite
    assert fingerprint(KEY) == "Yw3NKWbEM2aRElRIu7JbTw"


@pytest.mark.parametrize(
    "link",
    [
        "",
        f"https://play.example/i/7KWQ3X.{SECRET}",
        f"https://play.example/i/7KWQ3X.{SECRET}#",
        f"https://play.example/i/7KWQ3X#{SECRET}",
        f"https://play.example/i/7KWQ3X.{SECRET}?x=1#{SECRET}",
        f"ftp://play.example/i/7KWQ3X.{SECRET}#{SECRET}",
        f"https://play.example/i/7KWQ3X.{SECRET}#{SECRET}x",
    ],
)
def test_what_is_no_whole_link_is_refused_before_anything_is_sent(link: str) -> None:
    with pytest.raises(LocalProtocolError):
        parse_invite(link)


def test_the_contract_must_name_the_key_of_the_sender() -> None:
    key = base64.urlsafe_b64encode(KEY).rstrip(b"=").decode()
    check_host(contract(key), Invite("7KWQ3X", SECRET, fingerprint(KEY)))
    with pytest.raises(ServerError) as caught:
        check_host(contract(key), Invite("7KWQ3X", SECRET, fingerprint(bytes(32))))
    assert caught.value.reason == "HOST_KEY_DIFFERS"


@pytest.mark.parametrize("payload", [b"{}", b"[]", b'{"seats": []}', b'{"seats": [{"key": 7}]}', b'{"seats": [{}]}'])
def test_a_contract_without_a_host_is_refused(payload: bytes) -> None:
    with pytest.raises(ServerError) as caught:
        check_host(SignedContract("token", payload, "match"), Invite("7KWQ3X", SECRET, fingerprint(KEY)))
    assert caught.value.reason == "CONTRACT_INVALID"
