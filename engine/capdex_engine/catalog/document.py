"""A read document: its record, and its schemas parsed on demand."""

from __future__ import annotations

import contextlib
import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from capdex_engine import __version__
from capdex_engine.catalog.definitions import Mode
from capdex_engine.catalog.reader import read_document
from capdex_engine.catalog.records import DocumentRecord
from capdex_engine.catalog.source import Source
from capdex_engine.catalog.store import Store
from capdex_engine.catalog.tool_reader import read_tools
from capdex_engine.documents import References, Retrieve, parse_document, refs_in, upgrade
from capdex_engine.errors import DocumentError
from capdex_engine.operation import Body, MediaType, Parameter, Schema

READER_VERSION: Final = 8
"""Raised when a document would be read differently; kept stores of older versions are not used."""
MAX_PARSED_DEFINITIONS: Final = 2048

_PREFIX: Final = "#/$defs/"


class Definitions(dict[str, Schema]):
    """Schemas by key, and what each refers to: looking for references is most of what an answer costs."""

    __slots__ = ("references",)

    def __init__(self, items: Iterable[tuple[str, tuple[Schema, Sequence[str]]]]) -> None:
        rows = list(items)
        super().__init__((key, schema) for key, (schema, _) in rows)
        self.references: Mapping[str, Sequence[str]] = {key: keys for key, (_, keys) in rows}


class Document:
    """One document's store, opened.

    Args:
        store: Written by :func:`~capdex_engine.catalog.reader.read_document`.
        cached: Whether it was found in the cache folder.
    """

    def __init__(self, store: Store, *, cached: bool = False) -> None:
        self._hold(store, store.meta["definitions"])
        self.record = DocumentRecord.from_json(store.meta["document"])
        self.cached = cached
        store.meta = None  # all of it that is needed has been taken

    def _hold(self, store: Store, numbers: dict[Mode, dict[str, int]]) -> None:
        self._store, self._numbers = store, numbers
        self._definition = lru_cache(maxsize=MAX_PARSED_DEFINITIONS)(
            partial(_parse_definition, store, numbers)
        )

    def keep_outline(self) -> None:
        """Let go of all but what names, availability and the load report are made from."""
        self._hold(Store(array("Q", [0]), None, b""), {"request": {}, "response": {}})
        rows = (
            replace(row, summary="", description="", parameters=(), body_properties=(), body_digest="")
            for row in self.record.operations
        )
        self.record = replace(self.record, operations=tuple(rows))

    def details(self, number: int) -> tuple[tuple[Parameter, ...], Body | None, Mapping[str, Any]]:
        """Return parameters, body and responses of one entry of the store."""
        row = json.loads(self._store[number])
        parameters = tuple(Parameter(*fields) for fields in row["parameters"])
        return parameters, _body(row["body"]), _Responses(self, row["responses"])

    def definitions(self, schemas: list[Any], mode: Mode = "request") -> Definitions:
        """Return every definition that the schemas reach, by key; cycles stay references."""
        found: dict[str, tuple[Schema, Sequence[str]]] = {}
        pending = _keys_in(schemas)
        while pending:
            key = pending.pop()
            if key not in found and key in self._numbers[mode]:
                found[key] = self._definition(mode, key)
                pending.extend(found[key][1])
        return Definitions(sorted(found.items()))

    def entry(self, number: int) -> Any:
        """Return one entry of the store, parsed."""
        return json.loads(self._store[number])


def _parse_definition(
    store: Store, numbers: dict[Mode, dict[str, int]], mode: Mode, key: str
) -> tuple[Schema, Sequence[str]]:
    # No method: a document that held a cache of its own method would keep its file mapped until it is
    # collected as garbage.
    schema: Schema = json.loads(store[numbers[mode][key]])
    return schema, _keys_in([schema])


class _Responses(Mapping[str, Any]):
    """Responses read at their first use: most callers of details never look."""

    def __init__(self, document: Document, number: int | None) -> None:
        self._document = document
        self._number = number
        self._rows: dict[str, Any] | None = None

    def __getitem__(self, status: str) -> Any:
        return self._read()[status]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def __repr__(self) -> str:
        return repr(self._read())

    def _read(self) -> dict[str, Any]:
        if self._rows is None:
            rows: dict[str, Any] = {} if self._number is None else self._document.entry(self._number)
            self._rows = {status: self._whole(row) for status, row in rows.items()}
        return self._rows

    def _whole(self, row: dict[str, Any]) -> dict[str, Any]:
        if "schema" not in row:
            return row
        definitions = self._document.definitions([row["schema"]], "response")
        return {**row, "schema": self_contained(row["schema"], definitions)}


