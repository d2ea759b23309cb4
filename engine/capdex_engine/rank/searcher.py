"""Finds the operations that a request means."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from capdex_engine.operation import Operation
from capdex_engine.rank.blend import FITTED, Blend
from capdex_engine.rank.dense import DenseIndex, operation_text
from capdex_engine.rank.exact import ExactNames, Named
from capdex_engine.rank.features import FEATURES, FeatureReader, Need, foreign_share
from capdex_engine.rank.lexical import LexicalIndex, top
from capdex_engine.rank.needs import split_needs
from capdex_engine.rank.reading import Reading, RequestReader
from capdex_engine.rank.twins import deal_by_field, field_tiers, twin_groups
from capdex_engine.text import tokens, words

if TYPE_CHECKING:
    from capdex_engine.encode import Encoder, VectorStore

CANDIDATES: Final = 150
"""Taken from each index; what neither has among its first 150 is no match."""
CONTEXT: Final = 0.5
"""Share of the whole request's vector that a clause keeps, so that it stays in its context."""
WHOLE: Final = 1.0
"""Score of an operation whose name is the query."""
AMONG: Final = 0.97
"""Score of an operation whose name stands among other words."""

HINT_NOTHING: Final = (
    "Nothing fits. Say the action and the object in a few plain words (for example 'create an invoice')."
)
HINT_NO_WORDS: Final = (
    "The query holds no words to search by. Name the action and the object, such as 'list users'."
)
HINT_WEAK: Final = "No match is certain. Compare the summaries before you call one, or search in other words."
_WEAK: Final = 0.3
"""Score of the first match, so its probability, below which the caller is told to look twice."""

Found = tuple[float, int, Mapping[str, float]]
"""Score, number, and parts of the score of an operation found."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One operation found."""

    operation: Operation
    score: float
    """0..1, the probability that it is a right one."""
    parts: Mapping[str, float]
    """Feature -> what it adds to the utility (:mod:`capdex_engine.rank.blend`) that the score follows;
    ``exact`` where the query names the operation, which then decides alone."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Hits, best first, and what to try where nothing or nothing certain was found."""

    hits: tuple[Hit, ...]
    hint: str | None
    read_as: str | None = None
    """The query in correct English, where it is not the query itself."""


@dataclass(frozen=True, slots=True)
class _Ranked:
    rows: NDArray[np.int64]
    scores: NDArray[np.float64]
    parts: NDArray[np.float64]
    """Shape (rows, FEATURES)."""
    serves: float
    """Below 0 where nothing here is likely to be right (:meth:`Blend.serves`)."""


