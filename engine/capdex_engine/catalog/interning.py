"""Values that recur, kept once and told by number."""

from __future__ import annotations

from typing import Any

from capdex_engine.catalog.digest import canonical


class Table:
    """A list of distinct JSON values."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[bytes, int] = {}

    def add(self, value: Any) -> int:
        """Return the number of ``value``, which is kept if it is new."""
        mark = canonical(value)
        if mark not in self._numbers:
            self._numbers[mark] = len(self.values)
            self.values.append(value)
        return self._numbers[mark]
