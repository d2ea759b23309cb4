"""Three convex fits, each by Newton's method in plain numpy: same numbers on every machine to many digits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from capdex_engine.rank.blend import Blend, Weights, rivalry
from capdex_engine.rank.features import FEATURES, GATES

from .examples import Example

Array = NDArray[np.float64]

BY_HAND: Final[Weights] = {"same": {"always": 5.0}, "deprecated": {"always": -0.3}}
"""What training requests hold too few cases of: ``deprecated`` is small enough to part twins only, ``same``
large enough to carry a request that says just a name's or a summary's words."""
GATED: Final = frozenset({"meaning", "words", "words_share", "name_fill", "summary_fill"})
"""Features whose weight depends on the request; of the others one number is fitted."""
NO_WEIGHT: Final = frozenset({"part", "plain"})
"""Gates that no feature's weight depends on: they only move the probability and the floor."""
SCALES: Final[Mapping[str, float]] = {"meaning": 0.1}
"""The cosine moves in tenths: its weights may be ten times as large before they are held back."""
FALSE_ABSTENTION: Final = 0.05
"""Share of answerable requests that the floor may leave unanswered."""

CALIBRATED: Final = ("always", "known", "best_meaning", "part")
"""Gates that shift the probability. The others add nothing once the rivals are known."""
SERVING: Final = ("always", "best_meaning", "foreign")
"""Gates that say whether a request is served at all. How short it is and how much of it the catalog knows
add nothing to the AUROC on APIs that a fit did not see, and hold less for catalogs of other sizes."""
L2: Final = 3e-4
SERVED_L2: Final = 1e-3

_STEPS: Final = 60
_SMALL: Final = 1e-10


def fit_blend(examples: Sequence[Example], *, l2: float = L2, by_hand: Weights = BY_HAND) -> Blend:
    """Fit all three, each on top of the one before, with the digits that ``weights.py`` states."""
    weights = _rounded(fit_weights(examples, l2=l2, by_hand=by_hand))
    ranked = Blend(weights, {}, {})
    calibration, served = fit_calibration(examples, ranked), fit_served(examples, ranked)
    return Blend(weights, *({name: round(v, 3) for name, v in one.items()} for one in (calibration, served)))


def _rounded(weights: Weights, digits: int = 2) -> Weights:
    return {
        feature: {gate: round(value, digits) for gate, value in row.items() if round(value, digits)}
        for feature, row in weights.items()
    }


# --- order: a softmax over each request's candidates


@dataclass(frozen=True, slots=True)
class _Lists:
    """Examples with something to learn the order from, end to end."""

    features: Array
    starts: NDArray[np.int64]
    of: NDArray[np.int64]
    """Row -> its list."""
    wanted: Array
    """Row -> share of the probability that it should have."""
    gates: Array
    weights: Array


def fit_weights(examples: Sequence[Example], *, l2: float, by_hand: Weights = BY_HAND) -> Weights:
    """Return the weights that make right operations likely, under ``l2`` times their squares."""
    lists = _lists([one for one in examples if one.right.any() and not one.right.all()])
    fixed = np.array([[by_hand.get(f, {}).get(g, 0.0) for g in GATES] for f in FEATURES])
    free = np.array(
        [
            [f not in by_hand and (g == "always" or (f in GATED and g not in NO_WEIGHT)) for g in GATES]
            for f in FEATURES
        ]
    )
    scale = np.repeat([[SCALES.get(f, 1.0)] for f in FEATURES], len(GATES), axis=1)[free]

    def at(point: Array) -> tuple[float, Array, Array]:
        matrix = fixed.copy()
        matrix[free] = point
        loss, slope, bend = _softmax(lists, matrix)
        return (
            loss + l2 * float(scale @ point**2),
            slope[free] + 2 * l2 * scale * point,
            bend[np.ix_(free.ravel(), free.ravel())] + 2 * l2 * np.diag(scale),
        )

    matrix = fixed
    matrix[free] = newton(at, np.zeros(int(free.sum())))
    return {f: dict(zip(GATES, matrix[i].tolist(), strict=True)) for i, f in enumerate(FEATURES)}


def _lists(examples: Sequence[Example]) -> _Lists:
    sizes = np.array([len(one.right) for one in examples], dtype=np.int64)
    weights = np.array([one.weight / (one.needs if one.need else 1) for one in examples])
    return _Lists(
        features=np.concatenate([one.features for one in examples]).astype(np.float64),
        starts=np.cumsum(sizes) - sizes,
        of=np.repeat(np.arange(len(examples)), sizes),
        wanted=np.concatenate([one.right / one.right.sum() for one in examples]),
        gates=np.stack([one.gates for one in examples]).astype(np.float64),
        weights=weights / weights.sum(),
    )


