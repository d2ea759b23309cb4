"""Run files: what a ranker answered to each query of a file.

A line is ``query_id<TAB>key<TAB>rank<TAB>score<TAB>source`` where the key is ``METHOD path`` of a
document's operation, or the id of a catalog row. A query that got nothing has no line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from capdex_engine.errors import DocumentError, InvalidRequest
from capdex_engine.operation import Operation

from .formats import Query, write_lines

if TYPE_CHECKING:
    from capdex_engine.rank import Searcher


@dataclass(frozen=True, slots=True)
class Answer:
    """One returned operation; its rank is its place in the answer."""

    key: str
    score: float
    source: str = ""
    parts: Mapping[str, float] = field(default_factory=dict)
    """What the score is made of, where the system tells; run files leave it out."""


Run = Mapping[str, tuple[Answer, ...]]
"""Query id -> answers, best first."""


def key_of(operation: Operation) -> str:
    """Return the row id, or ``METHOD path``."""
    return operation.key or f"{operation.method} {operation.path}"


def production_run(
    searcher: Searcher, queries: Iterable[Query], *, limit: int = 10
) -> tuple[Run, dict[str, str]]:
    """Return the production ranker's answers, and ``{query id: reason}`` for requests it refuses.

    The answers are exactly those of ``search_capabilities`` with this limit and no further filter.
    """
    run: dict[str, tuple[Answer, ...]] = {}
    refused: dict[str, str] = {}
    for query in queries:
        try:
            hits = searcher.search(query.text, limit=limit).hits
        except InvalidRequest as error:
            refused[query.id] = error.message
            continue
        run[query.id] = tuple(
            Answer(key_of(hit.operation), hit.score, hit.operation.source, hit.parts) for hit in hits
        )
    return run, refused


def write_run(path: Path, run: Run) -> None:
    """Write a run file, in the run's order."""
    write_lines(
        path,
        [
            f"{query}\t{answer.key}\t{rank}\t{answer.score:.6f}\t{answer.source}"
            for query, answers in run.items()
            for rank, answer in enumerate(answers, start=1)
        ],
    )


def read_run(path: Path) -> Run:
    """Read a run file; the source column may be missing, and ranks decide the order.

    Raises:
        DocumentError: For a file that cannot be read, or a line that is no run line.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DocumentError(f"{path.name} cannot be read as a run file", location=str(path)) from error
    found: dict[str, list[tuple[int, Answer]]] = {}
    for number, line in enumerate(lines, start=1):
        if line:
            query, rank, answer = _run_line(line, number, path)
            found.setdefault(query, []).append((rank, answer))
    return {query: _ordered(answers) for query, answers in found.items()}


def _run_line(line: str, number: int, path: Path) -> tuple[str, int, Answer]:
    cells = line.rstrip("\r").split("\t")
    try:
        query, key, rank, score, *rest = cells
        return query, int(rank), Answer(key, float(score), rest[0] if rest else "")
    except ValueError as error:
        raise DocumentError(
            f"{path.name}, line {number}: not query, key, rank, score, source with tabs between",
            location=str(path),
        ) from error


def _ordered(answers: Sequence[tuple[int, Answer]]) -> tuple[Answer, ...]:
    ordered = (answer for _, answer in sorted(answers, key=lambda pair: pair[0]))
    return tuple(ordered)


def ranking(answers: Iterable[Answer]) -> list[str]:
    """Return the keys alone, each once, at its best place."""
    return list(dict.fromkeys(answer.key for answer in answers))
