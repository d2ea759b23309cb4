"""Query sets: requests, a catalog to search, and which operations answer each request.

::

    golden         own queries over eight real documents (committed; the documents are not)
    golden-merged  the same, the eight documents as one catalog
    public         folders of catalog.jsonl, queries.jsonl, qrels.tsv (and grades.tsv, where it is better)
    beir           BEIR folders: corpus.jsonl, queries.jsonl, qrels/test.tsv
    log            capdex's own query log over a catalog
    merged         several sets as one: every request against everybody's operations
    probes         known-item queries over a made-up catalog, to guard single fields
    verbs          requests of a verb and a noun over one real document, to guard the obvious
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from capdex_engine.errors import DocumentError
from capdex_engine.operation import Operation

from .documents import GOLDEN, read_manifest
from .formats import Query, read_catalog, read_qrels, read_queries, read_sound_rows, unique_name
from .probes import probe_operations, probes

Qrels = Mapping[str, Mapping[str, int]]
"""Query id -> key -> grade (1 or 2); a query without an entry has no answer in the catalog."""

GOLDEN_MERGED: Final = "golden-merged"
GROUPS: Final = ("golden", GOLDEN_MERGED, "public", "merged", "probes", "verbs")
WITHOUT_DATA: Final = frozenset({"probes"})
"""Sets that hold their own catalog and need no data folder."""


@dataclass(frozen=True, slots=True)
class QuerySet:
    """Requests with their labels over one catalog; the catalog is rows, or documents to be read."""

    name: str
    queries: tuple[Query, ...]
    qrels: Qrels
    group: str = ""
    """Sets of a group are reported together: one of :data:`GROUPS`, or empty."""
    operations: tuple[Operation, ...] = ()
    documents: tuple[Path, ...] = ()
    files: tuple[Path, ...] = field(default=(), compare=False)
    """What the set was read from, for the run manifest's hashes."""

    def catalog(self, cache: Path | None = None) -> tuple[Operation, ...]:
        """Return the searchable operations; documents are read by the engine.

        Raises:
            DocumentError: When a document cannot be read: half a catalog gives no honest figure.
        """
        return self.operations or load_documents(self.documents, cache)

    def grades(self, query: Query) -> Mapping[str, int]:
        """Return the labels of one query."""
        return self.qrels.get(query.id, {})


def load_documents(paths: Sequence[Path], cache: Path | None = None) -> tuple[Operation, ...]:
    """Return the searchable operations of API documents, named and keyed as in production.

    Raises:
        DocumentError: When one of them cannot be read.
    """
    from capdex_engine.catalog import Source, build_catalog

    catalog = build_catalog([Source.from_file(path) for path in paths], cache=cache)
    for failed in catalog.report.failed:
        if failed.error is not None:
            raise failed.error
    return catalog.operations


def golden_set(name: str, data: Path) -> QuerySet:
    """Return one golden set; its document is looked up in ``data`` and checked by sha256.

    Raises:
        DocumentError: For an unknown name, an absent document, or another version of it.
    """
    manifest = read_manifest()
    if name not in manifest:
        raise DocumentError(f"there is no golden set {name!r}: know {', '.join(manifest)}")
    folder, document = GOLDEN / name, manifest[name].find(data)
    return QuerySet(
        name=name,
        group="golden",
        queries=read_queries(folder / "queries.jsonl"),
        qrels=read_qrels(folder / "qrels.tsv"),
        documents=(document,),
        files=(folder / "queries.jsonl", folder / "qrels.tsv", document),
    )


def golden_sets(data: Path) -> tuple[QuerySet, ...]:
    """Return all golden sets, sorted by name."""
    return tuple(golden_set(name, data) for name in sorted(read_manifest()))


