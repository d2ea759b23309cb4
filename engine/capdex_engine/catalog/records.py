"""One document as its store keeps it: rows about operations, free of any setting and of any schema."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from capdex_engine.catalog.report import KeptOut, Remark
from capdex_engine.operation import Location


@dataclass(frozen=True, slots=True)
class ParameterRecord:
    """A parameter without its schema."""

    location: Location
    name: str
    required: bool
    digest: str
    """Over everything that a caller depends on, its definitions included."""


@dataclass(frozen=True, slots=True)
class OperationRecord:
    """An operation as the document describes it, before names and settings."""

    method: str
    """Upper case; empty for a path whose operations cannot be told."""
    path: str
    pointer: str
    """Where it stands in the document."""
    operation_id: str | None = None
    summary: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    deprecated: bool = False
    parameters: tuple[ParameterRecord, ...] = ()
    has_body: bool = False
    body_required: bool = False
    body_digest: str = ""
    body_properties: tuple[str, ...] = ()
    servers: int = 0
    """Number of its list of servers in :attr:`DocumentRecord.servers`."""
    security: int = 0
    """Number of its alternatives in :attr:`DocumentRecord.security`."""
    problem: str | None = None
    """Why it cannot be called by its structure."""
    details: int = -1
    """Number of its entry in the store."""
    read_only_hint: bool = False
    """Whether the tool says of itself that it changes nothing."""

    @property
    def key(self) -> str:
        """Identity inside the document: ``METHOD path``."""
        return f"{self.method} {self.path}".strip()


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """Everything about a document but its schemas."""

    title: str
    operations: tuple[OperationRecord, ...]
    servers: tuple[Any, ...]
    """Lists of servers, each ``[[url, {variable: [default, [allowed, ...]]}], ...]``."""
    security: tuple[Any, ...]
    """Alternatives, each ``[{scheme: [scope, ...]}, ...]``."""
    schemes: Mapping[str, Any]
    """Scheme name -> fields of SecurityScheme; ``token_url`` as it stands in the document."""
    outside: tuple[KeptOut, ...]
    """Webhooks and callbacks."""
    warnings: tuple[Remark, ...]

    def to_json(self) -> dict[str, Any]:
        """Return JSON values from which :meth:`from_json` makes an equal record."""
        return {
            "title": self.title,
            "operations": [_row(operation) for operation in self.operations],
            "servers": list(self.servers),
            "security": list(self.security),
            "schemes": dict(self.schemes),
            "outside": [_values(entry) for entry in self.outside],
            "warnings": [_values(remark) for remark in self.warnings],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> DocumentRecord:
        """Return the record that :meth:`to_json` wrote."""
        return cls(
            data["title"],
            tuple(map(_operation, data["operations"])),
            tuple(data["servers"]),
            tuple(data["security"]),
            data["schemes"],
            tuple(KeptOut(*row) for row in data["outside"]),
            tuple(Remark(*row) for row in data["warnings"]),
        )


def _row(operation: OperationRecord) -> list[Any]:
    row = _values(operation)
    row[_PARAMETERS] = [_values(parameter) for parameter in operation.parameters]
    return row


def _operation(row: list[Any]) -> OperationRecord:
    parameters = tuple(
        ParameterRecord(cast(Location, sys.intern(location)), sys.intern(name), required, digest)
        for location, name, required, digest in row[_PARAMETERS]
    )
    row[_PARAMETERS] = parameters
    row[_TAGS] = interned(row[_TAGS])
    row[_PROPERTIES] = interned(row[_PROPERTIES])
    return OperationRecord(*row)


def interned(words: Iterable[str]) -> tuple[str, ...]:
    """Return the words as a tuple of shared strings: the same few recur in thousands of operations."""
    return tuple(map(sys.intern, words))


def _values(record: OperationRecord | ParameterRecord | KeptOut | Remark) -> list[Any]:
    return [getattr(record, name) for name in record.__slots__]


_PARAMETERS: Final = OperationRecord.__slots__.index("parameters")
_TAGS: Final = OperationRecord.__slots__.index("tags")
_PROPERTIES: Final = OperationRecord.__slots__.index("body_properties")
