"""Words and meaning in one score, by weights that depend on the request.

``utility = sum over features f and gates g of  WEIGHTS[f][g] * f(request, operation) * g(request)``

orders the operations of one request; a logistic over the utility and the request's gates turns it
into the probability that the operation is a right one. Both were fitted on training requests
(own-written ones for 60 APIs and public training sets), never on data that judges.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from capdex_engine.rank.features import FEATURES, GATES
from capdex_engine.rank.weights import CALIBRATION, WEIGHTS

CEILING: Final = 0.95
"""No ranked match scores above it: what lies above is for exact names."""

_MATRIX: Final = np.array(
    [[WEIGHTS.get(f, {}).get(g, 0.0) for g in GATES] for f in FEATURES], dtype=np.float64
)
_SHIFT: Final = np.array([CALIBRATION.get(g, 0.0) for g in GATES], dtype=np.float64)


def contributions(features: NDArray[np.float32], gates: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return what each feature adds to the utility of each candidate, shape (rows, FEATURES)."""
    result: NDArray[np.float64] = features.astype(np.float64) * (_MATRIX @ gates)
    return result


def utilities(features: NDArray[np.float32], gates: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return what orders the candidates of one request, shape (rows,)."""
    result: NDArray[np.float64] = contributions(features, gates).sum(axis=1)
    return result


def probabilities(utility: NDArray[np.float64], gates: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return calibrated scores in 0..:data:`CEILING`, rising with the utility."""
    logit = CALIBRATION["utility"] * utility + float(_SHIFT @ gates)
    result: NDArray[np.float64] = CEILING / (1.0 + np.exp(-np.clip(logit, -30.0, 30.0)))
    return result


def weight_table() -> Mapping[str, Mapping[str, float]]:
    """Return the weights as they are applied: feature -> gate -> weight."""
    return {f: {g: float(_MATRIX[i, j]) for j, g in enumerate(GATES)} for i, f in enumerate(FEATURES)}
