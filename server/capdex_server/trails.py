"""The audit trail and the query log of one server."""

from __future__ import annotations

from dataclasses import dataclass, field

from capdex_engine.errors import ConfigurationError
from capdex_server.audit import Audit
from capdex_server.config import Settings
from capdex_server.config_trails import OFF, STDOUT
from capdex_server.query_log import QueryLog


@dataclass(frozen=True, slots=True)
class Trails:
    """What a server writes of its callers; by default nothing."""

    audit: Audit = field(default_factory=Audit)
    queries: QueryLog = field(default_factory=QueryLog)


def open_trails(settings: Settings, *, stdout: bool = True) -> Trails:
    """Open what the settings name.

    Args:
        settings: With their ``audit`` and ``query_log``.
        stdout: Whether standard output is free; where it is not, the trail is written to a file or,
            unless the settings ask for it, not at all.

    Raises:
        ConfigurationError: A file cannot be written, or standard output is not free.
    """
    config = settings.audit
    if config.to == STDOUT and not stdout:
        if "to" in config.model_fields_set:
            raise ConfigurationError(
                'audit.to: standard output carries the protocol of capdex stdio. Name a file, or "off".'
            )
        config = config.model_copy(update={"to": OFF})
    return Trails(Audit.from_settings(config), QueryLog.from_settings(settings.query_log))
