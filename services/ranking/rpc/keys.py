"""Public keys of other services, asked of them."""

from __future__ import annotations

import grpc
from koikoi.auth.v1 import auth_service_pb2, auth_service_pb2_grpc
from koikoi.lobby.v1 import lobby_service_pb2, lobby_service_pb2_grpc

_LIMIT_S = 5.0
_OPTIONAL_LIMIT_S = 1.0
"""Auth's keys serve a limit only: nobody waits long for them."""


async def fetch_lobby_keys(channel: grpc.aio.Channel) -> str:
    """Ask the lobby for its public keys, as JWKS text."""
    stub = lobby_service_pb2_grpc.LobbyServiceStub(channel)
    return (await stub.GetKeySet(lobby_service_pb2.GetKeySetRequest(), timeout=_LIMIT_S)).jwks


async def fetch_auth_keys(channel: grpc.aio.Channel) -> str:
    """Ask auth for its public keys, as JWKS text."""
    stub = auth_service_pb2_grpc.AuthServiceStub(channel)
    return (await stub.GetKeySet(auth_service_pb2.GetKeySetRequest(), timeout=_OPTIONAL_LIMIT_S)).jwks
