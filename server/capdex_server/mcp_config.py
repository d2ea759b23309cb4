"""``[sources.NAME] kind = "mcp"``: an upstream MCP server, started as a process or reached over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from capdex_engine.errors import ConfigurationError
from capdex_server.addresses import origin_of

SECRET_HEADERS: Final = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key"})
"""Lower case; their values do not stand in a configuration file."""
_OWN_HEADERS: Final = frozenset({"host", "content-length", "content-type", "accept", "transfer-encoding"})
_TOOL_FIELDS: Final = (
    "command", "args", "env", "inherit", "cwd", "url", "headers", "token", "trusted", "start_timeout",
)  # fmt: skip
_DOCUMENT_FIELDS: Final = (
    "document_url", "reference_roots", "reference_origins", "server", "server_variables", "security_schemes",
    "security", "credentials", "tenant_credentials",
)  # fmt: skip


def _words(value: object) -> object:
    """Let one word stand where a list of words may."""
    return [value] if isinstance(value, str) else value


class SecretConfig(BaseModel):
    """Where a secret is, never the secret itself: ``{env = "VARIABLE"}`` or ``{file = "PATH"}``."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    env: str | None = None
    """An environment variable of capdex."""
    file: Path | None = None
    """A file; spaces and line ends around its content do not count."""


class McpConfig(BaseModel):
    """What a source of kind ``mcp`` has beside what every source has."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    command: Annotated[tuple[str, ...], BeforeValidator(_words)] = ()
    """The program that speaks MCP on its standard streams, and its arguments."""
    args: tuple[str, ...] = ()
    """Further arguments."""
    env: dict[str, str | SecretConfig] = Field(default_factory=dict)
    """Its environment: a value, or where a secret is. Beside it the program gets HOME, LOGNAME, PATH, SHELL,
    TERM and USER, and nothing else."""
    inherit: Annotated[tuple[str, ...], BeforeValidator(_words)] = ()
    """Variables that it gets as capdex has them."""
    cwd: Path | None = None
    """The folder that it runs in; the configuration's by default."""
    url: str | None = None
    """A server's Streamable HTTP endpoint, instead of a command."""
    headers: dict[str, str | SecretConfig] = Field(default_factory=dict)
    """Sent with every request to ``url``."""
    token: SecretConfig | None = None
    """Sent to ``url`` as a bearer token."""
    trusted: bool = False
    """Whether the server's word counts that a tool only reads."""
    start_timeout: float = Field(default=30.0, gt=0, le=600)
    """Seconds that the server may take until it can be asked."""

    def secrets(self) -> dict[str, SecretConfig]:
        """Return every secret under the key that names it."""
        found = {f"env.{name}": value for name, value in self.env.items()}
        found |= {f"headers.{name}": value for name, value in self.headers.items()}
        named = {key: value for key, value in found.items() if isinstance(value, SecretConfig)}
        return named | ({"token": self.token} if self.token else {})


def anchored(config: McpConfig, folder: Path) -> dict[str, Any]:
    """Return the fields that hold paths, relative to the folder of the configuration."""

    def at(value: Any) -> Any:
        if isinstance(value, SecretConfig) and value.file:
            return value.model_copy(update={"file": folder / value.file.expanduser()})
        return value

    return {
        "cwd": folder / config.cwd.expanduser() if config.cwd else folder.absolute(),
        "env": {name: at(value) for name, value in config.env.items()},
        "headers": {name: at(value) for name, value in config.headers.items()},
        "token": at(config.token),
    }


def check_mcp(config: McpConfig, where: str, name: str) -> None:
    """Check the source ``name`` of kind ``mcp``.

    Raises:
        ConfigurationError: Naming the key, and what is right.
    """
    if getattr(config, "location", None) != f"mcp://{name}":
        raise ConfigurationError(f"{where}.location: is not for sources of kind 'mcp'.")
    _refuse(config, _DOCUMENT_FIELDS, where)
    if bool(config.command) == bool(config.url):
        raise ConfigurationError(
            f'{where}: give either command (such as ["npx", "-y", "PACKAGE"]) or url (its endpoint).'
        )
    if config.url is not None:
        _check_url(config, where)
    else:
        _check_command(config, where)
    for key, secret in config.secrets().items():
        _check_secret(secret, f"{where}.{key}")


