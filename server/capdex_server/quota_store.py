"""Where quotas are counted: in this process, or in a Redis or Valkey that several share.

Both count moving windows: of any stretch of time as long as the window, never more than the limit
passes, however many callers and processes there are. Fixed windows let twice as much pass around their
ends, and limits' sliding counter estimates.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from limits.aio.storage import MemoryStorage

from capdex_engine.errors import ConfigurationError

if TYPE_CHECKING:
    from limits.aio.storage import RedisStorage

CONNECTIONS: Final = 32
"""To one backend; further requests wait for one."""
_FEWEST: Final = 1024
"""Keys below which nothing is swept."""


class WindowMemory(MemoryStorage):
    """limits' memory storage with moving windows of its own.

    limits' look through all keys in threads with every hit; these are looked through when they have
    doubled, and read a clock that is handed in.

    Args:
        clock: Seconds; must never go back.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock
        self._hits: dict[str, deque[float]] = {}
        self._ends: dict[str, float] = {}
        self._sweep_at = _FEWEST

    @property
    def base_exceptions(self) -> tuple[type[Exception], ...]:
        """What says that the storage is away: nothing."""
        return ()

    async def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Count ``amount`` hits of a key when they fit its window of ``expiry`` seconds."""
        # Nothing is awaited here, so that no other task comes in between.
        now = self._clock()
        hits = self._valid(key, now - expiry)
        if len(hits) + amount > limit:
            return False
        hits.extend([now] * amount)
        self._hits[key], self._ends[key] = hits, now + expiry
        if len(self._hits) > self._sweep_at:
            self._sweep(now)
        return True

    async def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """Return when the oldest hit in the window was, and how many there are."""
        now = self._clock()
        hits = self._valid(key, now - expiry)
        return (hits[0], len(hits)) if hits else (now, 0)

    def _valid(self, key: str, since: float) -> deque[float]:
        hits = self._hits.get(key) or deque()
        while hits and hits[0] <= since:
            hits.popleft()
        return hits

    def _sweep(self, now: float) -> None:
        for key in [key for key, end in self._ends.items() if end <= now]:
            del self._hits[key], self._ends[key]
        self._sweep_at = max(_FEWEST, 2 * len(self._hits))


def redis_storage(
    url: str, password: str | None, timeout: float
) -> tuple[RedisStorage, Callable[[], Awaitable[None]]]:
    """Return limits' storage in a Redis or Valkey, and what closes it; it connects when it is used.

    Args:
        url: ``redis://[USER@]HOST[:PORT][/DB]``, or with ``rediss``, ``valkey``, ``valkeys``.
        password: In clear, or None.
        timeout: Seconds for a connection, and for an answer.

    Raises:
        ConfigurationError: The client is not installed.
    """
    try:
        from valkey.asyncio import BlockingConnectionPool
        from valkey.asyncio.retry import Retry
        from valkey.backoff import NoBackoff
        from valkey.exceptions import ConnectionError as Lost
    except ImportError:
        raise ConfigurationError(
            "quotas.backend: a client is needed to reach it: pip install 'capdex[redis]'"
        ) from None
    from limits.aio.storage import RedisStorage

    pool = BlockingConnectionPool.from_url(
        url,
        **({"password": password} if password else {}),
        max_connections=CONNECTIONS,
        timeout=timeout,
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        # A connection that a restart has cut is opened anew at once. What has timed out is not asked again:
        # it may have been counted.
        retry=Retry(NoBackoff(), 1, supported_errors=(Lost,)),
    )
    # The pool has the address; the URL says that the client is valkey's.
    options: dict[str, Any] = {"connection_pool": pool}
    storage = RedisStorage("async+valkey://pool:1", key_prefix="capdex", **options)
    return storage, pool.aclose
