"""The issues that tell a caller, all at once, what to repair."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Final

Issue = dict[str, str]
"""``{in, pointer, keyword, message}``: ``in`` is path, query, header, cookie, body, contentType or input;
``pointer`` is a JSON pointer inside that slot (a missing member's pointer says where it belongs)."""

MAX_ISSUES: Final = 100
"""More than this many are counted in a last one instead of listed."""

MAX_TEXT: Final = 120
"""Characters of any third-party text inside a message."""


def issue(where: str, path: Iterable[str | int], keyword: str, problem: str) -> Issue:
    """Return one issue; the message is the place followed by ``problem``."""
    pointer = pointer_of(path)
    return {
        "in": where,
        "pointer": pointer,
        "keyword": keyword,
        "message": f"{shorten(where + pointer)} {problem}",
    }


def pointer_of(path: Iterable[str | int]) -> str:
    """Return the JSON pointer of a path of member names and indexes."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def shorten(text: str, limit: int = MAX_TEXT) -> str:
    """Return ``text`` cut to ``limit`` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def nearest(name: str, known: Sequence[str]) -> str | None:
    """Return the known name that ``name`` was probably meant to be."""
    folded = {_fold(each): each for each in reversed(known)}
    close = difflib.get_close_matches(_fold(name)[:64], folded, n=1, cutoff=0.7)
    return folded[close[0]] if close else None


def bounded(issues: Sequence[Issue]) -> list[Issue]:
    """Return the issues without repetitions, at most :data:`MAX_ISSUES` of them."""
    distinct = list({tuple(each.items()): each for each in issues}.values())
    rest = len(distinct) - MAX_ISSUES
    if rest <= 0:
        return distinct
    last = {**distinct[MAX_ISSUES], "message": f"and {rest} further issues or more, of this kind or others"}
    return [*distinct[:MAX_ISSUES], last]


def _fold(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum()) or name
