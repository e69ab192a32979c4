"""The RPCs of lobby. kit's interceptor owns identity, errors, deadlines, the log line and metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from koikoi.lobby.v1 import lobby_service_pb2 as pb
from koikoi.lobby.v1 import lobby_service_pb2_grpc as pb_grpc

from services.kit.grpc_server import caller, client_address
from services.kit.tokens import Caller, SigningKeys
from services.lobby.domain.errors import AccessTokenInvalid
from services.lobby.rpc.convert import read_player, read_wish, write_match, write_room
from services.lobby.service import Lobby

ANONYMOUS = ("GetKeySet",)


class LobbyHandlers(pb_grpc.LobbyServiceServicer):
    """Serves koikoi.lobby.v1.LobbyService."""

    def __init__(self, lobby: Lobby, keys: SigningKeys, is_revoked: Callable[[str], bool]) -> None:
        self._lobby = lobby
        self._keys = keys
        self._is_revoked = is_revoked

    async def CreateRoom(self, request: pb.CreateRoomRequest, context: Any) -> pb.CreateRoomResponse:  # noqa: N802
        """Open a room."""
        room = await self._lobby.create_room(read_player(self._caller()), read_wish(request))
        return pb.CreateRoomResponse(room=write_room(room))

    async def GetRoom(self, request: pb.GetRoomRequest, context: Any) -> pb.GetRoomResponse:  # noqa: N802
        """Show a room."""
        room, jws = await self._lobby.get_room(self._caller().account_id, client_address(), request.code)
        return pb.GetRoomResponse(room=write_room(room), contract=jws)

    async def JoinRoom(self, request: pb.JoinRoomRequest, context: Any) -> pb.JoinRoomResponse:  # noqa: N802
        """Take the second seat."""
        guest = read_player(self._caller())
        room, jws = await self._lobby.join_room(
            guest, client_address(), request.code, request.password, request.request_id
        )
        return pb.JoinRoomResponse(room=write_room(room), contract=jws)

    async def LeaveRoom(self, request: pb.LeaveRoomRequest, context: Any) -> pb.LeaveRoomResponse:  # noqa: N802
        """Leave a room."""
        is_closed = await self._lobby.leave_room(self._caller().account_id, request.code, request.request_id)
        return pb.LeaveRoomResponse(is_closed=is_closed)

    async def ListRooms(self, request: pb.ListRoomsRequest, context: Any) -> pb.ListRoomsResponse:  # noqa: N802
        """List open public rooms."""
        rooms = await self._lobby.list_rooms(self._caller().account_id, request.page_size, request.preset)
        return pb.ListRoomsResponse(rooms=[write_room(room) for room in rooms])

    async def ListMyMatches(self, request: pb.ListMyMatchesRequest, context: Any) -> pb.ListMyMatchesResponse:  # noqa: N802
        """List the caller's matches."""
        matches = await self._lobby.list_my_matches(self._caller().account_id)
        return pb.ListMyMatchesResponse(matches=[write_match(room, jws) for room, jws in matches])

    async def GetKeySet(self, request: pb.GetKeySetRequest, context: Any) -> pb.GetKeySetResponse:  # noqa: N802
        """Give the public keys of contracts."""
        return pb.GetKeySetResponse(jwks=self._keys.jwks())

    def _caller(self) -> Caller:
        who = caller()
        if self._is_revoked(who.device_id):
            raise AccessTokenInvalid("This device has been signed out; sign in again.")
        return who
