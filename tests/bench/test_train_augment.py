"""Spelling mistakes made while training: small ones, in plain words, the same for the same seed."""

from __future__ import annotations

import random
from string import ascii_letters

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from capdex_bench.train.augment import SHORTEST, misspell

REQUEST = "show the invoices of a customer that were paid last month"
LONGER = 8
"""Its words that may get a mistake."""

texts = st.text() | st.lists(st.text(ascii_letters, max_size=9) | st.text(max_size=5)).map(" ".join)


def changed(text: str, seed: int) -> list[tuple[str, str]]:
    """Return (before, after) of the words that are others afterwards."""
    before, after = text.split(" "), misspell(text, random.Random(seed)).split(" ")
    return [(one, two) for one, two in zip(before, after, strict=True) if one != two]


@given(texts, st.integers(0, 99))
def test_only_plain_longer_words_change_whatever_the_text(text: str, seed: int) -> None:
    for before, _ in changed(text, seed):
        assert len(before) >= SHORTEST
        assert before.isascii()
        assert before.isalpha()


@given(texts, st.integers(0, 99))
def test_a_mistake_is_one_slip_and_the_first_letter_stays(text: str, seed: int) -> None:
    for before, after in changed(text, seed):
        assert OSA.distance(before, after) == 1
        assert after[0] == before[0]


@given(texts, st.integers(0, 99))
def test_the_seed_fixes_the_mistakes(text: str, seed: int) -> None:
    assert misspell(text, random.Random(seed)) == misspell(text, random.Random(seed))


@given(st.integers())
def test_a_third_of_the_longer_words_change(seed: int) -> None:
    assert len(changed(REQUEST, seed)) == round(LONGER / 3)


@given(st.integers())
def test_one_changes_at_least(seed: int) -> None:
    assert len(changed("a trip", seed)) == 1


def test_seeds_differ() -> None:
    assert len({misspell(REQUEST, random.Random(seed)) for seed in range(20)}) > 10


def test_all_kinds_of_slips_are_made() -> None:
    lengths = {len(misspell("invoices", random.Random(seed))) for seed in range(40)}
    assert lengths == {7, 8, 9}


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "a", "the", "🙂", "🙂 🙂🙂🙂🙂🙂", "  two  b ", "für Fußgänger", "列出所有用户",
        "GET /users/{id}", "user_id=5", "tab\there\nline", "i18n", "don't", "\ud800\ud800\ud800\ud800",
    ],
)  # fmt: skip
def test_a_text_without_a_plain_longer_word_stays_as_it_is(text: str) -> None:
    assert misspell(text, random.Random(1)) == text


def test_blanks_between_words_stay() -> None:
    assert [not part for part in misspell("  list  users ", random.Random(3)).split(" ")] == [
        True, True, False, True, False, True,
    ]  # fmt: skip
