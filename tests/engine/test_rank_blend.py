"""Blend, intent and tool schema: the laws that the fitted numbers must keep."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from capdex_engine.rank.blend import CEILING, probabilities, weight_table
from capdex_engine.rank.features import FEATURES, GATES
from capdex_engine.rank.intent import METHODS, method_agreement, wants_many
from capdex_engine.rank.tool import SEARCH_INPUT
from capdex_engine.rank.weights import CALIBRATION, ENGLISH_FLOOR, FLOOR, WEIGHTS

GATE_VALUES = st.lists(st.floats(0, 1, width=32), min_size=len(GATES), max_size=len(GATES))


def test_every_weight_belongs_to_a_feature_and_a_gate() -> None:
    assert set(WEIGHTS) <= set(FEATURES)
    assert all(set(row) <= set(GATES) for row in WEIGHTS.values())
    assert set(CALIBRATION) <= {"utility", *GATES}
    assert list(weight_table()) == list(FEATURES)


@given(st.lists(st.floats(-60, 60), min_size=2, max_size=20), GATE_VALUES)
def test_scores_lie_between_zero_and_the_ceiling_and_rise_with_the_utility(
    utility: list[float], gates: list[float]
) -> None:
    ordered = np.sort(np.array(utility))
    scores = probabilities(ordered, np.array(gates, dtype=np.float32))
    assert (scores >= 0).all()
    assert (scores <= CEILING).all()
    assert (np.diff(scores) >= 0).all()


def test_the_floors_lie_far_below_a_usual_score() -> None:
    assert 0 < FLOOR < ENGLISH_FLOOR <= 0.02


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
