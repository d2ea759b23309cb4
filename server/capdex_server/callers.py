"""Who is calling: bearer token -> :class:`Caller`.

Only hashes of tokens are configured. Without any caller configured there is one anonymous caller
who may do everything, and capdex answers to loopback alone. mcp is imported late: commands that serve
nothing use callers too.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from capdex_engine.errors import ConfigurationError
from capdex_server.config import LOCAL_TENANT, CallerConfig, RuleConfig, Settings
from capdex_server.config_trails import TokenConfig

if TYPE_CHECKING:
    from mcp.server.auth.provider import AccessToken

SEARCH_SCOPE: Final = "search"
EXECUTE_SCOPE: Final = "execute"
ALL_SCOPES: Final = frozenset({SEARCH_SCOPE, EXECUTE_SCOPE})
EXPIRES_SOON: Final = timedelta(days=7)
"""How long before its end a token is warned of."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A known caller and what it may do."""

    name: str
    """Unique; safe to log."""
    tenant: str
    scopes: frozenset[str]
    """Of ``search`` and ``execute``."""
    allow: tuple[RuleConfig, ...]
    deny: tuple[RuleConfig, ...] = ()


LOCAL: Final = Caller("local", LOCAL_TENANT, ALL_SCOPES, allow=(RuleConfig(),))
"""The caller when none is configured: this machine's user."""


class Callers:
    """The configured callers; an mcp ``TokenVerifier``.

    Args:
        settings: With the callers.
        now: The time, with a zone, for tokens that expire.

    Raises:
        ConfigurationError: No caller is configured and the host to serve on is not loopback.
    """

    def __init__(self, settings: Settings, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        if not settings.callers and not is_loopback(settings.host):
            raise ConfigurationError(
                f"host: {settings.host} can be reached from other machines, and no caller is configured. "
                "Serve on 127.0.0.1, or add a [[callers]] table with a token_sha256."
            )
        self._now = now
        self._by_hash: Sequence[tuple[bytes, TokenConfig, Caller]] = [
            (bytes.fromhex(token.sha256), token, _caller(config))
            for config in settings.callers
            for token in _tokens(config)
        ]
        self._by_name = {caller.name: caller for _, _, caller in self._by_hash}

    @property
    def by_name(self) -> Mapping[str, Caller]:
        """Everyone who may call, the anonymous caller too."""
        return self._by_name or {LOCAL.name: LOCAL}

    @property
    def anonymous(self) -> Caller | None:
        """The caller without a token, when none is configured."""
        return None if self._by_hash else LOCAL

    def named(self, name: str) -> Caller | None:
        """Return the configured caller of this name."""
        return self._by_name.get(name)

    def authenticate(self, token: str) -> Caller | None:
        """Return a valid token's caller, or None. Takes the same time for every token of one length."""
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        now, found = self._now(), None
        for expected, config, caller in self._by_hash:
            valid = config.valid(now)
            if hmac.compare_digest(expected, digest) & valid:
                found = caller
        return found

    def expiring(self, within: timedelta = EXPIRES_SOON) -> Iterator[tuple[str, str]]:
        """Yield ``(caller, when)`` for each token that is expired or will be within a time."""
        for _, token, caller in self._by_hash:
            if token.expires is not None and not token.valid(self._now() + within):
                yield caller.name, token.expires.astimezone(UTC).isoformat(timespec="seconds")

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return mcp's view of the token's caller; the token itself is not kept in it."""
        from mcp.server.auth.provider import AccessToken

        caller = self.authenticate(token)
        if caller is None:
            return None
        return AccessToken(
            token="", client_id=caller.name, scopes=sorted(caller.scopes), subject=caller.tenant
        )

    def current(self) -> Caller:
        """Return the caller of the request that is being handled.

        Raises:
            LookupError: There is none; the endpoint's middleware refuses such requests before.
        """
        from mcp.server.auth.middleware.auth_context import get_access_token

        access = get_access_token()
        if access is not None:
            return self._by_name[access.client_id]
        if self.anonymous is None:
            raise LookupError("no authenticated caller in this context")
        return self.anonymous


def is_loopback(host: str | None) -> bool:
    """Return whether a host name or address is this machine's loopback."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address((host or "").strip("[]"))
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def _tokens(config: CallerConfig) -> Iterator[TokenConfig]:
    """Yield a caller's tokens, each with its own end."""
    for token in config.token_sha256:
        yield token if token.expires else token.model_copy(update={"expires": config.expires})


def _caller(config: CallerConfig) -> Caller:
    return Caller(config.name, config.tenant, frozenset(config.scopes), config.allow, config.deny)
