"""What one search costs beside encoding its request: the same requests, in turn, in one process.

Both are put through every request once before anything is counted: a server that has run for a while
has loaded its dictionaries and remembers the stems of most words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from capdex_engine.encode import Encoder
from capdex_engine.rank import Searcher
from capdex_engine.rank.answer import Schemas, build_answer

from .evaluate import Clock

STAGES: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "reading": ("_requests", ("read",)),
    "encoding": ("_encoder", ("encode",)),
    "lexical": ("_lexical", ("terms", "scores", "hits")),
    "dense": ("_dense", ("candidates",)),
    "features": ("_reader", ("read",)),
}
"""Stage -> the part of a :class:`Searcher` that does it, and the methods that a search calls."""
ANSWER: Final = "answer"
REST: Final = "rest"
"""Exact names, blending, merging: what no stage holds."""


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds per request, in the order of the requests."""

    encoding: tuple[float, ...]
    """The request's text alone, once."""
    search: tuple[float, ...]
    """All of ``search_capabilities``: the search and its answer with schemas."""
    stages: Mapping[str, tuple[float, ...]]
    """Of further searches of the same requests, watched."""
    texts: tuple[int, ...] = ()
    """How many texts each search encodes: the request, its reading in correct English, its needs."""
    busy: float = float("nan")
    """Processor seconds per second while ``encoding`` and ``search`` were taken."""


class _Watched:
    """Stands for an object and adds up the seconds spent in some of its methods."""

    def __init__(self, inner: Any, methods: Sequence[str], clock: Clock) -> None:
        self._inner, self._methods, self._clock = inner, methods, clock
        self.spent = 0.0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return self._watch(found) if name in self._methods else found

    def _watch(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any, **named: Any) -> Any:
            before = self._clock()
            try:
                return method(*args, **named)
            finally:
                self.spent += self._clock() - before

        return watched


def _watch(searcher: Searcher, clock: Clock) -> tuple[Searcher, dict[str, _Watched]]:
    """Return a searcher over the same indexes whose stages are watched."""
    watched, stages = copy(searcher), {}
    for stage, (part, methods) in STAGES.items():
        stages[stage] = _Watched(getattr(searcher, part), methods, clock)
        setattr(watched, part, stages[stage])
    return watched, stages


def measure(
    searcher: Searcher,
    encoder: Encoder,
    schemas: Schemas,
    texts: Sequence[str],
    *,
    clock: Clock,
    processor: Clock,
) -> Timings:
    """Take the times of every text.

    Args:
        searcher: Searches with ``encoder``.
        encoder: What is timed alone.
        schemas: What the answers' schemas come from.
        texts: Requests; at least one.
        clock: Of the wall, in seconds.
        processor: Processor seconds of this process.
    """

    def encode(text: str) -> object:
        return encoder.encode([text])

    def search(text: str) -> object:
        return build_answer(searcher.search(text), schemas)

    _in_turn((encode, search), texts, clock)
    wall, used = clock(), processor()
    encoding, whole = _in_turn((encode, search), texts, clock)
    busy = (processor() - used) / max(clock() - wall, 1e-9)
    stages = _staged(searcher, schemas, texts, clock)
    counts = tuple(len(searcher.texts(text)) for text in texts)
    return Timings(tuple(encoding), tuple(whole), stages, counts, busy)


def _in_turn(
    actions: Sequence[Callable[[str], object]], texts: Sequence[str], clock: Clock
) -> list[list[float]]:
    """Put every text through every action, another one first each time; return seconds per action."""
    spent: list[list[float]] = [[] for _ in actions]
    for number, text in enumerate(texts):
        for place in range(len(actions)):
            which = (number + place) % len(actions)
            before = clock()
            actions[which](text)
            spent[which].append(clock() - before)
    return spent


def _staged(
    searcher: Searcher, schemas: Schemas, texts: Sequence[str], clock: Clock
) -> dict[str, tuple[float, ...]]:
    watched, stages = _watch(searcher, clock)
    rows = []
    for text in texts:
        for stage in stages.values():
            stage.spent = 0.0
        start = clock()
        found = watched.search(text)
        searched = clock()
        build_answer(found, schemas)
        answer = clock() - searched
        parts = [stage.spent for stage in stages.values()]
        rows.append([*parts, answer, searched - start - sum(parts)])
    return dict(zip((*stages, ANSWER, REST), zip(*rows, strict=True), strict=True))


def quantiles_ms(seconds: Sequence[float]) -> dict[str, float]:
    """Return median, p90 and p99 in milliseconds."""
    low, high, highest = np.quantile(np.array(seconds) * 1e3, [0.5, 0.9, 0.99])
    return {"median": float(low), "p90": float(high), "p99": float(highest)}


def ratio(timings: Timings) -> float:
    """Return the median of the whole search over that of encoding alone."""
    return float(np.median(timings.search) / max(float(np.median(timings.encoding)), 1e-12))
