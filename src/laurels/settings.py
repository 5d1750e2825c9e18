"""The settings of a deployment: from arguments, then `LAURELS_*` variables, then `laurels.toml`.

An unknown or wrong setting stops the start with one line that says where it is set and how to correct it.
Representations and errors contain no secrets.
"""

from __future__ import annotations

import os
import re
import tomllib
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from laurels.errors import StartupError
from laurels.masking import masked
from laurels.wording import near, of_pydantic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

PREFIX = "LAURELS_"
CONFIG_VARIABLE = "LAURELS_CONFIG"
DEFAULT_CONFIG = "laurels.toml"

VALKEY_SCHEMES = ("redis", "rediss", "unix", "redis+cluster", "rediss+cluster")
POSTGRES_SCHEMES = ("postgres", "postgresql", "postgresql+psycopg")

_SECRET = frozenset({"valkey_url", "postgres_url", "bootstrap_key"})

# Kubernetes gives every pod variables named after each Service. A Service called `laurels` or
# `laurels-valkey` makes LAURELS_SERVICE_HOST, LAURELS_PORT=tcp://10.0.0.7:8000 and more; we ignore these.
_SERVICE_LINK = re.compile(
    r"_SERVICE_HOST$|_SERVICE_PORT(_\w+)?$|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$"
)
_SERVICE_LINK_ADDRESS = re.compile(r"(tcp|udp|sctp)://")


