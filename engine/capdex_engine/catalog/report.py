"""What became of every document: the load report behind ``capdex catalog check``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from capdex_engine.errors import DocumentError, shown_location
from capdex_engine.operation import Availability, Operation


@dataclass(frozen=True, slots=True)
class Remark:
    """Something in a document that was read with leniency; ``pointer`` says where."""

    message: str
    pointer: str = ""

    def to_json(self) -> dict[str, str]:
        """Return ``{"message", "pointer"}``."""
        return {"message": self.message, "pointer": self.pointer}


@dataclass(frozen=True, slots=True)
class KeptOut:
    """An operation (or webhook, or callback) that is not offered, and why."""

    kind: str
    """``operation``, ``webhook``, ``callback``, ``tool`` for one in quarantine, or ``skill``."""
    method: str
    path: str
    """The path; a webhook's name; a callback's expression."""
    reason: str
    pointer: str = ""
    name: str | None = None
    """In the catalog, for operations."""
    by_settings: bool = False
    """Whether the source's settings leave it out, rather than its structure."""

    @property
    def is_broken(self) -> bool:
        """Whether it is an operation or tool that is described in a way that cannot be called."""
        return self.kind in {"operation", "tool", "skill"} and not self.by_settings

    def to_json(self) -> dict[str, Any]:
        """Return the fields; ``name`` only where there is one, ``bySettings`` only where it is true."""
        row = {key: getattr(self, key) for key in ("kind", "method", "path", "reason", "pointer")}
        named = row if self.name is None else {"name": self.name, **row}
        return {**named, "bySettings": True} if self.by_settings else named


@dataclass(frozen=True, slots=True)
class NotCallable:
    """Operations that need a setting before they can be called."""

    availability: Availability
    reason: str
    names: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return ``{"availability", "reason", "count", "operations"}``."""
        return {
            "availability": self.availability.value,
            "reason": self.reason,
            "count": len(self.names),
            "operations": list(self.names),
        }


@dataclass(frozen=True, slots=True)
class SourceReport:
    """What became of one source."""

    source: str
    location: str
    title: str = ""
    operations: int = 0
    """In search, callable or not."""
    kept_out: tuple[KeptOut, ...] = ()
    not_callable: tuple[NotCallable, ...] = ()
    warnings: tuple[Remark, ...] = ()
    seconds: float = 0.0
    size: int = 0
    """Bytes of the document, without the files that it refers to."""
    cached: bool = False
    """Whether it was read from the cache folder instead of the document."""
    error: DocumentError | None = None
    """Why the whole document could not be used."""

    @property
    def broken(self) -> int:
        """Operations that are kept out by their structure."""
        return sum(entry.is_broken for entry in self.kept_out)

    @property
    def waiting(self) -> int:
        """Operations in search that need a setting before they can be called."""
        return sum(len(entry.names) for entry in self.not_callable)

    def to_json(self) -> dict[str, Any]:
        """Return the report of one source; ``error`` is SPEC's error object or ``None``."""
        return {
            "source": self.source,
            "location": shown_location(self.location),
            "title": self.title,
            "operations": self.operations,
            "keptOut": [entry.to_json() for entry in self.kept_out],
            "notCallable": [entry.to_json() for entry in self.not_callable],
            "warnings": [remark.to_json() for remark in self.warnings],
            "seconds": round(self.seconds, 3),
            "bytes": self.size,
            "cached": self.cached,
            "error": None if self.error is None else self.error.payload()["error"],
        }


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What became of every source, in the order in which they were given."""

    sources: tuple[SourceReport, ...] = field(default=())

    @property
    def failed(self) -> tuple[SourceReport, ...]:
        """The sources whose document could not be used at all."""
        return tuple(report for report in self.sources if report.error is not None)

    def totals(self) -> dict[str, Any]:
        """Return ``{"documents", "operations", "keptOut", "notCallable", "warnings", "failed", …}``.

        ``keptOut`` counts webhooks and callbacks too; ``broken`` the operations among them that their
        structure keeps out. ``seconds`` and ``bytes`` are sums over the documents.
        """
        return {
            "documents": len(self.sources),
            "operations": sum(report.operations for report in self.sources),
            "keptOut": sum(len(report.kept_out) for report in self.sources),
            "broken": sum(report.broken for report in self.sources),
            "notCallable": sum(report.waiting for report in self.sources),
            "warnings": sum(len(report.warnings) for report in self.sources),
            "failed": len(self.failed),
            "seconds": round(sum(report.seconds for report in self.sources), 3),
            "bytes": sum(report.size for report in self.sources),
        }

    def to_json(self) -> dict[str, Any]:
        """Return the totals, and ``sources`` with what became of each."""
        return {**self.totals(), "sources": [report.to_json() for report in self.sources]}


def group_not_callable(operations: Iterable[Operation]) -> tuple[NotCallable, ...]:
    """Return the operations that need a setting, grouped by what they need."""
    groups: dict[tuple[Availability, str], list[str]] = {}
    for operation in operations:
        if operation.availability in {Availability.NO_SERVER, Availability.NO_CREDENTIAL}:
            groups.setdefault((operation.availability, operation.reason or ""), []).append(operation.name)
    return tuple(NotCallable(kind, reason, tuple(names)) for (kind, reason), names in groups.items())
