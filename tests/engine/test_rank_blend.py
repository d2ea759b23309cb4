"""Blend, intent and tool schema: the laws that the fitted numbers must keep."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from capdex_engine.rank.blend import CEILING, FITTED, PLAIN, Blend, rivalry
from capdex_engine.rank.features import FEATURES, GATES
from capdex_engine.rank.intent import METHODS, method_agreement, wants_many
from capdex_engine.rank.tool import SEARCH_INPUT
from capdex_engine.rank.weights import CALIBRATION, SERVED, WEIGHTS

GATE_VALUES = st.lists(st.floats(0, 1, width=32), min_size=len(GATES), max_size=len(GATES))


def test_every_weight_belongs_to_a_feature_and_a_gate() -> None:
    assert set(WEIGHTS) <= set(FEATURES)
    assert all(set(row) <= set(GATES) for row in WEIGHTS.values())
    assert {"utility", "rivals"} <= set(CALIBRATION) <= {"utility", "rivals", *GATES}
    assert {"rivals"} <= set(SERVED) <= {"rivals", *GATES}


@given(st.lists(st.floats(-60, 60), min_size=2, max_size=20), GATE_VALUES)
def test_scores_lie_between_zero_and_the_ceiling_and_rise_with_the_utility(
    utility: list[float], gates: list[float]
) -> None:
    ordered = np.sort(np.array(utility))
    scores = FITTED.probabilities(ordered, np.array(gates, dtype=np.float32))
    assert (scores >= 0).all()
    assert (scores <= CEILING).all()
    assert (np.diff(scores) >= 0).all()


def test_contributions_add_up_to_the_utility() -> None:
    features = np.random.default_rng(0).random((5, len(FEATURES)), dtype=np.float32)
    gates = np.ones(len(GATES), dtype=np.float32)
    assert np.allclose(FITTED.contributions(features, gates).sum(axis=1), FITTED.utilities(features, gates))


def test_a_rival_makes_an_operation_less_certain() -> None:
    gates = np.ones(len(GATES), dtype=np.float32)
    alone = FITTED.probabilities(np.array([5.0, -5.0]), gates)[0]
    contested = FITTED.probabilities(np.array([5.0, 5.0]), gates)[0]
    assert contested < alone


def test_the_better_the_candidates_the_likelier_a_request_is_served() -> None:
    gates = np.ones(len(GATES), dtype=np.float32)
    served = [FITTED.serves(np.array([best, -9.0]), gates) for best in (-9.0, 0.0, 9.0)]
    assert served == sorted(served)
    assert FITTED.serves(np.array([]), gates) < served[0]


def test_a_request_that_plainly_says_a_candidate_s_words_is_served() -> None:
    gates = np.zeros(len(GATES), dtype=np.float32)
    gates[GATES.index("always")] = 1
    unlikely = np.array([-9.0])
    assert FITTED.serves(unlikely, gates) < 0
    gates[GATES.index("plain")] = PLAIN
    assert FITTED.serves(unlikely, gates) >= 0
    assert FITTED.serves(np.array([]), gates) < 0


def test_the_rivalry_of_one_is_its_own_utility() -> None:
    assert rivalry(np.array([3.0])) == 3.0


def test_a_blend_without_weights_prefers_nothing() -> None:
    blank = Blend({}, {"utility": 1.0, "rivals": -1.0}, {"rivals": 1.0})
    features = np.random.default_rng(1).random((4, len(FEATURES)), dtype=np.float32)
    assert not blank.utilities(features, np.ones(len(GATES), dtype=np.float32)).any()


def test_a_verb_suits_its_methods() -> None:
    agreement = dict(zip(METHODS, method_agreement("delete the label").tolist(), strict=True))
    assert agreement == {
        "": 0, "GET": -1, "HEAD": -1, "POST": -1, "PUT": -1, "PATCH": -1, "DELETE": 1,
    }  # fmt: skip


def test_a_request_without_a_known_verb_says_nothing_of_methods() -> None:
    assert not method_agreement("audit trail").any()


def test_requests_for_collections_are_known() -> None:
    assert wants_many("list the labels")
    assert wants_many("all open bills")
    assert not wants_many("delete a label")


def test_the_tools_input_schema_is_valid_and_closed() -> None:
    Draft202012Validator.check_schema(dict(SEARCH_INPUT))
    validator = Draft202012Validator(dict(SEARCH_INPUT))
    assert validator.is_valid({"query": "x", "limit": 20, "source": "s", "readOnly": True})
    for wrong in (
        {},
        {"query": ""},
        {"query": "x" * 2001},
        {"query": "x", "limit": 21},
        {"query": "x", "a": 1},
    ):
        assert not validator.is_valid(wrong)
