"""Whether scores are the probabilities they claim to be, and whether silence comes at the right time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from .curves import BINS, expected_error, scored_answers
from .evaluate import Result
from .suite import KEPT, Suite

POOLED_GROUPS: Final = ("golden", "public")
"""Groups whose answers are also looked at together; merged ones hold the same requests again."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Answers whose scores lie in one tenth of 0..1."""

    number: int
    """0 for scores below 0.1, and so on."""
    score: float
    """Their mean score."""
    right: float
    """The share that is right."""
    count: int

    @property
    def range(self) -> str:
        """Which scores it holds."""
        return f"{self.number / BINS:.1f}-{(self.number + 1) / BINS:.1f}"


@dataclass(frozen=True, slots=True)
class Reliability:
    """Predicted against found shares of right answers, all answers pooled; any label makes one right."""

    count: int
    score: float
    """The mean score."""
    right: float
    """The share that is right."""
    error: float
    """Expected calibration error; NaN where scores leave 0..1."""
    auroc: float
    """Chance that a right answer scores above a wrong one; NaN where there is only one kind."""
    bins: tuple[Bin, ...]
    """Those that hold an answer; none where scores leave 0..1."""

    @classmethod
    def of(cls, results: Iterable[Result], *, depth: int = KEPT) -> Reliability:
        """Return it for the first ``depth`` answers of every request."""
        answers = scored_answers(results, depth=depth)
        error = expected_error(answers)
        return cls(
            count=len(answers),
            score=_mean([score for score, _ in answers]),
            right=_mean([right for _, right in answers]),
            error=error,
            auroc=auroc(answers),
            bins=() if math.isnan(error) else _bins(answers),
        )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan


def _bins(answers: Sequence[tuple[float, bool]]) -> tuple[Bin, ...]:
    held: dict[int, list[tuple[float, bool]]] = {}
    for score, right in answers:
        held.setdefault(min(int(score * BINS), BINS - 1), []).append((score, right))
    return tuple(
        Bin(number, _mean([score for score, _ in found]), _mean([right for _, right in found]), len(found))
        for number, found in sorted(held.items())
    )


def auroc(answers: Sequence[tuple[float, bool]]) -> float:
    """Return the chance that a right answer scores above a wrong one, ties counting half.

    The area under the ROC curve, from ranks (Mann and Whitney); NaN without both kinds.
    """
    right = np.array([found for _, found in answers], dtype=bool)
    wrong = len(right) - int(right.sum())
    if not wrong or not right.any():
        return math.nan
    _, place, counts = np.unique([score for score, _ in answers], return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    positive = int(right.sum())
    return float((ranks[right].sum() - positive * (positive + 1) / 2) / (positive * wrong))


@dataclass(frozen=True, slots=True)
class Unanswered:
    """How many requests got nothing, by whether the catalog holds an answer."""

    none: int
    """Requests that no operation serves."""
    none_left: int
    answerable: int
    answerable_left: int

    @classmethod
    def of(cls, results: Iterable[Result]) -> Unanswered:
        """Count over all requests of the results."""
        found = [
            (bool(result.set.grades(query)), not result.run.get(query.id))
            for result in results
            for query in result.set.queries
        ]
        served = [left for answerable, left in found if answerable]
        others = [left for answerable, left in found if not answerable]
        return cls(len(others), sum(others), len(served), sum(served))


def pooled(suite: Suite) -> dict[str, list[Result]]:
    """Return system -> its results on all of :data:`POOLED_GROUPS`; empty unless the suite holds them all."""
    if not set(POOLED_GROUPS) <= set(suite.groups):
        return {}
    return {
        system: [result for group in POOLED_GROUPS for result in suite.of(system, group)]
        for system in suite.systems
    }


def by_system(suite: Suite, group: str) -> dict[str, list[Result]]:
    """Return system -> its results on a group."""
    return {system: suite.of(system, group) for system in suite.systems}
