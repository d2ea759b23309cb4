"""Requests in other languages, put into English word by word.

The encoder was made for English. For ten more languages the word lists in ``lexicon/`` give it the words
it knows (``foreign<TAB>english``, lower case, function words with nothing on the right); a request keeps
its own text beside them. Word order and grammar are lost, and need not be there to find an operation.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Final

import Stemmer

from capdex_engine.rank.spelling import api_words, english_words
from capdex_engine.text import STOP_WORDS, fold

LANGUAGES: Final = ("de", "es", "fr", "it", "ja", "ko", "nl", "pt", "ru", "zh")
LONGEST: Final = 6
"""Words of an expression that are looked up together."""

_STEMMERS: Final = {
    "de": "german",
    "es": "spanish",
    "fr": "french",
    "it": "italian",
    "nl": "dutch",
    "pt": "portuguese",
    "ru": "russian",
}
_LATIN: Final = ("es", "de", "fr", "pt", "it", "nl")
"""Tried in this order; of two that fit alike, the first is taken."""
_COMPOUNDS: Final = frozenset({"de", "nl"})
_LINKS: Final = ("", "s", "n", "en", "er", "es")
"""What stands between the parts of a compound."""
_SHORTEST_PART: Final = 4
_FREQUENT: Final = 30_000
"""Words of English that count as English; among the rarer ones are many of other languages."""
_FEWEST: Final = 0.34
"""Share of a request's words that must be of a language before it is taken for it."""

_KANA: Final = re.compile("[\u3040-\u30ff]")
_HANGUL: Final = re.compile("[\uac00-\ud7af]")
_HAN: Final = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_UKRAINIAN: Final = re.compile("[іїєґ]")
_CYRILLIC: Final = re.compile("[\u0400-\u04ff]")
_GLYPH: Final = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_UNSPACED: Final = re.compile(f"[{_GLYPH}]")
_WORD: Final = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_CHUNK: Final = re.compile(rf"[{_GLYPH}](?: ?[{_GLYPH}])*|(?:(?![{_GLYPH}])[^\W_])+")
"""A run of one kind of script; Korean expressions hold spaces."""


@dataclass(frozen=True, slots=True)
class Gloss:
    """A request in English words, and how much of it was known."""

    language: str
    text: str
    known: float
    """Share of its words, or of its characters where none are spaced, that the list holds: 0..1."""


@lru_cache(maxsize=len(LANGUAGES))
def read_lexicon(language: str) -> Mapping[str, str]:
    """Return foreign -> English; ``KeyError`` for a language without a list."""
    if language not in LANGUAGES:
        raise KeyError(language)
    text = (files("capdex_engine.rank") / "lexicon" / f"{language}.tsv").read_text(encoding="utf-8")
    found: dict[str, str] = {}
    for line in text.splitlines():
        foreign, tab, english = line.partition("\t")
        if tab:
            found.setdefault(_headword(foreign, language), english)
    return found


def _headword(foreign: str, language: str) -> str:
    """Return the words of an entry as a request's are looked up: without apostrophes and strokes."""
    plain = unicodedata.normalize("NFKC", foreign).casefold()
    return " ".join(_WORD.findall(plain)) if language in _STEMMERS else plain


def gloss(text: str) -> Gloss | None:
    """Return ``text`` in English words; ``None`` where it seems to be English, or nothing in it is known."""
    normal = unicodedata.normalize("NFKC", text).casefold()
    language = _language(normal)
    if language is None:
        return None
    reader = _reader(language)
    english, known = reader.read(normal)
    return Gloss(language, english, known) if english and known > 0 else None


def _language(text: str) -> str | None:
    if _KANA.search(text):
        return "ja"
    if _HANGUL.search(text):
        return "ko"
    if _HAN.search(text):
        return max(("ja", "zh"), key=lambda language: (_reader(language).read(text)[1], language))
    if _CYRILLIC.search(text):
        return None if _UKRAINIAN.search(text) else "ru"
    parts = _WORD.findall(text)
    others = [part for part in parts if not _is_english(part)]
    # Misspelt English shares many a stem with other languages, but seldom a word.
    if not any(_reader(language).holds(part) for language in _LATIN for part in others):
        return None  # most requests end here
    english = len(parts) - len(others)
    hits = {language: sum(map(_reader(language).sureness, parts)) for language in _LATIN}
    best = max(_LATIN, key=hits.__getitem__)
    own = any(map(_reader(best).holds, others))
    return best if own and hits[best] > max(english, _FEWEST * len(parts)) else None


