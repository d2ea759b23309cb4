"""The dense side alone on the held-out APIs: cosine of request and operation text, nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evaluate import DEPTH, Result, macro_mean, mean
from ..measures import Measure
from ..runs import Answer
from ..sets import QuerySet

Vectors = Callable[[Sequence[str]], NDArray[np.float32]]
"""Texts to (texts, dimension), rows of length 1."""

MEASURES = tuple(Measure.parse(name) for name in ("nDCG@10", "hit@1", "recall@5"))


def dense_results(sets: Sequence[QuerySet], vectors: Vectors) -> list[Result]:
    """Return each set's run by cosine alone; all texts are encoded in two calls."""
    from capdex_engine.rank import operation_text

    operations = [one.catalog() for one in sets]
    rows = vectors([operation_text(operation) for own in operations for operation in own])
    asked = vectors([query.text for one in sets for query in one.queries])
    results: list[Result] = []
    row = query = 0
    for one, own in zip(sets, operations, strict=True):
        scores = asked[query : query + len(one.queries)] @ rows[row : row + len(own)].T
        results.append(_result(one, [operation.key for operation in own], scores))
        row, query = row + len(own), query + len(one.queries)
    return results


def _result(one: QuerySet, keys: Sequence[str], scores: NDArray[np.float32]) -> Result:
    run = {}
    for query, own in zip(one.queries, scores, strict=True):
        best = np.lexsort((keys, -own))[:DEPTH]
        run[query.id] = tuple(Answer(keys[i], float(own[i]), "") for i in best)
    return Result(system="dense", set=one, run=run)


def figures(results: Sequence[Result]) -> dict[str, Any]:
    """Return macro means over the sets, and the mean nDCG@10 of each kind over its requests."""
    kinds: dict[str, list[float]] = {}
    for result in results:
        for kind, values in result.by_type(MEASURES[0]).items():
            kinds.setdefault(kind, []).extend(values.values())
    return {
        **{str(measure): _round(macro_mean(results, measure)) for measure in MEASURES},
        "kinds": {kind: _round(mean(values)) for kind, values in sorted(kinds.items())},
    }


def sentence(name: str, found: Mapping[str, Any]) -> str:
    """Return the figures as one line."""
    overall = "  ".join(f"{measure} {found[str(measure)]}" for measure in MEASURES)
    return f"{name}: {overall}  ({', '.join(f'{k} {v}' for k, v in found['kinds'].items())})"


def _round(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 4)
