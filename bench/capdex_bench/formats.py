"""Files that query sets are written in: JSON lines, qrels, catalogs.

Every reader raises :class:`~capdex_engine.errors.DocumentError` with the file and the line, and
ignores empty lines and a byte order mark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from capdex_engine.errors import DocumentError
from capdex_engine.operation import Operation

NAME_LIMIT: Final = 64
"""Characters of an operation's name (SPEC section 1)."""

_UNCLEAN: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_BREAKS: Final = re.compile(r"[\t\n\r]")
_HEADINGS: Final = frozenset({"query-id", "query_id", "qid"})


@dataclass(frozen=True, slots=True)
class Query:
    """One request in an agent's words."""

    id: str
    text: str
    type: str = ""
    """paraphrase, terse, long, typo, jargon, confusable, multi, exact, nonenglish, none; or empty."""


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DocumentError(f"{path.name} cannot be read: {error.strerror}", location=str(path)) from error
    except UnicodeDecodeError as error:
        raise DocumentError(f"{path.name} is not UTF-8 text", location=str(path)) from error
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line.rstrip("\r")


def _fault(path: Path, number: int, what: str) -> DocumentError:
    return DocumentError(f"{path.name}, line {number}: {what}", location=str(path))


def read_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield ``(line number, object)`` for each line of a JSON lines file."""
    for number, line in _lines(path):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise _fault(path, number, f"no valid JSON ({error})") from error
        if not isinstance(row, dict):
            raise _fault(path, number, "not a JSON object")
        yield number, row


def read_sound_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file whose lines may be torn."""
    for _, line in _lines(path):
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            yield row


def _text(row: Mapping[str, Any], field: str, path: Path, number: int) -> str:
    value = row.get(field)
    if not isinstance(value, str | int) or value == "":
        raise _fault(path, number, f"{field!r} is missing or no text")
    return str(value)


def _identity(row: Mapping[str, Any], path: Path, number: int) -> str:
    value = _text(row, "_id" if "_id" in row else "id", path, number)
    if _BREAKS.search(value):
        raise _fault(path, number, "an id may not hold a tab or a line break: runs are tab-separated")
    return value


def read_queries(path: Path) -> tuple[Query, ...]:
    """Read ``{"id", "text", "type"?}`` rows; BEIR's ``_id`` is accepted.

    A repeated row is read once; one id with two texts is an error, since a run could not say
    which of them a line answers.
    """
    queries: dict[str, Query] = {}
    for number, row in read_rows(path):
        # An empty request is a request: whoever ranks says that it is refused.
        text = "" if row.get("text") == "" else _text(row, "text", path, number)
        query = Query(_identity(row, path, number), text, str(row.get("type") or ""))
        known = queries.setdefault(query.id, query)
        if known.text != query.text:
            raise _fault(path, number, f"the id {query.id!r} was used for another text before")
    return tuple(queries.values())


def _grade(text: str, path: Path, number: int) -> int:
    try:
        grade = int(text)
    except ValueError as error:
        raise _fault(path, number, f"the grade {text!r} is no whole number") from error
    if not 0 <= grade <= 2:
        raise _fault(path, number, f"the grade {grade} is not 0, 1 or 2")
    return grade


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Read labels: ``query<TAB>key<TAB>grade``, or TREC's four columns; grade 0 is dropped.

    A heading line (BEIR) is skipped. Of two grades for one pair the higher counts.
    """
    qrels: dict[str, dict[str, int]] = {}
    for number, line in _lines(path):
        cells = line.split("\t")
        if cells[0] in _HEADINGS:
            continue
        if len(cells) not in (3, 4):
            raise _fault(path, number, f"{len(cells)} columns instead of query, key, grade")
        query, key, grade = cells[0], cells[-2], _grade(cells[-1], path, number)
        if grade:
            labels = qrels.setdefault(query, {})
            labels[key] = max(grade, labels.get(key, 0))
    return qrels


def unique_name(text: str, taken: set[str]) -> str:
    """Return ``text`` as a capability name, numbered (``_2``, ``_3``) when taken; marks it taken."""
    base = _UNCLEAN.sub("_", text).strip("_")[:NAME_LIMIT] or "operation"
    name, number = base, 2
    while name in taken:
        suffix = f"_{number}"
        name, number = base[: NAME_LIMIT - len(suffix)] + suffix, number + 1
    taken.add(name)
    return name


def _parameter_names(row: Mapping[str, Any]) -> tuple[str, ...]:
    named = (item.get("name") if isinstance(item, dict) else item for item in row.get("params") or ())
    return tuple(dict.fromkeys(str(name) for name in named if name))


def _operation(row: Mapping[str, Any], key: str, source: str, taken: set[str]) -> Operation:
    name = str(row.get("name") or row.get("title") or key)
    return Operation(
        name=unique_name(name, taken),
        source=str(row.get("source") or source),
        method=str(row.get("method") or "").upper(),
        path=str(row.get("path") or ""),
        operation_id=name,
        summary=str(row.get("summary") or ""),
        description=str(row.get("description") or row.get("text") or ""),
        api_title=str(row.get("api") or ""),
        query_params=_parameter_names(row),
        key=key,
    )


def read_catalog(path: Path) -> tuple[Operation, ...]:
    """Read ``{"id", "name", "method"?, "path"?, "summary", "description", "params", "api"?}`` rows.

    The id becomes the operation's key, and of rows with one id the first counts. BEIR's
    ``{"_id", "title", "text"}`` is accepted. Names are made unique as :func:`unique_name` says; the
    row's own name stays searchable as the operation id.
    """
    operations: dict[str, Operation] = {}
    taken: set[str] = set()
    for number, row in read_rows(path):
        key = _identity(row, path, number)
        if key not in operations:
            operations[key] = _operation(row, key, path.name.split(".")[0], taken)
    if not operations:
        raise DocumentError(f"{path.name} holds no operation", location=str(path))
    return tuple(operations.values())


def write_lines(path: Path, lines: Sequence[str]) -> None:
    """Write lines with Unix endings; the parent folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
