"""Third-party text, made fit to be shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex_engine.catalog.texts import INVISIBLE, clean_schema, clean_text, clip, first_sentence


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("  two\n\n lines\t", "two lines"),
        ("<p>A <b>bold</b> word</p>", "A bold word"),
        ("See [the docs](https://x.test/a) now", "See the docs now"),
        ("![logo](x.png) Hello", "logo Hello"),
        ("a &amp; b &lt;c&gt;", "a & b <c>"),
        ("if a < b and c > d", "if a < b and c > d"),
        ("safe\u202etxt.exe\u200b", "safetxt.exe"),
        ("tag\U000e0041\U000e0042s", "tags"),
        ("bell\u0007", "bell"),
        (None, ""),
        ({"not": "text"}, ""),
        (12, "12"),
        ("hidden &#x202E;entity", "hidden entity"),
    ],
)
def test_markup_and_invisible_characters_go(raw: object, clean: str) -> None:
    assert clean_text(raw, 100) == clean


@given(st.text(max_size=80), st.integers(5, 60))
def test_cleaned_text_is_short_visible_and_on_one_line(text: str, limit: int) -> None:
    clean = clean_text(text, limit)
    assert len(clean) <= limit
    assert not INVISIBLE.search(clean)
    assert "\n" not in clean


def test_a_long_text_is_cut_at_a_word() -> None:
    assert clip("alpha beta gamma", 12) == "alpha beta…"


def test_a_long_word_is_cut_inside() -> None:
    assert clip("abcdefghijkl", 5) == "abcd…"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Creates a pet. It must be new.", "Creates a pet."),
        ("Uses v1.2 of e.g. the api", "Uses v1.2 of e.g. the api"),
        ("## Creates a pet! Now", "Creates a pet!"),
        ("", ""),
    ],
)
def test_the_first_sentence_ends_before_a_new_one_begins(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence


def test_texts_in_a_schema_are_cleaned_and_its_values_are_not() -> None:
    hidden = "a\u202eb"
    schema = {
        "description": hidden,
        "enum": [hidden],
        "properties": {"description": {"title": hidden, "const": hidden}},
        "anyOf": [{"description": hidden}],
        "items": {"$comment": hidden},
    }
    assert clean_schema(schema) == {
        "description": "ab",
        "enum": [hidden],
        "properties": {"description": {"title": "ab", "const": hidden}},
        "anyOf": [{"description": "ab"}],
        "items": {"$comment": "ab"},
    }
