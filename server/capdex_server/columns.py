"""Rules over many operations at once: each glob is tried once per different value, not per operation."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property, lru_cache, partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from capdex_engine.operation import Operation
from capdex_server.aliases import Aliases
from capdex_server.config import RuleConfig

Values = Callable[[Operation, Aliases], Sequence[str]]
"""What a field's globs are tried against."""
FIELDS: Final[dict[str, Values]] = {
    "source": lambda operation, aliases: aliases.of_source(operation.source),
    "method": lambda operation, _: (operation.method,),
    "tag": lambda operation, _: operation.tags,
    "path": lambda operation, _: (operation.path,),
    "name": lambda operation, _: (operation.name,),
}
"""Field of a rule -> what it looks at; those with the fewest different values first."""
# What a rule forbids stays forbidden when another source makes the operation change its name.
DENIED: Final[dict[str, Values]] = {
    **FIELDS,
    "name": lambda operation, aliases: aliases.of_operation(operation),
}
"""The same for rules that forbid."""


class Columns:
    """The fields of a fixed sequence of operations, as arrays.

    Args:
        operations: What rules are asked about.
        aliases: Of the catalog that they are from.
    """

    def __init__(self, operations: Sequence[Operation], aliases: Aliases) -> None:
        self.operations = operations
        self._aliases = aliases
        self._columns: dict[str, _Column] = {}

    @cached_property
    def read_only(self) -> NDArray[np.bool_]:
        """Which operations cannot change anything."""
        return np.fromiter((one.read_only for one in self.operations), np.bool_, len(self.operations))

    def in_source(self, source: str) -> NDArray[np.bool_]:
        """Return which operations are of this engine source."""
        own = (one.source == source for one in self.operations)
        return np.fromiter(own, np.bool_, len(self.operations))

    def of_source(self, name: str) -> NDArray[np.bool_]:
        """Return which operations are of the source that goes by this name."""
        return self._column("source").which(lambda names: name in names)

    def fits(
        self, rule: RuleConfig, *, deny: bool = False, among: NDArray[np.bool_] | None = None
    ) -> NDArray[np.bool_]:
        """Return which operations the rule fits, shape (operations,); see ``policy.fits``.

        Args:
            rule: Of a caller.
            deny: The rule forbids.
            among: The operations that are of interest; all when ``None``.
        """
        found = np.ones(len(self.operations), np.bool_) if among is None else among.copy()
        if rule.read_only is not None:
            found &= self.read_only == rule.read_only
        for field in FIELDS:
            globs: tuple[str, ...] | None = getattr(rule, field)
            if globs is not None and field != "name":
                found &= self._column(field).which(partial(glob_fits, globs))
        return found if rule.name is None else self._named(rule.name, found, deny)

    def _named(self, globs: tuple[str, ...], found: NDArray[np.bool_], deny: bool) -> NDArray[np.bool_]:
        """Names differ one and all, so only those of the operations that all else fits are looked at."""
        names = (DENIED if deny else FIELDS)["name"]
        rows = np.flatnonzero(found)
        those = (names(self.operations[row], self._aliases) for row in rows.tolist())
        found[rows] = np.fromiter((glob_fits(globs, one) for one in those), np.bool_, len(rows))
        return found

    def _column(self, field: str) -> _Column:
        if field not in self._columns:
            values = FIELDS[field]
            keys: Iterable[Hashable] = (
                (one.source for one in self.operations)
                if field == "source"
                else (tuple(values(one, self._aliases)) for one in self.operations)
            )
            self._columns[field] = _Column(keys, lambda row: values(self.operations[row], self._aliases))
        return self._columns[field]


class _Column:
    """One field: its different values, and the number of each operation's."""

    def __init__(self, keys: Iterable[Hashable], values: Callable[[int], Sequence[str]]) -> None:
        numbers: dict[Hashable, int] = {}
        self._values: list[Sequence[str]] = []
        codes: list[int] = []
        for row, key in enumerate(keys):
            number = numbers.setdefault(key, len(numbers))
            if number == len(self._values):
                self._values.append(values(row))
            codes.append(number)
        self._codes = np.array(codes, dtype=np.int32)

    def which(self, test: Callable[[Sequence[str]], bool]) -> NDArray[np.bool_]:
        """Return the operations whose values pass the test, which is made once for each different value."""
        passed = np.fromiter(map(test, self._values), np.bool_, len(self._values))
        result: NDArray[np.bool_] = passed[self._codes]
        return result


def glob_fits(globs: tuple[str, ...] | None, values: Iterable[str]) -> bool:
    """Return whether a value fits a glob; without globs all do."""
    return globs is None or any(map(_matcher(globs), values))


@lru_cache(maxsize=4096)
def _matcher(globs: tuple[str, ...]) -> Callable[[str], object]:
    if not any(set("*?[") & set(glob) for glob in globs):
        return frozenset(globs).__contains__
    return re.compile("|".join(map(fnmatch.translate, globs))).match
