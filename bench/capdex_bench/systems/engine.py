"""capdex itself, whole and with one thing taken away."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from capdex_engine.operation import Operation

from .base import Build, Context, Found, Search, ranked
from .minilm import cosines

if TYPE_CHECKING:
    from capdex_engine.rank import Searcher
    from capdex_engine.rank.reading import Reading


def searcher(operations: Sequence[Operation], context: Context) -> Searcher:
    """Return the production searcher."""
    from capdex_engine.rank import Searcher

    return Searcher.build(operations, context.encoder, store=context.store)


def _search(ranker: Searcher, keys: Mapping[str, str]) -> Search:
    def search(text: str, k: int) -> list[Found]:
        hits = ranker.search(text, limit=k).hits
        return [(keys[hit.operation.name], hit.score, hit.parts) for hit in hits]

    return search


def build_capdex(operations: Sequence[Operation], context: Context) -> Search:
    """Build the production ranker: what ``search_capabilities`` returns."""
    keys = {operation.name: operation.key for operation in operations}
    return _search(searcher(operations, context), keys)


class _Blind:
    """An encoder that sees no difference between texts: the dense side says nothing."""

    def __init__(self, dimension: int) -> None:
        self.identity, self.dimension = "blind", dimension

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        vectors[:, 0] = 1.0
        return vectors


def _without_dense(operations: Sequence[Operation], context: Context) -> Search:
    dimension = context.encoder.dimension
    return build_capdex(operations, Context(load=lambda: _Blind(dimension)))


def _only_words(operations: Sequence[Operation], context: Context) -> Search:
    from capdex_engine.rank.lexical import LexicalIndex

    index = LexicalIndex(operations)
    return ranked(operations, lambda text: index.scores(index.terms(text)).astype(np.float64))


def _only_meaning(operations: Sequence[Operation], context: Context) -> Search:
    from capdex_engine.rank import operation_text

    return ranked(operations, cosines(operations, context, text_of=operation_text), floor=-np.inf)


def _without(change: Callable[[int, Operation], Operation]) -> Build:
    def build(operations: Sequence[Operation], context: Context) -> Search:
        changed = [change(index, operation) for index, operation in enumerate(operations)]
        return build_capdex(changed, context)

    return build


def _nameless(index: int, operation: Operation) -> Operation:
    return dataclasses.replace(operation, name=f"x{index:06d}", operation_id=None)


Understood = tuple["Reading", tuple[str, ...]]
"""A request as it is read, and its needs where it has several."""


def _understood(change: Callable[[Understood], Understood]) -> Build:
    def build(operations: Sequence[Operation], context: Context) -> Search:
        ranker = searcher(operations, context)
        read = ranker.read
        ranker.read = lambda query: change(read(query))  # type: ignore[method-assign]
        return _search(ranker, {operation.name: operation.key for operation in operations})

    return build


def _as_written(understood: Understood, *, foreign: bool) -> Understood:
    """Take back what was corrected, or what was put into English, and with it the needs found in it."""
    reading, _ = understood
    if reading.english == reading.text or bool(reading.language) is not foreign:
        return understood
    return dataclasses.replace(reading, english=reading.text, language=None), ()


def _bare(**fields: object) -> Callable[[int, Operation], Operation]:
    return lambda _, operation: dataclasses.replace(operation, **fields)  # type: ignore[arg-type]


_NO_PARAMS: Final = dict.fromkeys(
    ("path_params", "query_params", "header_params", "cookie_params", "body_properties"), ()
)

ABLATIONS: Final[Mapping[str, Build]] = {
    "only-words": _only_words,
    "only-meaning": _only_meaning,
    "capdex-name": _without(_nameless),
    "capdex-summary": _without(_bare(summary="")),
    "capdex-description": _without(_bare(description="")),
    "capdex-path": _without(_bare(path="")),
    "capdex-params": _without(_bare(**_NO_PARAMS)),
    "capdex-api": _without(_bare(api_title="")),
    "capdex-dense": _without_dense,
    "capdex-spelling": _understood(lambda understood: _as_written(understood, foreign=False)),
    "capdex-languages": _understood(lambda understood: _as_written(understood, foreign=True)),
    "capdex-needs": _understood(lambda understood: (understood[0], ())),
}
"""``only-X``: one side of the production ranker alone. ``capdex-X``: the production ranker without X, by
what it is given rather than by a switch in it."""
