"""The engine's list of common words: what the training data's people and documents call things.

``python -m capdex_bench.train.words DATA`` writes it; held-out APIs and misspelt requests are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable
from pathlib import Path
from string import ascii_lowercase
from typing import Final

import capdex_engine.rank.spelling as spelling
from capdex_engine.text import words

from ..formats import write_lines
from .corpus import Corpus, read_corpus
from .split import read_held_out

ASKED: Final = 2
SAID: Final = 8
"""APIs in whose requests a word must occur, or in whose own texts, which hold names and mistakes."""
FREQUENT: Final = 15_000
"""English words that another word may be a misspelling of."""
_UNSURE: Final = frozenset({"typo", "foreign"})


def common_words(corpus: Corpus, held_out: frozenset[str]) -> list[str]:
    """Return the words that dictionary and encoder lack and enough APIs have, sorted."""
    asked = ((one.document, one.text) for one in corpus.requests if one.kind not in _UNSURE)
    said = (
        (document, f"{operation.summary} {operation.description}")
        for document, operation in zip(corpus.documents, corpus.operations, strict=True)
    )
    found = _frequent(asked, ASKED, held_out) | _frequent(said, SAID, held_out)
    known = spelling.encoder_words() | set(spelling.english_words())
    frequent = frozenset(spelling.english_words()[:FREQUENT])
    return sorted(word for word in found - known if not _misspelt(word, frequent))


def _misspelt(word: str, known: Container[str]) -> bool:
    """Tell whether a known word has one letter more, or two neighbours of this one changed about."""
    pairs = ((word[:i], word[i:]) for i in range(1, len(word)))
    return any(
        before + after[1:2] + after[0] + after[2:] in known
        or any(before + letter + after in known for letter in ascii_lowercase)
        for before, after in pairs
    )


def _frequent(texts: Iterable[tuple[str, str]], least: int, held_out: frozenset[str]) -> set[str]:
    where: dict[str, set[str]] = {}
    for document, text in texts:
        if document not in held_out:
            for word in words(text):
                if len(word) >= spelling.SHORTEST and word.isascii() and word.isalpha():
                    where.setdefault(word, set()).add(document)
    return {word for word, documents in where.items() if len(documents) >= least}


if __name__ == "__main__":
    found = common_words(read_corpus(Path(sys.argv[1]) / "train"), frozenset(read_held_out()))
    write_lines(Path(str(spelling.COMMON)), found)
    print(f"{len(found)} words")  # noqa: T201