def _softmax(lists: _Lists, matrix: Array) -> tuple[float, Array, Array]:
    """Return loss, gradient (FEATURES, GATES) and Hessian over the flattened matrix."""
    rows = lists.features
    utility = np.einsum("rf,rf->r", rows, (lists.gates @ matrix.T)[lists.of])
    utility -= np.maximum.reduceat(utility, lists.starts)[lists.of]
    odds = np.exp(utility)
    total = np.add.reduceat(odds, lists.starts)
    share = odds / total[lists.of]
    loss = float(lists.weights @ (np.log(total) - np.add.reduceat(lists.wanted * utility, lists.starts)))
    mean = np.add.reduceat(rows * share[:, None], lists.starts)
    slope = mean - np.add.reduceat(rows * lists.wanted[:, None], lists.starts)
    products = np.einsum("ra,rb,r->rab", rows, rows, share)
    spread = np.add.reduceat(products, lists.starts) - np.einsum("qa,qb->qab", mean, mean)
    gates = np.einsum("qc,qd,q->qcd", lists.gates, lists.gates, lists.weights)
    bend = np.einsum("qab,qcd->acbd", spread, gates, optimize=True)
    size = matrix.size
    return loss, np.einsum("qa,qc,q->ac", slope, lists.gates, lists.weights), bend.reshape(size, size)


# --- calibration and floor: logistics


def fit_calibration(examples: Sequence[Example], blend: Blend) -> dict[str, float]:
    """Return slopes and shifts that turn utilities of what a caller sees into log-odds of being right."""
    rows: list[list[float]] = []
    right: list[bool] = []
    weights: list[float] = []
    for one in examples:
        if not one.shown:
            continue
        utility = blend.utilities(one.features, one.gates)
        best = np.lexsort((np.arange(len(utility)), -utility))[: one.shown]
        rows += [[float(utility[i]), rivalry(utility), *_chosen(one, CALIBRATED)] for i in best]
        right += one.right[best].tolist()
        weights += [one.weight] * len(best)
    return dict(zip(("utility", "rivals", *CALIBRATED), logistic(rows, right, weights).tolist(), strict=True))


def fit_served(examples: Sequence[Example], blend: Blend) -> dict[str, float]:
    """Return slopes and shifts of what tells requests that the catalog serves from others.

    Fitted on catalogs of one API, where people wrote what nothing there serves; both kinds weigh the same.
    The constant is set so that no more than :data:`FALSE_ABSTENTION` of the served ones fall below 0.
    """
    used = [one for one in examples if one.shown and one.alone] or [one for one in examples if one.shown]
    rows = np.array(
        [[rivalry(blend.utilities(one.features, one.gates)), *_chosen(one, SERVING)] for one in used]
    )
    answered = np.array([bool(one.answers) for one in used])
    weights = np.array([one.weight for one in used])
    for kind in (answered, ~answered):
        weights[kind] /= max(weights[kind].sum(), 1e-9)
    found = logistic(rows, answered, weights, l2=SERVED_L2)
    lowest = float(np.quantile((rows @ found)[answered], FALSE_ABSTENTION))
    served = dict(zip(("rivals", *SERVING), found.tolist(), strict=True))
    return {**served, "always": served["always"] - lowest}


def _chosen(one: Example, gates: Sequence[str]) -> list[float]:
    return [float(one.gates[GATES.index(gate)]) for gate in gates]


def logistic(
    rows: Sequence[Sequence[float]] | Array,
    right: Sequence[bool] | NDArray[np.bool_],
    weights: Sequence[float] | Array,
    *,
    l2: float = 1e-5,
) -> Array:
    """Return one coefficient per column; the constant is a column like any other."""
    table, wanted = np.array(rows, dtype=np.float64), np.array(right, dtype=np.float64)
    mass = np.array(weights, dtype=np.float64) / np.sum(weights)

    def at(point: Array) -> tuple[float, Array, Array]:
        score = table @ point
        chance = 1.0 / (1.0 + np.exp(-np.clip(score, -40, 40)))
        loss = float(mass @ (np.logaddexp(0.0, score) - wanted * score)) + l2 * float(point @ point)
        slope = table.T @ (mass * (chance - wanted)) + 2 * l2 * point
        bend = (table * (mass * chance * (1 - chance))[:, None]).T @ table
        return loss, slope, bend + 2 * l2 * np.eye(len(point))

    return newton(at, np.zeros(table.shape[1]))


def newton(at: Callable[[Array], tuple[float, Array, Array]], point: Array) -> Array:
    """Return the lowest point of a convex function given by its value, gradient and Hessian."""
    loss, slope, bend = at(point)
    for _ in range(_STEPS):
        move = np.linalg.solve(bend, slope)
        if float(slope @ move) < _SMALL:
            break
        length = 1.0
        while (there := at(point - length * move))[0] > loss and length > _SMALL:
            length /= 2
        point = point - length * move
        loss, slope, bend = there
    return point
