"""Requests for several things: where one ends and the next begins."""

from __future__ import annotations

import re
from typing import Final

from capdex_engine.rank.intent import REQUEST_VERBS
from capdex_engine.text import words

MOST_NEEDS: Final = 8
"""Further clauses are left to the request as a whole; each costs an encoding."""

_BOUNDARY: Final = re.compile(
    r"(?:[.;!?]\s+|,\s*|\s+)(?:and\s+|then\s+|also\s+|afterwards\s+|finally\s+|later\s+|plus\s+)+|[.;!?,]\s+"
)
_LEAD: Final = frozenset(
    [
        "please",
        "then",
        "also",
        "and",
        "now",
        "next",
        "finally",
        "first",
        "afterwards",
        "later",
        "after",
        "that",
        "i",
        "d",
        "want",
        "need",
        "would",
        "like",
        "to",
        "can",
        "could",
        "you",
        "we",
        "should",
        "must",
        "let",
        "me",
        "us",
        "additionally",
        "furthermore",
        "lastly",
        "how",
    ]
)


def split_needs(query: str) -> tuple[str, ...]:
    """Return the parts of ``query`` that each ask for something; one part where it is not clearly several.

    A part begins at a comma, a sentence end or a conjunction, and with a verb that requests begin
    with; whatever does not begin so stays with the part before it.
    """
    parts: list[str] = []
    for piece in _pieces(query):
        if parts and not _asks(piece):
            parts[-1] = f"{parts[-1]}, {piece}"
        else:
            parts.append(piece)
    asking = [part for part in parts if _asks(part)]
    return tuple(asking[:MOST_NEEDS]) if len(asking) > 1 else (query,)


def _pieces(query: str) -> list[str]:
    return [piece for raw in _BOUNDARY.split(query) if (piece := raw.strip(" .,;!?"))]


def _asks(piece: str) -> bool:
    lead = [word for word in words(piece)[:8] if word not in _LEAD]
    return len(lead) > 1 and lead[0] in REQUEST_VERBS
