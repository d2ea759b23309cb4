"""The traps: every request and every validation, through a real catalog and a dry run.

Where a case leaves room, traps/CHOICES.md says what capdex does.
"""

from __future__ import annotations

from collections import Counter

import pytest

from trap_compare import compare
from trap_support import Case, cases, choices, counts, outcome

REQUESTS = cases("cases")
VALIDATIONS = cases("validate")
CHOICES = choices()
INVALID = "invalid_capability_arguments"


def answer_of(case: Case) -> str:
    """Return the answer as CHOICES.md writes it."""
    actual = outcome(case)
    if case.kind == "cases":
        return str(actual.get("error") or f"{actual['method']} {actual['url']}")
    assert actual.get("error") in {None, INVALID}
    return "refused" if "error" in actual else "accepted"


@pytest.mark.parametrize("case", REQUESTS, ids=lambda case: case.id)
def test_a_request_is_as_expected(case: Case) -> None:
    if not case.strict:
        assert answer_of(case) == CHOICES[case.id].answer
    if case.strict or CHOICES[case.id].as_expected:
        assert compare(case.fields, outcome(case)) == []


@pytest.mark.parametrize("case", VALIDATIONS, ids=lambda case: case.id)
def test_arguments_are_accepted_or_refused_as_expected(case: Case) -> None:
    if case.strict:
        assert answer_of(case) == ("accepted" if case.fields["valid"] else "refused")
    else:
        assert answer_of(case) == CHOICES[case.id].answer


def test_no_case_is_left_out() -> None:
    requests = Counter(case.trap for case in REQUESTS)
    validations = Counter(case.trap for case in VALIDATIONS)
    strict = Counter(case.trap for case in (*REQUESTS, *VALIDATIONS) if case.strict)
    assert {trap: (requests[trap], validations[trap], strict[trap]) for trap in counts()} == counts()
    assert (requests.total(), validations.total()) == (147, 64)


def test_each_choice_is_about_one_case_that_leaves_room() -> None:
    assert set(CHOICES) == {case.id for case in (*REQUESTS, *VALIDATIONS) if not case.strict}
