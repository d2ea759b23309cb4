"""Patterns of ECMA 262 either mean the same in Python or are left out."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex_engine.documents.patterns import python_pattern


@pytest.mark.parametrize(
    "pattern",
    [
        r"^[a-z]+$",
        r"^\d{3}-\d{4}$",
        r"a|b",
        r"(?=x)\w",
        r"(?<!a)b",
        r"[^/]+",
        r"\/x",
        r"[\w.-]+@[\w.-]+",
        "",
        "é",
    ],
)
def test_what_both_understand_stays_as_it_is(pattern):
    assert python_pattern(pattern) == pattern


@pytest.mark.parametrize(
    ("pattern", "fits", "fails"),
    [
        (r"^(?<year>\d{4})-\k<year>$", "2020-2020", "2020-2021"),
        (r"^\u{1F600}$", "😀", "x"),
        (r"^[\u{61}-\u{63}]$", "b", "d"),
        (r"^a\z", "a", "a\n"),
        (r"^\cJ$", "\n", "J"),
        (r"^[^]$", "\n", ""),
        (r"^[[a]$", "[", "b"),
        (r"^[+--]$", ",", "."),
        (r"^[--/]$", ".", "+"),
        (r"^[a&&b]$", "&", "c"),
        (r"^[a~~|]$", "~", "b"),
        (r"^[a-]$", "-", "b"),
        (r"^[\]a]$", "]", "b"),
        (r"/^[a-z]+$/i", "abc", "1"),
        (r"^\u0041$", "A", "u"),
    ],
)
def test_what_python_writes_otherwise_is_rewritten(pattern, fits, fails):
    found = python_pattern(pattern)
    assert found is not None
    assert re.search(found, fits)
    assert not re.search(found, fails)


def test_an_empty_class_never_fits():
    assert not re.search(python_pattern("[]") or "", "[]")


@pytest.mark.parametrize(
    "pattern",
    [
        r"^[\p{L}]+$",
        r"\p{Lu}",
        "([",
        "(?<=a+)b",
        "*",
        "a{99999999999}",
        "(" * 3000 + ")" * 3000,
        "[z-a]",
        "[a",
        r"\u{FFFFFF}",
        "\\",
    ],
)
def test_what_python_cannot_read_is_left_out(pattern):
    assert python_pattern(pattern) is None


@given(st.text(alphabet="[]^-&|~\\()?<>:*+{},.aZ09dpukzc/$", max_size=25))
def test_any_text_is_translated_without_a_warning_or_left_out(pattern):
    found = python_pattern(pattern)
    assert found is None or re.compile(found)
