"""Spelling: words that neither the catalog nor common English knows, read as the nearest word that is known.

Names, ids and codes stay as they are: only plain lower-case words (or a first word) are looked at, and a
word is left alone where nothing known is near. Nearness is the optimal string alignment distance: letters
left out, added, replaced, or two neighbours swapped.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from copy import copy
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final

from rapidfuzz import process
from rapidfuzz.distance import OSA

from capdex_engine.text import STOP_WORDS, stem

SHORTEST: Final = 4
"""Letters of a word that is looked at; shorter ones have too many neighbours."""
LONG: Final = 7
"""Letters from which a word may have two mistakes."""
COMMON: Final = files("capdex_engine.rank") / "common_words.txt"
"""Words of APIs and their users that the dictionary lacks, a line each: those of the training data."""
KEPT: Final = files("capdex_engine.rank") / "known_words.txt"
"""More of them, kept by hand: names of products and people too."""

_DICTIONARY: Final = files("symspellpy") / "frequency_dictionary_en_82_765.txt"
_VOCABULARY: Final = files("capdex_engine") / "models" / "capdex-minilm" / "tokenizer.json"
_WORD: Final = re.compile(r"(?<![\w@#/.\\:{<=&'’\"“-])[^\W\d_]+(?![\w@/\\{>=&'’-]|[.:]\w)")
"""A word that stands by itself: no part of an address, a path, a code or an identifier."""
_PLAIN: Final = re.compile(r"[a-z]+")
_PREFIX: Final = re.compile(
    "anti|auto|co|de|dis|inter|micro|mis|multi|non|out|over|pre|re|sub|super|un|under"
)
_SUFFIX: Final = re.compile("(?:able|ers?|ions?|ists?|less|ly|ness|ors?|ship|wise)$")
"""What makes a word of another one; dictionaries do not hold all that are made."""
_ACRONYM: Final = 5
"""Letters of an acronym, at most, in a request that holds several words in capitals."""
_FREQUENT: Final = 25_000
"""Place by frequency before which a word is surely meant, and others may be made of it."""
_UNFIT: Final = frozenset(
    (
        *("anal", "anus", "arse", "cock", "cunt", "dick", "dyke", "fag", "fuck", "milf", "nude", "penis"),
        *(
            "porn",
            "rape",
            "raped",
            "rapist",
            "semen",
            "shit",
            "slut",
            "sperm",
            "tits",
            "twat",
            "wank",
            "whore",
        ),
    )
)
"""Words that nobody wants to read as what they meant."""
_IN_CATALOG: Final = -0.45
_PER_RARITY: Final = 0.04
_RAREST: Final = 0.4
"""What a candidate costs beside its distance: less in the catalog, and more the rarer it is, per e-fold of
its place by frequency."""

_Alike = Mapping[tuple[str, int], Sequence[str]]
"""(First letter, length) -> words."""


_NOTHING: Final[_Alike] = MappingProxyType({})


class Speller:
    """Corrects words against a catalog's and common vocabulary; safe to share between threads.

    Args:
        catalog: The catalog's tokens (:func:`capdex_engine.text.tokens`).
    """

    def __init__(self, catalog: Collection[str]) -> None:
        self._catalog: Container[str] = catalog
        said = {word for token in catalog for word in _stems().get(token, ())}
        said |= {token for token in catalog if len(token) >= SHORTEST and _PLAIN.fullmatch(token)}
        self._alike_in_catalog = _group(said)

    def within(self, catalog: Container[str]) -> Speller:
        """Return the same for a part of the catalog's tokens: no other word of it is known or suggested."""
        other = copy(self)
        other._catalog = catalog
        return other

    def _cost(self, word: str) -> float | None:
        """Return what the catalog's word costs; ``None`` where it is none of its words."""
        if word not in _stems() and len(word) >= SHORTEST and word in self._catalog:
            return _RAREST + _IN_CATALOG
        known = word in common_words() and stem(word) in self._catalog
        return _costs()[word] + _IN_CATALOG if known else None

    def correct(self, text: str) -> str:
        """Return ``text`` with each misspelt word replaced; the same text where none is."""
        found = [one.group() for one in _WORD.finditer(text)]
        capitals = sum(word.isupper() for word in found)
        longest = 0 if capitals > len(found) / 2 else _ACRONYM if capitals > 1 else len(text)
        # Accents speak of names or of a language that nobody here knows: the catalog's words alone are safe.
        common = _alike() if text.isascii() else _NOTHING
        return _WORD.sub(
            lambda one: self._read(one.group(), longest, common, not text[: one.start()].strip()), text
        )

    def _read(self, word: str, acronym: int, common: _Alike, begins: bool) -> str:
        """Return the word, or what it should be; in capitals it is left alone up to ``acronym`` letters."""
        shouted = word.isupper() and len(word) > acronym
        titled = begins and word[0].isupper() and word[1:].islower()
        plain = word.lower() if shouted or titled else word
        if len(plain) < SHORTEST or not _PLAIN.fullmatch(plain) or plain in STOP_WORDS:
            return word
        listed = [common_words()[base] for base in _bases(plain) if base in common_words()]
        stemmed = stem(plain)
        if stemmed in self._catalog and (listed or stemmed not in _stems()):
            return word
        if plain in common_words() and common_words()[plain] < _FREQUENT:
            return word
        # A rare word, or one that is but made of others, is rather a mistake where the catalog has one near.
        if listed or _is_made(plain):
            return self._nearest(plain, 1, _NOTHING) or word
        return self._nearest(plain, 2 if len(plain) >= LONG else 1, _NOTHING if titled else common) or word

    def _nearest(self, word: str, most: int, others: _Alike) -> str | None:
        """Return the cheapest word of the catalog, or of ``others``, at most ``most`` mistakes away."""
        starts = (word[0], f"{word[1]}{word[0]}")  # A first letter is seldom wrong, but for a swap.
        common = _costs()
        found = [
            (distance + (common.get(near, _RAREST) if cost is None else cost), near)
            for alike in (self._alike_in_catalog, others)
            for start in starts
            for length in range(len(word) - most, len(word) + most + 1)
            for near, distance, _ in process.extract(
                word, alike.get((start[0], length), ()), scorer=OSA.distance, score_cutoff=most, limit=None
            )
            if near.startswith(start)
            and ((cost := self._cost(near)) is not None or alike is not self._alike_in_catalog)
        ]
        return min(found)[1] if found else None


