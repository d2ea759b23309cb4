"""A :class:`Snapshot`: one state of everything, under one revision."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from capdex_engine.call import Credentials, Executor
from capdex_engine.catalog import Catalog
from capdex_engine.errors import DocumentError
from capdex_engine.operation import Operation
from capdex_server.aliases import Aliases
from capdex_server.callers import Caller
from capdex_server.policy import Policy
from capdex_server.remarks import Remark

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


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One state of everything; never changes, so that a request sees one revision throughout."""

    catalog: Catalog
    executor: Executor
    searcher: Searcher | None = None
    """None when built without an encoder."""
    failures: Mapping[str, DocumentError] = field(default_factory=dict)
    """Source -> why its document gave nothing."""
    aliases: Aliases = field(default_factory=Aliases)
    """What rules and filters may call the catalog's sources and operations."""
    owners: Mapping[str, str] = field(default_factory=dict)
    """Engine source -> configured source."""
    skipped: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Configured source -> files of its folder that do not look like an API description."""
    remarks: Sequence[Remark] = ()
    """Settings and credentials that fit nothing."""
    idle_rules: Sequence[tuple[str, str]] = ()
    """``(caller, rule)`` for rules that fit no operation."""
    tenants: Mapping[str, Credentials] = field(default_factory=dict, repr=False)
    """Tenant -> engine source -> scheme -> credential of its own."""
    _masks: dict[str, NDArray[np.bool_]] = field(default_factory=dict)

    @property
    def revision(self) -> str:
        """Changes with every change of the catalog."""
        return self.catalog.revision

    def mask(self, caller: Caller, policy: Policy) -> NDArray[np.bool_]:
        """Return which of the catalog's operations the caller may use; computed once per caller."""
        mask = self._masks.get(caller.name)
        if mask is None:
            mask = policy.mask(caller, self.catalog.operations, self.aliases)
            mask.setflags(write=False)
            self._masks[caller.name] = mask
        return mask

    def allows(self, caller: Caller, policy: Policy) -> Callable[[Operation], bool]:
        """Return what says whether the caller may see and call an operation of the catalog."""
        return lambda operation: policy.allows(caller, operation, self.aliases)

    def credentials_of(self, caller: Caller) -> Credentials:
        """Return the credentials of the caller's tenant, which win over those for all."""
        return self.tenants.get(caller.tenant, {})

    def narrowed(self, mask: NDArray[np.bool_], *, source: str | None, read_only: bool) -> NDArray[np.bool_]:
        """Return the mask without what a search's own filters leave out."""
        if source is None and not read_only:
            return mask
        wanted = (
            (source is None or source in self.aliases.of_source(operation.source))
            and (not read_only or operation.read_only)
            for operation in self.catalog.operations
        )
        return mask & np.fromiter(wanted, np.bool_, len(mask))

    def sources_for(self, caller: Caller, policy: Policy) -> list[SourceSummary]:
        """Return the configured sources with an operation that the caller may use, by name."""
        counts: Counter[str] = Counter()
        titles: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for operation, allowed in zip(self.catalog.operations, self.mask(caller, policy), strict=True):
            if allowed:
                owner = self.owners.get(operation.source, operation.source)
                counts[owner] += 1
                titles[owner].setdefault(operation.api_title)
        return [
            SourceSummary(name, ", ".join(filter(None, titles[name])), counts[name])
            for name in sorted(counts)
        ]
