"""A :class:`Snapshot`: one state of everything, under one revision."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
from capdex_server.columns import Columns
from capdex_server.permissions import Permissions, SourceSummary
from capdex_server.policy import Policy, Rules
from capdex_server.remarks import Remark

if TYPE_CHECKING:
    from capdex_engine.rank import Searcher


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
    visible: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Engine source -> the tenants that it is for; one that is absent is for all."""
    _permissions: dict[object, Permissions] = field(default_factory=dict, init=False, repr=False)
    _columns: list[Columns] = field(default_factory=list, init=False, repr=False)

    @property
    def revision(self) -> str:
        """Changes with every change of the catalog."""
        return self.catalog.revision

    def prepare(self, callers: Iterable[Rules], policy: Policy) -> None:
        """Work out beforehand what takes long for the first request of each caller."""
        for caller in callers:
            permissions = self.permissions(caller, policy)
            _ = permissions.searcher, permissions.revision

    def permissions(self, caller: Rules, policy: Policy) -> Permissions:
        """Return what the caller may call; worked out once for callers who may see the same."""
        hidden = frozenset(name for name, tenants in self.visible.items() if caller.tenant not in tenants)
        key = (caller.allow, caller.deny, policy.read_only, hidden)
        found = self._permissions.get(key)
        if found is None:
            permitted = policy.mask_over(caller, self.columns)
            for source in hidden:
                permitted &= ~self.columns.in_source(source)
            found = self._permissions[key] = Permissions(self.catalog, permitted, self.searcher)
        return found

    @property
    def columns(self) -> Columns:
        """What rules look at, of all operations: those in search first, then those kept out."""
        if not self._columns:
            everything = (*self.catalog.operations, *self.catalog.kept_out)
            self._columns.append(Columns(everything, self.aliases))
        return self._columns[0]

    def mask(self, caller: Caller, policy: Policy) -> NDArray[np.bool_]:
        """Return which of the catalog's operations the caller may use."""
        return self.permissions(caller, policy).mask

    def allows(self, caller: Caller, policy: Policy) -> Callable[[Operation], bool]:
        """Return what says whether the caller may see and call an operation of the catalog."""
        return self.permissions(caller, policy)

    def sees(self, caller: Rules, operation: Operation) -> bool:
        """Return whether the operation's source is for the caller's tenant, whatever its rules say."""
        tenants = self.visible.get(operation.source)
        return tenants is None or caller.tenant in tenants

    def credentials_of(self, caller: Caller) -> Credentials:
        """Return the credentials of the caller's tenant, which win over those for all."""
        return self.tenants.get(caller.tenant, {})

    def narrowed(self, mask: NDArray[np.bool_], *, source: str | None, read_only: bool) -> NDArray[np.bool_]:
        """Return the mask without what a search's own filters leave out."""
        if source is None and not read_only:
            return mask
        columns, count = self.columns, len(mask)
        narrowed = mask & columns.read_only[:count] if read_only else mask
        return narrowed if source is None else narrowed & columns.of_source(source)[:count]

    def sources_for(self, caller: Caller, policy: Policy) -> list[SourceSummary]:
        """Return the configured sources with an operation that the caller may use, by name."""
        return self.permissions(caller, policy).sources(self.owners)
