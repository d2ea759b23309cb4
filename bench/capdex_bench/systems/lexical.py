"""BM25, as the textbook has it: the lexical baseline (not the engine's lexical index)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from capdex_engine.operation import SLOTS, Operation

from .base import Context, Scores, Search, ranked, tokens

K1: Final = 1.5
B: Final = 0.75


def bm25_text(operation: Operation) -> str:
    """Return what BM25 reads: name, summary, description, path, parameter and body property names."""
    params = (name for location in SLOTS for name in operation.params(location))
    parts = (operation.name, operation.summary, operation.description, operation.path)
    return " ".join((*parts, *params, *operation.body_properties))


class BM25:
    """BM25 over token lists, with Lucene's non-negative idf (``ln(1 + (N - n + .5) / (n + .5))``).

    One dense row of impacts per term is kept as ``(indices, impacts)``; scoring a request is a sum
    over its words, repeated words counting as often as they occur.
    """

    def __init__(self, corpus: Sequence[Sequence[str]], *, k1: float = K1, b: float = B) -> None:
        self.size = len(corpus)
        lengths = np.array([len(words) for words in corpus], dtype=np.float64)
        norms = k1 * (1 - b + b * lengths / max(lengths.mean(), 1.0)) if self.size else lengths
        found: dict[str, list[tuple[int, int]]] = {}
        for index, words in enumerate(corpus):
            for word, count in Counter(words).items():
                found.setdefault(word, []).append((index, count))
        self._impacts = {word: self._impact(hits, norms) for word, hits in found.items()}

    def _impact(self, hits: list[tuple[int, int]], norms: Scores) -> tuple[NDArray[np.int64], Scores]:
        indices = np.array([index for index, _ in hits])
        counts = np.array([count for _, count in hits], dtype=np.float64)
        idf = np.log1p((self.size - len(hits) + 0.5) / (len(hits) + 0.5))
        return indices, idf * counts / (counts + norms[indices])

    def scores(self, words: Sequence[str]) -> Scores:
        """Return one score per text of the corpus."""
        scores = np.zeros(self.size)
        for word in words:
            if word in self._impacts:
                indices, impacts = self._impacts[word]
                scores[indices] += impacts
        return scores


def bm25_index(operations: Sequence[Operation]) -> BM25:
    """Return the index over :func:`bm25_text`."""
    return BM25([tokens(bm25_text(operation)) for operation in operations])


def build_bm25(operations: Sequence[Operation], context: Context) -> Search:
    """BM25 alone; an operation that shares no word with the request is not returned."""
    index = bm25_index(operations)
    return ranked(operations, lambda text: index.scores(tokens(text)))
