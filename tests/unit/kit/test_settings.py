"""Settings are read strictly, and every complaint names the variable."""

from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path

import pytest

from services.kit.settings import LOOPBACK, Network, SettingsError, describe, host_port, load

PROXIES = (ip_network("10.0.0.0/8"), ip_network("::1/128"))


@dataclass(frozen=True)
class Example:
    redis_url: str = field(metadata={"doc": "Where Redis is."})
    turn_limit_s: float = field(default=60.0, metadata={"min": 1, "max": 600})
    own_database_url: str = ""
    tries: int = 5
    is_open: bool = False
    doors: tuple[str, ...] = ()
    proxies: tuple[Network, ...] = LOOPBACK
    key_directory: Path = Path("keys")
    mode: str = field(default="a", metadata={"choices": ("a", "b")})
    environment: str = "development"


def read(**environ: str) -> Example:
    return load(Example, "KOIKOI_X", {"KOIKOI_X_REDIS_URL": "unix:///r", **environ})


def test_defaults_and_every_type():
    assert read() == read(KOIKOI_X_OWN_DATABASE_URL="") == Example("unix:///r")
    got = read(
        KOIKOI_X_TURN_LIMIT_S="2.5",
        KOIKOI_X_OWN_DATABASE_URL="postgres://h/d",
        KOIKOI_X_TRIES="7",
        KOIKOI_X_IS_OPEN="Yes",
        KOIKOI_X_DOORS="a:1, b:2,",
        KOIKOI_X_PROXIES="10.1.2.3/8, ::1",
        KOIKOI_X_KEY_DIRECTORY="/k",
        KOIKOI_X_MODE="b",
    )
    assert got == Example("unix:///r", 2.5, "postgres://h/d", 7, True, ("a:1", "b:2"), PROXIES, Path("/k"), "b")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("TURN_LIMIT_S", "fast"),
        ("TURN_LIMIT_S", "nan"),
        ("TURN_LIMIT_S", "inf"),
        ("TURN_LIMIT_S", "0.5"),
        ("TURN_LIMIT_S", "601"),
        ("TRIES", "-1"),
        ("TRIES", "1.5"),
        ("TRIES", ""),
        ("IS_OPEN", "maybe"),
        ("MODE", "c"),
        ("PROXIES", "gateway"),
        ("PROXIES", "10.0.0.0/8,10.0.0.256"),
        ("PROXIES", "10.0.0.0/8 192.168.0.0/16"),
        ("TYPO", "1"),
        ("REDIS_URLS", "1"),
        ("REDIS_URL", "localhost:6379"),
        ("REDIS_URL", "http://localhost:6379"),
        ("OWN_DATABASE_URL", "mysql://localhost/koikoi"),
    ],
)
def test_a_bad_value_or_unknown_name_is_one_sentence_with_the_variable(name, text):
    with pytest.raises(SettingsError) as caught:
        read(**{f"KOIKOI_X_{name}": text})
    message = str(caught.value)
    assert f"KOIKOI_X_{name}" in message
    assert "\n" not in message
    assert message.endswith(".")


def test_a_required_setting_is_named_when_it_is_missing():
    with pytest.raises(SettingsError, match="KOIKOI_X_REDIS_URL is not set"):
        load(Example, "KOIKOI_X", {})


def test_other_services_settings_are_not_looked_at():
    assert read(KOIKOI_Y_TYPO="1") == Example("unix:///r")


def test_any_value_may_come_from_a_file(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("unix:///from-file\n")
    assert load(Example, "KOIKOI_X", {"KOIKOI_X_REDIS_URL_FILE": str(secret)}).redis_url == "unix:///from-file"
    with pytest.raises(SettingsError, match="both set"):
        read(KOIKOI_X_REDIS_URL_FILE=str(secret))
    with pytest.raises(SettingsError, match="KOIKOI_X_TRIES_FILE"):
        read(KOIKOI_X_TRIES_FILE=str(tmp_path / "none"))
    secret.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="KOIKOI_X_MODE_FILE"):
        read(KOIKOI_X_MODE_FILE=str(secret))


def test_the_environment_is_common_unless_a_service_has_its_own():
    assert read(KOIKOI_ENVIRONMENT="production").environment == "production"
    assert read(KOIKOI_ENVIRONMENT="production", KOIKOI_X_ENVIRONMENT="development").environment == "development"
    with pytest.raises(SettingsError, match="KOIKOI_ENVIRONMENT"):
        read(KOIKOI_ENVIRONMENT="staging")


def test_an_impossible_type_is_the_programmers_fault():
    @dataclass(frozen=True)
    class Bad:
        when: complex = 1j

    with pytest.raises(TypeError, match="KOIKOI_X_WHEN"):
        load(Bad, "KOIKOI_X", {"KOIKOI_X_WHEN": "1"})


def test_the_table_for_operators():
    rows = {name: (default, doc) for name, default, doc in describe(Example, "KOIKOI_X")}
    assert rows["KOIKOI_X_REDIS_URL"] == ("", "Where Redis is.")
    assert rows["KOIKOI_X_TURN_LIMIT_S"][0] == "60.0"
    assert rows["KOIKOI_X_DOORS"][0] == ""
    assert rows["KOIKOI_X_PROXIES"][0] == "127.0.0.0/8,::1/128"


def test_addresses():
    assert host_port("127.0.0.1:0", "A") == ("127.0.0.1", 0)
    assert host_port("[::1]:65535", "A") == ("::1", 65535)
    for bad in ("", "1", ":1", "h:", "h:x", "h:-1", "h:65536", "h:٣"):
        with pytest.raises(SettingsError, match="A must be"):
            host_port(bad, "A")