def _no_boolean(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("must be a whole number")  # noqa: TRY004  # pydantic collects ValueError
    return value


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _listed(value: object) -> object:
    """Splits the text of a variable at its commas; a list from TOML stays as it is."""
    if not isinstance(value, str):
        return value
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _rate(value: object) -> object:
    """`100/minute`, or several limits between semicolons; `none` is no limit."""
    if not isinstance(value, str) or value.strip().lower() == "none":
        return None if isinstance(value, str) else value
    from limits import parse_many  # noqa: PLC0415  # slow to load, and most deployments set none

    try:
        if all(limit.amount > 0 and limit.get_expiry() > 0 for limit in parse_many(value)):
            return value
    except ValueError:
        pass
    raise ValueError("must be like 100/minute or 10/second;1000/hour, or none")


def _network(value: str) -> str:
    try:
        ip_network(value, strict=False)
    except ValueError:
        raise ValueError(f"{value!r} is not an address or network: write 10.0.0.7 or 10.0.0.0/8") from None
    return value


def _origin(value: str) -> str:
    if value != "*" and not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/?#\s]+", value):
        raise ValueError(f"{value!r} is not an origin: write https://game.example.com, without a path, or *")
    return value


def _image_host(value: str) -> str:
    if not re.fullmatch(r"(https?://)?(\*\.)?[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:\d{1,5})?", value):
        raise ValueError(f"{value!r} is not a host: write images.example.com or https://*.example.com:8443")
    return value


AccessLogMode = Literal["all", "errors", "off"]
Rate = Annotated[str | None, BeforeValidator(_rate)]
Networks = Annotated[tuple[Annotated[str, AfterValidator(_network)], ...], NoDecode, BeforeValidator(_listed)]
Origins = Annotated[tuple[Annotated[str, AfterValidator(_origin)], ...], NoDecode, BeforeValidator(_listed)]
ImageHosts = Annotated[
    tuple[Annotated[str, AfterValidator(_image_host)], ...], NoDecode, BeforeValidator(_listed)
]
WholeNumber = Annotated[int, BeforeValidator(_no_boolean)]


class Settings(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, extra="forbid", frozen=True, hide_input_in_errors=True
    )

    data_dir: Path | None = Field(
        default=None,
        description="The folder of the embedded servers. By default the user's data folder for Laurels.",
    )
    host: str = Field(
        default="127.0.0.1", min_length=1, description="The address to listen on; `0.0.0.0` is all of them."
    )
    port: WholeNumber = Field(
        default=8000, ge=0, le=65_535, description="The port to listen on; 0 picks a free one."
    )
    workers: WholeNumber = Field(default=1, ge=1, le=1024, description="How many processes answer HTTP.")
    max_connections: WholeNumber = Field(
        default=10_000,
        ge=1,
        description="How many connections each process accepts; further ones get 503. A lower limit of open "
        "files lowers it.",
    )
    keep_alive: WholeNumber = Field(
        default=5,
        ge=1,
        le=3600,
        description="How many seconds a connection may be idle between two requests. Behind a proxy that "
        "keeps connections open, choose more than the proxy does.",
    )
    valkey_url: str | None = Field(
        default=None,
        description="The URL of Valkey 8+ or Redis 7.0+: `redis://`, `rediss://`, `unix://`, "
        "`redis+cluster://` or `rediss+cluster://`. By default Laurels starts its own.",
    )
    postgres_url: str | None = Field(
        default=None,
        description="The URL of PostgreSQL 16+: `postgresql://user:password@host:5432/database`. "
        "By default Laurels starts its own.",
    )
    campus_users: str | None = Field(
        default=None,
        min_length=1,
        description="Where the users of campuses are: a table or view such as `app.people`, or a query. It "
        "has `id` and `campus_id`, and may have `handle` and `avatar_url`. By default `users`, if there is "
        "such a table.",
    )
    campus_campuses: str | None = Field(
        default=None,
        min_length=1,
        description="Where campuses are: a table, view or query with `id`, which may have `name` and "
        "`timezone`. By default `campuses`, if there is such a table.",
    )
    campus_timezone: str = Field(
        default="UTC",
        min_length=1,
        description="The timezone of a campus, or of another place, that has none.",
    )
    durability: Literal["fast", "fsync", "replicated"] = Field(
        default="fast",
        description="What the answer to a submission waits for, unless the request chooses: `fast` waits for "
        "nothing, `fsync` for the disk, `replicated` for the disk and `replicas`.",
    )
    replicas: WholeNumber = Field(
        default=1, ge=1, le=100, description="How many replicas must confirm a write with `replicated`."
    )
    journal_alarm_bytes: WholeNumber = Field(
        default=256 * 1024**2,
        ge=0,
        description="How many bytes of Valkey's memory unarchived journals may take before `/readyz` and "
        "`laurels doctor` warn.",
    )
    bootstrap_key: SecretStr | None = Field(
        default=None,
        description="An admin key for every project, valid from the first start: for automation. "
        "Choose it long and random.",
    )
    token_audience: str = Field(
        default="laurels", min_length=1, description="The `aud` that a player's token must have."
    )
    rate_limit_key: Rate = Field(
        default=None,
        description="How many requests each key may send: `100/minute`, or several limits as "
        "`10/second;1000/hour`. `none`, the default, is no limit.",
    )
    rate_limit_player: Rate = Field(
        default="20/second", description="How many requests each player may send; `none` is no limit."
    )
    rate_limit_address: Rate = Field(
        default=None, description="How many requests each address may send in all. By default no limit."
    )
    rate_limit_failures: Rate = Field(
        default="20/minute",
        description="How many requests with an invalid key, token or signature each address may send; "
        "`none` is no limit.",
    )
    trusted_proxies: Networks = Field(
        default=(),
        description="Addresses and networks of trusted proxies, whose `X-Forwarded-For` has the client's "
        "address: a list, separated by commas in a variable.",
    )
    cors_origins: Origins = Field(
        default=(),
        description="Origins whose pages may call the API from a browser: a list, separated by commas in a "
        "variable; `*` allows all.",
    )
    image_hosts: ImageHosts = Field(
        default=(),
        description="Hosts whose images the pages may show, as avatars: a list, separated by commas in a "
        "variable: `images.example.com`, `*.example.com` or `https://images.example.com:8443`.",
    )
    metrics_public: bool = Field(
        default=False,
        description="Whether anyone may read `/metrics` without a key; by default only this machine may.",
    )
    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)] = Field(
        default="info", description="The lowest level to log: `debug`, `info`, `warning` or `error`."
    )
    access_log: AccessLogMode = Field(
        default="errors",
        description="Which answers get a line in the log: `all`, `off`, or `errors`: a status of 500 or "
        "more, refused credentials (401, 403) and slow answers. Metrics count all.",
    )
    slow_request_seconds: float = Field(
        default=1.0,
        gt=0,
        description="How many seconds an answer may take to begin before it counts as slow.",
    )
    log_format: Literal["auto", "console", "json"] = Field(
        default="auto",
        description="`console` for people, `json` for programs; `auto` is console in a terminal, else JSON.",
    )

    @field_validator("valkey_url")
    @classmethod
    def _valkey_url_is_known(cls, url: str | None) -> str | None:
        if url is not None:
            _check_url(url, VALKEY_SCHEMES)
        return url

    @field_validator("postgres_url")
    @classmethod
    def _postgres_url_names_the_driver(cls, url: str | None) -> str | None:
        if url is None:
            return None
        scheme = _check_url(url, POSTGRES_SCHEMES)
        return f"postgresql+psycopg{url[len(scheme) :]}"

    @field_validator("bootstrap_key")
    @classmethod
    def _bootstrap_key_fits_a_header(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None and not re.fullmatch(r"[!-~]+", key.get_secret_value()):
            raise ValueError("must be visible ASCII characters without spaces, since it travels in a header")
        return key

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, masked(value) if isinstance(value, str) else value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        del env_settings, dotenv_settings, file_secret_settings
        return init_settings, _Environment(settings_cls), _config_source(settings_cls)


class _Environment(EnvSettingsSource):
    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        value, key, is_complex = super().get_field_value(field, field_name)
        if isinstance(value, str) and _is_service_link(_variable(field_name), value):
            value = None
        return value, key, is_complex


def load_settings(**overrides: object) -> Settings:
    """The current settings. An override of None counts as not given. Raises `StartupError` with one line."""
    _refuse_unknown_variables(os.environ)
    given: dict[str, Any] = {name: value for name, value in overrides.items() if value is not None}
    try:
        return Settings(**given)
    except ValidationError as error:
        raise StartupError("; ".join(_explain(problem, given) for problem in error.errors())) from None


def _variable(name: str) -> str:
    return f"{PREFIX}{name.upper()}"


def _config_path() -> Path:
    return Path(os.environ.get(CONFIG_VARIABLE) or DEFAULT_CONFIG)


def _config_source(settings_cls: type[BaseSettings]) -> TomlConfigSettingsSource:
    path = _config_path()
    if os.environ.get(CONFIG_VARIABLE) and not path.is_file():
        raise StartupError(f"{CONFIG_VARIABLE} names {path}, which is not a file; correct it, or unset it")
    try:
        return TomlConfigSettingsSource(settings_cls, toml_file=path)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StartupError(f"{path} is not valid TOML: {error}") from None
    except OSError as error:
        raise StartupError(f"{path} cannot be read: {error.strerror}") from None


def _check_url(url: str, schemes: tuple[str, ...]) -> str:
    """The URL's scheme, if it is one of these. Errors leave out the rest, which may hold a password."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in schemes:
        raise ValueError(
            f"must begin with {', '.join(f'{known}://' for known in schemes[:-1])} or {schemes[-1]}://"
        )
    try:
        urlsplit(url).port  # noqa: B018  # reading the port validates it
    except ValueError:
        rest = ""
    if not rest or any(character.isspace() for character in rest):
        raise ValueError(
            f"must look like {scheme}://user:password@host:port/database; percent-encode special characters"
        )
    return scheme


def _is_service_link(variable: str, value: str) -> bool:
    linked_port = variable.endswith("_PORT") and _SERVICE_LINK_ADDRESS.match(value) is not None
    return linked_port or _SERVICE_LINK.search(variable) is not None


def _refuse_unknown_variables(environment: Mapping[str, str]) -> None:
    known = {CONFIG_VARIABLE, *map(_variable, Settings.model_fields)}
    for variable, value in sorted(environment.items()):
        name = variable.upper()
        if name.startswith(PREFIX) and name not in known and not _is_service_link(name, value):
            raise StartupError(f"{variable} is not a setting of Laurels{_did_you_mean(name, known)}")


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    # Without the prefix, which makes any two variables similar.
    names = {one.removeprefix(PREFIX): one for one in sorted(known)}
    like = near(name.removeprefix(PREFIX), names)
    return f"; did you mean {names[like]}?" if like else f"; known: {', '.join(sorted(known))}"


def _explain(problem: ErrorDetails, given: Mapping[str, Any]) -> str:
    name = str(problem["loc"][0])
    in_environment = {variable.upper() for variable, value in os.environ.items() if value}
    if name in given:
        where = name
    elif _variable(name) in in_environment:
        where = _variable(name)
    else:
        where = f"{name} in {_config_path()}"
    if problem["type"] == "extra_forbidden":
        return f"{where} is not a setting of Laurels{_did_you_mean(name, Settings.model_fields)}"
    found = "" if name in _SECRET else f" is {problem['input']!r} but"
    return f"{where}{found} {of_pydantic(problem, shows_input=False)}"
