"""Quotas: how many searches and calls a tenant may make, and how many calls to one capability."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote

import anyio
from limits.aio.strategies import MovingWindowRateLimiter

from capdex_engine.errors import ConfigurationError, InvalidRequest, RateLimited
from capdex_engine.operation import Operation
from capdex_server.aliases import Aliases
from capdex_server.callers import EXECUTE_SCOPE, SEARCH_SCOPE
from capdex_server.config import QuotasConfig
from capdex_server.logs import get_logger
from capdex_server.policy import fits
from capdex_server.quota_store import WindowMemory, redis_storage
from capdex_server.quota_text import MEMORY, shown, windows

if TYPE_CHECKING:
    from limits import RateLimitItem
    from limits.aio.storage import Storage

REQUESTS: Final = "requests"
"""Scope of the quota of one tool's requests."""
CAPABILITY: Final = "capability"
"""Scope of the quota of calls to one capability."""
TOOLS: Final = (SEARCH_SCOPE, EXECUTE_SCOPE)
PAUSE: Final = 1.0
"""Seconds for which a backend that did not answer is not asked again."""
T = TypeVar("T")
Refusal = Callable[[str, int], RateLimited]
"""``(why, seconds to wait)`` -> the error."""
_log = get_logger(__name__)


class Away(Exception):
    """The backend does not answer."""


