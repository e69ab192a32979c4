"""Settings: what is refused, in which environment, with which sentence."""

from pathlib import Path

import pytest

from services.auth.app import _token_secret
from services.auth.settings import GENERATED_MARK, GOOGLE_KEY_SET, Settings, read_settings
from services.kit.clock import SystemClock
from services.kit.settings import SettingsError
from services.kit.tokens import SigningKeys, create_signing_key

SECRET = "0dUwW3kq-Zt8s7Jr2LxYbN5vQeHc9aGm"


@pytest.fixture
def development(tmp_path: Path) -> dict[str, str]:
    return {
        "KOIKOI_AUTH_DATABASE_URL": "postgresql://auth@/koikoi?host=/tmp",
        "KOIKOI_AUTH_REDIS_URL": "unix:///tmp/valkey.sock",
        "KOIKOI_AUTH_KEY_DIRECTORY": str(tmp_path / "keys"),
        "KOIKOI_AUTH_OIDC_ISSUER": "http://127.0.0.1:8085",
        "KOIKOI_AUTH_OIDC_JWKS_URL": "http://127.0.0.1:8085/jwks",
        "KOIKOI_AUTH_OIDC_CLIENT_IDS": "web, android",
        "KOIKOI_AUTH_OIDC_CLIENT_SECRET": "a secret of the web client",
        "KOIKOI_AUTH_PUBLIC_URL": "https://play.example",
    }


@pytest.fixture
def production(development: dict[str, str], tmp_path: Path) -> dict[str, str]:
    create_signing_key(tmp_path / "keys", 0)
    for name in ("KOIKOI_AUTH_OIDC_ISSUER", "KOIKOI_AUTH_OIDC_JWKS_URL"):
        del development[name]
    return {**development, "KOIKOI_ENVIRONMENT": "production", "KOIKOI_AUTH_TOKEN_SECRET": SECRET}


def test_development_takes_the_local_provider(development: dict[str, str]):
    settings = read_settings(development)
    assert settings.oidc_client_ids == ("web", "android")
    assert (settings.issuer_name, settings.audience) == ("https://auth.koikoi/development", "koikoi/development")


def test_production_takes_google_and_secrets_of_ones_own(production: dict[str, str]):
    settings = read_settings(production)
    assert (settings.oidc_issuer, settings.oidc_jwks_url) == ("https://accounts.google.com", GOOGLE_KEY_SET)
    assert (settings.issuer_name, settings.audience) == ("https://auth.koikoi/production", "koikoi/production")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("OIDC_ISSUER", "http://127.0.0.1:8085", "must be https://accounts.google.com"),
        ("OIDC_ISSUER", "https://accounts.google.com/", "must be https://accounts.google.com"),
        ("OIDC_ISSUER", "accounts.google.com", "must be https://accounts.google.com"),
        ("OIDC_JWKS_URL", "http://www.googleapis.com/oauth2/v3/certs", "must be https://www.googleapis.com"),
        ("OIDC_JWKS_URL", "https://evil.example/certs", "must be https://www.googleapis.com"),
        ("OIDC_CLIENT_IDS", "", "must name at least one"),
        ("OIDC_CLIENT_IDS", " , ", "must name at least one"),
        ("OIDC_AUTHORIZE_URL", "https://evil.example/auth", "must be https://accounts.google.com/o/oauth2/v2/auth"),
        ("OIDC_TOKEN_URL", "http://oauth2.googleapis.com/token", "must be https://oauth2.googleapis.com/token"),
        ("OIDC_CLIENT_SECRET", "", "must be set in production"),
        ("OIDC_CLIENT_SECRET", f"{GENERATED_MARK}secret", "set your own in production"),
        ("OIDC_REDIRECT_CLIENT_ID", "another", "must be one of KOIKOI_AUTH_OIDC_CLIENT_IDS"),
        ("PUBLIC_URL", "http://play.example", "must be an https URL"),
        ("PUBLIC_URL", "http://127.0.0.1:8080", "must be an https URL"),
        ("PUBLIC_URL", "https://play.example/", "without a path"),
        ("PUBLIC_URL", "https://user@play.example", "without a path"),
        ("REDIRECT_URIS", "http://play.example/done", "must hold https URLs"),
        ("REDIRECT_URIS", "https://play.example/done, javascript:alert(1)", "must hold https URLs"),
        ("REDIRECT_URIS", "data:text/html;x", "must hold https URLs"),
        ("REDIRECT_URIS", "https://play.example/#done", "must hold https URLs"),
        ("REDIRECT_URIS", "https://play.example@evil.example/", "must hold https URLs"),
        ("REDIRECT_URIS", "koikoi:/done", "must hold https URLs"),
        ("ISSUER", "https://auth.koikoi/development", "contains `production`"),
        ("ISSUER", "http://auth.koikoi/production", "https URL"),
        ("TOKEN_SECRET", "", "random secret of your own"),
        ("TOKEN_SECRET", "short", "at least 32 characters"),
        ("TOKEN_SECRET", "x" * 64, "random secret of your own"),
        ("TOKEN_SECRET", GENERATED_MARK + SECRET, "random secret of your own"),
        ("KEY_DIRECTORY", "/nowhere/at/all", "hold your own signing keys"),
        ("DATABASE_URL", "postgresql://auth:koikoi@db/koikoi", "random password"),
        ("REDIS_URL", "rediss://:password@redis:6379", "random password"),
        ("REVOCATIONS_REDIS_URL", f"rediss://:{GENERATED_MARK}{SECRET}@redis:6379", "random password"),
        ("NO_SUCH_THING", "1", "is not a setting"),
    ],
)
def test_production_refuses_with_one_sentence(production: dict[str, str], name: str, value: str, words: str):
    variable = f"KOIKOI_AUTH_{name}"
    with pytest.raises(SettingsError) as refusal:
        read_settings({**production, variable: value})
    sentence = str(refusal.value)
    assert variable in sentence
    assert words in sentence
    assert "\n" not in sentence
    assert SECRET not in sentence


