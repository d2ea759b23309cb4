"""``[skills]`` and ``[workspaces.NAME]``: which servers have skills, and whose they are."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from capdex_engine.errors import ConfigurationError
from capdex_engine.skills.render import EXECUTE_TOOL
from capdex_server.skills import SERVER_LEVEL, SkillServer

if TYPE_CHECKING:
    from capdex_server.config import Settings

REFRESH: Final = 60.0
"""Seconds between two looks at the indexes for the catalog; who asks for skills sees them sooner."""
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class SkillTokenConfig(_Table):
    """``token = { env = … }``: where the bearer token is, never the token itself."""

    env: str | None = None
    """An environment variable."""
    file: Path | None = None
    """A file with the same content; a token that changes in it is used from the next reading on."""


class SkillsConfig(_Table):
    """``[workspaces.NAME.skills]``: a server that has an index of skills."""

    url: str = ""
    """Its MCP endpoint (Streamable HTTP); without one there is nothing to read."""
    enabled: bool = True
    """False: it is not asked, and that is no failure."""
    token: SkillTokenConfig | None = None
    """Sent as a bearer token, to this server alone."""


class ServerSkillsConfig(SkillsConfig):
    """``[skills]``: the server's own configuration, which is asked first and for every tenant."""

    execute_tool: str = Field(default=EXECUTE_TOOL, min_length=1, max_length=128, pattern=r"^[\w.:/-]+$")
    """The name of ``execute_capability`` as clients see it, in the text for the prompt: some put a prefix
    before it, such as ``mcp__capdex__execute_capability``."""


class WorkspaceConfig(_Table):
    """``[workspaces.NAME]``: usually a team."""

    tenant: str | None = Field(default=None, min_length=1, max_length=100)
    """Whose it is: its skills are for this tenant's callers alone. Needed where callers are configured."""
    skills: SkillsConfig = SkillsConfig()
    """Asked where ``[skills]`` gives no answer, in the order of the file."""


def skill_servers(settings: Settings, environ: Mapping[str, str]) -> list[SkillServer]:
    """Return the configurations that have a URL: the server's own, then the workspaces'."""
    found = [_server(SERVER_LEVEL, settings.skills, None, environ)]
    for name, workspace in settings.workspaces.items():
        found.append(_server(f"{SERVER_LEVEL}.{name}", workspace.skills, workspace.tenant, environ))
    return [server for server in found if server.url]


def check_skills(settings: Settings, origin: str) -> None:
    """Check what one field alone cannot show.

    Raises:
        ConfigurationError: A mistake, with its key.
    """
    if SERVER_LEVEL in settings.sources and _any(settings):
        raise ConfigurationError(
            f"{origin}: sources.{SERVER_LEVEL}: is the name of the skills' source; choose another."
        )
    _check_token(settings.skills, f"{origin}: skills")
    tenants = {caller.tenant for caller in settings.callers}
    for name, workspace in settings.workspaces.items():
        where = f"{origin}: workspaces.{name}"
        if not _NAME.fullmatch(name):
            raise ConfigurationError(f"{where}: a workspace's name has 1 to 64 letters, digits, '_' and '-'.")
        if tenants and workspace.tenant is None:
            raise ConfigurationError(f"{where}.tenant: is missing; say whose callers have its skills.")
        if workspace.tenant is not None and workspace.tenant not in tenants:
            raise ConfigurationError(f"{where}.tenant: no caller has this tenant.")
        _check_token(workspace.skills, f"{where}.skills")


def anchored_skills(settings: Settings, folder: Path) -> dict[str, Any]:
    """Return the tables with their files relative to the folder of the configuration."""
    workspaces = {
        name: one.model_copy(update={"skills": _anchored(one.skills, folder)})
        for name, one in settings.workspaces.items()
    }
    return {"skills": _anchored(settings.skills, folder), "workspaces": workspaces}


def with_skills(settings: Settings) -> Settings:
    """Return the settings with one source more for all skills, where any are configured."""
    from capdex_server.config import SourceConfig

    if not _any(settings):
        return settings
    source = SourceConfig(location=SERVER_LEVEL, kind="skills", refresh=REFRESH)
    return settings.model_copy(update={"sources": {**settings.sources, SERVER_LEVEL: source}})


def _any(settings: Settings) -> bool:
    every = (settings.skills, *(one.skills for one in settings.workspaces.values()))
    return any(one.url and one.enabled for one in every)


def _anchored(config: SkillsConfig, folder: Path) -> SkillsConfig:
    if config.token is None or config.token.file is None:
        return config
    token = config.token.model_copy(update={"file": folder / config.token.file.expanduser()})
    return config.model_copy(update={"token": token})


def _check_token(config: SkillsConfig, where: str) -> None:
    token = config.token
    if token is None:
        return
    if (token.env is None) == (token.file is None):
        raise ConfigurationError(f"{where}.token: give one of env and file.")
    if token.file is not None and not token.file.is_file():
        raise ConfigurationError(f"{where}.token.file: there is no file {token.file}.")


def _server(name: str, config: SkillsConfig, tenant: str | None, environ: Mapping[str, str]) -> SkillServer:
    token = config.token
    held = "" if token is None else f"env:{token.env}" if token.file is None else f"file:{token.file}"
    return SkillServer(name, config.url, tenant, config.enabled, _token(name, token, environ), held)


def _token(
    name: str, config: SkillTokenConfig | None, environ: Mapping[str, str]
) -> Callable[[], str | None]:
    def token() -> str | None:
        if config is None:
            return None
        text = _text(config, environ).strip()
        if not _TOKEN.fullmatch(text):
            place = f"the variable {config.env}" if config.file is None else f"the file {config.file}"
            raise ConfigurationError(f"The token of [{name}] is missing: {place} holds none.")
        return text

    return token


def _text(config: SkillTokenConfig, environ: Mapping[str, str]) -> str:
    if config.file is None:
        return environ.get(config.env or "", "")
    try:
        return config.file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