def one_catalog(sets: Sequence[QuerySet], *, name: str, cache: Path | None = None) -> QuerySet:
    """Return sets of documents as one set over a single catalog, as one server would offer them.

    Keys and ids become ``SET/KEY``, since each document's source is named as its set. Requests without
    a label stay out: another document may serve them. Labels stay what they were, so an operation of
    another document that would also do counts as wrong: read the figures as a lower bound.

    Raises:
        DocumentError: When a document cannot be read.
    """
    documents = tuple(dict.fromkeys(path for one in sets for path in one.documents))
    return QuerySet(
        name=name,
        group=name,
        queries=tuple(
            dataclasses.replace(query, id=f"{one.name}/{query.id}")
            for one in sets
            for query in one.queries
            if one.grades(query)
        ),
        qrels={
            f"{one.name}/{query}": {f"{one.name}/{key}": grade for key, grade in grades.items()}
            for one in sets
            for query, grades in one.qrels.items()
        },
        operations=tuple(
            dataclasses.replace(operation, key=f"{operation.source}/{operation.key}")
            for operation in load_documents(documents, cache)
        ),
        files=tuple(dict.fromkeys(path for one in sets for path in one.files)),
    )


def read_folder(folder: Path, *, group: str = "") -> QuerySet:
    """Read a set in the public format, or a BEIR folder (told by its ``corpus.jsonl``)."""
    beir = (folder / "corpus.jsonl").is_file()
    labels = folder / "qrels" / "test.tsv" if beir else folder / "grades.tsv"
    if not labels.is_file():
        labels = folder / "qrels.tsv"
    catalog = folder / ("corpus.jsonl" if beir else "catalog.jsonl")
    qrels = read_qrels(labels)
    queries = read_queries(folder / "queries.jsonl")
    if beir:  # its queries file also holds the training and development ones
        queries = tuple(query for query in queries if query.id in qrels)
    return QuerySet(
        name=folder.name,
        group=group,
        queries=queries,
        qrels=qrels,
        operations=read_catalog(catalog),
        files=(catalog, folder / "queries.jsonl", labels),
    )


def public_sets(data: Path) -> tuple[QuerySet, ...]:
    """Return the public sets found in ``data``, its ``datasets``, or the ``datasets`` beside it."""
    for home in (data / "datasets", data, data.parent / "datasets"):
        folders = sorted(path.parent for path in home.glob("*/catalog.jsonl"))
        if folders:
            return tuple(read_folder(folder, group="public") for folder in folders)
    raise DocumentError(
        f"no public sets (folders with a catalog.jsonl) in {data} or its datasets", location=str(data)
    )


def query_log(path: Path, operations: Sequence[Operation], *, name: str = "log") -> QuerySet:
    """Read a query log with its rotated files: rows ``{"query", "executed"?, ...}``.

    What was executed after a search is taken for its answer, with grade 2. Rows without one, or
    whose capability is no longer in the catalog, say nothing about ranking and are left out; so are
    lines that a server which was killed left torn.

    Raises:
        DocumentError: There is no such file.
    """
    keys = {operation.name: operation.key for operation in operations}
    labels: dict[str, dict[str, int]] = {}
    files = _rotated(path)
    for row in (row for file in files for row in read_sound_rows(file)):
        key = keys.get(str(row.get("executed") or row.get("capability") or ""))
        if key and row.get("query"):
            labels.setdefault(str(row["query"]), {})[key] = 2
    queries = tuple(Query(f"{name}-{number}", text) for number, text in enumerate(labels, start=1))
    qrels = {query.id: labels[query.text] for query in queries}
    return QuerySet(name=name, queries=queries, qrels=qrels, operations=tuple(operations), files=files)


def log_set(path: Path, specs: Sequence[Path], cache: Path | None = None) -> QuerySet:
    """Return the set of a server's query log over the documents that it serves.

    Raises:
        DocumentError: No document is named or one cannot be read, or none of them has what was executed.
    """
    if not specs:
        raise DocumentError(f"{path.name} is a query log: name the documents that were served with --spec")
    found = query_log(path, load_documents(specs, cache), name=path.stem)
    if not found.queries:
        raise DocumentError(
            f"{path.name} has no search after which a capability of these documents was executed",
            location=str(path),
        )
    return found


