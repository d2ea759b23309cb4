"""Patterns of strangers: right answers, and an end to every match."""

from __future__ import annotations

import re
from re import _parser  # type: ignore[attr-defined]

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex_engine.call.automaton import MAX_STATES, Automaton, NotRegular
from capdex_engine.call.patterns import MAX_STEPS, matches
from capdex_engine.call.regex_cost import ENDLESS, steps_of

ATOMS = st.sampled_from(
    ["a", "b", ".", r"\d", r"\W", "[ab]", "[^a]", "[a-c1]", r"\b", r"\B", "^", "$", r"\Z"]
)
REPEATS = st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,2}", "*?", "{2,}", "{,1}"])
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        st.tuples(inner, REPEATS).map(lambda pair: f"({pair[0]}){pair[1]}"),
    ),
    max_leaves=8,
)


@given(PATTERNS, st.text(alphabet="abc1 \n", min_size=1, max_size=8))
def test_the_automaton_finds_what_python_finds(pattern: str, text: str) -> None:
    found = Automaton(_parser.parse(pattern)).search(text)
    assert found is (re.search(pattern, text) is not None)


@given(PATTERNS, st.integers(0, 60))
def test_an_upper_bound_never_falls_with_the_text_s_length(pattern: str, length: int) -> None:
    tree = _parser.parse(pattern)
    assert 1 <= steps_of(tree, length, anchored=False) <= steps_of(tree, length + 1, anchored=False)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(a+)+$", "a" * 60 + "!"),
        ("(a|a)*b", "a" * 400),
        ("^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 200),
        ("(?:a?a?a?a?a?){10}b", "a" * 60),
        ("(?:(a|b|ab)c?){1,30}$", "ab" * 40 + "!"),
        ("(?:(?:x|y)?){30}z", "x" * 60),
        ("^(?:.?){60}$x", "a" * 60),
        ("a?" * 30 + "a" * 30, "a" * 29),
        ("(.*?,){11}P", "1," * 30),
        ("(a*)*b", "a" * 60),
        ("[a-z]{1,50}" * 6 + "Z", "a" * 40),
    ],
)
def test_a_pattern_that_would_stall_python_is_still_told(pattern: str, text: str) -> None:
    assert steps_of(_parser.parse(pattern), len(text), anchored=pattern.startswith("^")) > MAX_STEPS
    assert not matches(pattern, text)


@pytest.mark.parametrize(
    "pattern",
    [
        r"(.*)(.*)(.*)(.*)\4\3\2\1\1$",
        "(x{1000}){1000}",
        "((((x{99}){99}){99}){99}){99}",
        "(?=(a+)+$)b",
        "(?<=a+)b",
        "(?i)(a+)+$",
        "a{4294967295}",
        "(" * 2000 + ")" * 2000,
        "(?:" * 2000 + "a" + ")" * 2000,
        "(?#((((",
        "x" * 5001,
        "(?>(a+)+)+$",
    ],
)
def test_a_pattern_beyond_telling_passes_every_long_value(pattern: str) -> None:
    assert matches(pattern, "a" * 3000 + "!")


def test_a_value_that_is_too_long_for_any_way_passes() -> None:
    assert matches("(a+)+$", "a" * 1_000_000 + "!")


def test_patterns_of_every_day_are_told_over_long_values() -> None:
    assert not matches(r"^[A-Za-z0-9_-]+$", "a" * 100_000 + "!")
    assert matches(r"^https?://[^\s]+$", "https://x.test/" + "a" * 100_000)
    assert not matches(r"^([a-z0-9-]+\.)+[a-z]{2,}$", "a." * 120 + "!")


def test_an_automaton_is_of_bounded_size() -> None:
    with pytest.raises(NotRegular):
        Automaton(_parser.parse("(?:a{100}){100}"))
    assert len(Automaton(_parser.parse("a{100}"))) < MAX_STATES


def test_no_number_of_steps_is_beyond_all_bounds() -> None:
    nested = "(?:" * 90 + "a?" + "){1,99}" * 90
    assert steps_of(_parser.parse(nested), 5000, anchored=False) == ENDLESS


def test_a_pattern_may_begin_with_a_class() -> None:
    assert matches("[ab]+$", "xb") and not matches("[ab]+$", "x")
