"""When sources are read again without a sign of change: URLs by interval, failing ones by backoff."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

FIRST_RETRY: Final = 2.0
"""Seconds until a source that has just failed is tried again; doubled each time it fails."""
LAST_RETRY: Final = 300.0
"""The most that becomes."""


class Schedule:
    """Knows which sources are due, by a clock that is handed in.

    Args:
        intervals: Source -> seconds between polls; None for one that is not polled.
        clock: Seconds.
        chance: Numbers in [0, 1), so that many servers do not ask in step.
    """

    def __init__(
        self,
        intervals: Mapping[str, float | None],
        *,
        clock: Callable[[], float],
        chance: Callable[[], float],
    ) -> None:
        self._intervals = intervals
        self._clock, self._chance = clock, chance
        self._failed: dict[str, int] = {}
        self._due: dict[str, float] = {}
        self.read(intervals, {})

    def read(self, names: Collection[str], failing: Mapping[str, float | None]) -> None:
        """Note that sources have been read.

        Args:
            names: The sources.
            failing: Those of all sources that failed -> seconds that a server asks to wait, where it does.
        """
        for name in names:
            self._failed[name] = self._failed.get(name, 0) + 1 if name in failing else 0
            wait = self._wait(name, failing.get(name) or 0.0)
            self._due.pop(name, None)
            if wait is not None:
                self._due[name] = self._clock() + wait

    def begin(self, names: Collection[str]) -> None:
        """Note that sources are being read; they are due again only some time after they have been."""
        for name in names:
            self._due.pop(name, None)

    def due(self) -> set[str]:
        """Return the sources whose time has come."""
        now = self._clock()
        return {name for name, when in self._due.items() if when <= now}

    def wait(self) -> float | None:
        """Return the seconds until the next is due; None where there is none."""
        return max(min(self._due.values()) - self._clock(), 0.0) if self._due else None

    def _wait(self, name: str, asked: float) -> float | None:
        interval = self._intervals[name]
        times = self._failed[name]
        if times:
            backoff = min(FIRST_RETRY * 2.0 ** min(times - 1, 20), LAST_RETRY)
            return max(backoff * (0.75 + 0.5 * self._chance()), asked)
        return None if interval is None else interval * (0.9 + 0.2 * self._chance())
