"""Tokens for the lexical index: the same function reads documents and queries.

The way of a text: NFKC, words, camelCase and digit boundaries, case folding, stop words out,
light stems. Words of scripts without spaces become characters and pairs of characters; words
with accents are kept and folded, so that ``équipe`` and ``equipe`` meet.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import pairwise
from typing import Final

STOP_WORDS: Final = frozenset(
    [
        "a",
        "about",
        "am",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "been",
        "being",
        "but",
        "by",
        "can",
        "could",
        "did",
        "do",
        "does",
        "doing",
        "done",
        "each",
        "else",
        "for",
        "from",
        "had",
        "has",
        "have",
        "having",
        "he",
        "her",
        "here",
        "hers",
        "him",
        "his",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "itself",
        "just",
        "may",
        "me",
        "might",
        "mine",
        "must",
        "my",
        "of",
        "off",
        "on",
        "onto",
        "or",
        "our",
        "ours",
        "ought",
        "shall",
        "she",
        "should",
        "so",
        "some",
        "such",
        "than",
        "that",
        "the",
        "their",
        "theirs",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "to",
        "too",
        "us",
        "very",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "while",
        "who",
        "whom",
        "whose",
        "why",
        "will",
        "with",
        "would",
        "you",
        "your",
        "yours",
        "please",
        "d",
        "ll",
        "m",
        "re",
        "s",
        "t",
        "ve",
    ]
)
"""English function words. Verbs such as *get* and *list* are not among them: they tell operations apart."""

_UNSPACED: Final = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\u0e00-\u0eff\U00020000-\U0003ffff"
)
"""Han, kana, Hangul syllables, Thai and Lao: scripts written without spaces, or with endings glued on."""
_MARKS: Final = "\u0300-\u036f\u064b-\u065f\u0900-\u0dff"
"""Combining marks and the Indic blocks, whose vowel signs are no letters to :mod:`re`."""
_ACCENT: Final = re.compile("[\u0300-\u036f]")
_LETTER: Final = rf"(?![{_UNSPACED}])[^\W_]"
_WORD: Final = re.compile(rf"[{_UNSPACED}]+|{_LETTER}(?:{_LETTER}|[{_MARKS}])*")
_UNSPACED_WORD: Final = re.compile(rf"[{_UNSPACED}]")
_APOSTROPHE: Final = re.compile(r"(?<=\w)['’](?=s\b|t\b|re\b|ve\b|ll\b|d\b|m\b)", re.IGNORECASE)
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])(?![A-Z]s(?![a-z]))")
"""``HTTPServer`` parts before ``Server``; ``IDs`` and ``URLs`` are plurals and stay whole."""
_DIGITS: Final = re.compile(r"(?<=[^\W\d]{3})(?=\d)|(?<=\d)(?=[^\W\d]{3})")
"""Three letters or more part from digits (``oauth2``); ``v2``, ``s3`` and ``k8s`` stay whole."""

_IRREGULAR: Final = {
    "alias": "alias", "aliases": "alias", "bias": "bias", "canvas": "canvas", "children": "child",
    "data": "data", "embed": "embed", "gas": "gas", "has": "has", "ids": "id",
    "indices": "index", "matrices": "matrix", "media": "media", "news": "news",
    "people": "person", "speed": "speed", "used": "use", "using": "use", "vertices": "vertex",
}  # fmt: skip
_VOWEL: Final = re.compile(r"[aeiouy]")


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return the light stem of a lower-case English word; other words come back unchanged.

    Plurals, -ing and -ed go, then a final e, and a final y becomes i: *created*, *creating* and
    *creates* all give ``creat``; *queries* and *query* give ``queri``.
    """
    if len(word) < 3 or not (word.isascii() and word.isalpha()):
        return word
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    return _without_end_vowel(_without_participle(_without_plural(word)))


def _without_plural(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-2]
    if word.endswith(("sses", "shes", "ches", "xes", "zzes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3:
        return word[:-1]
    return word


def _without_participle(word: str) -> str:
    for ending in ("ing", "ed"):
        root = word[: -len(ending)]
        if word.endswith(ending) and len(root) >= 3 and _VOWEL.search(root) and not word.endswith("eed"):
            return _single_end(root)
    return word


def _single_end(root: str) -> str:
    """Drop a doubled end: *runn* gives *run*; *bill* and *pass* keep theirs."""
    return root[:-1] if len(root) > 3 and root[-1] == root[-2] and root[-1] not in "lsz" else root


def _without_end_vowel(word: str) -> str:
    if len(word) > 3 and word.endswith("e") and not word.endswith("ee"):
        return word[:-1]
    if len(word) > 3 and word.endswith("y") and word[-2] not in "aeiou":
        return f"{word[:-1]}i"
    return word


def fold(word: str) -> str:
    """Return ``word`` without its accents."""
    parts = unicodedata.normalize("NFD", word)
    return unicodedata.normalize("NFC", _ACCENT.sub("", parts))


def words(text: str) -> list[str]:
    """Split ``text`` into case-folded words: identifiers into their parts, stop words kept, no stems."""
    return [part for chunk in _chunks(text) for part in _parts(chunk)]


def tokens(text: str) -> list[str]:
    """Return the index tokens of ``text`` in order, repeats kept; empty for stop words alone."""
    return [token for chunk in _chunks(text) for token in _chunk_tokens(chunk)]


def identifier_key(text: str) -> str:
    """Return the form under which names are equal: case folded, letters, digits and marks only.

    ``issues/list-for-repo``, ``issuesListForRepo`` and ``Issues list for repo`` have one key.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(_WORD.findall(folded))


def joined_pairs(parts: list[str]) -> list[str]:
    """Return neighbouring words written as one: ``["web", "hook"]`` gives ``["webhook"]``, stemmed."""
    pairs = pairwise(parts)
    return [stem(a + b) for a, b in pairs if a not in STOP_WORDS and b not in STOP_WORDS]


@lru_cache(maxsize=64)  # one request is looked at from many sides
def _chunks(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(_APOSTROPHE.sub(" ", unicodedata.normalize("NFKC", text))))


@lru_cache(maxsize=65_536)
def _parts(chunk: str) -> tuple[str, ...]:
    pieces = [piece for part in _CAMEL.split(chunk) for piece in _DIGITS.split(part)]
    return tuple(piece.casefold() for piece in pieces if piece)


@lru_cache(maxsize=65_536)
def _chunk_tokens(chunk: str) -> tuple[str, ...]:
    if _UNSPACED_WORD.match(chunk):
        return (*chunk, *(a + b for a, b in pairwise(chunk)))
    parts = _parts(chunk)
    found = [token for part in parts if part not in STOP_WORDS for token in _variants(part)]
    if len(parts) == 2 and not STOP_WORDS.intersection(parts):  # GitHub: written in one piece too
        found.append(stem("".join(parts)))
    return tuple(found)


def _variants(part: str) -> tuple[str, ...]:
    folded = fold(part)
    return (stem(part),) if folded == part else (part, stem(folded))
