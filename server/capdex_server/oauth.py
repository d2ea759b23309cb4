"""Access tokens of OAuth2 clients (RFC 6749, section 4.4): asked for once, kept until they end.

A token's owner is the configured source, so that no source's token serves another. Nothing here follows a
redirect, and no text of a token endpoint is passed on: it may hold the client's secret.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote_plus, urlencode, urlsplit

import anyio

from capdex_engine.call import Grant, Request, Response, Transport
from capdex_engine.errors import (
    AddressRefused,
    CapdexError,
    MissingCredentials,
    UpstreamError,
    UpstreamProtocolError,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from capdex_server.addresses import WrongTarget, origin_of
from capdex_server.logs import get_logger

MAX_ANSWER: Final = 64 * 1024
"""Bytes of a token endpoint's answer."""
MAX_WAIT: Final = 15.0
"""Seconds for one answer, within the call's own limit."""
EARLY: Final = 60.0
"""Seconds before its end that a token is got anew; a fifth of its life where that is less."""
DEFAULT_LIFE: Final = 300.0
"""Seconds that a token is kept whose end is not told."""
_LONGEST: Final = 30 * 86400.0
PAUSE: Final = 10.0
"""Seconds without another request after a client was refused, as the endpoint may count its failures; and
while a token that is to be got anew still serves."""
_KEPT: Final = 1024
"""Tokens."""
_CODES: Final = frozenset(
    {
        "invalid_request",
        "invalid_client",
        "invalid_grant",
        "unauthorized_client",
        "unsupported_grant_type",
        "invalid_scope",
        "invalid_target",
    }
)
"""Error codes of token endpoints (RFC 6749, RFC 8707); no other text of theirs is shown."""
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")
_Key = tuple[str, ...]
_log = get_logger(__name__)


@dataclass(slots=True)
class _Entry:
    """One grant's token, and what came of the last attempt to get one."""

    lock: anyio.Lock = field(default_factory=anyio.Lock)
    token: str | None = field(default=None, repr=False)
    refresh_at: float = 0.0
    ends_at: float = 0.0
    attempts: int = 0
    failure: CapdexError | None = None
    blocked_until: float = 0.0

    def usable(self, now: float, rejected: str | None) -> str | None:
        return self.token if now < self.ends_at and self.token != rejected else None

    def good(self, now: float, rejected: str | None) -> str | None:
        return self.usable(now, rejected) if now < self.refresh_at else None


class TokenStore:
    """The engine's ``Tokens``: a cache with one request at a time per grant. One per event loop.

    Args:
        transport: Sends the token requests, under the address policy of the grant's source.
        clock: Monotonic seconds.
        configured: Source -> the ``(host, port)`` pairs that its configuration names; to these alone
            a secret is sent without TLS.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        clock: Callable[[], float],
        configured: Mapping[str, frozenset[tuple[str, int]]],
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._configured = configured
        self._entries: OrderedDict[_Key, _Entry] = OrderedDict()

    async def __call__(self, grant: Grant, *, timeout: float, rejected: str | None = None) -> str:
        """Return an access token as :class:`capdex_engine.call.Tokens` says.

        Those who want the same token at the same time share one request, its failure too. A token that
        is about to end is got anew by one; the others, and all where that fails, use it while it lasts.
        """
        entry = self._entry(_key(grant))
        if token := entry.good(self._clock(), rejected):
            return token
        if entry.lock.locked() and (token := entry.usable(self._clock(), rejected)):
            return token
        seen = entry.attempts
        async with entry.lock:
            if token := entry.good(self._clock(), rejected):
                return token
            just_now = entry.attempts != seen
            if entry.failure and (just_now or self._clock() < entry.blocked_until):
                return self._otherwise(entry, entry.failure, rejected)
            if just_now and entry.token:
                return entry.token  # however short its life, and even if it is the old one again
            return await self._renewed(entry, grant, timeout, rejected)

    async def _renewed(self, entry: _Entry, grant: Grant, timeout: float, rejected: str | None) -> str:
        try:
            token, life = await self._asked(grant, min(timeout, MAX_WAIT))
        except CapdexError as error:
            entry.failure = error.with_traceback(None)
            entry.attempts += 1
            entry.blocked_until = self._clock() + PAUSE
            if not isinstance(error, MissingCredentials):
                entry.blocked_until = min(entry.blocked_until, entry.ends_at)
            _log.warning("token.failed", source=grant.source, scheme=grant.scheme, reason=error.message)
            return self._otherwise(entry, error, rejected)
        entry.failure, entry.attempts = None, entry.attempts + 1
        entry.token, now = token, self._clock()
        entry.refresh_at, entry.ends_at = now + life - min(EARLY, life / 5), now + life
        _log.info("token.fetched", source=grant.source, scheme=grant.scheme, seconds=round(life))
        return token

    def _otherwise(self, entry: _Entry, error: CapdexError, rejected: str | None) -> str:
        """Return the token there still is; raise an error of the caller's own where there is none."""
        if token := entry.usable(self._clock(), rejected):
            return token
        raise _copied(error)

    def _entry(self, key: _Key) -> _Entry:
        entry = self._entries.setdefault(key, _Entry())
        self._entries.move_to_end(key)
        if len(self._entries) > _KEPT:
            idle = next((old for old, each in self._entries.items() if not each.lock.locked()), None)
            if idle is not None and idle != key:
                del self._entries[idle]
        return entry

    async def _asked(self, grant: Grant, timeout: float) -> tuple[str, float]:
        """Return a token from the endpoint, and its life in seconds."""
        self._check(grant)
        try:
            answer = await self._transport(
                _request(grant), source=grant.source, timeout=timeout, max_bytes=MAX_ANSWER
            )
        except (UpstreamError, AddressRefused) as error:
            raise _unreached(grant, error) from None
        return _read(grant, answer)

    def _check(self, grant: Grant) -> None:
        origin = origin_of(grant.token_url)
        if origin is None or "@" in urlsplit(grant.token_url).netloc:
            raise UpstreamUnreachable(
                f"{_endpoint(grant)} is no http(s) URL. Set a token_url in the source's security_schemes."
            )
        if origin[0] != "https" and origin[1:] not in self._configured.get(grant.source, frozenset()):
            raise AddressRefused(
                f"{_endpoint(grant)} is not https, and a client secret is sent in clear only where the "
                "configuration says so. Set a token_url in the source's security_schemes."
            )