def refuse_tool_fields(config: McpConfig, where: str) -> None:
    """Check that a source of another kind has no field that is for tools.

    Raises:
        ConfigurationError: It has one, which would have no effect.
    """
    set_ones = [name for name in _TOOL_FIELDS if getattr(config, name) != _default(config, name)]
    if set_ones:
        raise ConfigurationError(f'{where}.{set_ones[0]}: is for sources of kind = "mcp".')


def _refuse(config: McpConfig, names: tuple[str, ...], where: str) -> None:
    for name in names:
        if getattr(config, name, None) != _default(config, name):
            raise ConfigurationError(f"{where}.{name}: is not for sources of kind 'mcp'.")


def _default(config: McpConfig, name: str) -> Any:
    field = type(config).model_fields.get(name)
    return None if field is None else field.get_default(call_default_factory=True)


def _check_url(config: McpConfig, where: str) -> None:
    for name in ("args", "env", "inherit"):
        if getattr(config, name):
            raise ConfigurationError(f"{where}.{name}: is for a server that is started by a command.")
    if origin_of(config.url) is None or "@" in urlsplit(config.url or "").netloc:
        raise ConfigurationError(f"{where}.url: must be an http:// or https:// URL without user or password.")
    for name, value in config.headers.items():
        if name.lower() in _OWN_HEADERS or not name.isascii() or not name.replace("-", "").isalnum():
            raise ConfigurationError(f"{where}.headers.{name}: this header cannot be set.")
        if name.lower() in SECRET_HEADERS and isinstance(value, str):
            raise ConfigurationError(
                f'{where}.headers.{name}: a secret does not stand here; write {{env = "VARIABLE"}} or '
                '{file = "PATH"}.'
            )
    if config.token and any(name.lower() == "authorization" for name in config.headers):
        raise ConfigurationError(f"{where}: give token or headers.Authorization, not both.")


def _check_command(config: McpConfig, where: str) -> None:
    for name in ("headers", "token"):
        if getattr(config, name):
            raise ConfigurationError(f"{where}.{name}: is for a server that is reached by a url.")
    if not config.command[0].strip() or any("\0" in word for word in (*config.command, *config.args)):
        raise ConfigurationError(f"{where}.command: must begin with a program.")
    for name in (*config.env, *config.inherit):
        if not name or "=" in name or "\0" in name:
            raise ConfigurationError(f"{where}.env: {name!r} is no name of a variable.")
    if config.cwd is not None and not config.cwd.is_dir():
        raise ConfigurationError(f"{where}.cwd: there is no folder {config.cwd}.")


def _check_secret(secret: SecretConfig, where: str) -> None:
    if bool(secret.env) == bool(secret.file):
        raise ConfigurationError(f"{where}: give one of env or file.")
    if secret.file and not secret.file.is_file():
        raise ConfigurationError(f"{where}.file: there is no file {secret.file}.")


class MissingSecret(ConfigurationError):
    """A secret that the configuration names is not there."""


def read_secret(secret: SecretConfig, environ: Mapping[str, str], key: str) -> str:
    """Return a secret as it is now.

    Args:
        secret: Where it is.
        environ: Environment variables of capdex.
        key: Of the configuration, for the message.

    Raises:
        MissingSecret: The variable is not set, or the file cannot be read.
    """
    if secret.env:
        value = environ.get(secret.env, "")
        missing = f"the environment variable {secret.env} is not set"
    else:
        assert secret.file is not None  # noqa: S101 - one of the two is given, and has been checked
        missing = f"{secret.file.name} cannot be read as UTF-8 text"
        try:
            value = secret.file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            value = ""
    if not value:
        raise MissingSecret(f"{key}: {missing}.")
    return value
