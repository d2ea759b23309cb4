"""Configuration: ``capdex.toml`` and ``CAPDEX_…`` environment variables -> :class:`Settings`.

The environment wins over the file, key by key; a nested key is written with two underscores
(``CAPDEX_LIMITS__TIMEOUT=10``). Nothing here reads ``os.environ``: the mapping is handed in.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

import platformdirs
from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings.exceptions import SettingsError
from pydantic_settings.sources.utils import parse_env_vars

from capdex_engine.errors import ConfigurationError
from capdex_server.addresses import origin_of
from capdex_server.config_errors import configuration_error
from capdex_server.config_skills import (
    ServerSkillsConfig,
    WorkspaceConfig,
    anchored_skills,
    check_skills,
    with_skills,
)
from capdex_server.config_trails import AuditConfig, Moment, QueryLogConfig, Tokens
from capdex_server.config_trails import Table as _Table
from capdex_server.mcp_config import McpConfig, anchored, check_mcp, refuse_tool_fields
from capdex_server.quota_text import MEMORY, checked_backend, checked_limit

MIB: Final = 1024 * 1024
LOCAL_TENANT: Final = "local"
"""The tenant of this machine's user, who is the caller when none is configured."""
DOCUMENT_ENDINGS: Final = frozenset({".json", ".yaml", ".yml"})


def _listed(value: object) -> object:
    """Let one glob stand where a list of globs may."""
    return [value] if isinstance(value, str) else value


def _upper(globs: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(glob.upper() for glob in globs)


def _seconds(value: object) -> object:
    """Read ``"90s"``, ``"5m"``, ``"1h"``, ``"1d"`` or ``"off"``; anything else is left as it is."""
    if not isinstance(value, str):
        return value
    if value.strip().lower() == "off":
        return None
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smhd]?)\s*", value.lower())
    if not found:
        raise ValueError('must be a time such as "90s", "5m" or "1h", or "off"')
    return float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[found[2]]


Globs = Annotated[tuple[str, ...], BeforeValidator(_listed)]
Interval = Annotated[Annotated[float, Field(ge=1, le=30 * 86400)] | None, BeforeValidator(_seconds)]
"""Seconds, or text with a unit; None is never, written ``"off"``."""
QuotaText = Annotated[str, AfterValidator(checked_limit)]
"""``"100/minute; 2000/day"`` or ``"off"``; :func:`capdex_server.quota_text.windows` reads it."""


def default_cache() -> Path:
    """Return this user's cache folder for capdex."""
    return Path(platformdirs.user_cache_dir("capdex"))


class Limits(_Table):
    """``[limits]``: times in seconds, sizes in bytes."""

    timeout: float = Field(default=30.0, gt=0, le=600)
    """One upstream call, from connecting to the last byte."""
    max_response_bytes: int = Field(default=4 * MIB, ge=1, le=32 * MIB)
    """What is read of an upstream's response body."""
    max_answer_bytes: int = Field(default=64 * 1024, ge=1024, le=32 * MIB)
    """What an agent gets of it."""
    max_search_bytes: int = Field(default=48 * 1024, ge=1024, le=8 * MIB)
    """One search result."""
    max_request_bytes: int = Field(default=4 * MIB, ge=1024, le=64 * MIB)
    """A request body sent to capdex; a larger one is answered 413."""
    search_threads: int = Field(default=4, ge=1, le=64)
    """Searches that run at once; further ones wait."""
    max_waiting_searches: int = Field(default=256, ge=0, le=100_000)
    """Searches that wait; further ones are refused with ``rate_limited``."""
    max_concurrent: int = Field(default=32, ge=1, le=256)
    """Calls to one source under way at once; ``sources.NAME.max_concurrent`` sets one source's own."""
    max_wait: float = Field(default=1.0, ge=0, le=60)
    """How long a further call waits for one to end before it is refused with ``rate_limited``."""
    max_in_flight: int = Field(default=512, ge=1, le=100_000)
    """Requests that are worked on at once; further ones are answered 503, health checks excepted."""


