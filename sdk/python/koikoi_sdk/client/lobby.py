"""Rooms, as a client uses them: open one, list them, take a seat, wait for the contract."""

from __future__ import annotations

import asyncio
import secrets
import time

from koikoi.lobby.v1 import lobby_service_pb2 as lobby

from koikoi_sdk.client.account import Account
from koikoi_sdk.client.connect import ConnectClient
from koikoi_sdk.client.contract import SignedContract, verify_contract
from koikoi_sdk.client.errors import ServerError

SERVICE = "koikoi.lobby.v1.LobbyService"
POLL_S = 0.5


class Lobby:
    """The lobby's calls for one signed-in device; contracts come verified."""

    def __init__(self, client: ConnectClient, account: Account) -> None:
        self._client = client
        self._account = account
        self._jwks = ""

    async def create_room(
        self, rules: lobby.Rules, *, is_public: bool = True, password: str = "", request_id: str | None = None
    ) -> lobby.Room:
        """Open a room with this account as host."""
        await self._account.ensure_fresh()
        request = lobby.CreateRoomRequest(
            visibility=lobby.VISIBILITY_PUBLIC if is_public else lobby.VISIBILITY_UNLISTED,
            password=password,
            rules=rules,
            request_id=request_id or secrets.token_hex(16),
        )
        return (await self._client.call(f"{SERVICE}/CreateRoom", request, lobby.CreateRoomResponse)).room

    async def list_rooms(self, *, page_size: int = 50, preset: str = "") -> list[lobby.Room]:
        """Give the open public rooms, newest first."""
        await self._account.ensure_fresh()
        request = lobby.ListRoomsRequest(page_size=page_size, preset=preset)
        return list((await self._client.call(f"{SERVICE}/ListRooms", request, lobby.ListRoomsResponse)).rooms)

    async def get_room(self, code: str) -> lobby.Room:
        """Give one room: what one should see before joining it."""
        return (await self._get_room(code)).room

    async def join_room(self, code: str, *, password: str = "") -> SignedContract:
        """Take the second seat and give the verified contract."""
        await self._account.ensure_fresh()
        request = lobby.JoinRoomRequest(code=code, password=password, request_id=secrets.token_hex(16))
        answer = await self._client.call(f"{SERVICE}/JoinRoom", request, lobby.JoinRoomResponse)
        return await self._verify(answer.contract)

    async def wait_for_contract(self, code: str, *, timeout_s: float = 600.0) -> SignedContract:
        """Wait as host until the second seat is taken; each look also keeps the room alive.

        A service that is away for a while only delays it.

        Raises:
            TimeoutError: Nobody came; the room stays open until it expires or is left.
        """
        end = time.monotonic() + timeout_s
        while True:
            try:
                answer = await self._get_room(code)
                if answer.contract:
                    return await self._verify(answer.contract)
            except ServerError as error:
                if not error.is_transient or time.monotonic() > end:
                    raise
            if time.monotonic() > end:
                raise TimeoutError(f"nobody joined room {code} within {timeout_s:.0f} s")
            await asyncio.sleep(POLL_S)

    async def leave_room(self, code: str) -> bool:
        """Leave a room; true when that closed it."""
        await self._account.ensure_fresh()
        request = lobby.LeaveRoomRequest(code=code, request_id=secrets.token_hex(16))
        return (await self._client.call(f"{SERVICE}/LeaveRoom", request, lobby.LeaveRoomResponse)).is_closed

    async def list_my_matches(self) -> list[SignedContract]:
        """Give the contracts of this account's running matches, newest first."""
        await self._account.ensure_fresh()
        answer = await self._client.call(
            f"{SERVICE}/ListMyMatches", lobby.ListMyMatchesRequest(), lobby.ListMyMatchesResponse
        )
        return [await self._verify(match.contract) for match in answer.matches]

    async def _get_room(self, code: str) -> lobby.GetRoomResponse:
        await self._account.ensure_fresh()
        return await self._client.call(f"{SERVICE}/GetRoom", lobby.GetRoomRequest(code=code), lobby.GetRoomResponse)

    async def _verify(self, token: str) -> SignedContract:
        issuer = self._account.issuer.replace("//auth.", "//lobby.", 1)
        try:
            return verify_contract(token, jwks=self._jwks or await self._fetch_jwks(), issuer=issuer)
        except ServerError:
            return verify_contract(token, jwks=await self._fetch_jwks(), issuer=issuer)  # the keys may have rotated

    async def _fetch_jwks(self) -> str:
        self._jwks = await self._client.get_text("/.well-known/lobby/jwks.json")
        return self._jwks
