from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import hooks
import pytest
from pydantic import SecretStr, ValidationError

from laurels.errors import StartupError
from laurels.settings import Settings, load_settings

DOCUMENT = Path(__file__).parent.parent / "docs" / "reference" / "settings.md"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, and an environment without settings."""
    for name in os.environ:
        if name.upper().startswith("LAURELS_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(**overrides: object) -> str:
    with pytest.raises(StartupError) as caught:
        load_settings(**overrides)
    message = str(caught.value)
    assert "\n" not in message
    assert caught.value.__cause__ is None
    return message


def test_every_setting_has_a_default():
    settings = load_settings()
    assert (settings.host, settings.port, settings.workers) == ("127.0.0.1", 8000, 1)
    assert settings.valkey_url is settings.postgres_url is settings.data_dir is settings.bootstrap_key is None
    assert (settings.log_level, settings.log_format) == ("info", "auto")


def test_arguments_come_before_the_environment_and_that_before_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    (folder / "laurels.toml").write_text('host = "file"\nport = 1\nworkers = 11\n')
    monkeypatch.setenv("LAURELS_HOST", "environment")
    monkeypatch.setenv("LAURELS_PORT", "2")
    settings = load_settings(host="argument", port=None)
    assert (settings.host, settings.port, settings.workers) == ("argument", 2, 11)


def test_another_file_may_be_named(folder: Path, monkeypatch: pytest.MonkeyPatch):
    (folder / "laurels.toml").write_text("port = 1")
    (folder / "other.toml").write_text("port = 2")
    monkeypatch.setenv("LAURELS_CONFIG", str(folder / "other.toml"))
    assert load_settings().port == 2


def test_a_named_file_that_is_missing_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LAURELS_CONFIG", "gone.toml")
    assert refusal() == "LAURELS_CONFIG names gone.toml, which is not a file; correct it, or unset it"


def test_a_variable_that_is_empty_is_not_set(monkeypatch: pytest.MonkeyPatch):
    for name in ("LAURELS_PORT", "LAURELS_VALKEY_URL", "LAURELS_CONFIG"):
        monkeypatch.setenv(name, "")
    assert load_settings() == load_settings(port=8000)


def test_settings_do_not_change():
    settings = load_settings()
    with pytest.raises(ValidationError):
        settings.port = 1  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("content", [b"port = ", b"\xff\xfe"])
def test_a_file_that_is_not_toml_is_an_error(folder: Path, content: bytes):
    (folder / "laurels.toml").write_bytes(content)
    assert refusal().startswith("laurels.toml is not valid TOML: ")


def test_an_unknown_key_in_the_file_is_refused(folder: Path):
    (folder / "laurels.toml").write_text("prot = 8001")
    assert refusal() == "prot in laurels.toml is not a setting of Laurels; did you mean port?"


def test_an_unknown_variable_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LAURELS_VALKY_URL", "redis://:hunter2@cache")
    assert refusal() == "LAURELS_VALKY_URL is not a setting of Laurels; did you mean LAURELS_VALKEY_URL?"


def test_unknown_variable_without_a_similar_name_lists_the_known_ones(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LAURELS_QQQ", "1")
    assert "; known: LAURELS_ACCESS_LOG, LAURELS_BOOTSTRAP_KEY, LAURELS_CAMPUS_CAMPUSES, " in refusal()


def test_variables_of_a_kubernetes_service_are_not_settings(folder: Path, monkeypatch: pytest.MonkeyPatch):
    (folder / "laurels.toml").write_text("port = 9000")
    for name, value in {
        "LAURELS_SERVICE_HOST": "10.0.0.7",
        "LAURELS_SERVICE_PORT": "8000",
        "LAURELS_SERVICE_PORT_HTTP": "8000",
        "LAURELS_PORT": "tcp://10.0.0.7:8000",
        "LAURELS_PORT_8000_TCP": "tcp://10.0.0.7:8000",
        "LAURELS_PORT_8000_TCP_ADDR": "10.0.0.7",
        "LAURELS_VALKEY_PORT": "tcp://10.0.0.8:6379",
    }.items():
        monkeypatch.setenv(name, value)
    assert load_settings().port == 9000


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("PORT", "http", "LAURELS_PORT is 'http' but must be a whole number"),
        ("PORT", "65536", "LAURELS_PORT is '65536' but must be at most 65535"),
        ("PORT", "-1", "LAURELS_PORT is '-1' but must be at least 0"),
        ("WORKERS", "0", "LAURELS_WORKERS is '0' but must be at least 1"),
        (
            "LOG_LEVEL",
            "loud",
            "LAURELS_LOG_LEVEL is 'loud' but must be debug, info, warning or error",
        ),
        ("LOG_FORMAT", "xml", "LAURELS_LOG_FORMAT is 'xml' but must be auto, console or json"),
    ],
)
def test_a_wrong_value_is_named_with_its_place_and_the_fix(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str
):
    monkeypatch.setenv(f"LAURELS_{name}", value)
    assert refusal().startswith(message)


def test_a_wrong_value_in_the_file_or_an_argument_is_named_with_its_place(folder: Path):
    (folder / "laurels.toml").write_text("port = true\nworkers = 0")
    assert refusal() == (
        "port in laurels.toml is True but must be a whole number; "
        "workers in laurels.toml is 0 but must be at least 1"
    )
    assert refusal(port=99999, workers=1) == "port is 99999 but must be at most 65535"
    assert refusal(port=1, workers=1, prot=1) == "prot is not a setting of Laurels; did you mean port?"


def test_lists_come_with_commas_or_from_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch):
    (folder / "laurels.toml").write_text('cors_origins = ["https://a.example.com", "*"]')
    monkeypatch.setenv("LAURELS_TRUSTED_PROXIES", "10.0.0.7, 10.1.0.0/16,2001:db8::/32")
    settings = load_settings()
    assert settings.cors_origins == ("https://a.example.com", "*")
    assert settings.trusted_proxies == ("10.0.0.7", "10.1.0.0/16", "2001:db8::/32")


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("trusted_proxies", "10.0.0.7,proxy", "'proxy' is not an address or network"),
        ("cors_origins", "game.example.com", "is not an origin"),
        ("cors_origins", "https://game.example.com/", "is not an origin"),
        ("image_hosts", "images.example.com; script-src *", "is not a host"),
        ("image_hosts", "https://images.example.com/avatars", "is not a host"),
        ("image_hosts", "*", "is not a host"),
        ("rate_limit_key", "often", "must be like 100/minute"),
        ("rate_limit_player", "0/second", "must be like 100/minute"),
        ("rate_limit_failures", "5/fortnight", "must be like 100/minute"),
    ],
)
def test_a_wrong_limit_proxy_or_origin_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, why: str
):
    monkeypatch.setenv(f"LAURELS_{name.upper()}", value)
    assert why in refusal()


def test_a_limit_may_be_none(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LAURELS_RATE_LIMIT_PLAYER", "None")
    monkeypatch.setenv("LAURELS_RATE_LIMIT_KEY", "10/second; 100 per 2 minutes")
    settings = load_settings()
    assert (settings.rate_limit_player, settings.rate_limit_failures) == (None, "20/minute")
    assert settings.rate_limit_key == "10/second; 100 per 2 minutes"


@pytest.mark.parametrize("level", ["DEBUG", "debug"])
def test_a_log_level_may_be_written_large(level: str):
    assert load_settings(log_level=level).log_level == "debug"


@pytest.mark.parametrize(
    "url",
    [
        "redis://localhost",
        "rediss://user:p%40ss@cache.example.com:6380/1",
        "unix:///run/valkey.sock",
        "unix:///run/valkey.sock?db=1",
        "redis+cluster://a:7000",
        "rediss+cluster://a:7000",
    ],
)
def test_valkey_is_reached_by_these_schemes(url: str):
    assert load_settings(valkey_url=url).valkey_url == url


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
@pytest.mark.parametrize(
    "rest", ["://ada:p%40ss@db:5432/laurels?sslmode=require", ":///laurels?host=/run/postgresql"]
)
def test_a_postgresql_url_comes_to_name_the_driver(scheme: str, rest: str):
    assert load_settings(postgres_url=scheme + rest).postgres_url == f"postgresql+psycopg{rest}"


@pytest.mark.parametrize(
    "url",
    [
        "http://:hunter2@cache",
        "hunter2@cache",
        "redis://",
        "redis://:hunter2@cache:port",
        "redis://a:hun ter2@b",
    ],
)
def test_a_wrong_valkey_url_is_refused_without_its_password(url: str):
    message = refusal(valkey_url=url)
    assert message.startswith("valkey_url must ")
    assert "redis://" in message
    assert "hunter2" not in message


@pytest.mark.parametrize(
    "url", ["mysql://a:hunter2@b/c", "postgresql+asyncpg://a:hunter2@b", "postgres://a:hun/ter2@b"]
)
def test_a_wrong_postgresql_url_is_refused_without_its_password(url: str):
    message = refusal(postgres_url=url)
    assert message.startswith("postgres_url must ")
    assert "postgres" in message
    assert "ter2" not in message


def test_the_accepted_schemes_are_named():
    assert refusal(valkey_url="http://cache") == (
        "valkey_url must begin with redis://, rediss://, unix://, redis+cluster:// or rediss+cluster://"
    )
    assert refusal(postgres_url="mysql://db") == (
        "postgres_url must begin with postgres://, postgresql:// or postgresql+psycopg://"
    )


@pytest.mark.parametrize("key", ["with space", "naïve", "line\n"])
def test_a_bootstrap_key_fits_a_header(key: str):
    message = refusal(bootstrap_key=key)
    assert message.startswith("bootstrap_key must be visible ASCII characters")
    assert key not in message


def test_no_secret_is_shown():
    settings = load_settings(
        bootstrap_key="hunter2",
        valkey_url="redis://:hunter2@cache/0",
        postgres_url="postgres://ada:hunter2@db/laurels?sslpassword=hunter2",
    )
    assert settings.bootstrap_key == SecretStr("hunter2")
    for shown in (repr(settings), str(settings)):
        assert "hunter2" not in shown
        assert "ada:***@db" in shown


def documented_row(name: str) -> str:
    field = Settings.model_fields[name]
    default: Any = field.default
    shown = "none" if default is None or default == () else f"`{default}`"
    return f"| `{name}` | `LAURELS_{name.upper()}` | {shown} | {field.description} |"


def test_the_document_has_every_setting_with_its_default_and_meaning():
    rows = [line for line in hooks.filled(DOCUMENT.read_text()).splitlines() if line.startswith("| `")]
    assert rows == [documented_row(name) for name in Settings.model_fields]
