"""The catalog: every operation of every source, immutable, under one revision."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal

from capdex_engine.catalog import schemas
from capdex_engine.catalog.assemble import Shelf
from capdex_engine.catalog.loading import Clock, RetrieveFor, is_out, load, report_on
from capdex_engine.catalog.names import assign_names
from capdex_engine.catalog.near import NearNames
from capdex_engine.catalog.report import LoadReport, Remark, SourceReport
from capdex_engine.catalog.source import Source
from capdex_engine.errors import ConfigurationError
from capdex_engine.operation import Availability, Operation, OperationDetails

MAX_PARSED_DETAILS: Final = 1024
"""Operations whose details stay parsed in memory."""
REVISION_LENGTH: Final = 16

SchemaKind = Literal["body", "arguments", "whole"]
MakeSchema = Callable[[str, int, SchemaKind], dict[str, Any] | None]
Allowed = Callable[[Operation], bool]
LoadDetails = Callable[[str, int], OperationDetails]
"""``(source, details_id)`` -> the details."""


class Catalog:
    """What the sources offer. Build it with :func:`build_catalog`.

    Args:
        operations: Of all sources, searchable or not, under their final names.
        shelves: Source name -> where its details come from.
        report: What became of every source.
    """

    def __init__(
        self, operations: Iterable[Operation], shelves: dict[str, Shelf], report: LoadReport
    ) -> None:
        everything = sorted(operations, key=lambda operation: operation.name)
        self.operations = tuple(op for op in everything if not is_out(op))
        self.kept_out = tuple(op for op in everything if is_out(op))
        self.report = report
        known = [op for op in everything if op.availability is not Availability.LEFT_OUT]
        # What is left out is nobody's: it has no part in what any caller is told.
        self.revision = _revision(known)
        self._by_name = {operation.name: operation for operation in known}
        self._namesakes = _namesakes(known)
        self._by_key = _by_key(known)
        self._details = lru_cache(maxsize=MAX_PARSED_DETAILS)(partial(_load_details, shelves))
        self._schemas = lru_cache(maxsize=MAX_PARSED_DETAILS)(partial(_make_schema, self._details))
        self._bytes = lru_cache(maxsize=MAX_PARSED_DETAILS)(partial(_schema_bytes, self._schemas))
        self._near: NearNames | None = None

    def get(self, name: str, *, allowed: Allowed | None = None) -> Operation | None:
        """Return the operation of this name, else of this ``METHOD /path`` where that is unique.

        Skills of several sources may have one name, which is none of ours to change: of these, the first
        that is ``allowed``.

        Operations that are kept out by their structure are found too; ``availability`` tells. Those that
        the source's settings leave out are not: for a caller they do not exist.

        Args:
            name: Looked for.
            allowed: What there is for who asks: others are neither found nor make a path ambiguous.
        """
        for namesake in self._namesakes.get(name, ()):
            if allowed is None or allowed(namesake):
                return namesake
        found = self._by_name.get(name)
        if found is not None and (allowed is None or allowed(found)):
            return found
        same = self._of_key(name, allowed)
        return same[0] if len(same) == 1 else None

    def _of_key(self, name: str, allowed: Allowed | None) -> Sequence[Operation]:
        of_key = self._by_key.get(_key(name), ())
        those = (of_key,) if isinstance(of_key, Operation) else of_key
        return those if allowed is None else [operation for operation in those if allowed(operation)]

    def revision_of(self, allowed: Allowed) -> str:
        """Return the revision of the allowed operations alone: what the others do leaves it as it is."""
        known = (op for name, one in self._by_name.items() for op in self._namesakes.get(name, (one,)))
        return _revision(op for op in known if allowed(op))

    def details(self, operation: Operation) -> OperationDetails:
        """Return schemas, server and security of an operation; empty for one whose structure is broken."""
        return self._details(operation.source, operation.details_id)

    def body_schema(self, operation: Operation) -> dict[str, Any] | None:
        """Return the self-contained schema of the preferred media type; ``None`` without a body.

        It is handed out again: do not change it.
        """
        return self._schemas(operation.source, operation.details_id, "body")

    def arguments_schema(self, operation: Operation, *, with_body: bool = False) -> dict[str, Any]:
        """Return one JSON Schema for the argument object: the parameter slots and, if asked, the body.

        It is handed out again: do not change it.
        """
        kind: SchemaKind = "whole" if with_body else "arguments"
        schema = self._schemas(operation.source, operation.details_id, kind)
        return {} if schema is None else schema

    def schema_bytes(self, operation: Operation) -> tuple[int, int]:
        """Return the bytes of :meth:`arguments_schema` and :meth:`body_schema` as compact JSON."""
        return self._bytes(operation.source, operation.details_id)

    def near(self, name: str, *, limit: int = 3, allowed: Allowed | None = None) -> list[str]:
        """Return names of searchable operations near to ``name``, the nearest first.

        Where ``name`` is a ``METHOD /path`` of several sources, those are the nearest. How long it takes
        says nothing of what is not allowed.
        """
        same = [operation.name for operation in self._of_key(name, allowed) if not is_out(operation)]
        if self._near is None:
            self._near = NearNames(self.operations)
        return list(dict.fromkeys([*same, *self._near.find(name, limit, allowed)]))[:limit]

    def describe(self, operation: Operation) -> dict[str, Any]:
        """Return the row of ``capdex catalog list --json``."""
        return {
            "name": operation.name,
            "source": operation.source,
            "method": operation.method,
            "path": operation.path,
            "pathParams": list(operation.path_params),
            "queryParams": list(operation.query_params),
            "headerParams": list(operation.header_params),
            "cookieParams": list(operation.cookie_params),
            "hasBody": operation.has_body,
            "bodySchema": self.body_schema(operation),
            "schemaDigest": operation.schema_digest,
            "summary": operation.summary,
            "executable": operation.executable,
            "reason": operation.reason,
        }


# No methods: a catalog that held a cache of its own method would wait for the garbage collector.


def _make_schema(load: LoadDetails, source: str, details_id: int, kind: SchemaKind) -> dict[str, Any] | None:
    details = load(source, details_id)
    if kind == "body":
        return schemas.body_schema(details)
    return schemas.arguments_schema(details, with_body=kind == "whole")


def _schema_bytes(make: MakeSchema, source: str, details_id: int) -> tuple[int, int]:
    return schemas.size(make(source, details_id, "arguments")), schemas.size(make(source, details_id, "body"))


def _load_details(shelves: Mapping[str, Shelf], source: str, details_id: int) -> OperationDetails:
    shelf = shelves.get(source)
    return OperationDetails() if shelf is None else shelf.details(details_id)


def build_catalog(
    sources: Sequence[Source],
    *,
    retrieve: RetrieveFor | None = None,
    cache: Path | None = None,
    clock: Clock = time.perf_counter,
) -> Catalog:
    """Read all sources into one catalog.

    A document that cannot be used is in ``report`` with its error; the others load.

    Args:
        sources: With distinct names.
        retrieve: Source -> reader of the other files that its document refers to; without one, or
            where it answers ``None``, such references are refused.
        cache: Folder for read documents; without one everything stays in memory.
        clock: Seconds, for the report.

    Raises:
        ConfigurationError: Two sources have one name.
    """
    _check_names(sources)
    loaded = [load(source, retrieve, cache, clock) for source in sources]
    shelves = {each.source.name: Shelf(each.source, each.document) for each in loaded if each.document}
    named = {name: own for name, shelf in shelves.items() if (own := shelf.own_names()) is not None}
    nameables = {name: shelf.nameables() for name, shelf in shelves.items() if name not in named}
    names = iter(assign_names([item for items in nameables.values() for item in items]))
    made: list[Operation] = []
    reports: list[SourceReport] = []
    for each in loaded:
        operations: list[Operation] = []
        remarks: list[Remark] = []
        if each.source.name in shelves:
            own = named.get(each.source.name) or [next(names) for _ in nameables.get(each.source.name, ())]
            operations, remarks = shelves[each.source.name].operations(own)
        made += operations
        reports.append(report_on(each, operations, remarks))
    for shelf in shelves.values():
        shelf.let_go()
    return Catalog(made, shelves, LoadReport(tuple(reports)))


def _check_names(sources: Sequence[Source]) -> None:
    counts = Counter(source.name for source in sources)
    twice = sorted(name for name, count in counts.items() if count > 1)
    if twice:
        raise ConfigurationError(
            f"Two sources are named {twice[0]!r}. Give each source a name of its own in capdex.toml, "
            "or rename one of the files."
        )


def _key(name: str) -> str:
    method, _, path = name.partition(" ")
    return f"{method.upper()} {path.strip()}"


def _by_key(operations: Iterable[Operation]) -> dict[str, Operation | tuple[Operation, ...]]:
    found: dict[str, Operation | tuple[Operation, ...]] = {}
    for operation in operations:
        known = found.get(operation.key, ())
        others = (known,) if isinstance(known, Operation) else known
        found[operation.key] = (*others, operation) if others else operation
    return found


def _namesakes(operations: Iterable[Operation]) -> dict[str, list[Operation]]:
    """Return the names that several operations have."""
    skills: dict[str, list[Operation]] = {}
    for operation in operations:
        if operation.is_skill:
            skills.setdefault(operation.name, []).append(operation)
    return {name: found for name, found in skills.items() if len(found) > 1}


def _revision(operations: Iterable[Operation]) -> str:
    mark = sha256()
    for operation in operations:
        parts = (
            operation.name,
            operation.key,
            operation.schema_digest,
            operation.api_title,
            operation.summary,
            operation.description,
            "deprecated" if operation.deprecated else "",
            *operation.tags,
            *operation.keywords,
            operation.availability.value,
            operation.reason or "",
        )
        mark.update("\x1f".join(parts).encode("utf-8", "surrogatepass") + b"\n")
    return mark.hexdigest()[:REVISION_LENGTH]
