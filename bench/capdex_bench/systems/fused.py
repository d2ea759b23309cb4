"""Two ways to put the lexical and the dense baseline together without looking at the request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from capdex_engine.operation import Operation

from .base import Context, Scores, Search, ranked, tokens
from .lexical import bm25_index
from .minilm import cosines

WEIGHT: Final = 0.5
"""Of the dense side in the fixed blend."""
RRF_K: Final = 60
"""Constant of reciprocal rank fusion (Cormack, Clarke and Büttcher 2009)."""


def spread(scores: Scores) -> Scores:
    """Return scores scaled to 0..1 over the catalog; all 0 when they are all the same."""
    low, high = scores.min(), scores.max()
    return (scores - low) / (high - low) if high > low else np.zeros_like(scores)


def reciprocal_ranks(scores: Scores, *, floor: float) -> Scores:
    """Return ``1 / (60 + rank)`` for scores above ``floor``, 0 for the rest; ties share the best rank."""
    ordered = np.sort(-scores)
    ranks = np.searchsorted(ordered, -scores, side="left") + 1
    return np.where(scores > floor, 1.0 / (RRF_K + ranks), 0.0)


def build_blend(operations: Sequence[Operation], context: Context) -> Search:
    """Half BM25, half cosine, each scaled to 0..1 over the catalog."""
    index, dense = bm25_index(operations), cosines(operations, context.baseline)

    def score(text: str) -> Scores:
        return (1 - WEIGHT) * spread(index.scores(tokens(text))) + WEIGHT * spread(dense(text))

    return ranked(operations, score)


def build_rrf(operations: Sequence[Operation], context: Context) -> Search:
    """Reciprocal rank fusion of the two whole rankings."""
    index, dense = bm25_index(operations), cosines(operations, context.baseline)

    def score(text: str) -> Scores:
        lexical = reciprocal_ranks(index.scores(tokens(text)), floor=0.0)
        return lexical + reciprocal_ranks(dense(text), floor=-np.inf)

    return ranked(operations, score)
