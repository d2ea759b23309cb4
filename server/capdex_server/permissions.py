"""What one caller may call of one catalog: everything that he is shown goes through this.

Whatever a caller may not call is for him not there: an answer is the same, to the byte, as that of a
catalog without it. So a caller has a searcher, a revision and names of his own, all cheap views of the
shared ones.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from capdex_engine.catalog import Catalog
from capdex_engine.operation import Operation

if TYPE_CHECKING:
    from capdex_engine.rank import Searcher


@dataclass(frozen=True, slots=True)
class SourceSummary:
    """One configured source as one caller sees it."""

    name: str
    title: str
    """Of its documents, with commas between."""
    operations: int
    """Operations that the caller may use."""


class Permissions:
    """One caller's part of one catalog; calling it tells whether he may see and call an operation.

    Args:
        catalog: All there is.
        permitted: Which of its operations are the caller's, shape (operations + kept-out ones,).
        searcher: Of the whole catalog.
    """

    def __init__(self, catalog: Catalog, permitted: NDArray[np.bool_], searcher: Searcher | None) -> None:
        self._catalog = catalog
        self._searcher = searcher
        self._everything = bool(permitted.all())
        everything = (*catalog.operations, *catalog.kept_out)
        # Skills of several sources may have one name.
        self._keys = frozenset(
            (operation.source, operation.name)
            for operation, allowed in zip(everything, permitted, strict=True)
            if allowed
        )
        self.mask = permitted[: len(catalog.operations)].copy()
        """Of the searchable operations."""
        self.mask.setflags(write=False)

    def __call__(self, operation: Operation) -> bool:
        """Return whether the caller may see and call an operation of the catalog."""
        return (operation.source, operation.name) in self._keys

    @cached_property
    def searcher(self) -> Searcher | None:
        """Finds the caller's operations, as if there were no others; None without an encoder."""
        return None if self._searcher is None else self._searcher.within(self.mask)

    @cached_property
    def revision(self) -> str:
        """Changes with the caller's part of the catalog, and with nothing else."""
        return self._catalog.revision if self._everything else self._catalog.revision_of(self)

    def reaches(self, source: str) -> bool:
        """Return whether an operation of this engine source is the caller's."""
        return any(self(operation) and operation.source == source for operation in self._catalog.operations)

    def find(self, name: str) -> Operation | None:
        """Return the caller's operation of this name or ``METHOD /path``."""
        return self._catalog.get(name, allowed=self)

    def near(self, name: str) -> list[str]:
        """Return names near to one that is not there."""
        return self._catalog.near(name, allowed=self)

    def sources(self, owners: Mapping[str, str]) -> list[SourceSummary]:
        """Return the configured sources with an operation of the caller's, by name.

        Args:
            owners: Engine source -> configured source.
        """
        counts: Counter[str] = Counter()
        titles: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for row in np.flatnonzero(self.mask).tolist():
            operation = self._catalog.operations[row]
            owner = owners.get(operation.source, operation.source)
            counts[owner] += 1
            titles[owner].setdefault(operation.api_title)
        return [
            SourceSummary(name, ", ".join(filter(None, titles[name])), counts[name])
            for name in sorted(counts)
        ]