def test_redirect_sign_in_may_be_off_and_its_secret_may_come_from_a_file(production: dict[str, str], tmp_path: Path):
    for name in ("KOIKOI_AUTH_OIDC_CLIENT_SECRET", "KOIKOI_AUTH_PUBLIC_URL"):
        del production[name]
    assert read_settings(production).public_url == ""
    (tmp_path / "secret").write_text("from a file\n")
    extra = {
        "KOIKOI_AUTH_OIDC_CLIENT_SECRET_FILE": str(tmp_path / "secret"),
        "KOIKOI_AUTH_PUBLIC_URL": "https://play.example:8443",
        "KOIKOI_AUTH_REDIRECT_URIS": "https://play.example/done?x=1, com.example.app:/done",
        "KOIKOI_AUTH_OIDC_REDIRECT_CLIENT_ID": "android",
    }
    settings = read_settings({**production, **extra})
    assert settings.oidc_client_secret == "from a file"
    assert settings.redirect_uris == ("https://play.example/done?x=1", "com.example.app:/done")
    assert settings.redirect_client_id == "android"


def test_production_refuses_generated_signing_keys(production: dict[str, str], tmp_path: Path):
    SigningKeys(tmp_path / "made-up", SystemClock(), create=True)
    with pytest.raises(SettingsError, match="generated for development"):
        read_settings({**production, "KOIKOI_AUTH_KEY_DIRECTORY": str(tmp_path / "made-up")})


def test_production_takes_good_passwords(production: dict[str, str]):
    read_settings({**production, "KOIKOI_AUTH_DATABASE_URL": f"postgresql://auth:{SECRET}@db/koikoi"})


@pytest.mark.parametrize("url", ["http://example.org", "http://10.0.0.1:80", "ftp://127.0.0.1/", "127.0.0.1:80", ""])
def test_development_refuses_plain_http_beyond_loopback(development: dict[str, str], url: str):
    names = ("OIDC_ISSUER", "OIDC_JWKS_URL", "OIDC_AUTHORIZE_URL", "OIDC_TOKEN_URL", *(["PUBLIC_URL"] if url else []))
    for name in (f"KOIKOI_AUTH_{one}" for one in names):
        with pytest.raises(SettingsError, match=name):
            read_settings({**development, name: url})


def test_the_secret_made_up_for_development_is_kept_and_marked(development: dict[str, str], tmp_path: Path):
    (tmp_path / "keys").mkdir()
    settings = read_settings(development)
    secret = _token_secret(settings)
    assert secret.startswith(GENERATED_MARK)
    assert len(secret) >= 32 + len(GENERATED_MARK)
    assert _token_secret(settings) == secret
    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "keys").iterdir()] == [0o600]
    given = read_settings({**development, "KOIKOI_AUTH_TOKEN_SECRET": SECRET})
    assert _token_secret(given) == SECRET


def test_every_setting_is_documented():
    from dataclasses import fields

    assert all(one.metadata.get("doc") for one in fields(Settings))
