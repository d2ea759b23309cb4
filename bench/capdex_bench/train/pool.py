"""Which requests are trained on, and why the others are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass

from .corpus import Corpus, Request
from .exclusions import is_left_out
from .split import titles_of

USED = "used"
UNSERVED = "without an answer"


@dataclass(frozen=True, slots=True)
class Pool:
    """Numbers of the corpus's requests, in its order."""

    numbers: tuple[int, ...]
    """Those with an answer, to train on."""
    unserved: tuple[int, ...]
    """Those that nothing serves, as negatives."""
    counts: Mapping[str, int]
    """What became of the requests: ``used``, or why not; ``used KIND`` splits the used ones."""


def select(corpus: Corpus, held_out: Collection[str], judging: Container[str]) -> Pool:
    """Leave out the judges' APIs, the held-out ones, requests without an answer, and near-duplicates.

    Args:
        corpus: All there is.
        held_out: Documents that training may not see.
        judging: Tells whether a text is too near to a judging one.
    """
    barred = {document for document, title in titles_of(corpus).items() if is_left_out(document, title)}
    fates = [_fate(request, barred, held_out, judging) for request in corpus.requests]
    numbers = tuple(number for number, fate in enumerate(fates) if fate == USED)
    unserved = tuple(number for number, fate in enumerate(fates) if fate == UNSERVED)
    kinds = Counter(f"{USED} {corpus.requests[number].kind}" for number in numbers)
    return Pool(numbers, unserved, {**dict(sorted(Counter(fates).items())), **dict(sorted(kinds.items()))})


def _fate(request: Request, barred: Container[str], held_out: Container[str], judging: Container[str]) -> str:
    if request.document in barred:
        return "API of a judging set"
    if request.document in held_out:
        return "held out"
    if request.text in judging:
        return "near a judging request"
    return USED if request.answers else UNSERVED
