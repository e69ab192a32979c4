"""The RPCs of lobby. kit's interceptor owns identity, errors, deadlines, the log line and metrics."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from koikoi.lobby.v1 import lobby_service_pb2 as pb
from koikoi.lobby.v1 import lobby_service_pb2_grpc as pb_grpc

from services.kit.grpc_server import caller, client_address
from services.kit.tokens import Caller, SigningKeys
from services.lobby.conduct import Conducts
from services.lobby.domain.bulletin import Bulletin, check_entry
from services.lobby.domain.choices import choose_rules
from services.lobby.domain.errors import AccessTokenInvalid
from services.lobby.hosting import Hosting
from services.lobby.rpc.convert import (
    read_choice,
    read_filter,
    read_player,
    read_wish,
    write_conduct,
    write_event,
    write_invite,
    write_match,
    write_preview,
    write_room,
    write_step,
    write_time,
)
from services.lobby.service import Lobby
from services.lobby.watching import Door, Watcher, Watching

ANONYMOUS = ("GetKeySet", "PreviewRules")
CLIENT_VERSION = "koikoi-client-version"
"""The header in which clients say their version."""


class LobbyHandlers(pb_grpc.LobbyServiceServicer):
    """Serves koikoi.lobby.v1.LobbyService."""

    def __init__(
        self,
        *,
        lobby: Lobby,
        hosting: Hosting,
        watching: Watching,
        conducts: Conducts,
        keys: SigningKeys,
        is_revoked: Callable[[str], bool],
        bulletin: Callable[[], Bulletin],
        invite_base_url: str,
    ) -> None:
        self._lobby = lobby
        self._hosting = hosting
        self._watching = watching
        self._conducts = conducts
        self._keys = keys
        self._is_revoked = is_revoked
        self._bulletin = bulletin
        self._base_url = invite_base_url

    async def CreateRoom(self, request: pb.CreateRoomRequest, context: Any) -> pb.CreateRoomResponse:  # noqa: N802
        """Open a room."""
        host = read_player(self._caller())
        check_entry(self._bulletin(), _client_version(context))
        room = await self._lobby.create_room(host, read_wish(request), client_address())
        return pb.CreateRoomResponse(room=write_room(room), invite=write_invite(room, self._base_url))

    async def GetRoom(self, request: pb.GetRoomRequest, context: Any) -> pb.GetRoomResponse:  # noqa: N802
        """Show a room."""
        account_id = self._caller().account_id
        room, jws = await self._lobby.get_room(account_id, client_address(), request.code, request.invite_secret)
        is_host = room.host.account_id == account_id
        invite = write_invite(room, self._base_url) if is_host else None
        return pb.GetRoomResponse(room=write_room(room), contract=jws, invite=invite)

    async def JoinRoom(self, request: pb.JoinRoomRequest, context: Any) -> pb.JoinRoomResponse:  # noqa: N802
        """Take the second seat."""
        guest = read_player(self._caller())
        check_entry(self._bulletin(), _client_version(context))
        room, jws = await self._lobby.join_room(
            guest,
            client_address(),
            request.code,
            request.password,
            request.request_id,
            secret=request.invite_secret,
            leave_other=request.leave_other,
        )
        return pb.JoinRoomResponse(room=write_room(room), contract=jws)

    async def LeaveRoom(self, request: pb.LeaveRoomRequest, context: Any) -> pb.LeaveRoomResponse:  # noqa: N802
        """Leave a room."""
        is_closed = await self._lobby.leave_room(self._caller().account_id, request.code, request.request_id)
        return pb.LeaveRoomResponse(is_closed=is_closed)

    async def WatchRoom(  # noqa: N802
        self, request: pb.WatchRoomRequest, context: Any
    ) -> AsyncIterator[pb.WatchRoomResponse]:
        """Follow one room."""
        door = Door(request.code, request.password, request.invite_secret, request.leave_other)
        async for event in self._watching.watch_room(self._watcher(context), door):
            yield write_event(event, self._base_url)

    async def AcceptGuest(self, request: pb.AcceptGuestRequest, context: Any) -> pb.AcceptGuestResponse:  # noqa: N802
        """Seat somebody who knocks."""
        host_id = self._caller().account_id
        room, jws = await self._hosting.accept_guest(host_id, request.code, request.account_id, request.request_id)
        return pb.AcceptGuestResponse(room=write_room(room), contract=jws)

    async def KickGuest(self, request: pb.KickGuestRequest, context: Any) -> pb.KickGuestResponse:  # noqa: N802
        """Keep an account out of a room."""
        host_id = self._caller().account_id
        await self._hosting.kick_guest(host_id, request.code, request.account_id, request.request_id)
        return pb.KickGuestResponse()

    async def ListRooms(self, request: pb.ListRoomsRequest, context: Any) -> pb.ListRoomsResponse:  # noqa: N802
        """List open public rooms."""
        account_id = self._caller().account_id
        rooms = await self._lobby.list_rooms(account_id, client_address(), request.page_size, request.preset)
        return pb.ListRoomsResponse(rooms=[write_room(room) for room in rooms])

    async def WatchRooms(  # noqa: N802
        self, request: pb.WatchRoomsRequest, context: Any
    ) -> AsyncIterator[pb.WatchRoomsResponse]:
        """Follow the list of open public rooms."""
        async for step in self._watching.watch_rooms(self._watcher(context), read_filter(request)):
            yield write_step(step)

    async def ListMyMatches(self, request: pb.ListMyMatchesRequest, context: Any) -> pb.ListMyMatchesResponse:  # noqa: N802
        """List the caller's matches."""
        matches = await self._lobby.list_my_matches(self._caller().account_id)
        return pb.ListMyMatchesResponse(matches=[write_match(room, jws) for room, jws in matches])

    async def BlockAccount(self, request: pb.BlockAccountRequest, context: Any) -> pb.BlockAccountResponse:  # noqa: N802
        """Block an account."""
        await self._hosting.block_account(self._caller().account_id, request.account_id, request.request_id)
        return pb.BlockAccountResponse()

    async def UnblockAccount(self, request: pb.UnblockAccountRequest, context: Any) -> pb.UnblockAccountResponse:  # noqa: N802
        """Take a block back."""
        await self._hosting.unblock_account(self._caller().account_id, request.account_id, request.request_id)
        return pb.UnblockAccountResponse()

    async def ListBlocks(self, request: pb.ListBlocksRequest, context: Any) -> pb.ListBlocksResponse:  # noqa: N802
        """List the caller's blocks."""
        blocks = await self._hosting.list_blocks(self._caller().account_id)
        return pb.ListBlocksResponse(
            blocks=[pb.Block(account_id=blocked, create_time=write_time(since)) for blocked, since in blocks]
        )

    async def GetMyConduct(self, request: pb.GetMyConductRequest, context: Any) -> pb.GetMyConductResponse:  # noqa: N802
        """Show the caller's conduct."""
        return write_conduct(await self._conducts.read(self._caller().account_id))

    async def PreviewRules(self, request: pb.PreviewRulesRequest, context: Any) -> pb.PreviewRulesResponse:  # noqa: N802
        """Show what a choice of rules means."""
        return write_preview(choose_rules(read_choice(request.rules)))

    async def GetKeySet(self, request: pb.GetKeySetRequest, context: Any) -> pb.GetKeySetResponse:  # noqa: N802
        """Give the public keys of contracts."""
        return pb.GetKeySetResponse(jwks=self._keys.jwks())

    def _caller(self) -> Caller:
        who = caller()
        if self._is_revoked(who.device_id):
            raise AccessTokenInvalid("This device has been signed out; sign in again.")
        return who

    def _watcher(self, context: Any) -> Watcher:
        who = self._caller()
        return Watcher(read_player(who), who.device_id, client_address(), _client_version(context))


def _client_version(context: Any) -> str:
    """Read the version that the client says it has."""
    return next((str(value) for key, value in context.invocation_metadata() or () if key == CLIENT_VERSION), "")