class Quotas:
    """Counts for a whole server, whatever its catalog.

    Args:
        config: The limits; none counts nothing.
        storage: Of limits; the default counts in this process.
        close: Closes it.
        clock: Seconds of the storage's times.
        monotonic: Seconds for pauses.
    """

    def __init__(
        self,
        config: QuotasConfig | None = None,
        *,
        storage: Storage | None = None,
        close: Callable[[], Awaitable[None]] | None = None,
        clock: Callable[[], float] = time.monotonic,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = config or QuotasConfig()
        self._storage = storage or WindowMemory(clock)
        self._limiter = MovingWindowRateLimiter(self._storage)
        self._close = close
        self._clock = clock
        self._monotonic = monotonic
        self._requests = _requests(self._config)
        self._capabilities = [(rule, windows(rule.limit)) for rule in self._config.capability]
        away = self._storage.base_exceptions
        self._errors: tuple[type[Exception], ...] = (
            OSError,
            *(away if isinstance(away, tuple) else (away,)),
        )
        self._away_until: float | None = None

    @classmethod
    def from_settings(cls, config: QuotasConfig, environ: Mapping[str, str]) -> Quotas:
        """Return quotas that are counted where the settings say.

        Raises:
            ConfigurationError: The backend's client or password is missing.
        """
        if config.backend == MEMORY:
            return cls(config)
        storage, close = redis_storage(config.backend, _password(config, environ), config.timeout)
        return cls(config, storage=storage, close=close, clock=time.time)

    async def counted(self, tenant: str, tool: str, read: Callable[[Any], T], arguments: Any) -> T:
        """Read a tool's input and count the request, valid or not; a wrong input is told first.

        Args:
            tenant: Of the caller.
            tool: ``search`` or ``execute``.
            read: Reads the input, or raises :class:`InvalidRequest`.
            arguments: The input.

        Raises:
            InvalidRequest: From ``read``.
            RateLimited: The quota is used up, or cannot be looked at.
        """
        try:
            value = read(arguments)
        except InvalidRequest:
            await self.wrong(tenant, tool)
            raise
        await self.request(tenant, tool)
        return value

    async def wrong(self, tenant: str, tool: str) -> None:
        """Count a request whose input is wrong, which its caller is told whatever is left of the quota."""
        with contextlib.suppress(RateLimited):
            await self.request(tenant, tool)

    async def request(self, tenant: str, tool: str) -> None:
        """Count one request.

        Raises:
            RateLimited: The quota is used up, or cannot be looked at.
        """

        def refusal(why: str, seconds: int) -> RateLimited:
            text = f"{why} Send no more {tool} requests for {_seconds(seconds)}."
            return RateLimited(text, retry_after=seconds, scope=REQUESTS)

        limit = self._requests.get((tenant, tool), self._requests.get(("", tool), ()))
        await self._spend(limit, (REQUESTS, tool, tenant), refusal)

    async def call(self, tenant: str, operation: Operation, aliases: Aliases) -> None:
        """Count one call that is about to be sent.

        Args:
            tenant: Of the caller.
            operation: What is called.
            aliases: Of its catalog: globs over names fit every name that it had or may get.

        Raises:
            RateLimited: The quota is used up, or cannot be looked at.
        """

        def refusal(why: str, seconds: int) -> RateLimited:
            text = f"{why} Call {operation.name} again in {_seconds(seconds)}."
            return RateLimited(text, retry_after=seconds, scope=CAPABILITY, capability=operation.name)

        for rule, limit in self._capabilities:
            if rule.tenant in {None, tenant} and fits(rule, operation, aliases, deny=True):
                return await self._spend(limit, (CAPABILITY, operation.name, tenant), refusal)

    async def problem(self) -> str | None:
        """Return what is wrong with the backend right now, without its address."""
        if self._config.backend == MEMORY:
            return None
        try:
            await self._ask(self._ping)
        except Away:
            what = "refused" if self._config.when_unreachable == "refuse" else "not counted"
            return f"The quotas' backend does not answer. Until it does, requests are {what}."
        return None

    async def aclose(self) -> None:
        """Close the backend's connections."""
        if self._close is not None:
            await self._close()

    async def _spend(self, limit: Sequence[RateLimitItem], what: tuple[str, ...], refusal: Refusal) -> None:
        """Count in every window; what one refuses is not taken from another.

        Counting decides, the shortest window first. Looking at the longer ones before spares the shorter
        ones, and tells the longest time to wait.
        """
        # Quoted, so that no two tenants and names can make the same key.
        key = [quote(part, safe="") for part in what]
        looks = [(self._limiter.test, window) for window in reversed(limit[1:])]
        for fits_in, window in (*looks, *((self._limiter.hit, window) for window in limit)):
            try:
                wait = await self._ask(partial(self._wait, fits_in, window, key))
            except Away:
                if self._config.when_unreachable == "allow":
                    return
                raise refusal("Quotas cannot be checked at the moment.", math.ceil(PAUSE)) from None
            if wait is not None:
                raise refusal(f"Your quota of {shown(window)} is used up.", wait)

    async def _wait(
        self, fits_in: Callable[..., Awaitable[bool]], window: RateLimitItem, key: Sequence[str]
    ) -> int | None:
        """Return None when there is room, or the whole seconds until there will be."""
        if await fits_in(window, *key):
            return None
        stats = await self._limiter.get_window_stats(window, *key)
        return max(1, math.ceil(stats.reset_time - self._clock()))

    async def _ping(self) -> None:
        # Storage.check swallows what is wrong.
        await self._storage.get("ping")

    async def _ask(self, work: Callable[[], Awaitable[T]]) -> T:
        """Await what asks the backend, for a short time.

        Raises:
            Away: It did not answer, now or less than :data:`PAUSE` ago.
        """
        if self._away_until is not None and self._monotonic() < self._away_until:
            raise Away
        try:
            # Cancelled halfway and again on its way out, the client would lose a connection for good.
            with anyio.CancelScope(shield=True):
                async with asyncio.timeout(self._config.timeout):
                    answer = await work()
        except self._errors as error:
            self._lost(error)
            raise Away from None
        if self._away_until is not None:
            self._away_until = None
            _log.info("quotas.recovered")
        return answer

    def _lost(self, error: Exception) -> None:
        if self._away_until is None:
            reason = f"{type(error).__name__}: {error}"
            _log.error("quotas.unreachable", reason=reason, requests=self._config.when_unreachable)
        self._away_until = self._monotonic() + PAUSE


def _requests(config: QuotasConfig) -> dict[tuple[str, str], Sequence[RateLimitItem]]:
    """Return tenant ("" for all others) and tool -> the windows of its quota."""
    given = {("", tool): getattr(config, tool) for tool in TOOLS}
    for tenant, own in config.tenants.items():
        given |= {(tenant, tool): text for tool in TOOLS if (text := getattr(own, tool)) is not None}
    return {key: windows(text) for key, text in given.items()}


def _password(config: QuotasConfig, environ: Mapping[str, str]) -> str | None:
    if config.password_env is not None:
        if not environ.get(config.password_env):
            raise ConfigurationError(f"quotas.password_env: the variable {config.password_env} is not set.")
        return environ[config.password_env]
    if config.password_file is None:
        return None
    try:
        password = config.password_file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        password = ""
    if not password:
        raise ConfigurationError(f"quotas.password_file: {config.password_file} holds no text in UTF-8.")
    return password


def _seconds(count: int) -> str:
    return f"{count} second" if count == 1 else f"{count} seconds"
