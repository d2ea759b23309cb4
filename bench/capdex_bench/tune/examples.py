"""Requests as the blend sees them: what a fit needs to know, read through the production searcher."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from capdex_engine.encode import VectorStore
from capdex_engine.rank import Searcher
from capdex_engine.rank.features import Need

from ..formats import Query
from .material import ALONE, PUBLIC, Part

DEPTH: Final = 10
"""Answers that a caller sees, shared among the needs of a request."""
KIND_WEIGHTS: Final = {"foreign": 0.3, "none": 0.3}
"""The training data holds more of them than callers send."""
PUBLIC_WEIGHT: Final = 1.0


@dataclass(frozen=True, slots=True)
class Example:
    """One need of a request and its candidates."""

    features: NDArray[np.float32]
    """Shape (candidates, FEATURES)."""
    gates: NDArray[np.float32]
    right: NDArray[np.bool_]
    """Shape (candidates,); none where nothing serves the request."""
    weight: float
    answers: int
    """Operations that serve the request, candidates or not."""
    need: int = 0
    """0: the whole request; else which of its needs."""
    needs: int = 1
    """Needs that the request was split into."""
    alone: bool = False
    """Whether the catalog is one API's."""

    @property
    def shown(self) -> int:
        """How many of the candidates a caller would see."""
        if self.needs > 1 and not self.need:
            return 0
        return -(-DEPTH // self.needs)


class Remembered:
    """An encoder that looks vectors up in memory, after one call for all of them."""

    def __init__(self, store: VectorStore, identity: str, dimension: int) -> None:
        self.identity, self.dimension = identity, dimension
        self._store = store
        self._vectors: dict[str, NDArray[np.float32]] = {}

    def learn(self, texts: Iterable[str]) -> None:
        """Encode what is new."""
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            self._vectors.update(zip(new, self._store.encode(new), strict=True))

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return (n, dimension) float32, rows of length 1."""
        self.learn(texts)
        return np.stack([self._vectors[text] for text in texts])


def read_examples(part: Part, searcher: Searcher) -> list[Example]:
    """Return the examples of every request, split as in production."""
    keys = np.array([operation.key for operation in searcher.operations], dtype=object)
    alone = part.group == ALONE
    found: list[Example] = []
    for query in part.set.queries:
        labels = part.set.grades(query)
        right = np.isin(keys, list(labels))
        needs = searcher.needs(query.text)
        found += [
            _example(searcher, need, right, _weight(part, query), place, max(len(needs) - 1, 1), alone=alone)
            for place, need in enumerate(needs)
        ]
    return found


def _weight(part: Part, query: Query) -> float:
    return KIND_WEIGHTS.get(query.type, PUBLIC_WEIGHT if part.group == PUBLIC else 1.0)


def _example(
    searcher: Searcher,
    need: Need,
    right: NDArray[np.bool_],
    weight: float,
    place: int,
    needs: int,
    *,
    alone: bool = False,
) -> Example:
    rows, features, gates = searcher.describe(need)
    return Example(features, gates, right[rows], weight, int(right.sum()), place, needs, alone)
