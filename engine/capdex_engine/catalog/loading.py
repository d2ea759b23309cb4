"""One document loaded or failed, and its row of the load report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from capdex_engine.catalog.document import Document, load_document
from capdex_engine.catalog.report import KeptOut, Remark, SourceReport, group_not_callable
from capdex_engine.catalog.source import Source
from capdex_engine.documents import Retrieve
from capdex_engine.errors import DocumentError
from capdex_engine.operation import Availability, Operation

RetrieveFor = Callable[[Source], Retrieve | None]
Clock = Callable[[], float]


@dataclass(slots=True)
class Loaded:
    """A source, its bytes let go, with its document or with why there is none."""

    source: Source
    document: Document | None = None
    error: DocumentError | None = None
    seconds: float = 0.0
    size: int = 0
    """Bytes of the document."""


def load(source: Source, retrieve: RetrieveFor | None, cache: Path | None, clock: Clock) -> Loaded:
    """Read a source's document; what is wrong with it is in ``error``."""
    # Without the bytes, which nothing needs any more once they have been read.
    loaded = Loaded(replace(source, data=b""), size=len(source.data))
    start = clock()
    try:
        loaded.document = load_document(source, None if retrieve is None else retrieve(source), cache)
    except DocumentError as error:
        loaded.error = error
    except RecursionError:
        loaded.error = DocumentError("The document is nested too deeply.", location=source.location)
    loaded.seconds = clock() - start
    return loaded


def report_on(loaded: Loaded, operations: Sequence[Operation], remarks: Sequence[Remark]) -> SourceReport:
    """Return what became of a source.

    Args:
        loaded: The source, with the rows that its operations were made from.
        operations: All of them, under their final names.
        remarks: On the source's settings.
    """
    source, document = loaded.source, loaded.document
    common: dict[str, Any] = {
        "source": source.name,
        "location": source.location,
        "seconds": loaded.seconds,
        "size": loaded.size,
        "error": loaded.error,
    }
    if document is None:
        return SourceReport(**common)
    record = document.record
    kept_out = [_kept_out(op, record.operations[op.details_id].pointer) for op in operations if is_out(op)]
    return SourceReport(
        **common,
        title=record.title,
        operations=sum(not is_out(operation) for operation in operations),
        kept_out=(*kept_out, *record.outside),
        not_callable=group_not_callable(operations),
        warnings=(*record.warnings, *remarks),
        cached=document.cached,
    )


def is_out(operation: Operation) -> bool:
    """Whether an operation is not offered, by its structure or by the source's settings."""
    return operation.availability in {Availability.KEPT_OUT, Availability.LEFT_OUT}


def _kept_out(operation: Operation, pointer: str) -> KeptOut:
    return KeptOut(
        "operation",
        operation.method,
        operation.path,
        operation.reason or "",
        pointer,
        operation.name,
        operation.availability is Availability.LEFT_OUT,
    )