class DocumentLimits(_Table):
    """``[documents]``: what reading one document may take, in seconds and bytes."""

    max_bytes: int = Field(default=64 * MIB, ge=1024, le=1024 * MIB)
    """One document, or one file that it refers to; decompressed."""
    max_total_bytes: int = Field(default=256 * MIB, ge=1024, le=4096 * MIB)
    """A document with all files that it refers to."""
    max_files: int = Field(default=10_000, ge=0, le=100_000)
    """Files that one document refers to, directly and through others."""
    timeout: float = Field(default=60.0, gt=0, le=600)
    """Fetching one URL, redirects included."""
    total_timeout: float = Field(default=180.0, gt=0, le=3600)
    """Fetching a document and all URLs that it refers to."""


class ReloadConfig(_Table):
    """``[reload]``: how a server that runs learns of changed documents."""

    watch: bool = True
    """Watch files and folders."""
    refresh: Interval = 300.0
    """How often URLs are asked for a new version: ``"5m"``; ``"off"`` is never."""


class CredentialConfig(_Table):
    """``[sources.NAME.credentials.SCHEME]``: where the secret is, never the secret itself."""

    env: str | None = None
    """An environment variable: an API key, a bearer token, or JSON (``["user", "password"]``,
    ``{"client_id": …, "client_secret": …}``, ``{"token": …}``)."""
    file: Path | None = None
    """A file with the same content; when it is replaced, the next call uses the new one."""
    user_env: str | None = None
    """Basic: the variable that holds the user name."""
    password_env: str | None = None
    """Basic: the variable that holds the password."""
    client_id: str | None = None
    """OAuth2: the client's id; ``env`` or ``file`` then holds its secret alone."""
    token_auth: Literal["client_secret_basic", "client_secret_post"] | None = None
    """OAuth2: how the token endpoint wants the secret; in the Authorization header unless it says else."""
    scope: str | None = None
    """OAuth2: the scopes to ask for, with spaces between, instead of those that the operation names."""
    audience: str | None = None
    """OAuth2: whom the token is for, a further field of the token request that some servers ask for."""
    resource: str | None = None
    """OAuth2: the URI of the API that the token is for, likewise (RFC 8707)."""

    @property
    def token_fields(self) -> dict[str, str]:
        """What is set for a token request, as a credential names it."""
        fields = {
            "token_endpoint_auth_method": self.token_auth,
            "scope": self.scope,
            "audience": self.audience,
            "resource": self.resource,
        }
        return {name: value for name, value in fields.items() if value is not None}


class SchemeConfig(_Table):
    """``[sources.NAME.security_schemes.SCHEME]``, written as in an OpenAPI document."""

    type: Literal["apiKey", "http", "oauth2"]
    scheme: Literal["basic", "bearer"] | None = None
    """For ``http``."""
    location: Literal["header", "query", "cookie"] | None = Field(default=None, alias="in")
    """For ``apiKey``."""
    name: str | None = None
    """For ``apiKey``: the name of the header, query parameter or cookie."""
    token_url: str | None = None
    """For ``oauth2``: the token endpoint of the client-credentials flow."""


class OverrideConfig(_Table):
    """``[sources.NAME.overrides."METHOD /path"]`` (or an operationId): the cure for bad documents."""

    summary: str | None = None
    """Replaces the document's summary."""
    keywords: tuple[str, ...] = ()
    """Words that a search should find the operation by."""


