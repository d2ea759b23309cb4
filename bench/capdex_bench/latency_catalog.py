"""The catalog and the requests that latency is measured with: a fixed number of operations."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_lowercase
from typing import Any, Final

from capdex_engine.catalog import Source, build_catalog
from capdex_engine.catalog.schemas import size
from capdex_engine.errors import DocumentError
from capdex_engine.operation import Operation
from capdex_engine.rank.answer import Schemas

from .documents import GOLDEN, read_manifest
from .formats import read_queries, unique_name
from .probes import probe_operations, probes

_ENDINGS: Final = frozenset({".json", ".yaml", ".yml"})


@dataclass(frozen=True, slots=True)
class Stock:
    """Operations to search, where their schemas are, and how many of them are not repeated."""

    operations: tuple[Operation, ...]
    schemas: Schemas
    own: int
    """Operations that are no copy of another one."""
    origin: str
    """What they are taken from, to be shown."""

    @property
    def description(self) -> str:
        """What is searched, in a line."""
        total = len(self.operations)
        copies = f", and {total - self.own:,} copies of them under altered names" if total > self.own else ""
        return f"{self.own:,} of {self.origin}{copies}"


class _MadeUp:
    """Schemas of made-up operations: they take nothing."""

    revision = "made-up"

    def body_schema(self, operation: Operation) -> dict[str, Any] | None:
        """Return no body."""
        return None

    def arguments_schema(self, operation: Operation) -> dict[str, Any]:
        """Return an empty argument object's."""
        return {"type": "object", "additionalProperties": False}

    def schema_bytes(self, operation: Operation) -> tuple[int, int]:
        """Return the bytes of both."""
        return size(self.arguments_schema(operation)), size(None)


def documents_in(data: Path) -> list[Path]:
    """Return the documents of a data folder: single files of its ``specs``, or of itself.

    Raises:
        DocumentError: When there is none.
    """
    folder = data / "specs" if (data / "specs").is_dir() else data
    found = sorted(path for path in folder.iterdir() if path.suffix in _ENDINGS and path.is_file())
    if not found:
        raise DocumentError(f"no API documents in {folder}", location=str(folder))
    return found


def stock_of(documents: Sequence[Path], wanted: int, cache: Path | None = None) -> Stock:
    """Return ``wanted`` operations of documents, copied when they hold fewer.

    Raises:
        DocumentError: When a document cannot be read, or none holds an operation.
    """
    catalog = build_catalog([Source.from_file(path) for path in documents], cache=cache)
    for failed in catalog.report.failed:
        if failed.error is not None:
            raise failed.error
    if not catalog.operations:
        raise DocumentError("the documents hold no operation to search")
    return _stock(catalog.operations, catalog, f"{len(documents)} documents", wanted)


def made_up_stock(wanted: int) -> Stock:
    """Return ``wanted`` operations of the probes' catalog, which need no data."""
    return _stock(probe_operations(), _MadeUp(), "a made-up catalog", wanted)


def _stock(operations: Sequence[Operation], schemas: Schemas, home: str, wanted: int) -> Stock:
    own = min(len(operations), wanted)
    return Stock(filled(operations, wanted), schemas, own, f"{len(operations):,} operations of {home}")


def filled(operations: Sequence[Operation], wanted: int) -> tuple[Operation, ...]:
    """Return ``wanted`` operations: spread over the given ones, or all of them and copies.

    Every copy has a word of its round in its name, so that it differs from its original by what is
    searched, not by a number alone.
    """
    if wanted <= len(operations):
        return tuple(operations[number * len(operations) // wanted] for number in range(wanted))
    taken = {operation.name for operation in operations}
    copies = (
        _copy(operations[i % len(operations)], i // len(operations), taken)
        for i in range(len(operations), wanted)
    )
    return (*operations, *copies)


def _copy(operation: Operation, number: int, taken: set[str]) -> Operation:
    word = f"copy{_letters(number)}"
    name = unique_name(f"{word}_{operation.name}", taken)
    return dataclasses.replace(operation, name=name, operation_id=None, key=f"{word} {operation.key}")


def _letters(number: int) -> str:
    """Return a number as letters: 1 -> a, 26 -> z, 27 -> aa."""
    before, last = divmod(number - 1, len(ascii_lowercase))
    return (_letters(before) if before else "") + ascii_lowercase[last]


def golden_texts() -> tuple[str, ...]:
    """Return the requests of all golden sets, each once."""
    return tuple(dict.fromkeys(_golden_texts()))


def _golden_texts() -> Iterator[str]:
    for name in sorted(read_manifest()):
        for query in read_queries(GOLDEN / name / "queries.jsonl"):
            yield query.text


def probe_texts() -> tuple[str, ...]:
    """Return the requests of the probes."""
    return tuple(query.text for query, _ in probes())