class OwnedTokens:
    """``Tokens`` under the names that sources are configured by.

    Args:
        tokens: Knows configured sources.
        owners: Engine source -> configured source.
    """

    def __init__(self, tokens: TokenStore, owners: Mapping[str, str]) -> None:
        self._tokens = tokens
        self._owners = owners

    async def __call__(self, grant: Grant, *, timeout: float, rejected: str | None = None) -> str:
        """Return an access token as :class:`TokenStore` does."""
        owner = self._owners.get(grant.source, grant.source)
        return await self._tokens(replace(grant, source=owner), timeout=timeout, rejected=rejected)


def _key(grant: Grant) -> _Key:
    """Return what two calls share a token by; of the secret only its hash."""
    return (
        grant.source,
        grant.scheme,
        grant.token_url,
        grant.client_id,
        hashlib.sha256(grant.client_secret.encode()).hexdigest(),
        grant.auth_method,
        json.dumps([sorted(grant.scopes), grant.fields]),
    )


def _request(grant: Grant) -> Request:
    fields = [("grant_type", "client_credentials"), *grant.fields]
    if grant.scopes:
        fields.append(("scope", " ".join(grant.scopes)))
    headers = [("Accept", "application/json"), ("Content-Type", "application/x-www-form-urlencoded")]
    if grant.auth_method == "client_secret_post":
        fields += [("client_id", grant.client_id), ("client_secret", grant.client_secret)]
    else:
        pair = f"{quote_plus(grant.client_id)}:{quote_plus(grant.client_secret)}"
        headers.append(("Authorization", "Basic " + base64.b64encode(pair.encode()).decode()))
    return Request("POST", grant.token_url, tuple(headers), urlencode(fields).encode())


def _read(grant: Grant, answer: Response) -> tuple[str, float]:
    said = _object(answer)
    if answer.status in {200, 201}:
        token, kind = said.get("access_token"), said.get("token_type", "bearer")
        if isinstance(token, str) and _TOKEN.fullmatch(token) and str(kind).lower() == "bearer":
            return token, _life(said.get("expires_in"))
        raise UpstreamProtocolError(f"{_endpoint(grant)} gave no bearer token. Check its token_url.")
    if answer.status in {400, 401, 403}:
        code = said.get("error")
        shown = f" ({code})" if isinstance(code, str) and code in _CODES else ""
        raise MissingCredentials(
            "",
            grant.scheme,
            f"{_endpoint(grant)} refuses the client that is configured{shown}. "
            "Its operator can check client id, secret and scopes.",
        )
    if answer.status == 429 or answer.status >= 500:
        raise UpstreamUnreachable(
            f"{_endpoint(grant)} answers {answer.status}, so nothing was called. Try again later.",
            retryable=True,
        )
    moved = " Redirects are not followed with a secret." if 300 <= answer.status < 400 else ""
    raise UpstreamProtocolError(f"{_endpoint(grant)} answers {answer.status}.{moved} Check its token_url.")


def _object(answer: Response) -> Mapping[str, Any]:
    try:
        value = json.loads(answer.body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _life(value: Any) -> float:
    try:
        seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        return DEFAULT_LIFE
    return min(max(seconds, 0.0), _LONGEST) if seconds == seconds else DEFAULT_LIFE


def _endpoint(grant: Grant) -> str:
    return f"The token endpoint of the source {grant.source!r}, security scheme {grant.scheme!r},"


def _unreached(grant: Grant, error: CapdexError) -> CapdexError:
    """Return a failure of the transport as one of the token endpoint."""
    if isinstance(error, AddressRefused):
        return AddressRefused(
            f"{_endpoint(grant)} has an address that is not allowed. A private one must stand in the "
            "configuration: a token_url in the source's security_schemes."
        )
    if isinstance(error, UpstreamTimeout):
        return UpstreamTimeout(
            f"{_endpoint(grant)} did not answer in time, so nothing was called. Try again later.",
            retryable=True,
        )
    what = "could not be reached" if isinstance(error, UpstreamUnreachable) else "sent no valid HTTP"
    kind = UpstreamUnreachable if isinstance(error, UpstreamUnreachable) else UpstreamProtocolError
    # The token request is a POST, which the transport calls unrepeatable; asking for a token is not.
    return kind(
        f"{_endpoint(grant)} {what}, so nothing was called. Check its token_url.",
        retryable=not isinstance(error, WrongTarget),
    )


def _copied(error: CapdexError) -> CapdexError:
    """Return an equal error: several callers raise it, and each adds to its own."""
    copy = type(error).__new__(type(error))
    CapdexError.__init__(copy, error.message, retryable=error.retryable, **error.details)
    return copy