class SourceConfig(_Table, McpConfig):
    """``[sources.NAME]``: one API, or one MCP server."""

    location: str = Field(min_length=1)
    """A file, a folder of files, or an http(s) URL; an MCP server has none, and gets ``mcp://NAME``."""
    kind: Literal["openapi", "mcp", "skills"] = "openapi"
    """OpenAPI 3.x or Swagger 2.0; or the tools of an MCP server (:class:`McpConfig`). ``skills`` is made of
    ``[skills]`` and ``[workspaces]``."""
    document_url: str | None = None
    """Where the document comes from; relative servers resolve against it."""
    reference_roots: Annotated[tuple[Path, ...], BeforeValidator(_listed)] = ()
    """Folders that a file's references may lead into, beside its own folder."""
    reference_origins: Globs = ()
    """Origins that references and redirects may lead to, beside the document's own:
    ``"https://schemas.example.com"``. No globs; they may be private addresses."""
    refresh: Interval = None
    """How often the URL is asked for a new version; without it, ``[reload] refresh`` says."""
    server: str | None = None
    """Replaces the document's servers."""
    server_variables: dict[str, str] = Field(default_factory=dict)
    """Values for the server's ``{variables}``."""
    include: Globs = ()
    """Globs over name, tag, method and path: ``"tag:admin*"``, ``"path:/x/*"``, ``"method:GET"``."""
    exclude: Globs = ()
    """Likewise; wins over ``include``."""
    hide_deprecated: bool = False
    """Keep deprecated operations out."""
    security_schemes: dict[str, SchemeConfig] = Field(default_factory=dict)
    """Schemes beside the document's own."""
    security: tuple[dict[str, tuple[str, ...]], ...] | None = None
    """Requirements instead of the document's own: alternatives, each scheme -> scopes."""
    credentials: dict[str, CredentialConfig] = Field(default_factory=dict)
    """Scheme -> where its secret is; the default is ``CAPDEX_CREDENTIAL_<SOURCE>_<SCHEME>``."""
    tenant_credentials: dict[str, dict[str, CredentialConfig]] = Field(default_factory=dict)
    """Tenant -> scheme -> where its own secret is. For a scheme that is not named here the source's is used;
    for one that is named but not set, none."""
    overrides: dict[str, OverrideConfig] = Field(default_factory=dict)
    """Operation -> better texts."""
    max_concurrent: int | None = Field(default=None, ge=1, le=256)
    """Calls that are under way at once; without it, ``[limits] max_concurrent`` says."""

    @model_validator(mode="before")
    @classmethod
    def _placed(cls, value: Any) -> Any:
        is_server = isinstance(value, dict) and value.get("kind") == "mcp" and "location" not in value
        return {**value, "location": "mcp://"} if is_server else value

    @property
    def is_remote(self) -> bool:
        """Whether what it holds comes from elsewhere, in its own time."""
        return self.is_url or self.kind == "mcp"

    @property
    def is_url(self) -> bool:
        """Whether the document is fetched over HTTP."""
        return is_url(self.location) or self.kind == "skills"

    def polled(self, default: float | None) -> float | None:
        """Return seconds between two polls of the URL; None for never, and for a file."""
        own = self.refresh if "refresh" in self.model_fields_set else default
        return own if self.is_url else None


class RuleConfig(_Table):
    """One rule: it fits where every field that is given fits; a field fits where one glob does.

    What no allow rule fits, or a deny rule does, is not there for the caller (``capdex policy explain``).
    """

    source: Globs | None = None
    """Globs over source names; of a folder's documents the folder's name and ``NAME.FILE`` both fit."""
    name: Globs | None = None
    """Globs over capability names; to deny, over operationIds and names without their prefix too."""
    method: Annotated[Globs, AfterValidator(_upper)] | None = None
    """Globs over HTTP methods, in any case."""
    tag: Globs | None = None
    """Globs over tags."""
    path: Globs | None = None
    """Globs over path templates; ``*`` crosses slashes."""
    read_only: bool | None = Field(default=None, alias="readOnly")
    """True: only operations that cannot change anything; false: only those that can."""


