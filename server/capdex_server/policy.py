"""Who may call what: allow and deny rules over operations. Deny wins; no rule, no access."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from capdex_engine.operation import Operation
from capdex_server.aliases import Aliases
from capdex_server.callers import Caller
from capdex_server.config import CallerConfig, RuleConfig

_FIELDS: dict[str, Callable[[Operation, Aliases], Iterable[str]]] = {
    "source": lambda operation, aliases: aliases.of_source(operation.source),
    "name": lambda operation, _: (operation.name,),
    "method": lambda operation, _: (operation.method,),
    "tag": lambda operation, _: operation.tags,
    "path": lambda operation, _: (operation.path,),
}
# What a rule forbids stays forbidden when another source makes the operation change its name.
_DENIED = {**_FIELDS, "name": lambda operation, aliases: aliases.of_operation(operation)}
_PLAIN = Aliases()


@dataclass(frozen=True, slots=True)
class Policy:
    """Decides for one server. ``aliases`` are those of the catalog that the operations are from."""

    read_only: bool = False
    """Deny everything that can change something, whatever the rules say."""

    def allows(self, caller: Caller, operation: Operation, aliases: Aliases = _PLAIN) -> bool:
        """Return whether the caller may see and call the operation."""
        if self.read_only and not operation.read_only:
            return False
        if any(fits(rule, operation, aliases, deny=True) for rule in caller.deny):
            return False
        return any(fits(rule, operation, aliases) for rule in caller.allow)

    def mask(
        self, caller: Caller, operations: Sequence[Operation], aliases: Aliases = _PLAIN
    ) -> NDArray[np.bool_]:
        """Return shape ``(len(operations),)``: what the caller may see."""
        return np.fromiter(
            (self.allows(caller, operation, aliases) for operation in operations), np.bool_, len(operations)
        )

    def may_know_source(self, caller: Caller, names: Sequence[str]) -> bool:
        """Return whether the caller may hear of a source that has no operations (it failed to load).

        Args:
            caller: Who asks.
            names: All that the source goes by.
        """
        closed = any(_only_source(rule) and _glob_fits(rule.source, names) for rule in caller.deny)
        return not closed and any(_glob_fits(rule.source, names) for rule in caller.allow)


def fits(rule: RuleConfig, operation: Operation, aliases: Aliases = _PLAIN, *, deny: bool = False) -> bool:
    """Return whether every field that the rule gives fits the operation.

    Args:
        rule: Of a caller.
        operation: Of a catalog.
        aliases: That catalog's.
        deny: The rule forbids: its globs over names fit every name that the operation had or may get.
    """
    if rule.read_only is not None and rule.read_only != operation.read_only:
        return False
    fields = _DENIED if deny else _FIELDS
    for field, values in fields.items():
        globs = getattr(rule, field)
        if globs is not None and not _glob_fits(globs, values(operation, aliases)):
            return False
    return True


def idle_rules(
    callers: Iterable[CallerConfig],
    operations: Sequence[Operation],
    aliases: Aliases,
    failed: Iterable[str] = (),
    quotas: Iterable[RuleConfig] = (),
) -> Iterator[tuple[str, str]]:
    """Yield ``(caller, rule)`` for each rule that fits no operation: it is likely to be misspelt.

    Args:
        callers: With their rules.
        operations: All of the catalog.
        aliases: Of the catalog.
        failed: Sources without operations since they failed; rules for these are not idle.
        quotas: Rules of capability quotas; in place of a caller stands ``quotas``.
    """
    lost = [name for source in failed for name in aliases.of_source(source)]
    parts = [
        (caller.name, kind, rules)
        for caller in callers
        for kind, rules in (("allow", caller.allow), ("deny", caller.deny))
    ]
    for owner, kind, rules in (*parts, ("quotas", "capability", quotas)):
        for rule in rules:
            excused = bool(lost) and _glob_fits(rule.source, lost)
            deny = kind != "allow"
            if not excused and not any(fits(rule, one, aliases, deny=deny) for one in operations):
                yield owner, f"{kind} {_shown(rule)}"


def _shown(rule: RuleConfig) -> str:
    return json.dumps(rule.model_dump(by_alias=True, exclude_none=True), ensure_ascii=False)


def _glob_fits(globs: tuple[str, ...] | None, values: Iterable[str]) -> bool:
    return globs is None or any(_pattern(glob).match(value) for value in values for glob in globs)


def _only_source(rule: RuleConfig) -> bool:
    return rule.read_only is None and all(getattr(rule, f) is None for f in _FIELDS if f != "source")


@lru_cache(maxsize=4096)
def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(glob))
