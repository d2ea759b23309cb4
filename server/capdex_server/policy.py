"""Who may call what: allow and deny rules over operations. Deny wins; no rule, no access."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from capdex_engine.operation import Operation
from capdex_server.callers import Caller
from capdex_server.config import RuleConfig

_FIELDS: dict[str, Callable[[Operation], Iterable[str]]] = {
    "source": lambda operation: (operation.source,),
    "name": lambda operation: (operation.name,),
    "method": lambda operation: (operation.method,),
    "tag": lambda operation: operation.tags,
    "path": lambda operation: (operation.path,),
}


@dataclass(frozen=True, slots=True)
class Policy:
    """Decides for one server."""

    read_only: bool = False
    """Deny everything that can change something, whatever the rules say."""

    def allows(self, caller: Caller, operation: Operation) -> bool:
        """Return whether the caller may see and call the operation."""
        if self.read_only and not operation.read_only:
            return False
        if any(fits(rule, operation) for rule in caller.deny):
            return False
        return any(fits(rule, operation) for rule in caller.allow)

    def mask(self, caller: Caller, operations: Sequence[Operation]) -> NDArray[np.bool_]:
        """Return shape ``(len(operations),)``: what the caller may see."""
        return np.fromiter(
            (self.allows(caller, operation) for operation in operations), np.bool_, len(operations)
        )

    def may_know_source(self, caller: Caller, source: str) -> bool:
        """Return whether the caller may hear of a source that has no operations (it failed to load)."""
        closed = any(_only_source(rule) and _glob_fits(rule.source, (source,)) for rule in caller.deny)
        return not closed and any(_glob_fits(rule.source, (source,)) for rule in caller.allow)


def fits(rule: RuleConfig, operation: Operation) -> bool:
    """Return whether every field that the rule gives fits the operation."""
    if rule.read_only is not None and rule.read_only != operation.read_only:
        return False
    return all(_glob_fits(getattr(rule, field), values(operation)) for field, values in _FIELDS.items())


def _glob_fits(globs: tuple[str, ...] | None, values: Iterable[str]) -> bool:
    return globs is None or any(_pattern(glob).match(value) for value in values for glob in globs)


def _only_source(rule: RuleConfig) -> bool:
    return rule.read_only is None and all(getattr(rule, f) is None for f in _FIELDS if f != "source")


@lru_cache(maxsize=4096)
def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(glob))