class CallerConfig(_Table):
    """``[[callers]]``: one bearer token and what it may do."""

    name: str = Field(min_length=1, max_length=100)
    """Unique; stands in logs."""
    tenant: str = Field(min_length=1, max_length=100)
    """Whose quotas and credentials are used."""
    token_sha256: Tokens
    """SHA-256 of the token in hexadecimal (``capdex token new`` prints it), or a list of several that are
    valid at once, each alone or as ``{ sha256 = "…", expires = 2026-12-31T00:00:00Z }``."""
    expires: Moment | None = None
    """When the tokens cease to be valid, save those that say it themselves."""
    scopes: frozenset[Literal["search", "execute"]] = frozenset({"search", "execute"})
    """The tools it may use, whatever the rules say."""
    allow: tuple[RuleConfig, ...] = ()
    """No rule, no access; ``[{}]`` allows everything."""
    deny: tuple[RuleConfig, ...] = ()
    """Wins over ``allow``."""


class TenantQuotas(_Table):
    """``[quotas.tenants.NAME]``: one tenant's own quotas of requests."""

    search: QuotaText | None = None
    """As in ``[quotas]``; ``"off"`` is none."""
    execute: QuotaText | None = None
    """Likewise."""


class CapabilityQuota(RuleConfig):
    """``[[quotas.capability]]``: a quota of calls for every capability that the rule's globs fit."""

    limit: QuotaText
    """Calls that one tenant may send to each such capability: ``"10/hour"``; ``"off"`` is no limit."""
    tenant: str | None = None
    """For this tenant alone."""


class QuotasConfig(_Table):
    """``[quotas]``: how often a tenant may search and call; nothing is counted without a limit."""

    backend: Annotated[str, AfterValidator(checked_backend)] = "memory"
    """``"memory"``: each process counts for itself; ``"redis://HOST:PORT/DB"`` (or ``rediss``, ``valkey``,
    ``valkeys``): all that name it count together."""
    password_env: str | None = None
    """The environment variable that holds the backend's password."""
    password_file: Path | None = None
    """A file that holds it."""
    when_unreachable: Literal["refuse", "allow"] = "refuse"
    """What happens to requests while the backend is away."""
    timeout: float = Field(default=0.5, gt=0, le=10)
    """Seconds that a request waits for the backend."""
    search: QuotaText | None = None
    """Searches of one tenant: ``"100/minute"``, or several windows, ``"100/minute; 2000/day"``."""
    execute: QuotaText | None = None
    """Its calls, those that are refused and dry runs included."""
    tenants: dict[str, TenantQuotas] = Field(default_factory=dict)
    """Tenant -> its own."""
    capability: tuple[CapabilityQuota, ...] = ()
    """Of these, the first that fits tenant and capability decides."""


class Settings(BaseSettings):
    """Everything that can be configured."""

    model_config = SettingsConfigDict(
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        env_prefix="CAPDEX_",
        env_nested_delimiter="__",
        env_ignore_empty=True,
    )

    host: str = "127.0.0.1"
    """Address to listen on; anything but loopback needs callers."""
    port: int = Field(default=8000, ge=0, le=65535)
    """Port to listen on; 0 takes a free one."""
    cache: Path = Field(default_factory=default_cache)
    """Folder for the exported model, catalogs and vectors."""
    model: Path | None = None
    """A local sentence-transformers folder instead of the pinned encoder."""
    allowed_hosts: Globs = ()
    """Host headers to serve beside loopback's and ``host``: ``"capdex.example.com"`` or ``"…:8443"``."""
    allowed_origins: Globs = ()
    """Origins of browsers to serve beside the server's own: ``"https://app.example.com"``."""
    read_only: bool = False
    """Deny everything that can change something, to every caller, whatever its rules say."""
    limits: Limits = Limits()
    """Times and sizes."""
    documents: DocumentLimits = DocumentLimits()
    """Times and sizes of reading documents."""
    reload: ReloadConfig = ReloadConfig()
    """Watching files and polling URLs."""
    audit: AuditConfig = AuditConfig()
    """The trail of what was called."""
    query_log: QueryLogConfig = QueryLogConfig()
    """What was searched for; off without a path."""
    quotas: QuotasConfig = QuotasConfig()
    """How often tenants may search and call."""
    sources: dict[str, SourceConfig] = Field(default_factory=dict)
    """Name -> API."""
    skills: ServerSkillsConfig = ServerSkillsConfig()
    """The index of remote skills that is asked first."""
    workspaces: dict[str, WorkspaceConfig] = Field(default_factory=dict)
    """Name -> a team, with an index of its own."""
    dev_mode: bool = False
    """Log the text about skills as it is given out (``CAPDEX_DEV_MODE=1``)."""
    callers: tuple[CallerConfig, ...] = ()
    """Who may use it; none means loopback only, everything allowed."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take values from the constructor alone; :func:`load_settings` reads file and environment."""
        return (init_settings,)