@lru_cache(maxsize=1)
def _english() -> frozenset[str]:
    listed = (
        word
        for language in LANGUAGES
        for english in read_lexicon(language).values()
        for word in english.split()
    )
    return frozenset([*listed, *english_words()[:_FREQUENT], *api_words()])


def _is_english(word: str) -> bool:
    return word in STOP_WORDS or word in _english() or (word.endswith("s") and word[:-1] in api_words())


class _Reader:
    """Looks words of one language up."""

    def __init__(self, language: str) -> None:
        self._exact = read_lexicon(language)
        self._spaced = language in _STEMMERS
        self._bare: dict[str, str] = {}
        self._stems: dict[str, str] = {}
        self._stem: Callable[[str], str] = (
            Stemmer.Stemmer(_STEMMERS[language], 0).stemWord if self._spaced else str
        )
        for foreign, english in self._exact.items() if self._spaced else ():
            # What says something wins over function words that look the same.
            bare, stem = fold(foreign), self._stem(fold(foreign))
            self._bare[bare] = self._bare.get(bare) or english
            self._stems[stem] = self._stems.get(stem) or english
        self._longest = max(map(len, self._exact), default=0)
        self._compounds = language in _COMPOUNDS

    def sureness(self, word: str) -> float:
        """Return 1 for a word of the list, less for one that shares but its stem, as English words do."""
        return 1.0 if self.holds(word) else 0.5 if self._one(word) is not None else 0.0

    def holds(self, word: str) -> bool:
        """Tell whether the list has the word itself, accents aside."""
        return word in self._exact or word in self._bare

    def read(self, text: str) -> tuple[str, float]:
        """Return the English words, and the share of the text that was known."""
        found = list(self._words(text) if self._spaced else self._characters(text))
        weight = sum(size for _, size, _ in found) or 1
        known = sum(size for _, size, sure in found if sure)
        return " ".join(english for english, _, _ in found if english), known / weight

    def _words(self, text: str) -> Iterator[tuple[str, int, bool]]:
        parts, at = _WORD.findall(text), 0
        while at < len(parts):
            size, english = self._expression(parts[at:])
            if english is None:
                yield self._compound(parts[at]) or (parts[at], 1, False)
            else:
                yield english, size, True
            at += size

    def _expression(self, parts: Sequence[str]) -> tuple[int, str | None]:
        for size in range(min(LONGEST, len(parts)), 1, -1):
            english = self._exact.get(" ".join(parts[:size]))
            if english is not None:
                return size, english
        return 1, self._one(parts[0])

    def _one(self, word: str) -> str | None:
        english = self._exact.get(word)
        if english is not None or not self._spaced:
            return english
        bare = fold(word)
        return self._bare[bare] if bare in self._bare else self._stems.get(self._stem(bare))

    def _compound(self, word: str) -> tuple[str, int, bool] | None:
        if not self._compounds:
            return None
        for cut in range(len(word) - _SHORTEST_PART, _SHORTEST_PART - 1, -1):
            last = self._one(word[cut:])
            if not last:
                continue
            for link in _LINKS:
                first = word[: cut - len(link)] if word[:cut].endswith(link) else ""
                if len(first) >= _SHORTEST_PART and (english := self._one(first)):
                    return f"{english} {last}", 1, True
        return None

    def _characters(self, text: str) -> Iterator[tuple[str, int, bool]]:
        for chunk in _CHUNK.findall(text):
            if not _UNSPACED.match(chunk):
                yield chunk, 0, False
                continue
            at = 0
            while at < len(chunk):
                size, english = self._longest_at(chunk, at)
                yield english or "", size, english is not None
                at += size

    def _longest_at(self, chunk: str, at: int) -> tuple[int, str | None]:
        for size in range(min(self._longest, len(chunk) - at), 0, -1):
            english = self._exact.get(chunk[at : at + size])
            if english is not None:
                return size, english
        return 1, "" if chunk[at] == " " else None


def warm_up() -> None:
    """Read every list now (half a second) instead of with the first request."""
    _english()
    for language in LANGUAGES:
        _reader(language)


@lru_cache(maxsize=len(LANGUAGES))
def _reader(language: str) -> _Reader:
    return _Reader(language)
