"""Who may call what: allow and deny rules over operations. Deny wins; no rule, no access."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from capdex_engine.operation import Operation
from capdex_server.aliases import Aliases
from capdex_server.callers import Caller
from capdex_server.columns import DENIED, FIELDS, Columns, glob_fits
from capdex_server.config import CallerConfig, RuleConfig

_PLAIN: Final = Aliases()


class Rules(Protocol):
    """A caller, or its configuration."""

    @property
    def tenant(self) -> str:
        """Whose sources it sees."""
        ...

    @property
    def allow(self) -> tuple[RuleConfig, ...]:
        """No rule, no access."""
        ...

    @property
    def deny(self) -> tuple[RuleConfig, ...]:
        """Wins over ``allow``."""
        ...


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
        return self.mask_over(caller, Columns(operations, aliases))

    def mask_over(self, caller: Rules, columns: Columns) -> NDArray[np.bool_]:
        """Return :meth:`mask` of columns that are made once for all callers."""
        allowed = np.zeros(len(columns.operations), np.bool_)
        for rule in caller.allow:
            allowed |= columns.fits(rule, among=~allowed)
        for rule in caller.deny if allowed.any() else ():
            allowed &= ~columns.fits(rule, deny=True, among=allowed)
        return allowed & columns.read_only if self.read_only else allowed

    def may_know_source(self, caller: Caller, names: Sequence[str]) -> bool:
        """Return whether the caller may hear of a source that has no operations (it failed to load).

        He may where rules allow all of it, or name it: which of its operations another rule would fit, or
        whether any, nobody can tell now.

        Args:
            caller: Who asks.
            names: All that the source goes by.
        """
        closed = any(_only_source(rule) and glob_fits(rule.source, names) for rule in caller.deny)
        return not closed and any(
            (_only_source(rule) and glob_fits(rule.source, names)) or _names_source(rule, names)
            for rule in caller.allow
        )

    def may_know_all(self, caller: Caller) -> bool:
        """Return whether nothing of the configuration is to be hidden from the caller."""
        return not caller.deny and any(_only_source(rule) and rule.source is None for rule in caller.allow)


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
    return all(
        glob_fits(getattr(rule, field), values(operation, aliases))
        for field, values in (DENIED if deny else FIELDS).items()
        if getattr(rule, field) is not None
    )


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
    columns = Columns(operations, aliases)
    parts = [
        (caller.name, kind, rules)
        for caller in callers
        for kind, rules in (("allow", caller.allow), ("deny", caller.deny))
    ]
    for owner, kind, rules in (*parts, ("quotas", "capability", quotas)):
        for rule in rules:
            excused = bool(lost) and glob_fits(rule.source, lost)
            if not excused and not columns.fits(rule, deny=kind != "allow").any():
                yield owner, f"{kind} {shown(rule)}"


def shown(rule: RuleConfig) -> str:
    """Return a rule as JSON, as the configuration could say it."""
    return json.dumps(rule.model_dump(by_alias=True, exclude_none=True), ensure_ascii=False)


def _only_source(rule: RuleConfig) -> bool:
    return rule.read_only is None and all(getattr(rule, f) is None for f in FIELDS if f != "source")


def _names_source(rule: RuleConfig, names: Sequence[str]) -> bool:
    return any(name in (rule.source or ()) for name in names)
