"""What leaves through the gateway: exactly this list. Changing it is a decision, not an accident."""

import importlib

import pytest
from koikoi.options.v1 import options_pb2

PUBLIC = {
    "koikoi.auth.v1.AuthService": {
        "BeginRedirectSignIn", "BeginSignIn", "CompleteRedirectSignIn", "GetKeySet", "GetProfile", "ListDevices",
        "RefreshSession", "RenameDevice", "RevokeDevice", "SignIn", "SignOut", "UpdateProfile",
    },
    "koikoi.lobby.v1.LobbyService": {
        "AcceptGuest", "BlockAccount", "CreateRoom", "GetKeySet", "GetMyConduct", "GetRoom", "JoinRoom", "KickGuest",
        "LeaveRoom", "ListBlocks", "ListMyMatches", "ListRooms", "PreviewRules", "UnblockAccount", "WatchRoom",
        "WatchRooms",
    },
    "koikoi.match.v1.MatchService": {"GetKeySet"},
    "koikoi.ranking.v1.RankingService": {
        "GetLeaderboard", "GetLeaderboardAround", "GetMatchResult", "GetRating", "GetRatingHistory", "ListMatchResults",
        "SubmitResult",
    },
}  # fmt: skip


@pytest.mark.parametrize("name", ["auth", "lobby", "match", "ranking"])
def test_the_public_methods_are_these(name):
    module = importlib.import_module(f"koikoi.{name}.v1.{name}_service_pb2")
    for service in module.DESCRIPTOR.services_by_name.values():
        public = {method.name for method in service.methods if method.GetOptions().Extensions[options_pb2.public]}
        assert public == PUBLIC[service.full_name]
