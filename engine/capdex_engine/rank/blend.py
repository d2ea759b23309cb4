"""Words and meaning in one score, by weights that depend on the request.

``utility = sum over features f and gates g of  WEIGHTS[f][g] * f(request, operation) * g(request)``

orders the operations of one request; a logistic over the utility and the request's gates turns it
into the probability that the operation is a right one. A second logistic, over the best
operation's part in that and its lead over the next, says whether the catalog serves the request at all.
``capdex bench tune`` fits all three on training requests, never on data that judges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from capdex_engine.rank.features import FEATURES, GATES
from capdex_engine.rank.weights import CALIBRATION, SERVED, WEIGHTS

CEILING: Final = 0.96
"""No ranked match scores above it: what lies above is for exact names."""

Weights = Mapping[str, Mapping[str, float]]
"""Feature -> gate -> weight; what is absent is 0."""


@dataclass(frozen=True)
class Blend:
    """Fitted numbers, ready to be applied.

    Args:
        weights: Feature -> gate -> weight.
        calibration: ``utility`` -> slope, gate -> shift.
        served: ``logit`` and ``lead`` -> slope, gate -> shift (:meth:`serves`).
    """

    weights: Weights
    calibration: Mapping[str, float]
    served: Mapping[str, float]

    def contributions(
        self, features: NDArray[np.float32], gates: NDArray[np.float32]
    ) -> NDArray[np.float64]:
        """Return what each feature adds to the utility of each candidate, shape (rows, FEATURES)."""
        result: NDArray[np.float64] = features.astype(np.float64) * (self._matrix @ gates)
        return result

    def logits(self, utility: NDArray[np.float64], gates: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the log-odds that each candidate is a right one, rising with the utility."""
        result: NDArray[np.float64] = self.calibration["utility"] * utility + _shift(self.calibration, gates)
        return result

    def serves(self, logits: NDArray[np.float64], gates: NDArray[np.float32]) -> float:
        """Return a number below 0 where the request is likely to be served by no candidate."""
        best, second = best_two(logits)
        given = self.served.get("logit", 0.0) * best + self.served.get("lead", 0.0) * (best - second)
        return given + _shift(self.served, gates)

    @cached_property
    def _matrix(self) -> NDArray[np.float64]:
        return np.array([[self.weights.get(f, {}).get(g, 0.0) for g in GATES] for f in FEATURES])


def scores_of(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return calibrated scores in 0..:data:`CEILING` of log-odds."""
    result: NDArray[np.float64] = CEILING / (1.0 + np.exp(-np.clip(logits, -30.0, 30.0)))
    return result


def best_two(logits: NDArray[np.float64]) -> tuple[float, float]:
    """Return the two highest log-odds; one alone, or none, is followed by :data:`NOWHERE`."""
    best, second = np.sort(np.append(np.clip(logits, NOWHERE, None), [NOWHERE] * 2))[:-3:-1].tolist()
    return best, second


def _shift(by_gate: Mapping[str, float], gates: NDArray[np.float32]) -> float:
    return float(np.dot([by_gate.get(gate, 0.0) for gate in GATES], gates))


NOWHERE: Final = -8.0
"""Log-odds below which no difference counts."""
FITTED: Final = Blend(WEIGHTS, CALIBRATION, SERVED)
"""As ``weights.py`` states it."""
