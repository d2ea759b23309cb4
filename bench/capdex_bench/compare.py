"""Two runs on the same queries: is the difference beyond the noise, and which queries made it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .evaluate import Result
from .figures import table
from .intervals import Interval, differences, interval, paired
from .measures import Measure, best_keys
from .runs import Answer, ranking


@dataclass(frozen=True, slots=True)
class Change:
    """One query whose value changed."""

    set: str
    query: str
    text: str
    type: str
    before: float
    after: float
    reason: str
    """Where the best answer stood and stands, and which parts of its score moved."""

    @property
    def difference(self) -> float:
        """``after - before``."""
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class Comparison:
    """The paired difference of two systems over the sets that both ran on."""

    measure: Measure
    overall: Interval
    """Of the mean over sets of the mean difference."""
    types: Mapping[str, Interval]
    changes: tuple[Change, ...]
    """The largest fall first."""
    queries: int

    @property
    def fallen(self) -> tuple[Change, ...]:
        """Queries that got worse, the worst first."""
        return tuple(change for change in self.changes if change.difference < 0)

    @property
    def risen(self) -> tuple[Change, ...]:
        """Queries that got better, the best first."""
        return tuple(change for change in reversed(self.changes) if change.difference > 0)


def _pairs(before: Sequence[Result], after: Sequence[Result]) -> list[tuple[Result, Result]]:
    named = {result.set.name: result for result in after}
    return [(result, named[result.set.name]) for result in before if result.set.name in named]


def compare(before: Sequence[Result], after: Sequence[Result], measure: Measure) -> Comparison:
    """Compare two systems' results set by set.

    Raises:
        ValueError: When they share no set, or a shared set's queries differ.
    """
    pairs = _pairs(before, after)
    if not pairs:
        raise ValueError("the two runs have no set in common")
    old = [one.values(measure) for one, _ in pairs]
    new = [other.values(measure) for _, other in pairs]
    changes = [
        _change(pair, query, olds[query], news[query])
        for pair, olds, news in zip(pairs, old, new, strict=True)
        for query in olds
        if query in news and olds[query] != news[query]
    ]
    return Comparison(
        measure=measure,
        overall=paired(old, new),
        types=_by_type(pairs, old, new),
        changes=tuple(sorted(changes, key=lambda change: (change.difference, change.query))),
        queries=sum(map(len, old)),
    )


def _by_type(
    pairs: Sequence[tuple[Result, Result]],
    old: Sequence[Mapping[str, float]],
    new: Sequence[Mapping[str, float]],
) -> dict[str, Interval]:
    """Return the difference per query type, all queries of a type taken together."""
    kinds = [{query.id: query.type for query in one.set.queries} for one, _ in pairs]
    found: dict[str, list[float]] = {}
    for types, olds, deltas in zip(kinds, old, differences(old, new), strict=True):
        for query, delta in zip(olds, deltas, strict=True):
            if types[query]:
                found.setdefault(types[query], []).append(delta)
    return {kind: interval([deltas]) for kind, deltas in sorted(found.items())}


def _change(pair: tuple[Result, Result], query: str, before: float, after: float) -> Change:
    one, other = pair
    asked = next(found for found in one.set.queries if found.id == query)
    best = best_keys(one.set.grades(asked))
    old, new = one.run.get(query, ()), other.run.get(query, ())
    return Change(one.set.name, query, asked.text, asked.type, before, after, _reason(best, old, new))


def _reason(best: frozenset[str], old: Sequence[Answer], new: Sequence[Answer]) -> str:
    """Say how the first best answer moved, what took its place, and by which parts of the score."""
    found = next((key for key in [*ranking(old), *ranking(new)] if key in best), None)
    if found is None:
        return "only acceptable answers moved"
    text = f"{found}: rank {_rank(old, found)} -> {_rank(new, found)}"
    winner = new[0].key if new else None
    ahead = f"; first is now {winner}" if winner not in (None, found) else ""
    return text + ahead + _parts_moved(_answer(old, found), _answer(new, found))


def _rank(answers: Sequence[Answer], key: str) -> str:
    keys = ranking(answers)
    return str(keys.index(key) + 1) if key in keys else "none"


def _answer(answers: Sequence[Answer], key: str) -> Answer | None:
    return next((answer for answer in answers if answer.key == key), None)


def _parts_moved(old: Answer | None, new: Answer | None) -> str:
    if old is None or new is None:
        return ""
    names = sorted({*old.parts, *new.parts})
    moved = [
        f"{name} {old.parts.get(name, 0):.2f} -> {new.parts.get(name, 0):.2f}"
        for name in names
        if abs(old.parts.get(name, 0) - new.parts.get(name, 0)) >= 0.005
    ]
    return f" ({', '.join(moved)})" if moved else ""


def _change_rows(changes: Sequence[Change]) -> list[list[str]]:
    return [
        [f"{c.set}/{c.query}", c.text[:80], f"{c.before:.2f}", f"{c.after:.2f}", c.reason] for c in changes
    ]


def verdict(comparison: Comparison) -> str:
    """Return one line: the difference, its interval, and what may be said of it."""
    if comparison.overall.below_zero:
        said = "worse beyond the noise"
    elif comparison.overall.above_zero:
        said = "better beyond the noise"
    else:
        said = "no difference beyond the noise"
    return (
        f"{comparison.measure}: {comparison.overall} over {comparison.queries} queries, {said}; "
        f"{len(comparison.risen)} rose, {len(comparison.fallen)} fell"
    )


def comparison_markdown(comparison: Comparison, *, limit: int = 20) -> str:
    """Return the verdict, the differences per type, and the queries that moved most."""
    parts = [verdict(comparison) + "\n"]
    if comparison.types:
        rows = [[kind, str(found)] for kind, found in comparison.types.items()]
        parts.append(table(["type", f"difference in {comparison.measure}"], rows))
    heading = ["query", "text", "before", "after", "why"]
    for title, changes in (("Fell", comparison.fallen), ("Rose", comparison.risen)):
        if changes:
            parts += [f"### {title}\n", table(heading, _change_rows(changes[:limit]))]
    return "\n".join(parts)


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Return the whole comparison as JSON values."""
    overall = comparison.overall
    return {
        "measure": str(comparison.measure),
        "difference": {"mean": overall.mean, "low": overall.low, "high": overall.high},
        "queries": comparison.queries,
        "types": {
            kind: {"mean": found.mean, "low": found.low, "high": found.high}
            for kind, found in comparison.types.items()
        },
        "changes": [
            {
                "set": change.set,
                "query": change.query,
                "before": change.before,
                "after": change.after,
                "reason": change.reason,
            }
            for change in comparison.changes
        ],
    }