class _Environment(EnvSettingsSource):
    """pydantic-settings' own reading of variables, from a mapping that is handed in."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        super().__init__(Settings)

    def _load_env_vars(self) -> Mapping[str, str | None]:
        return parse_env_vars(
            self._environ, self.case_sensitive, self.env_ignore_empty, self.env_parse_none_str
        )


def is_url(location: str) -> bool:
    """Return whether a location is an http(s) URL, not a path."""
    return location.startswith(("http://", "https://"))


def load_settings(path: Path | None, environ: Mapping[str, str], *, with_sources: bool = True) -> Settings:
    """Read file and environment.

    Args:
        path: The TOML file, or None to use the environment alone.
        environ: Environment variables.
        with_sources: Read the sources too; a command that names documents brings its own.

    Raises:
        ConfigurationError: For every mistake, naming file and key; never a secret.
    """
    from_file = _read_toml(path) if path else {}
    from_environ = _read_environ(environ)
    if not with_sources:
        from_file, from_environ = ({**part, "sources": {}} for part in (from_file, from_environ))
    try:
        settings = Settings(**_merged(from_file, from_environ))
    except ValidationError as error:
        origin = str(path or "settings")
        raise configuration_error(error, Settings, origin=origin, from_environ=from_environ) from None
    settings = _anchored(settings, path.parent if path else Path())
    _check(settings, str(path) if path else "environment")
    return with_skills(settings) if with_sources else settings


def with_options(settings: Settings, **options: Any) -> Settings:
    """Return the settings with a command line's options in place of what they say.

    Raises:
        ConfigurationError: An option is out of range.
    """
    values = {name: getattr(settings, name) for name in Settings.model_fields}
    try:
        return Settings(**{**values, **options})
    except ValidationError as error:
        raise configuration_error(error, Settings, origin="command line") from None


def sources_for(specs: Sequence[str], **options: Any) -> dict[str, SourceConfig]:
    """Return sources for documents named on a command line.

    Args:
        specs: Files, folders or URLs; a source's name is its file's name without the last ending, after
            its folder's name and a dot where several files are called alike.
        options: Further fields of :class:`SourceConfig`, the same for all.

    Raises:
        ConfigurationError: Two documents have the same name, one is missing, or an option is wrong.
    """
    sources: dict[str, SourceConfig] = {}
    for name, spec in zip(_spec_names(specs), specs, strict=True):
        if name in sources:
            raise ConfigurationError(f"Two documents are named {name!r}; name each once, or use capdex.toml.")
        try:
            sources[name] = SourceConfig(location=spec, **options)
        except ValidationError as error:
            raise configuration_error(error, SourceConfig, origin="command line") from None
    _check_sources(sources, "command line")
    return sources


def _path_of(spec: str) -> str:
    try:
        return urlsplit(spec).path if is_url(spec) else spec
    except ValueError:
        return ""  # no URL; what checks the source says so


def _spec_names(specs: Sequence[str]) -> list[str]:
    # abspath, since `..` is no name for anything.
    paths = [Path(os.path.abspath(_path_of(spec))) for spec in specs]
    stems = [path.stem or "api" for path in paths]
    return [
        f"{path.parent.name}.{stem}" if stems.count(stem) > 1 and path.parent.name else stem
        for path, stem in zip(paths, stems, strict=True)
    ]


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: is not UTF-8 text. Save it as UTF-8.") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path}: is not valid TOML: {error}.") from None


def _read_environ(environ: Mapping[str, str]) -> dict[str, Any]:
    try:
        return _Environment(environ)()
    except SettingsError as error:
        field = re.search(r'field "(\w+)"', str(error))
        variable = f"CAPDEX_{field[1].upper()}" if field else "a CAPDEX_ variable"
        raise ConfigurationError(f"environment: {variable} must hold JSON for a table or a list.") from None


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _anchored(settings: Settings, folder: Path) -> Settings:
    """Make every path of the settings relative to the file that they come from."""
    update: dict[str, Any] = {
        "cache": folder / settings.cache.expanduser(),
        "model": folder / settings.model.expanduser() if settings.model else None,
        "audit": settings.audit.anchored(folder),
        "query_log": settings.query_log.anchored(folder),
        "sources": {name: _anchored_source(name, one, folder) for name, one in settings.sources.items()},
        "quotas": _anchored_quotas(settings.quotas, folder),
        **anchored_skills(settings, folder),
    }
    return settings.model_copy(update=update)


def _anchored_source(name: str, source: SourceConfig, folder: Path) -> SourceConfig:
    if source.kind == "mcp":
        location = f"mcp://{name}" if source.location == "mcp://" else source.location
        return source.model_copy(update={"location": location, **anchored(source, folder)})
    location = source.location if source.is_url else str(folder / Path(source.location).expanduser())
    roots = tuple(folder / root.expanduser() for root in source.reference_roots)
    update: dict[str, Any] = {
        "location": location,
        "credentials": _anchored_files(source.credentials, folder),
        "tenant_credentials": {
            tenant: _anchored_files(own, folder) for tenant, own in source.tenant_credentials.items()
        },
        "reference_roots": roots,
    }
    return source.model_copy(update=update)


def _anchored_quotas(quotas: QuotasConfig, folder: Path) -> QuotasConfig:
    file = quotas.password_file
    return quotas.model_copy(update={"password_file": folder / file.expanduser()}) if file else quotas


def _anchored_files(credentials: Mapping[str, CredentialConfig], folder: Path) -> dict[str, CredentialConfig]:
    return {
        scheme: where.model_copy(update={"file": folder / where.file.expanduser()}) if where.file else where
        for scheme, where in credentials.items()
    }


def _check(settings: Settings, origin: str) -> None:
    """Check what one field alone cannot show."""
    _check_sources(settings.sources, origin)
    check_skills(settings, origin)
    names = [caller.name for caller in settings.callers]
    hashes = [token.sha256 for caller in settings.callers for token in caller.token_sha256]
    for key, values in (("name", names), ("token_sha256", hashes)):
        if len(set(values)) < len(values):
            raise ConfigurationError(f"{origin}: callers: two callers have the same {key}.")
    tenants = {caller.tenant for caller in settings.callers}
    _check_quotas(settings.quotas, tenants or {LOCAL_TENANT}, f"{origin}: quotas")
    for name, source in settings.sources.items():
        for tenant in source.tenant_credentials.keys() - tenants:
            # Misspelt, it would let the tenant's calls go out under the source's common credential.
            raise ConfigurationError(
                f"{origin}: sources.{name}.tenant_credentials.{tenant}: no caller has this tenant."
            )


def _check_quotas(quotas: QuotasConfig, tenants: Set[str], where: str) -> None:
    named = {f"tenants.{tenant}": tenant for tenant in quotas.tenants}
    named |= {
        f"capability[{index}].tenant": one.tenant for index, one in enumerate(quotas.capability) if one.tenant
    }
    for key, tenant in named.items():
        if tenant not in tenants:
            raise ConfigurationError(f"{where}.{key}: no caller has this tenant.")
    given = [key for key in ("password_env", "password_file") if getattr(quotas, key) is not None]
    if len(given) > 1:
        raise ConfigurationError(f"{where}: give one of password_env and password_file.")
    if given and quotas.backend == MEMORY:
        raise ConfigurationError(f"{where}.{given[0]}: memory needs no password; set backend to redis://…")
    if quotas.password_file and not quotas.password_file.is_file():
        raise ConfigurationError(f"{where}.password_file: there is no file {quotas.password_file}.")


def _check_sources(sources: Mapping[str, SourceConfig], origin: str) -> None:
    for name, source in sources.items():
        where = f"{origin}: sources.{name}"
        if not 0 < len(name.strip()) <= 100 or not name.isprintable():
            raise ConfigurationError(f"{where}: a source's name must have 1 to 100 printable characters.")
        if source.kind == "mcp":
            check_mcp(source, where, name)
            continue
        refuse_tool_fields(source, where)
        if not source.is_url and not Path(source.location).exists():
            raise ConfigurationError(f"{where}.location: there is no file or folder {source.location}.")
        if source.kind == "skills":
            raise ConfigurationError(f"{where}.kind: skills are configured in a table [skills].")
        _check_references(source, where)
        _check_credentials(source, where)
        for scheme, config in source.security_schemes.items():
            _check_scheme(config, f"{where}.security_schemes.{scheme}")
        for key in ("server", "document_url"):
            _check_url(getattr(source, key), f"{where}.{key}")


def _check_credentials(source: SourceConfig, where: str) -> None:
    for scheme, credential in source.credentials.items():
        _check_credential(credential, f"{where}.credentials.{scheme}")
    for tenant, own in source.tenant_credentials.items():
        for scheme, credential in own.items():
            _check_credential(credential, f"{where}.tenant_credentials.{tenant}.{scheme}")


def _check_references(source: SourceConfig, where: str) -> None:
    for root in source.reference_roots:
        if source.is_url:
            raise ConfigurationError(f"{where}.reference_roots: a document from the web refers to no files.")
        if not root.is_dir():
            raise ConfigurationError(f"{where}.reference_roots: there is no folder {root}.")
    for origin in source.reference_origins:
        if not re.fullmatch(r"https?://[^/?#@*\s]+/?", origin) or origin_of(origin) is None:
            raise ConfigurationError(
                f"{where}.reference_origins: must be origins such as https://schemas.example.com, without "
                "user, path or globs."
            )


def _check_credential(credential: CredentialConfig, where: str) -> None:
    forms = [credential.env, credential.file, credential.user_env and credential.password_env]
    lone = bool(credential.user_env) != bool(credential.password_env)
    if lone or sum(form is not None for form in forms) != 1:
        raise ConfigurationError(f"{where}: give one of env, file, or user_env together with password_env.")
    if credential.user_env and (credential.client_id or credential.token_fields):
        raise ConfigurationError(f"{where}: user_env is for basic, client_id and the like are for OAuth2.")
    if credential.file and not credential.file.is_file():
        raise ConfigurationError(f"{where}.file: there is no file {credential.file}.")


def _check_scheme(config: SchemeConfig, where: str) -> None:
    needed = {"apiKey": ("location", "name"), "http": ("scheme",), "oauth2": ("token_url",)}[config.type]
    for field in needed:
        if getattr(config, field) is None:
            key = {"location": "in"}.get(field, field)
            raise ConfigurationError(f"{where}.{key}: is needed for type {config.type!r}.")
    _check_url(config.token_url, f"{where}.token_url")


def _check_url(url: str | None, where: str) -> None:
    if url is not None and not is_url(url):
        raise ConfigurationError(f"{where}: must be an absolute http:// or https:// URL.")