class Searcher:
    """Searches a fixed sequence of operations; safe to share between threads.

    Args:
        operations: What can be found, in any order; the result does not depend on it.
        encoder: Turns a request into a vector of the same space as ``vectors``.
        vectors: One row per operation, normalised, of :func:`operation_text`.
        blend: What weighs words and meaning.
    """

    def __init__(
        self,
        operations: Sequence[Operation],
        encoder: Encoder,
        *,
        vectors: NDArray[np.float32],
        blend: Blend = FITTED,
    ) -> None:
        if len(operations) != len(vectors):
            raise ValueError(f"{len(operations)} operations need as many vectors, not {len(vectors)}")
        # Inside, everything stands in the order of names: ties fall the same way for any input order.
        self._order = np.array(
            sorted(range(len(operations)), key=lambda i: (operations[i].name, operations[i].key)),
            dtype=np.int64,
        )
        self._operations = tuple(operations[i] for i in self._order)
        self._encoder = encoder
        self._blend = blend
        self._lexical = LexicalIndex(self._operations)
        self._dense = DenseIndex(vectors[self._order])
        self._exact = ExactNames(self._operations)
        self._requests = RequestReader(self._lexical)
        self._reader = FeatureReader(self._operations, self._lexical)
        self._twins = twin_groups(self._operations)
        self._may: NDArray[np.bool_] | None = None

    @classmethod
    def build(
        cls,
        operations: Sequence[Operation],
        encoder: Encoder,
        *,
        store: VectorStore | None = None,
        progress: Callable[[int, int], None] | None = None,
        blend: Blend = FITTED,
    ) -> Searcher:
        """Encode the operations, through ``store`` where one is given, and index them."""
        texts = [operation_text(o) for o in operations]
        if not texts:
            vectors = np.zeros((0, encoder.dimension), dtype=np.float32)
        else:
            vectors = store.encode(texts, progress=progress) if store else encoder.encode(texts)
        return cls(operations, encoder, vectors=vectors, blend=blend)

    @property
    def operations(self) -> tuple[Operation, ...]:
        """What can be found, in the order of the rows that :meth:`describe` speaks of."""
        return self._operations

    def blended(self, blend: Blend) -> Searcher:
        """Return the same searcher with another blend; both share their indexes."""
        other = copy(self)
        other._blend = blend
        return other

    def within(self, permitted: NDArray[np.bool_]) -> Searcher:
        """Return a searcher that answers as one of the permitted operations alone; both share their indexes.

        The others are left out inside the indexes, and lend it nothing: no word that it knows or corrects
        to, no rarity, no name, no rival. Cheap enough to be made for every caller of a large catalog.

        Args:
            permitted: ``permitted[i]`` says whether ``operations[i]``, as they were handed in, is there.
        """
        if permitted.all():
            return self
        other = copy(self)
        other._may = permitted[self._order]
        other._lexical = self._lexical.within(other._may)
        other._requests = self._requests.within(other._lexical)
        other._reader = self._reader.within(other._lexical)
        return other

    def search(self, query: str, *, limit: int = 5, allowed: NDArray[np.bool_] | None = None) -> SearchResult:
        """Return at most ``limit`` hits among the allowed operations.

        Args:
            query: The request, in the caller's own words.
            limit: How many hits at most.
            allowed: ``allowed[i]`` says whether ``operations[i]`` may be found; all when ``None``. It is a
                filter of the caller's own: what it leaves out still lends its words (:meth:`within`).
        """
        may = self._both(allowed)
        named = self._exact.find(query, may)
        if not (named.whole or named.among or self._asks(query)):
            return SearchResult((), HINT_NO_WORDS)
        if not self._operations or (may is not None and not may.any()):
            return SearchResult((), HINT_NOTHING)
        reading, clauses = self.read(query)
        rankings = [self._rank(need, may) for need in self._needs(reading, clauses)]
        found = _merge(rankings, limit)
        if max(ranking.serves for ranking in rankings) < 0:
            found = []
        read_as = None if reading.english == query else reading.english
        return self._result(_with_names(found, named, limit), read_as)

    def _asks(self, query: str) -> bool:
        """Tell whether anything is asked: stop words alone ask nothing, but *who am I* does."""
        return bool(tokens(query)) or "who" in words(query)

    def _both(self, allowed: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
        if allowed is None:
            return self._may
        own = allowed[self._order]
        return own if self._may is None else own & self._may

    def read(self, query: str) -> tuple[Reading, tuple[str, ...]]:
        """Return the query as it is understood, and its needs where it has several."""
        reading = self._requests.read(query)
        clauses = split_needs(reading.english)
        return reading, clauses if len(clauses) > 1 else ()

    def texts(self, query: str) -> tuple[str, ...]:
        """Return what searching ``query`` encodes: the query, its reading in correct English, each need."""
        reading, clauses = self.read(query)
        return (*reading.texts, *clauses)

    def needs(self, query: str) -> list[Need]:
        """Return the request itself and, where it asks for several things, each of them."""
        return self._needs(*self.read(query))

    def _needs(self, reading: Reading, clauses: Sequence[str]) -> list[Need]:
        vectors = self._encoder.encode((*reading.texts, *clauses))
        own = len(reading.texts)
        whole = reading.vector(vectors[:own])
        inside = vectors[own:] + CONTEXT * whole
        inside /= np.maximum(np.linalg.norm(inside, axis=1, keepdims=True), 1e-9)
        foreign = 1.0 if reading.language else foreign_share(reading.text)
        return [
            Need(text, vector, self._lexical.terms(text), foreign, part=number > 0)
            for number, (text, vector) in enumerate(
                zip([reading.english, *clauses], [whole, *inside], strict=True)
            )
        ]

    def describe(
        self, need: Need, may: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]:
        """Return a need's candidates, their features and the gates (:mod:`capdex_engine.rank.features`)."""
        scores = self._lexical.scores(need.terms)
        worded = top(scores, CANDIDATES, may)
        rows, similarities = self._dense.candidates(need.vector, CANDIDATES, may, worded)
        return rows, *self._reader.read(need, rows, scores, similarities)

    def _rank(self, need: Need, may: NDArray[np.bool_] | None) -> _Ranked:
        rows, features, gates = self.describe(need, may)
        parts = self._blend.contributions(features, gates)
        utility = parts.sum(axis=1)
        scores = self._blend.probabilities(utility, gates).round(4)
        groups = self._twins[rows]
        if (groups >= 0).any():
            idf = self._lexical.idf[list(need.terms.known)]
            tiers = field_tiers(self._lexical.hits(need.terms, rows), idf)
            scores = np.round(deal_by_field(scores, tiers, groups), 4)
        order = np.lexsort((rows, -scores))
        return _Ranked(rows[order], scores[order], parts[order], self._blend.serves(utility, gates))

    def _result(self, found: list[Found], read_as: str | None) -> SearchResult:
        hits = tuple(Hit(self._operations[row], score, parts) for score, row, parts in found)
        if not hits:
            return SearchResult((), HINT_NOTHING, read_as)
        return SearchResult(hits, HINT_WEAK if hits[0].score < _WEAK else None, read_as)


def _merge(rankings: Sequence[_Ranked], limit: int) -> list[Found]:
    """Take the needs' best in turn until ``limit``; each operation with the best score any need gave it."""
    chosen = _in_turn(rankings[1:] or rankings, limit)
    best: dict[int, Found] = {}
    for ranking in rankings:
        for i, row in enumerate(ranking.rows[: 4 * limit].tolist()):
            score = float(ranking.scores[i])
            if row in chosen and (row not in best or score > best[row][0]):
                best[row] = (score, row, dict(zip(FEATURES, ranking.parts[i].tolist(), strict=True)))
    return sorted((best[row] for row in chosen), key=lambda f: (-f[0], f[1]))


def _in_turn(rankings: Sequence[_Ranked], limit: int) -> Collection[int]:
    chosen: dict[int, None] = {}
    for place in range(max((len(r.rows) for r in rankings), default=0)):
        for ranking in rankings:
            if place < min(len(ranking.rows), 4 * limit) and len(chosen) < limit:
                chosen.setdefault(int(ranking.rows[place]))
        if len(chosen) >= limit:
            break
    return chosen


def _with_names(found: list[Found], named: Named, limit: int) -> list[Found]:
    """Put what the query names first, and keep a place for each."""
    given = {row: AMONG for row in named.among} | {row: WHOLE for row in named.whole}
    parts = {row: p for _, row, p in found}
    exact = [(score, row, {**parts.get(row, {}), "exact": 1.0}) for row, score in given.items()]
    rest = [f for f in found if f[1] not in given]
    ordered = sorted([*exact, *rest], key=lambda f: (-f[0], f[1]))
    return ordered[:limit]
