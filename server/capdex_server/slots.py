"""How many calls to one source may be under way at once, so that a slow upstream holds up only itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import anyio

from capdex_engine.errors import RateLimited
from capdex_server.config import Limits, SourceConfig


class Slots:
    """The free places of every source.

    Args:
        limits: The default, and how long a call waits for a place.
        sources: Configured sources, with limits of their own.
    """

    def __init__(self, limits: Limits, sources: Mapping[str, SourceConfig]) -> None:
        self._default = limits.max_concurrent
        self._wait = limits.max_wait
        self._own = {name: one.max_concurrent for name, one in sources.items() if one.max_concurrent}
        self._free: dict[str, anyio.Semaphore] = {}

    @contextmanager
    def one(self) -> Iterator[Slot]:
        """Yield a call's slot; the place that it takes, if it takes one, is free again at the end."""
        slot = Slot(self)
        try:
            yield slot
        finally:
            slot.release()

    async def take(self, source: str, capability: str) -> anyio.Semaphore:
        """Take a place, and return what gives it back.

        Raises:
            RateLimited: None has become free in time.
        """
        most = self._own.get(source, self._default)
        # A semaphore belongs to the event loop that calls.
        free = self._free.setdefault(source, anyio.Semaphore(most, fast_acquire=True))
        try:
            free.acquire_nowait()
            return free
        except anyio.WouldBlock:
            with anyio.move_on_after(self._wait):
                await free.acquire()
                return free
        calls = "call" if most == 1 else "calls"
        text = f"{source} has {most} {calls} under way, and takes no more at once. Call again in 1 second."
        raise RateLimited(text, retry_after=1, scope=f"source:{source}", capability=capability)


class Slot:
    """The place of one call, taken or not."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._taken: anyio.Semaphore | None = None

    async def take(self, source: str, capability: str) -> None:
        """Take a place of a source.

        Args:
            source: As it is configured.
            capability: For the error.

        Raises:
            RateLimited: None has become free in time.
        """
        self._taken = await self._slots.take(source, capability)

    def release(self) -> None:
        """Give the place back."""
        if self._taken is not None:
            self._taken.release()
            self._taken = None
