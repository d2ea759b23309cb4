"""Words and meaning in one score, by weights that depend on the request.

``utility = sum over features f and gates g of  WEIGHTS[f][g] * f(request, operation) * g(request)``

orders the operations of one request. A logistic over an operation's utility, that of all its rivals
together (``log of the sum of exp utility``), and the request's gates turns it into the probability that the
operation is a right one; another one, without the operation, says whether any of them is.
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

PLAIN: Final = 0.3
"""Gate ``plain`` from which words alone show that a request is served: 99 of 100 unserved training requests
lie below, and a third of the served above."""

_PLAIN_GATE: Final = GATES.index("plain")
_STRAIGHT: Final = 0.9  # probabilities up to which the score is the probability itself
_NOBODY: Final = -30.0  # the rivals' utility where there are none


@dataclass(frozen=True)
class Blend:
    """Fitted numbers, ready to be applied.

    Args:
        weights: Feature -> gate -> weight.
        calibration: ``utility`` and ``rivals`` -> slope, gate -> shift (:meth:`probabilities`).
        served: ``rivals`` -> slope, gate -> shift (:meth:`serves`).
    """

    weights: Weights
    calibration: Mapping[str, float]
    served: Mapping[str, float]

    def contributions(self, features: NDArray[np.float32], gates: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return what each feature adds to the utility of each candidate, shape (rows, FEATURES)."""
        result: NDArray[np.float64] = features.astype(np.float64) * (self._matrix @ gates)
        return result

    def utilities(self, features: NDArray[np.float32], gates: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return what orders the candidates of one request, shape (rows,)."""
        result: NDArray[np.float64] = self.contributions(features, gates).sum(axis=1)
        return result

    def probabilities(self, utility: NDArray[np.float64], gates: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the scores of all candidates of one request, rising with the utility."""
        slope, rivals = (self.calibration[name] for name in ("utility", "rivals"))
        logits = slope * utility + rivals * rivalry(utility) + float(self._calibration_shifts @ gates)
        result: NDArray[np.float64] = below_ceiling(1.0 / (1.0 + np.exp(-np.clip(logits, -30.0, 30.0))))
        return result

    def serves(self, utility: NDArray[np.float64], gates: NDArray[np.float32]) -> float:
        """Return a number below 0 where a request with these candidates is likely to be served by none.

        One that plainly says the words of a candidate is never taken for unserved, whatever it means.
        """
        likely = self.served["rivals"] * rivalry(utility) + float(self._served_shifts @ gates)
        return max(likely, 0.0) if len(utility) and gates[_PLAIN_GATE] >= PLAIN else likely

    @cached_property
    def _matrix(self) -> NDArray[np.float64]:
        return np.array([_by_gate(self.weights.get(feature, {})) for feature in FEATURES])

    @cached_property
    def _calibration_shifts(self) -> NDArray[np.float64]:
        return _by_gate(self.calibration)

    @cached_property
    def _served_shifts(self) -> NDArray[np.float64]:
        return _by_gate(self.served)


def rivalry(utility: NDArray[np.float64]) -> float:
    """Return ``log(sum(exp(utility)))``: near the best where it stands alone, above it in a crowd."""
    return float(np.logaddexp.reduce(utility)) if len(utility) else _NOBODY


def below_ceiling(probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probabilities with the last tenth pressed together, so that none passes the ceiling."""
    over = np.maximum(probability - _STRAIGHT, 0.0)
    result: NDArray[np.float64] = np.minimum(probability, _STRAIGHT) + over * (CEILING - _STRAIGHT) / (
        1 - _STRAIGHT
    )
    return result


def _by_gate(numbers: Mapping[str, float]) -> NDArray[np.float64]:
    return np.array([numbers.get(gate, 0.0) for gate in GATES])


FITTED: Final = Blend(WEIGHTS, CALIBRATION, SERVED)
"""As ``weights.py`` states it."""
