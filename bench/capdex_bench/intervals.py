"""Bootstrap intervals of means over queries, and of the difference of two paired runs.

Queries are drawn with replacement within each set (a stratified bootstrap); the statistic is the
mean of the sets' means, as the tables report it. Percentile intervals: with some hundreds of
queries they differ from studentised ones by less than the last digit shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

RESAMPLES: Final = 2000
LEVEL: Final = 0.95
SEED: Final = 20261130

Values = Mapping[str, float]
"""Query id -> value."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with the bounds of its interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"

    @property
    def below_zero(self) -> bool:
        """Whether the whole interval lies below 0: a drop beyond the noise."""
        return self.high < 0

    @property
    def above_zero(self) -> bool:
        """Whether the whole interval lies above 0."""
        return self.low > 0


def _resampled(values: NDArray[np.float64], rng: np.random.Generator, resamples: int) -> NDArray[np.float64]:
    drawn = rng.integers(len(values), size=(resamples, len(values)))
    means: NDArray[np.float64] = values[drawn].mean(axis=1)
    return means


def interval(
    groups: Sequence[Sequence[float]], *, seed: int = SEED, resamples: int = RESAMPLES, level: float = LEVEL
) -> Interval:
    """Return the mean of the groups' means with its interval; empty groups are left out.

    Everything is NaN when no group holds a value.
    """
    arrays = [np.asarray(group, dtype=np.float64) for group in groups if len(group)]
    if not arrays:
        return Interval(np.nan, np.nan, np.nan)
    rng = np.random.default_rng(seed)
    means = np.mean([_resampled(array, rng, resamples) for array in arrays], axis=0)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(np.mean([array.mean() for array in arrays])), float(low), float(high))


def differences(before: Sequence[Values], after: Sequence[Values]) -> list[list[float]]:
    """Return ``after - before`` per set, over the queries that both hold.

    Raises:
        ValueError: When the two differ in their queries: then they are not a pair.
    """
    pairs = list(zip(before, after, strict=True))
    if any(one.keys() != other.keys() for one, other in pairs):
        raise ValueError("the two runs do not answer the same queries")
    return [[other[query] - one[query] for query in one] for one, other in pairs]


def paired(
    before: Sequence[Values], after: Sequence[Values], *, seed: int = SEED, resamples: int = RESAMPLES
) -> Interval:
    """Return the interval of the mean difference ``after - before`` (one mapping per set)."""
    return interval(differences(before, after), seed=seed, resamples=resamples)
