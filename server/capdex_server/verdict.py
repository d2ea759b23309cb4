"""Why a caller may or may not call an operation: which rule decides, field by field.

For operators. Callers never see any of it: to them forbidden and unknown are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from capdex_engine.operation import Availability, Operation
from capdex_server.aliases import Aliases
from capdex_server.callers import Caller
from capdex_server.columns import DENIED, FIELDS, glob_fits
from capdex_server.config import RuleConfig
from capdex_server.policy import Policy, shown

Kind = Literal["allow", "deny"]
Reason = Literal["left_out", "other_tenant", "read_only", "deny", "allow", "no_allow_rule"]


@dataclass(frozen=True, slots=True)
class FieldCheck:
    """One field of a rule against one operation."""

    field: str
    wanted: Sequence[str] | bool
    """Globs, or what ``readOnly`` has to be."""
    values: Sequence[str] | bool
    """What the operation has."""
    fits: bool

    def to_json(self) -> dict[str, Any]:
        """Return it for programs."""
        wanted = self.wanted if isinstance(self.wanted, bool) else list(self.wanted)
        values = self.values if isinstance(self.values, bool) else list(self.values)
        return {"field": self.field, "wanted": wanted, "values": values, "fits": self.fits}


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """One rule of a caller against one operation."""

    kind: Kind
    number: int
    """Place among the caller's rules of this kind, from 1."""
    rule: RuleConfig
    fields: Sequence[FieldCheck]
    """Those that the rule gives."""

    @property
    def fits(self) -> bool:
        """Whether all fields fit."""
        return all(one.fits for one in self.fields)

    def to_json(self) -> dict[str, Any]:
        """Return it for programs."""
        written = self.rule.model_dump(mode="json", by_alias=True, exclude_none=True)
        fields = [one.to_json() for one in self.fields]
        return {"kind": self.kind, "number": self.number, "rule": written, "fields": fields}

    def __str__(self) -> str:
        return f"{self.kind} rule {self.number} {shown(self.rule)}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a caller may call an operation, and what decides."""

    allowed: bool
    reason: Reason
    rule: RuleCheck | None = None
    """The rule that decides; with ``no_allow_rule`` the one that comes nearest, if there is any."""


def judge(
    policy: Policy, caller: Caller, operation: Operation, aliases: Aliases, *, seen: bool = True
) -> Verdict:
    """Decide as :meth:`Snapshot.permissions` does, and say why.

    Args:
        policy: The server's.
        caller: With its rules.
        operation: Of a catalog; one that the settings leave out is nobody's.
        aliases: Of that catalog.
        seen: Whether its source is for the caller's tenant.
    """
    if operation.availability is Availability.LEFT_OUT:
        return Verdict(False, "left_out")
    if not seen:
        return Verdict(False, "other_tenant")
    if policy.read_only and not operation.read_only:
        return Verdict(False, "read_only")
    denied = [one for one in _checks("deny", caller.deny, operation, aliases) if one.fits]
    if denied:
        return Verdict(False, "deny", denied[0])
    checks = _checks("allow", caller.allow, operation, aliases)
    fitting = [one for one in checks if one.fits]
    if fitting:
        return Verdict(True, "allow", fitting[0])
    return Verdict(False, "no_allow_rule", min(checks, key=_misses, default=None))


def _misses(check: RuleCheck) -> tuple[int, int, bool]:
    """Fewest fields amiss first; of these the one with most that fit, and one that fits name or path."""
    amiss = sum(not one.fits for one in check.fields)
    close = any(one.fits and one.field in {"name", "path"} for one in check.fields)
    return amiss, amiss - len(check.fields), not close


def _checks(
    kind: Kind, rules: Sequence[RuleConfig], operation: Operation, aliases: Aliases
) -> list[RuleCheck]:
    return [
        RuleCheck(kind, number, rule, _fields(rule, operation, aliases, DENIED if kind == "deny" else FIELDS))
        for number, rule in enumerate(rules, 1)
    ]


def _fields(rule: RuleConfig, operation: Operation, aliases: Aliases, readers: Any) -> list[FieldCheck]:
    found = []
    for field, values in readers.items():
        globs = getattr(rule, field)
        if globs is not None:
            has = tuple(values(operation, aliases))
            found.append(FieldCheck(field, globs, has, glob_fits(globs, has)))
    if rule.read_only is not None:
        own = operation.read_only
        found.append(FieldCheck("readOnly", rule.read_only, own, rule.read_only == own))
    return found
