"""The law of fields: among operations alike in all else, name over summary over path.

Operations that hold the very same words, each in other fields, are *twins*: whatever meaning makes
of the order of their words is noise. Their scores are dealt out again by where the request's words
stand, so that the law holds by construction, whatever the blend and the encoder are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from capdex_engine.operation import Operation
from capdex_engine.rank.lexical import BIT, field_texts
from capdex_engine.text import STOP_WORDS, stem, words

STEP: Final = 1e-4
"""Least distance between the scores of two ranks of twins: the digits that a score shows."""

_TIERS: Final = (
    (BIT["name"] | BIT["keywords"] | BIT["operation_id"] | BIT["compounds"], 3),
    (BIT["summary"], 2),
    (~0 & 0xFFFF, 1),
)


def twin_groups(operations: Sequence[Operation]) -> NDArray[np.int64]:
    """Return a group number per operation, shape (n,); -1 for one without twins."""
    members: dict[object, list[int]] = defaultdict(list)
    for row, operation in enumerate(operations):
        members[_words_of(operation)].append(row)
    groups = np.full(len(operations), -1, dtype=np.int64)
    for number, rows in enumerate(r for r in members.values() if len(r) > 1):
        groups[rows] = number
    return groups


def _words_of(operation: Operation) -> object:
    # Numbers and single letters keep names unique; they say nothing of what an operation does.
    found = {stem(w) for text in field_texts(operation).values() for w in words(text) if w not in STOP_WORDS}
    return operation.method, operation.deprecated, frozenset(w for w in found if len(w) > 1 and w.isalpha())


def field_tiers(masks: NDArray[np.uint16], idf: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return how well placed a request's words are, shape (rows,), from hits of shape (terms, rows)."""
    tier = np.zeros(masks.shape, dtype=np.int64)
    for bits, value in reversed(_TIERS):
        tier[(masks & bits) != 0] = value
    placed: NDArray[np.float64] = np.round(idf.astype(np.float64) @ tier, 6)
    return placed


def deal_by_field(
    scores: NDArray[np.float64], tiers: NDArray[np.float64], groups: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the scores with those of each group dealt out again, the best to the best placed."""
    dealt = scores.copy()
    for group in np.unique(groups[groups >= 0]):
        rows = np.flatnonzero(groups == group)
        if len(rows) > 1 and len(np.unique(tiers[rows])) > 1:
            _deal(dealt, rows[np.lexsort((-scores[rows], -tiers[rows]))], tiers)
    return dealt


def _deal(dealt: NDArray[np.float64], placed: NDArray[np.int64], tiers: NDArray[np.float64]) -> None:
    dealt[placed] = np.sort(dealt[placed])[::-1]
    # From the last up, so that scores near 0 part as well.
    for before, after in reversed(list(pairwise(placed))):
        gap = STEP if tiers[after] < tiers[before] else 0.0
        dealt[before] = max(dealt[before], dealt[after] + gap)
