"""What runs on one machine, worked out without starting anything."""

import socket
from pathlib import Path

import pytest

from tools.plan import PORTS, SERVICES, free_ports, make_plan, taken_port


def test_the_ports_of_make_run_are_the_promised_ones(tmp_path):
    plan = make_plan(tmp_path, {})
    assert plan.gateway_url == "http://127.0.0.1:8080"
    assert plan.websocket_url == "ws://127.0.0.1:8090"
    grpc = [plan.addresses[f"KOIKOI_{name}_GRPC_ADDRESS"] for name in ("AUTH", "LOBBY", "MATCH", "RANKING")]
    assert grpc == [f"127.0.0.1:{port}" for port in (50051, 50052, 50053, 50054)]
    metrics = [plan.addresses[f"KOIKOI_{name.upper()}_METRICS_ADDRESS"] for name in SERVICES]
    assert metrics == [f"127.0.0.1:{port}" for port in range(9101, 9106)]


def test_a_setting_of_the_user_wins_and_reaches_those_who_dial_it(tmp_path):
    plan = make_plan(
        tmp_path,
        {
            "KOIKOI_LOBBY_GRPC_ADDRESS": "127.0.0.1:7001",
            "KOIKOI_MATCH_TURN_S": "5",
            "KOIKOI_ENVIRONMENT": "production",
            "KOIKOI_MATCH_DATABASE_URL": "postgresql://mine",
        },
    )
    assert plan.settings["gateway"]["KOIKOI_GATEWAY_LOBBY_TARGET"] == "127.0.0.1:7001"
    assert plan.settings["match"]["KOIKOI_MATCH_LOBBY_TARGET"] == "127.0.0.1:7001"
    assert plan.settings["match"]["KOIKOI_MATCH_TURN_S"] == "5"
    assert "KOIKOI_MATCH_TURN_S" not in plan.settings["lobby"]
    assert plan.settings["auth"]["KOIKOI_ENVIRONMENT"] == "production"
    assert plan.database_urls == {"match": "postgresql://mine"}
    assert plan.redis_urls == {}


def test_every_door_has_its_names(tmp_path):
    plan = make_plan(tmp_path, {}, ports={"KOIKOI_MATCH_WEBSOCKET_ADDRESS": 1, "KOIKOI_MATCH_GRPC_ADDRESS": 2})
    names = set(plan.settings["match"]["KOIKOI_MATCH_DOOR_NAMES"].split(","))
    assert names == {"127.0.0.1:1", "localhost:1", "127.0.0.1:2", "localhost:2"}


def test_free_ports_are_all_different(tmp_path):
    ports = free_ports()
    assert set(ports) == set(PORTS)
    assert len(set(ports.values())) == len(PORTS)
    assert taken_port(make_plan(tmp_path, {}, ports=ports)) is None


def test_a_taken_port_is_named_with_the_setting_that_moves_it(tmp_path: Path):
    ports = free_ports()
    with socket.create_server(("127.0.0.1", ports["KOIKOI_MATCH_WEBSOCKET_ADDRESS"])) as taken:
        sentence = taken_port(make_plan(tmp_path, {}, ports=ports))
        assert sentence is not None
        assert f"127.0.0.1:{taken.getsockname()[1]} (match, WebSocket) is taken" in sentence
        assert "KOIKOI_MATCH_WEBSOCKET_ADDRESS=" in sentence


@pytest.mark.parametrize("address", ["8080", "127.0.0.1:http", "127.0.0.1:99999"])
def test_a_bad_address_is_named_too(tmp_path, address):
    plan = make_plan(tmp_path, {"KOIKOI_GATEWAY_HTTP_ADDRESS": address}, ports=free_ports())
    sentence = taken_port(plan)
    assert sentence is not None
    assert "KOIKOI_GATEWAY_HTTP_ADDRESS" in sentence


def test_the_provider_knows_the_client_that_signs_in_by_redirect(tmp_path):
    plan = make_plan(tmp_path, {}, token_secret="kept")
    auth, provider = plan.settings["auth"], plan.settings["provider"]
    client, secret = auth["KOIKOI_AUTH_OIDC_REDIRECT_CLIENT_ID"], auth["KOIKOI_AUTH_OIDC_CLIENT_SECRET"]
    assert client in auth["KOIKOI_AUTH_OIDC_CLIENT_IDS"].split(",")
    assert f"{client}:{secret}" in provider["KOIKOI_PROVIDER_CLIENTS"].split(",")
    assert secret == make_plan(tmp_path, {}, token_secret="kept").settings["auth"]["KOIKOI_AUTH_OIDC_CLIENT_SECRET"]
    assert provider["KOIKOI_PROVIDER_REDIRECT_URIS"] == "http://127.0.0.1:8080/sign-in/callback"
    own = make_plan(tmp_path, {"KOIKOI_AUTH_OIDC_CLIENT_IDS": "mine"}).settings
    assert "KOIKOI_AUTH_OIDC_CLIENT_SECRET" not in own["auth"]
    assert "KOIKOI_PROVIDER_CLIENTS" not in own["provider"]


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("127.0.0.1:80", "http://127.0.0.1:80"),
        ("localhost:80", "http://localhost:80"),
        ("0.0.0.0:80", "http://127.0.0.1:80"),
        ("[::]:80", "http://127.0.0.1:80"),
        ("[::1]:80", "http://[::1]:80"),
        ("192.0.2.1:80", ""),
    ],
)
def test_browsers_are_sent_over_plain_http_to_this_machine_only(tmp_path: Path, address: str, public: str):
    plan = make_plan(tmp_path, {"KOIKOI_GATEWAY_HTTP_ADDRESS": address})
    assert plan.settings["auth"]["KOIKOI_AUTH_PUBLIC_URL"] == public