def load_document(source: Source, retrieve: Retrieve | None, cache: Path | None) -> Document:
    """Return a source's document, from the cache folder where it is unchanged.

    Raises:
        DocumentError: It cannot be read, or is no API description.
    """
    path = None if cache is None else _place(cache, source)
    kept = None if path is None else Store.open(path)
    if kept is not None and _unchanged(kept.meta["files"], retrieve):
        return Document(kept, cached=True)
    store = _read(source, retrieve, path)
    if path is not None:
        _drop_older(path)
    return Document(store)


def _read(source: Source, retrieve: Retrieve | None, path: Path | None) -> Store:
    if source.kind == "mcp":
        return read_tools(source, extra={"files": {}}, path=path)
    if source.kind == "skills":
        # Late: skills are read with the catalog's own tools for texts.
        from capdex_engine.catalog.skill_reader import read_skills

        return read_skills(source, extra={"files": {}}, path=path)
    files = _Files(retrieve)
    tree = upgrade(parse_document(source.data, location=source.location))
    _check_kind(tree, source.location)
    references = References(tree, source.base, files)
    return read_document(tree, references, source.base, extra={"files": files.seen}, path=path)


def self_contained(schema: Schema, definitions: Mapping[str, Schema]) -> dict[str, Any]:
    """Return ``schema`` with the definitions inside that it needs.

    A root that is nothing but a reference is replaced by its target, which stays a definition only
    while something else refers to it.
    """
    root = schema if isinstance(schema, Mapping) else ({} if schema else {"not": {}})
    for _ in range(len(definitions)):
        target = definitions.get(_only_reference(root))
        if target is None:
            break
        root = target if isinstance(target, Mapping) else ({} if target else {"not": {}})
    needed = reached([root], definitions)
    bare = {key: value for key, value in root.items() if key != "$defs"}
    return {**bare, "$defs": needed} if needed else bare


def reached(schemas: list[Any], definitions: Mapping[str, Schema]) -> dict[str, Schema]:
    """Return those of ``definitions`` that the schemas reach, sorted by key."""
    found: dict[str, Schema] = {}
    known = definitions.references if isinstance(definitions, Definitions) else {}
    pending = _keys_in(schemas) if definitions else []
    while pending:
        key = pending.pop()
        if key not in found and key in definitions:
            found[key] = definitions[key]
            pending.extend(known[key] if key in known else _keys_in([definitions[key]]))
    return dict(sorted(found.items()))


def _only_reference(schema: Mapping[str, Any]) -> str:
    reference = schema.get("$ref")
    alone = isinstance(reference, str) and len(schema) == 1
    return str(reference).removeprefix(_PREFIX) if alone else ""


def _keys_in(schemas: list[Any]) -> list[str]:
    return [ref.removeprefix(_PREFIX) for schema in schemas for ref in refs_in(schema)]


def _body(row: dict[str, Any] | None) -> Body | None:
    if row is None:
        return None
    media_types = tuple(MediaType(*fields) for fields in row["content"])
    return Body(row["required"], media_types, row["description"])


class _Files:
    """The files that a document refers to, remembered with their hashes; ``None`` for refused ones."""

    def __init__(self, retrieve: Retrieve | None) -> None:
        self._retrieve = retrieve
        self.seen: dict[str, str | None] = {}

    def __call__(self, uri: str) -> bytes:
        self.seen[uri] = None
        if self._retrieve is None:
            raise DocumentError("references to other files are not allowed for this source.", location=uri)
        data = self._retrieve(uri)
        self.seen[uri] = sha256(data).hexdigest()
        return data


def _unchanged(files: Mapping[str, str | None], retrieve: Retrieve | None) -> bool:
    return all(_hash_of(uri, retrieve) == known for uri, known in files.items())


def _hash_of(uri: str, retrieve: Retrieve | None) -> str | None:
    try:
        return None if retrieve is None else sha256(retrieve(uri)).hexdigest()
    except DocumentError:
        return None


def _place(cache: Path, source: Source) -> Path:
    """Return the file of a source's store: named by whose it is, then by what it was made from."""
    owner = _hash(source.base, source.location)[:16]
    content = _hash(__version__, str(READER_VERSION), sha256(source.data).hexdigest())[:32]
    return cache / f"{owner}-{content}.store"


def _drop_older(path: Path) -> None:
    owner = path.name.partition("-")[0]
    for other in path.parent.glob(f"{owner}-*.store"):
        if other != path:
            with contextlib.suppress(OSError):
                other.unlink()


def _hash(*parts: str) -> str:
    return sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _check_kind(tree: Mapping[str, Any], location: str) -> None:
    version = str(tree.get("openapi", ""))
    if version.startswith("3."):
        return
    said = f"it says openapi {version!r}" if "openapi" in tree else "it has no `openapi` or `swagger` field"
    raise DocumentError(
        f"This is no OpenAPI 3.x or Swagger 2.0 document: {said}. Check that the right file is named.",
        location=location,
    )
