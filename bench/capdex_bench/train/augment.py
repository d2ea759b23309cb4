"""Spelling mistakes that are made while training."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

SHORTEST: Final = 4
"""Letters of a word that may get a mistake."""

_ROWS: Final = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_NEIGHBOURS: Final[Mapping[str, str]] = {
    letter: row[max(0, i - 1) : i] + row[i + 1 : i + 2] for row in _ROWS for i, letter in enumerate(row)
}


def misspell(text: str, order: random.Random) -> str:
    """Return ``text`` with a mistake in a third of its longer words.

    Mistakes are those of quick typing: two letters swapped, which may be the same letter twice, one left
    out, doubled, or hit beside.
    """
    parts = text.split(" ")
    places = [i for i, part in enumerate(parts) if _may_err(part)]
    if not places:
        return text
    for place in order.sample(places, max(1, round(len(places) / 3))):
        parts[place] = _mistyped(parts[place], order)
    return " ".join(parts)


def _may_err(part: str) -> bool:
    return len(part) >= SHORTEST and part.isascii() and part.isalpha()


def _mistyped(word: str, order: random.Random) -> str:
    at = order.randrange(1, len(word) - 1)
    before, here, after = word[:at], word[at], word[at + 1 :]
    kind = order.choice(("swap", "drop", "double", "beside", "drop", "swap"))
    if kind == "swap":
        return before + after[0] + here + after[1:]
    if kind == "drop":
        return before + after
    if kind == "double":
        return before + here + here + after
    return before + order.choice(_NEIGHBOURS.get(here.lower()) or here) + after
