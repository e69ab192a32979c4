"""Rooms, as a client uses them: open one, watch it, list them, take a seat, let guests in or keep them out."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Protocol, TypeVar

from google.protobuf.message import Message
from koikoi.lobby.v1 import lobby_service_pb2 as lobby

from koikoi_sdk.client.account import Account
from koikoi_sdk.client.backoff import Backoff
from koikoi_sdk.client.connect import ConnectClient
from koikoi_sdk.client.contract import SignedContract, verify_contract
from koikoi_sdk.client.documents import issuer_of, key_set_path
from koikoi_sdk.client.errors import ServerError
from koikoi_sdk.client.invites import Invite, check_host, fingerprint
from koikoi_sdk.client.outbox import Outbox

SERVICE = "koikoi.lobby.v1.LobbyService"
Answer = TypeVar("Answer", bound=Message)
Entered = TypeVar("Entered", covariant=True)  # noqa: PLC0105 - it is read, not derived from


class Entry(Protocol[Entered]):
    """One way into a room; `is_free` leaves the room that the account was in."""

    async def __call__(self, *, is_free: bool) -> Entered:
        """Try it."""
        ...


class Lobby:
    """The lobby's calls for one signed-in device; contracts come verified.

    An account is in one room at a time. Where the lobby refuses to enter one because of a match that is over for this
    device, that match is left first; any other room only with `leave_other`.
    """

    def __init__(self, client: ConnectClient, account: Account) -> None:
        self._client = client
        self._account = account
        self._jwks = ""

    async def create_room(
        self,
        rules: lobby.Rules,
        *,
        is_public: bool = True,
        password: str = "",
        needs_approval: bool = False,
        with_invite: bool = False,
        leave_other: bool = False,
        request_id: str | None = None,
    ) -> lobby.Room:
        """Open a room with this account as host; watch it (`wait_for_contract`) within 30 s, or it closes."""
        request = lobby.CreateRoomRequest(
            visibility=lobby.VISIBILITY_PUBLIC if is_public else lobby.VISIBILITY_UNLISTED,
            password=password,
            rules=rules,
            request_id=request_id or secrets.token_hex(16),
            needs_approval=needs_approval,
            with_invite=with_invite,
            leave_other=leave_other,
        )

        async def send(*, is_free: bool) -> lobby.CreateRoomResponse:
            request.leave_other |= is_free
            return await self._call("CreateRoom", request, lobby.CreateRoomResponse)

        return (await self._enter(send)).room

    async def invite_link(self, code: str) -> str:
        """Give the link of a room of this account that was opened with an invitation, this device's key in it."""
        invite = (await self._get_room(code)).invite
        return f"{invite.url}#{fingerprint(self._account.key.public)}"

    async def list_rooms(self, *, page_size: int = 50, preset: str = "") -> list[lobby.Room]:
        """Give the open public rooms, newest first."""
        request = lobby.ListRoomsRequest(page_size=page_size, preset=preset)
        return list((await self._call("ListRooms", request, lobby.ListRoomsResponse)).rooms)

    async def watch_rooms(self, *, preset: str = "") -> AsyncIterator[lobby.WatchRoomsResponse]:
        """Follow the list of open rooms for ever; after a broken connection a snapshot comes again."""
        request = lobby.WatchRoomsRequest(preset=preset)
        async with aclosing(self._follow("WatchRooms", request, lobby.WatchRoomsResponse)) as messages:  # type: ignore[type-var]
            async for message in messages:
                yield message

    async def get_room(self, code: str, *, invite: Invite | None = None) -> lobby.Room:
        """Give one room: what one should see before joining it."""
        return (await self._get_room(code, invite)).room

    async def join_room(
        self, code: str, *, password: str = "", invite: Invite | None = None, leave_other: bool = False
    ) -> SignedContract:
        """Take the second seat and give the verified contract; with an invitation, of the host who sent it."""
        request = lobby.JoinRoomRequest(
            code=code,
            password=password,
            request_id=secrets.token_hex(16),
            invite_secret=invite.secret if invite else "",
            leave_other=leave_other,
        )

        async def send(*, is_free: bool) -> lobby.JoinRoomResponse:
            request.leave_other |= is_free
            return await self._call("JoinRoom", request, lobby.JoinRoomResponse)

        return await self._verify((await self._enter(send)).contract, invite)

    async def watch_room(
        self, code: str, *, password: str = "", invite: Invite | None = None, leave_other: bool = False
    ) -> AsyncIterator[lobby.WatchRoomResponse]:
        """Follow a room to its end: its contract, or its closing. A service that is away for a while only delays it.

        The host's watching keeps the room alive; anybody else knocks with it at a room that needs approval.
        """
        request = lobby.WatchRoomRequest(
            code=code, password=password, invite_secret=invite.secret if invite else "", leave_other=leave_other
        )
        async with aclosing(self._follow("WatchRoom", request, lobby.WatchRoomResponse)) as messages:  # type: ignore[type-var]
            async for message in messages:
                yield message
                if message.view.contract or message.HasField("closed"):
                    return

    async def wait_for_contract(
        self,
        code: str,
        *,
        password: str = "",
        invite: Invite | None = None,
        leave_other: bool = False,
        timeout_s: float = 600.0,
        on_view: Callable[[lobby.RoomView], Awaitable[None]] | None = None,
    ) -> SignedContract:
        """Wait until both seats are taken: as host, or knocking at a room that needs approval.

        Args:
            code: The room.
            password: For a knock.
            invite: For a knock; the contract is then checked against the host who sent it.
            leave_other: For a knock; leaves the room this account is in, if any.
            timeout_s: How long to wait.
            on_view: Told how the room looks whenever that changes.

        Raises:
            TimeoutError: Nobody came; the room stays open for 30 s, unless it is left.
            ServerError: The room is closed; the metadata says why.
        """

        async def wait(*, is_free: bool) -> SignedContract:
            messages = self.watch_room(code, password=password, invite=invite, leave_other=leave_other or is_free)
            async with aclosing(messages):  # type: ignore[type-var]
                async for message in messages:
                    if message.HasField("closed"):
                        raise _closed(message.closed)
                    if message.view.contract:
                        return await self._verify(message.view.contract, invite)
                    if on_view is not None and message.HasField("view"):
                        await on_view(message.view)
            raise _closed(lobby.CLOSE_REASON_EXPIRED)

        try:
            async with asyncio.timeout(timeout_s):
                return await self._enter(wait)
        except TimeoutError:
            raise TimeoutError(f"nobody joined room {code} within {timeout_s:.0f} s") from None

    async def accept_guest(self, code: str, account_id: str) -> SignedContract:
        """Let somebody who knocks take the second seat."""
        request = lobby.AcceptGuestRequest(code=code, account_id=account_id, request_id=secrets.token_hex(16))
        return await self._verify((await self._call("AcceptGuest", request, lobby.AcceptGuestResponse)).contract)

    async def kick_guest(self, code: str, account_id: str) -> None:
        """Keep an account out of this room from now on."""
        request = lobby.KickGuestRequest(code=code, account_id=account_id, request_id=secrets.token_hex(16))
        await self._call("KickGuest", request, lobby.KickGuestResponse)

    async def leave_room(self, code: str) -> bool:
        """Leave a room; true when that closed it."""
        request = lobby.LeaveRoomRequest(code=code, request_id=secrets.token_hex(16))
        return (await self._call("LeaveRoom", request, lobby.LeaveRoomResponse)).is_closed

    async def list_my_matches(self) -> list[SignedContract]:
        """Give the contracts of this account's running matches, newest first."""
        answer = await self._call("ListMyMatches", lobby.ListMyMatchesRequest(), lobby.ListMyMatchesResponse)
        return [await self._verify(match.contract) for match in answer.matches]

    async def block_account(self, account_id: str) -> None:
        """Hide every room of this account from another."""
        request = lobby.BlockAccountRequest(account_id=account_id, request_id=secrets.token_hex(16))
        await self._call("BlockAccount", request, lobby.BlockAccountResponse)

    async def unblock_account(self, account_id: str) -> None:
        """Take a block back."""
        request = lobby.UnblockAccountRequest(account_id=account_id, request_id=secrets.token_hex(16))
        await self._call("UnblockAccount", request, lobby.UnblockAccountResponse)

    async def list_blocks(self) -> list[lobby.Block]:
        """Give the accounts that this one blocked, newest first."""
        return list((await self._call("ListBlocks", lobby.ListBlocksRequest(), lobby.ListBlocksResponse)).blocks)

    async def get_my_conduct(self) -> lobby.GetMyConductResponse:
        """Give how this account behaved in its last matches, and until when ranked rooms are closed to it."""
        return await self._call("GetMyConduct", lobby.GetMyConductRequest(), lobby.GetMyConductResponse)

    async def preview_rules(self, rules: lobby.Rules) -> lobby.PreviewRulesResponse:
        """Give rules in full, and where they differ from house; nobody needs to be signed in for it."""
        request = lobby.PreviewRulesRequest(rules=rules)
        return await self._client.call(f"{SERVICE}/PreviewRules", request, lobby.PreviewRulesResponse)

    async def _call(self, name: str, request: Message, answer_type: type[Answer]) -> Answer:
        await self._account.ensure_fresh()
        return await self._client.call(f"{SERVICE}/{name}", request, answer_type)

    async def _get_room(self, code: str, invite: Invite | None = None) -> lobby.GetRoomResponse:
        request = lobby.GetRoomRequest(code=code, invite_secret=invite.secret if invite else "")
        return await self._call("GetRoom", request, lobby.GetRoomResponse)

    async def _follow(self, name: str, request: Message, answer_type: type[Answer]) -> AsyncIterator[Answer]:
        """Give the messages of a stream, and of the next one whenever one breaks off or the service ends it."""
        backoff = Backoff()
        while True:
            await self._account.ensure_fresh()
            try:
                messages = self._client.stream(f"{SERVICE}/{name}", request, answer_type)
                async with aclosing(messages):  # type: ignore[type-var]
                    async for message in messages:
                        backoff.reset()
                        yield message
            except ServerError as error:
                if error.code != "unavailable" or error.reason == "MAINTENANCE":
                    raise
                await asyncio.sleep(backoff.next_delay_s(error.retry_after_s))
            else:
                return

    async def _enter(self, send: Entry[Entered]) -> Entered:
        """Enter a room, also after a match that is over: the lobby cannot know that, this device does."""
        try:
            return await send(is_free=False)
        except ServerError as error:
            if error.reason != "ALREADY_IN_ROOM" or not await self._is_over(error.metadata):
                raise
        return await send(is_free=True)

    async def _is_over(self, metadata: dict[str, str]) -> bool:
        """Tell whether a match was this device's and is not played any more."""
        if "match_id" not in metadata:
            return False
        contract = await self._verify((await self._get_room(metadata["code"])).contract)
        key = base64.urlsafe_b64encode(self._account.key.public).rstrip(b"=").decode()
        is_mine = any(seat["key"] == key for seat in json.loads(contract.payload)["seats"])
        return is_mine and not Outbox(self._account.home.matches / contract.match_id).is_open

    async def _verify(self, token: str, invite: Invite | None = None) -> SignedContract:
        issuer = issuer_of("lobby", self._account.issuer)
        try:
            contract = verify_contract(token, jwks=self._jwks or await self._fetch_jwks(), issuer=issuer)
        except ServerError:  # the keys may have rotated
            contract = verify_contract(token, jwks=await self._fetch_jwks(), issuer=issuer)
        if invite is not None:
            check_host(contract, invite)
        return contract

    async def _fetch_jwks(self) -> str:
        self._jwks = await self._client.get_text(key_set_path("lobby"))
        return self._jwks


def _closed(reason: lobby.CloseReason.ValueType) -> ServerError:
    word = lobby.CloseReason.Name(reason).removeprefix("CLOSE_REASON_").lower()
    sentences = {
        "left": "the host left the room",
        "expired": "the room is closed: its host was away for too long",
        "kicked": "the host does not want to play with you",
        "full": "somebody else took the seat",
    }
    return ServerError(sentences[word], code="not_found", reason="ROOM_NOT_FOUND", metadata={"closed": word})