def _group(words: Iterable[str]) -> _Alike:
    found: dict[tuple[str, int], list[str]] = {}
    for word in sorted(set(words) - _UNFIT):
        found.setdefault((word[0], len(word)), []).append(word)
    return found


def _is_made(word: str) -> bool:
    """Tell whether the word is a frequent one with something before or after it."""
    start, end = _PREFIX.match(word), _SUFFIX.search(word)
    parts = (start and word[start.end() :], end and word[: end.start()])
    return any(common_words().get(part, _FREQUENT) < _FREQUENT for part in parts if part and len(part) > 3)


def _bases(word: str) -> tuple[str, ...]:
    """Return what the word may be a form of, itself first; dictionaries lack the plurals of new words."""
    return (word, *(word[: -len(end)] for end in ("s", "es", "ed", "ing") if word.endswith(end)))


@lru_cache(maxsize=1)
def _costs() -> Mapping[str, float]:
    """Return what each common word costs by its rarity."""
    return {word: min(_RAREST, _PER_RARITY * math.log(place)) for word, place in common_words().items()}


@lru_cache(maxsize=1)
def _stems() -> Mapping[str, Sequence[str]]:
    """Return stem -> common words."""
    found: dict[str, list[str]] = {}
    for word in common_words():
        found.setdefault(stem(word), []).append(word)
    return found


@lru_cache(maxsize=1)
def _alike() -> _Alike:
    """Return the common words by first letter and length."""
    return _group(common_words())


@lru_cache(maxsize=1)
def common_words() -> Mapping[str, int]:
    """Return English words -> their places by frequency, from 1; words of computing count as frequent."""
    places = {word: place for place, word in enumerate(english_words(), start=1)}
    for word in encoder_words() | api_words():
        places[word] = min(places.get(word, _FREQUENT), _FREQUENT - 1)
    return places


@lru_cache(maxsize=1)
def english_words() -> tuple[str, ...]:
    """Return the dictionary's words of three letters or more, the most frequent first."""
    rows = [line.split() for line in _DICTIONARY.read_text(encoding="utf-8-sig").splitlines()]
    return tuple(word for word, count in sorted(rows, key=lambda row: -int(row[1])) if _is_word(word))


@lru_cache(maxsize=1)
def api_words() -> frozenset[str]:
    """Return words of APIs and their users that dictionaries lack."""
    return frozenset(word for path in (COMMON, KEPT) for word in path.read_text(encoding="utf-8").split())


@lru_cache(maxsize=1)
def encoder_words() -> frozenset[str]:
    """Return the whole words of the shipped encoder's vocabulary."""
    vocabulary = json.loads(_VOCABULARY.read_text(encoding="utf-8"))["model"]["vocab"]
    return frozenset(word for word in vocabulary if _is_word(word))


def _is_word(token: str) -> bool:
    return len(token) > 2 and _PLAIN.fullmatch(token) is not None
