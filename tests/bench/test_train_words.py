"""The list of common words: what people and documents say, and English and the encoder lack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from bench.train_tiny import Row, corpus, operation_row
from capdex_bench.train import words as module
from capdex_bench.train.words import ASKED, SAID, _misspelt, common_words
from capdex_engine.rank import spelling

ENGLISH = ("customer", "invoice", "letter", "please", "send", "show")


@pytest.fixture(autouse=True)
def vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six English words, and one of the encoder's."""
    monkeypatch.setattr(spelling, "english_words", lambda: ENGLISH)
    monkeypatch.setattr(spelling, "encoder_words", lambda: frozenset({"webhook"}))


def found(
    folder: Path,
    *,
    asked: Sequence[Row] = (),
    said: Mapping[str, Sequence[int]] | None = None,
    held_out: frozenset[str] = frozenset(),
) -> list[str]:
    """Return the list for requests, and for operations' words by the numbers of the APIs that say them."""
    rows = [operation_row(f"api{n}.json", "GET /x", summary="Show") for n in range(SAID + 2)]
    rows += [
        operation_row(f"api{n}.json", f"GET /{word}", summary=f"Show {word}")
        for word, numbers in (said or {}).items()
        for n in numbers
    ]
    return common_words(corpus(folder, rows, asked), held_out)


def ask(text: str, *numbers: int, kind: str = "natural") -> list[Row]:
    return [(f"api{number}.json", "GET /x", kind, text) for number in numbers]


def test_a_word_in_the_requests_of_enough_apis_is_common(tmp_path: Path) -> None:
    asked = [*ask("send the paylink", 0, 1), *ask("send the chargeback", 0, 0, 0)]
    assert ASKED == 2
    assert found(tmp_path, asked=asked) == ["paylink"]


def test_a_word_in_the_texts_of_enough_apis_is_common(tmp_path: Path) -> None:
    said = {"kubelet": range(SAID), "quasar": range(SAID - 1)}
    assert found(tmp_path, said=said) == ["kubelet"]


def test_requests_and_texts_are_counted_apart(tmp_path: Path) -> None:
    assert found(tmp_path, asked=ask("send quasar", 9), said={"quasar": range(SAID - 1)}) == []


def test_held_out_apis_say_nothing(tmp_path: Path) -> None:
    asked = ask("send the paylink", 0, 1)
    held_out = frozenset({"api0.json"})
    assert found(tmp_path, asked=asked, said={"kubelet": range(SAID)}, held_out=held_out) == []


@pytest.mark.parametrize("kind", ["typo", "foreign"])
def test_misspelt_and_foreign_requests_say_nothing(tmp_path: Path, kind: str) -> None:
    assert found(tmp_path, asked=ask("zeige paylink", 0, 1, 2, kind=kind)) == []


def test_known_words_and_short_or_foreign_ones_are_not_listed(tmp_path: Path) -> None:
    asked = ask("please send xyz webhook invoice größe v2 zzzz", 0, 1)
    assert found(tmp_path, asked=asked) == ["zzzz"]


def test_the_list_is_sorted_and_holds_no_likely_mistakes(tmp_path: Path) -> None:
    asked = ask("paylink adbanner custmer lettre invioce leter", 0, 1)
    assert found(tmp_path, asked=asked) == ["adbanner", "paylink"]


@pytest.mark.parametrize("word", ["custmer", "ivoice", "invoce", "leter", "lettre", "invocie", "cutsomer"])
def test_a_letter_missing_inside_or_two_changed_about_is_a_mistake(word: str) -> None:
    assert _misspelt(word, frozenset(ENGLISH))


@pytest.mark.parametrize("word", ["nvoice", "invoic", "nivoice", "invoices", "paylink", "lettter", "invouce"])
def test_other_differences_are_words_of_their_own(word: str) -> None:
    assert not _misspelt(word, frozenset(ENGLISH))


def test_only_frequent_words_make_others_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ask("send the leter custmer", 0, 1)
    monkeypatch.setattr(module, "FREQUENT", ENGLISH.index("letter"))
    assert found(tmp_path, asked=asked) == ["leter"]
