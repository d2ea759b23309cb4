"""What may never be trained on: the judges' APIs, and requests close to the judges' own.

The judging texts are read for one purpose only: to drop what is near them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from capdex_engine.errors import ConfigurationError
from capdex_engine.text import tokens

from ..documents import GOLDEN
from ..formats import read_rows
from .corpus import publisher

LEFT_OUT: Final[Mapping[str, tuple[str, ...]]] = {
    "Asana": ("asana",),
    "Box": ("box", "boxcloud"),
    "Datadog": ("datadog", "datadoghq"),
    "Discord": ("discord", "discordapp"),
    "Docker": ("docker",),
    "Figma": ("figma",),
    "GitHub": ("github", "githubusercontent", "lgtm", "npmjs", "semmle"),
    "Intercom": ("intercom",),
    "Okta": ("okta", "auth0"),
    "OpenAI": ("openai",),
    "PagerDuty": ("pagerduty", "rundeck"),
    "PayPal": ("paypal", "braintree", "braintreegateway", "braintreepayments", "izettle", "venmo", "zettle"),
    "Slack": ("slack",),
    "Spotify": ("spotify",),
    "Square": ("square", "squareup", "afterpay", "weebly"),
    "TMDB": ("tmdb", "themoviedb"),
    "Twilio": ("twilio", "authy", "segment", "sendgrid"),
    "Xero": ("xero",),
}
"""Company -> names it publishes under, its products included. Judged on these, so never trained on."""

OVERLAP: Final = 0.65
"""Two requests share so much of their stemmed words (Jaccard) when one is a near-duplicate of the other."""
FEW: Final = 3
"""Requests of fewer words are duplicates only when equal: one of two words in common is chance."""

_NAMES: Final = frozenset(name for names in LEFT_OUT.values() for name in names)
_COMPANIES: Final = frozenset(company.casefold() for company in LEFT_OUT) - {"box", "square", "slack"}
"""Unmistakable in a title; the others are also plain words."""
_URL: Final = re.compile(r"https?://\S+|\S+\.(?:com|io)\b\S*")


def is_left_out(document: str, title: str) -> bool:
    """Tell whether a document is of a company that judges, by its publisher, its path or its title."""
    named = _names_in(document.removesuffix(".json")) | _names_in(_URL.sub(" ", title))
    return not (_NAMES.isdisjoint(_names_in(publisher(document))) and _COMPANIES.isdisjoint(named))


def _names_in(text: str) -> frozenset[str]:
    return frozenset(re.split(r"[\W_]+", text.casefold()))


def judging_texts(data: Path) -> tuple[str, ...]:
    """Return every request of the golden sets (here and in ``data``) and of ``data``'s public sets.

    Raises:
        ConfigurationError: ``data`` holds no public sets: then nothing could be kept apart from them.
    """
    public = sorted((data / "datasets").glob("*/queries.jsonl"))
    if not public:
        raise ConfigurationError(
            f"{data} holds no datasets/*/queries.jsonl. Training must know the judging requests to stay "
            "away from them: name the folder that holds train/, golden/ and datasets/."
        )
    files = [*sorted(GOLDEN.glob("*/queries.jsonl")), *sorted(data.glob("golden/*/queries.jsonl")), *public]
    return tuple(dict.fromkeys(str(row.get("text", "")) for path in files for _, row in read_rows(path)))


class NearTexts:
    """Says whether a text has the words of one of ``texts``, or most; stop words and endings aside."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._sets = [frozenset(tokens(text)) for text in texts]
        self._equal = frozenset(self._sets)
        self._holders: dict[str, list[int]] = {}
        for number, own in enumerate(self._sets):
            for word in own:
                self._holders.setdefault(word, []).append(number)

    def __contains__(self, text: object) -> bool:
        own = frozenset(tokens(str(text)))
        return own in self._equal or (len(own) >= FEW and self._overlaps(own))

    def _overlaps(self, own: frozenset[str]) -> bool:
        shared: dict[int, int] = {}
        for word in own:
            for number in self._holders.get(word, ()):
                shared[number] = shared.get(number, 0) + 1
        return any(
            count >= OVERLAP * (len(own) + len(self._sets[number]) - count)
            for number, count in shared.items()
        )