def _rotated(path: Path) -> tuple[Path, ...]:
    """Return a log's files, the oldest first: FILE.2, FILE.1, FILE."""
    numbers = (one.name.removeprefix(f"{path.name}.") for one in path.parent.glob(f"{path.name}.*"))
    older = sorted((int(number) for number in numbers if number.isdecimal()), reverse=True)
    return (*(path.with_name(f"{path.name}.{number}") for number in older), path)


def merge(sets: Sequence[QuerySet], *, cache: Path | None = None, name: str = "merged") -> QuerySet:
    """Return one set with everybody's operations and requests; keys and ids become ``SET/KEY``.

    An operation that two sets share (one catalog, two kinds of request) is held once. Labels stay
    what they were, so an operation of another set that would also do counts as wrong: read the
    figures as a lower bound.
    """
    keys: dict[Operation, str] = {}
    queries: list[Query] = []
    qrels: dict[str, Mapping[str, int]] = {}
    for one in sets:
        mine = {op.key: keys.setdefault(op, f"{one.name}/{op.key}") for op in one.catalog(cache)}
        queries += [dataclasses.replace(query, id=f"{one.name}/{query.id}") for query in one.queries]
        for query, grades in one.qrels.items():
            labels = {mine.get(key, f"{one.name}/{key}"): grade for key, grade in grades.items()}
            qrels[f"{one.name}/{query}"] = labels
    return QuerySet(
        name=name,
        group="merged",
        queries=tuple(queries),
        qrels=qrels,
        operations=_renamed(keys),
        files=tuple(dict.fromkeys(path for one in sets for path in one.files)),
    )


def _renamed(keys: Mapping[Operation, str]) -> tuple[Operation, ...]:
    taken: set[str] = set()
    return tuple(
        dataclasses.replace(operation, name=unique_name(operation.name, taken), key=key)
        for operation, key in keys.items()
    )


def probe_set() -> QuerySet:
    """Return the known-item queries of :mod:`.probes`; they need no data."""
    found = list(probes())
    return QuerySet(
        name="probes",
        queries=tuple(query for query, _ in found),
        qrels={query.id: {key: 2} for query, key in found},
        operations=probe_operations(),
    )


def _verb_set(data: Path) -> QuerySet:
    from .verbs import verb_set  # late: it makes a QuerySet of this module

    return verb_set(data)


_GUARDS: Final[Mapping[str, Callable[[Path], QuerySet]]] = {
    "probes": lambda _: probe_set(),
    "verbs": _verb_set,
    "github-verbs": _verb_set,
}
"""Sets that no figure of quality includes, by the names they are asked for."""


def load_sets(
    groups: Sequence[str], data: Path, *, cache: Path | None = None, specs: Sequence[Path] = ()
) -> tuple[QuerySet, ...]:
    """Return the sets of the named groups, or single sets: ``golden``, ``public``, ``box``.

    A name may also be a folder in the public or BEIR format, or a query log over ``specs``.

    Raises:
        DocumentError: For a name that is neither a group, a set, a folder, nor a query log.
    """
    sets: dict[str, QuerySet] = {}
    for name in groups:
        for one in _named(name, data, cache, specs):
            sets.setdefault(one.name, one)
    return tuple(sets.values())


def _named(name: str, data: Path, cache: Path | None, specs: Sequence[Path]) -> tuple[QuerySet, ...]:
    if name == "golden":
        return golden_sets(data)
    if name == GOLDEN_MERGED:
        return (one_catalog(golden_sets(data), name=GOLDEN_MERGED, cache=cache),)
    if name == "public":
        return public_sets(data)
    if name == "merged":
        return (merge([*golden_sets(data), *public_sets(data)], cache=cache),)
    if name in _GUARDS:
        return (_GUARDS[name](data),)
    if name in read_manifest():
        return (golden_set(name, data),)
    if Path(name).is_dir():
        return (read_folder(Path(name)),)
    if Path(name).is_file():
        return (log_set(Path(name), specs, cache),)
    found = tuple(one for one in public_sets(data) if one.name == name)
    if not found:
        raise DocumentError(
            f"{name!r} is no group ({', '.join(GROUPS)}), no set, no folder, and no query log"
        )
    return found
