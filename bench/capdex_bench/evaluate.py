"""One system on one set: rankings, values per query, and how long it took."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from capdex_engine.operation import Operation

from .measures import Measure
from .runs import Answer, Run, ranking
from .sets import QuerySet
from .systems import Build, Context

DEPTH: Final = 10
"""Answers asked for per query, as `bench run` does by default: how many are wanted may change which
of a request with several needs are returned, so more would not be the same ranking."""

Clock = Callable[[], float]
"""Seconds from some fixed point, as ``time.perf_counter``."""


@dataclass(frozen=True, slots=True)
class Result:
    """What one system did on one set."""

    system: str
    set: QuerySet
    run: Run
    build_seconds: float = 0.0
    latencies: tuple[float, ...] = ()
    """Seconds per query, in the set's order."""
    over_limit: bool = False
    """Whether it was stopped by the time limit; then its figures count for nothing."""
    unknown_labels: tuple[str, ...] = field(default=())
    """Labelled keys that the catalog does not hold; they can only be missed."""

    def values(self, measure: Measure) -> dict[str, float]:
        """Return the measure per query id, where it applies; an unanswered query counts as 0."""
        found = {
            query.id: measure(ranking(self.run.get(query.id, ())), self.set.grades(query))
            for query in self.set.queries
        }
        return {query: value for query, value in found.items() if value is not None}

    def mean(self, measure: Measure) -> float:
        """Return the mean over the queries; NaN when the measure applies to none."""
        return mean(self.values(measure).values())

    def by_type(self, measure: Measure) -> dict[str, dict[str, float]]:
        """Return type -> query id -> value."""
        types = {query.id: query.type for query in self.set.queries}
        found: dict[str, dict[str, float]] = {}
        for query, value in self.values(measure).items():
            found.setdefault(types[query], {})[query] = value
        return found

    def latency_ms(self, quantile: float) -> float:
        """Return a latency quantile (0..1) in milliseconds; NaN without queries."""
        times: NDArray[np.float64] = np.array(self.latencies)
        return float(np.quantile(times, quantile)) * 1e3 if len(times) else math.nan


def mean(values: Iterable[float]) -> float:
    """Return the mean; NaN for nothing."""
    numbers = list(values)
    return math.fsum(numbers) / len(numbers) if numbers else math.nan


def macro_mean(results: Iterable[Result], measure: Measure) -> float:
    """Return the mean over sets of each set's mean, over sets that the measure applies to."""
    means = (result.mean(measure) for result in results)
    return mean(value for value in means if not math.isnan(value))


def evaluate(
    system: str,
    build: Build,
    query_set: QuerySet,
    operations: Sequence[Operation],
    context: Context,
    *,
    clock: Clock,
    limit_seconds: float = math.inf,
) -> Result:
    """Build a system over the set's operations and put every query to it.

    The limit covers building and all queries; it is looked at between queries.
    """
    start = clock()
    search = build(operations, context)
    built = clock()
    sources = {operation.key: operation.source for operation in operations}
    run: dict[str, tuple[Answer, ...]] = {}
    latencies: list[float] = []
    for query in query_set.queries:
        before = clock()
        if before - start > limit_seconds:
            break
        found = search(query.text, DEPTH)
        latencies.append(clock() - before)
        run[query.id] = tuple(_answer(*one, sources=sources) for one in found)
    return Result(
        system=system,
        set=query_set,
        run=run,
        build_seconds=built - start,
        latencies=tuple(latencies),
        over_limit=len(run) < len(query_set.queries),
        unknown_labels=_unknown_labels(query_set.qrels, sources),
    )


def _answer(
    key: str, score: float, parts: Mapping[str, float] | None = None, *, sources: Mapping[str, str]
) -> Answer:
    return Answer(key, float(score), sources.get(key, ""), {k: float(v) for k, v in (parts or {}).items()})


def _unknown_labels(qrels: Mapping[str, Mapping[str, int]], known: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(sorted({key for grades in qrels.values() for key in grades if key not in known}))
