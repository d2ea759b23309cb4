"""Curves of a suite: recall by depth, calibration error, latency against quality."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from .evaluate import Result, macro_mean, mean
from .measures import Measure
from .suite import KEPT, Suite

BINS: Final = 10
"""Tenths of the score range 0..1."""


def recall_curve(results: Sequence[Result]) -> list[tuple[float, float]]:
    """Return ``(k, recall@k)`` for each k up to the answers kept."""
    depths = range(1, KEPT + 1)
    return [(float(k), macro_mean(results, Measure("recall", k))) for k in depths]


def scored_answers(results: Iterable[Result], *, depth: int = 10) -> list[tuple[float, bool]]:
    """Return ``(score, right)`` of every answer among the first ``depth``; any label makes it right."""
    return [
        (answer.score, answer.key in result.set.grades(query))
        for result in results
        for query in result.set.queries
        for answer in result.run.get(query.id, ())[:depth]
    ]


def calibration_error(results: Iterable[Result]) -> float:
    """Return :func:`expected_error` of all answers shown."""
    return expected_error(scored_answers(results))


def expected_error(answers: Sequence[tuple[float, bool]]) -> float:
    """Return the expected calibration error: mean ``|score - share right|`` over tenths, by their size.

    NaN without answers, or when scores leave 0..1: such scores are not probabilities.
    """
    if not answers or not all(0.0 <= score <= 1.0 for score, _ in answers):
        return math.nan
    scores = np.array([score for score, _ in answers])
    right = np.array([float(found) for _, found in answers])
    place = np.minimum((scores * BINS).astype(int), BINS - 1)
    gaps = [abs(float((scores - right)[place == one].sum())) for one in range(BINS)]
    return sum(gaps) / len(answers)


def latency_against_quality(suite: Suite, group: str, measure: Measure) -> dict[str, tuple[float, float]]:
    """Return system -> ``(p95 milliseconds, measure)``."""
    return {
        system: (
            mean(result.latency_ms(0.95) for result in suite.of(system, group)),
            macro_mean(suite.of(system, group), measure),
        )
        for system in suite.systems
    }
