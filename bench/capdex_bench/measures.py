"""Measures of one ranking against graded labels.

A measure is a value: ``nDCG@10`` prints as it is written and parses back, so an argument, a
configuration and a table heading are the same string. Calling it with a ranking (keys, best
first) and the grades of one query gives a number in 0..1, or ``None`` where the measure says
nothing about that query; means are taken over the rest.

The *best-grade keys* of a query are those labelled with its highest grade: grade 2 where there
is one, every labelled key in a set that knows one grade only. A query without labels asks for
something that no operation does (type ``none``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

Grades = Mapping[str, int]
"""Key -> grade (1 acceptable, 2 best) of one query; empty for a ``none`` query."""

GAINS: Final[Mapping[int, float]] = {0: 0.0, 1: 1.0, 2: 3.0}
"""Grade -> gain: ``2 ** grade - 1``."""

_NAME: Final = re.compile(r"(?P<family>[A-Za-z]+)(?:@(?P<cutoff>[1-9][0-9]*))?")


def best_keys(grades: Grades) -> frozenset[str]:
    """Return the keys with the query's highest grade above 0."""
    top = max(grades.values(), default=0)
    return frozenset(key for key, grade in grades.items() if grade == top and top > 0)


def _discounted(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def ndcg(ranking: Sequence[str], grades: Grades, cutoff: int) -> float | None:
    """Normalised discounted cumulative gain (Järvelin and Kekäläinen 2002).

    ``DCG@k = sum over ranks i <= k of gain(i) / log2(i + 1)`` with gains 1 and 3 for grades 1
    and 2, divided by the DCG@k of the labels sorted by grade.
    """
    ideal = sorted((GAINS[grade] for grade in grades.values()), reverse=True)[:cutoff]
    if not any(ideal):
        return None
    return _discounted([GAINS[grades.get(key, 0)] for key in ranking[:cutoff]]) / _discounted(ideal)


def hit(ranking: Sequence[str], grades: Grades, cutoff: int) -> float | None:
    """1 when a best-grade key stands among the first ``cutoff``, else 0."""
    best = best_keys(grades)
    return float(not best.isdisjoint(ranking[:cutoff])) if best else None


def mrr(ranking: Sequence[str], grades: Grades, cutoff: int) -> float | None:
    """``1 / rank`` of the first best-grade key; 0 when none is among the first ``cutoff``."""
    best = best_keys(grades)
    if not best:
        return None
    return next((1 / rank for rank, key in enumerate(ranking[:cutoff], start=1) if key in best), 0.0)


def recall(ranking: Sequence[str], grades: Grades, cutoff: int) -> float | None:
    """Share of the best-grade keys among the first ``cutoff``, of ``min(their number, cutoff)``.

    The denominator makes 1 reachable for every query; it differs from trec_eval's recall where a
    query has more best-grade keys than ``cutoff``.
    """
    best = best_keys(grades)
    return len(best.intersection(ranking[:cutoff])) / min(len(best), cutoff) if best else None


def abstention(ranking: Sequence[str], grades: Grades, cutoff: int) -> float | None:
    """Over ``none`` queries only: 1 when nothing was returned."""
    return None if grades else float(not ranking[:cutoff])


def false_abstention(ranking: Sequence[str], grades: Grades, cutoff: int) -> float | None:
    """Over queries with labels only: 1 when nothing was returned (lower is better)."""
    return float(not ranking[:cutoff]) if grades else None


_FAMILIES: Final[Mapping[str, Callable[[Sequence[str], Grades, int], float | None]]] = {
    "nDCG": ndcg,
    "hit": hit,
    "MRR": mrr,
    "recall": recall,
    "abstention": abstention,
    "falseAbstention": false_abstention,
}
_WITHOUT_CUTOFF: Final = frozenset({"MRR", "abstention", "falseAbstention"})
_ALL: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure with its cut-off; ``cutoff`` is ``None`` where the whole ranking counts."""

    family: str
    cutoff: int | None = None

    def __post_init__(self) -> None:
        if self.family not in _FAMILIES:
            raise ValueError(f"no measure {self.family!r}: know {', '.join(_FAMILIES)}")
        if self.cutoff is None and self.family not in _WITHOUT_CUTOFF:
            raise ValueError(f"{self.family} needs a cut-off, such as {self.family}@10")

    def __str__(self) -> str:
        return self.family if self.cutoff is None else f"{self.family}@{self.cutoff}"

    @classmethod
    def parse(cls, text: str) -> Measure:
        """Read ``nDCG@10`` and the like.

        Raises:
            ValueError: For an unknown family, or a cut-off that is missing or malformed.
        """
        match = _NAME.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"{text!r} is no measure; write it like nDCG@10")
        cutoff = match["cutoff"]
        return cls(match["family"], int(cutoff) if cutoff else None)

    def __call__(self, ranking: Sequence[str], grades: Grades) -> float | None:
        """Return the value for one query, ``None`` where the measure does not apply."""
        return _FAMILIES[self.family](ranking, grades, self.cutoff or _ALL)

    @property
    def higher_is_better(self) -> bool:
        """Whether a rise is an improvement."""
        return self.family != "falseAbstention"


DEFAULT: Final = tuple(
    Measure.parse(text)
    for text in (
        "nDCG@10",
        "hit@1",
        "hit@5",
        "MRR@10",
        "recall@5",
        "recall@10",
        "abstention",
        "falseAbstention",
    )
)
"""What ``capdex bench quality`` reports, the deciding measure first."""
