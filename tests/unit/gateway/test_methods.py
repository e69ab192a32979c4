"""What leaves the cluster: exactly the methods listed here. A new public method is a line in this list."""

from google.protobuf import descriptor_pool

from services.gateway.methods import ISSUERS, key_set_method, public_methods

PUBLIC = {
    "/koikoi.auth.v1.AuthService/BeginSignIn",
    "/koikoi.auth.v1.AuthService/GetKeySet",
    "/koikoi.auth.v1.AuthService/GetProfile",
    "/koikoi.auth.v1.AuthService/RefreshSession",
    "/koikoi.auth.v1.AuthService/SignIn",
    "/koikoi.auth.v1.AuthService/SignOut",
    "/koikoi.auth.v1.AuthService/UpdateProfile",
    "/koikoi.lobby.v1.LobbyService/CreateRoom",
    "/koikoi.lobby.v1.LobbyService/GetKeySet",
    "/koikoi.lobby.v1.LobbyService/GetRoom",
    "/koikoi.lobby.v1.LobbyService/JoinRoom",
    "/koikoi.lobby.v1.LobbyService/LeaveRoom",
    "/koikoi.lobby.v1.LobbyService/ListMyMatches",
    "/koikoi.lobby.v1.LobbyService/ListRooms",
    "/koikoi.match.v1.MatchService/GetKeySet",
    "/koikoi.ranking.v1.RankingService/GetLeaderboard",
    "/koikoi.ranking.v1.RankingService/GetRating",
    "/koikoi.ranking.v1.RankingService/SubmitResult",
}


def test_exactly_these_methods_are_public():
    assert set(public_methods()) == PUBLIC


def test_methods_know_their_backend_and_messages():
    for path, method in public_methods().items():
        assert path.split(".")[1] == method.backend
        assert path == f"/koikoi.{method.backend}.v1.{method.backend.title()}Service/{method.name}"
        assert method.request_type.DESCRIPTOR.name == f"{method.name}Request"
        assert method.response_type.DESCRIPTOR.name == f"{method.name}Response"


def test_the_relay_itself_is_not_offered_over_http():
    service = descriptor_pool.Default().FindServiceByName("koikoi.match.v1.MatchService")
    assert "Relay" in service.methods_by_name
    assert "/koikoi.match.v1.MatchService/Relay" not in public_methods()


def test_every_issuer_tells_its_keys():
    assert [key_set_method(issuer).path in PUBLIC for issuer in ISSUERS] == [True] * 3
