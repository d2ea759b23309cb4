"""The nested split: whole APIs that the encoder never sees; the ranker is fitted on them.

The list is committed (``held_out.txt``), and :func:`choose_held_out` says how it came about.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from capdex_engine.errors import DocumentError
from capdex_engine.operation import Operation

from ..formats import Query
from ..sets import QuerySet
from .corpus import FILES, Corpus, publisher, read_corpus

HELD_OUT: Final = Path(__file__).parent / "held_out.txt"
GROUP: Final = "held-out"
COUNT: Final = 60
"""Documents held out."""
MOST: Final = 4
"""A family with more documents is never held out: three of them would be the whole sample."""
SEED: Final = "capdex held-out 1"

OWNERS: Final[Mapping[str, str]] = {
    "bbci": "bbc",
    "bitbucket": "atlassian",
    "citrixonline": "getgo",
    "crucible": "atlassian",
    "fecru": "atlassian",
    "fisheye": "atlassian",
    "jira": "atlassian",
    "trello": "atlassian",
    "zeit": "vercel",
}
"""Names of one owner that their first labels do not show."""


def choose_held_out(titles: Mapping[str, str], *, count: int = COUNT, seed: str = SEED) -> tuple[str, ...]:
    """Return about ``count`` documents: whole families in the order of their hash, while they fit.

    Args:
        titles: Document -> title of its API.
        count: How many at most.
        seed: Another seed, another order.
    """
    chosen: list[str] = []
    for family in sorted(families(titles), key=lambda one: _hash(seed, one[0])):
        if len(family) <= min(MOST, count - len(chosen)):
            chosen += family
    return tuple(sorted(chosen))


def families(titles: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Return documents of one publisher, or under one title, together, sorted.

    ``bbc.co.uk`` and ``bbc.com`` are one publisher, by their first label; two copies of one product
    (``NetBox API``) are one family by their title.
    """
    family: dict[str, set[str]] = {}
    for document, title in titles.items():
        label = publisher(document).split(".")[0]
        marks = [f"label {OWNERS.get(label, label)}"]
        marks += [f"title {title.casefold()}"] if title else []
        joined = {document}.union(*(family.get(mark, set()) for mark in marks))
        for mark in {*marks, *(mark for mark, own in family.items() if own & joined)}:
            family[mark] = joined
    return sorted({tuple(sorted(own)) for own in family.values()})


def _hash(seed: str, text: str) -> str:
    return hashlib.sha256(f"{seed}\n{text}".encode()).hexdigest()


def titles_of(corpus: Corpus) -> dict[str, str]:
    """Return document -> title."""
    return {
        document: operation.api_title
        for document, operation in zip(corpus.documents, corpus.operations, strict=True)
    }


def read_held_out(path: Path = HELD_OUT) -> tuple[str, ...]:
    """Return the committed list, a document a line; lines with ``#`` are remarks.

    Raises:
        DocumentError: The list is missing or empty.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise DocumentError(f"{path.name} cannot be read: {error.strerror}", location=str(path)) from error
    documents = tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))
    if not documents:
        raise DocumentError(f"{path.name} names no document", location=str(path))
    return documents


def held_out_sets(
    train: Path, *, documents: Path | None = None, held_out: Sequence[str] | None = None
) -> tuple[QuerySet, ...]:
    """Return each held-out API as a query set: kinds as types, right operations with grade 2.

    Args:
        train: The folder with ``requests.tsv`` and ``operations.jsonl``.
        documents: Folder of the npm package's API documents; where given, the whole documents are the
            catalogs. Without it the catalogs are the operations of ``operations.jsonl``, at most 27 each.
        held_out: Default: the committed list.

    Raises:
        DocumentError: A file is missing or wrong, or a listed document has no operation or no file.
    """
    corpus = read_corpus(train)
    files = tuple(train / name for name in FILES)
    return tuple(
        _set(corpus, document, documents, files)
        for document in (read_held_out() if held_out is None else held_out)
    )


def _set(corpus: Corpus, document: str, documents: Path | None, files: tuple[Path, ...]) -> QuerySet:
    own = [request for request in corpus.requests if request.document == document]
    queries = tuple(Query(f"q{n}", request.text, request.kind) for n, request in enumerate(own, start=1))
    labels = {
        query.id: {corpus.operations[number].key: 2 for number in request.answers}
        for query, request in zip(queries, own, strict=True)
        if request.answers
    }
    return QuerySet(
        name=document.removesuffix(".json").replace("/", "."),
        group=GROUP,
        queries=queries,
        qrels=labels,
        operations=() if documents else _operations(corpus, document),
        documents=(_existing(documents / document),) if documents else (),
        files=files,
    )


def _operations(corpus: Corpus, document: str) -> tuple[Operation, ...]:
    numbers = corpus.siblings.get(document, ())
    if not numbers:
        raise DocumentError(f"the held-out document {document} is not in operations.jsonl", location=document)
    return tuple(corpus.operations[number] for number in numbers)


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise DocumentError(f"the held-out document {path.name} is not there", location=str(path))
    return path
