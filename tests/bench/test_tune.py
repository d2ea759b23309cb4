"""Fitting the blend: the numbers follow the examples, and weights.py says them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from capdex_bench.reliability import auroc
from capdex_bench.tune.examples import Example
from capdex_bench.tune.fit import BY_HAND, FALSE_ABSTENTION, fit_blend, fit_weights, logistic, newton
from capdex_bench.tune.material import FOLDS, Part, load_material, merged
from capdex_bench.tune.render import weights_module
from capdex_engine.rank.features import FEATURES, GATES

MEANING = FEATURES.index("meaning")


def examples(feature: str, *, count: int = 60, noise: float = 0.3) -> list[Example]:
    """Return requests whose right operation is the one with the most of a feature, most of the time."""
    random = np.random.default_rng(7)
    made = []
    for number in range(count):
        features = random.random((6, len(FEATURES)), dtype=np.float32)
        features[:, [FEATURES.index(name) for name in BY_HAND]] = 0
        signal = features[:, FEATURES.index(feature)] + noise * random.random(6)
        right = np.zeros(6, dtype=np.bool_)
        unserved = number % 5 == 0
        if not unserved:
            right[int(signal.argmax())] = True
        gates = np.zeros(len(GATES), dtype=np.float32)
        gates[GATES.index("always")] = 1
        made.append(Example(features, gates, right, 1.0, int(right.sum())))
    return made


@pytest.mark.parametrize("feature", ["meaning", "words_share", "name_fill"])
def test_the_feature_that_tells_right_from_wrong_gets_the_weight(feature: str) -> None:
    weights = fit_weights(examples(feature), l2=1e-3)
    always = {name: row["always"] for name, row in weights.items() if name not in BY_HAND}
    assert max(always, key=lambda name: always[name]) == feature


def test_what_is_set_by_hand_stays() -> None:
    weights = fit_weights(examples("meaning"), l2=1e-3)
    assert {name: weights[name]["always"] for name in BY_HAND} == {
        name: row["always"] for name, row in BY_HAND.items()
    }


def test_a_fit_gives_the_same_numbers_again_and_calibrates() -> None:
    made = examples("meaning")
    blend = fit_blend(made)
    assert blend == fit_blend(made)
    assert blend.calibration["utility"] > 0 > blend.calibration["rivals"]
    scores, right = _scores(blend.probabilities, blend.utilities, made)
    assert abs(scores.mean() - right.mean()) < 0.02


def _scores(probabilities: Any, utilities: Any, made: Sequence[Example]) -> tuple[np.ndarray, np.ndarray]:
    scores = [probabilities(utilities(one.features, one.gates), one.gates) for one in made]
    return np.concatenate(scores), np.concatenate([one.right for one in made])


def test_the_floor_leaves_few_served_requests_unanswered() -> None:
    made = examples("meaning", count=300)
    blend = fit_blend(made)
    served = [
        blend.serves(blend.utilities(one.features, one.gates), one.gates) >= 0 for one in made if one.answers
    ]
    assert np.mean(served) >= 1 - FALSE_ABSTENTION - 0.01


def test_weights_are_written_as_python_that_holds_the_same_numbers() -> None:
    blend = fit_blend(examples("meaning"))
    tree = ast.parse(weights_module(blend, "Fitted in a test."))
    found = {
        ast.unparse(node.target): ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and node.value
    }
    assert found["CALIBRATION"] == dict(blend.calibration)
    assert found["SERVED"] == dict(blend.served)
    assert found["WEIGHTS"] == {name: dict(row) for name, row in blend.weights.items() if row}


def test_newton_finds_the_lowest_point() -> None:
    def bowl(point: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        away = point - np.array([1.0, -2.0])
        return float(away @ away), 2 * away, 2 * np.eye(2)

    assert np.allclose(newton(bowl, np.zeros(2)), [1.0, -2.0])


def test_a_logistic_gives_the_share_of_right_ones() -> None:
    (constant,) = logistic([[1.0]] * 4, [True, True, True, False], [1.0] * 4, l2=0)
    assert 1 / (1 + np.exp(-constant)) == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("higher", "lower", "expected"), [([2.0], [1.0], 1.0), ([1.0], [1.0], 0.5), ([0.0], [1.0], 0.0)]
)
def test_auroc_counts_pairs(higher: list[float], lower: list[float], expected: float) -> None:
    assert auroc([(score, True) for score in higher] + [(score, False) for score in lower]) == expected


def test_the_folds_share_no_api(shared: Path) -> None:
    parts = load_material(shared / "train")
    alone = [part for part in parts if part.group == "alone"]
    sources: dict[str, set[int]] = {}
    for part in alone:
        sources.setdefault(part.set.operations[0].source, set()).add(part.fold)
    assert all(len(folds) == 1 for folds in sources.values())
    assert {part.fold for part in alone} == set(range(FOLDS))
    assert all(isinstance(part, Part) for part in merged(alone))
