"""The figures of a suite, as JSON values and as Markdown tables."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .evaluate import Result, macro_mean, mean
from .intervals import SEED, Interval, interval, paired
from .measures import DEFAULT, Measure
from .reliability import Reliability, Unanswered, by_system, pooled
from .sets import GOLDEN_MERGED
from .suite import KEPT, Suite

OVER: str = "over the limit"
MATCHES: Mapping[str, int] = {"first": 1, "all shown": KEPT}
"""What reliability is shown of: name -> matches per request."""
CONFIDENCE: str = (
    "Error: expected calibration error, the mean distance of score and share right over tenths of the score, "
    "all matches pooled. AUROC: chance that a right first match scores above a wrong one. Any label makes a "
    "match right; for a request of type `none` every match is wrong."
)
LOWER_BOUND: str = (
    "Means over documents, without requests of type `none`. Labels name operations of the request's own "
    "document only, so one of another document that would do counts as wrong: the merged figure is a "
    "lower bound."
)


def group_interval(results: Iterable[Result], measure: Measure, *, seed: int = SEED) -> Interval:
    """Return the mean over sets with its interval."""
    return interval([list(result.values(measure).values()) for result in results], seed=seed)


def by_type(results: Iterable[Result], measure: Measure) -> dict[str, dict[str, float]]:
    """Return query type -> ``SET/QUERY`` -> value over all results; untyped queries are left out."""
    found: dict[str, dict[str, float]] = {}
    for result in results:
        for kind, values in result.by_type(measure).items():
            if kind:
                named = {f"{result.set.name}/{query}": value for query, value in values.items()}
                found.setdefault(kind, {}).update(named)
    return dict(sorted(found.items()))


def _number(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 6)


def _interval_row(found: Interval) -> dict[str, float | None]:
    return {"mean": _number(found.mean), "low": _number(found.low), "high": _number(found.high)}


def _system_row(results: Sequence[Result], measures: Sequence[Measure]) -> dict[str, Any]:
    if any(result.over_limit for result in results):
        return {"over_limit": True}
    return {
        "means": {str(measure): _interval_row(group_interval(results, measure)) for measure in measures},
        "types": {
            str(measure): {kind: _number(mean(v.values())) for kind, v in by_type(results, measure).items()}
            for measure in measures
        },
        "sets": {
            result.set.name: {str(measure): _number(result.mean(measure)) for measure in measures}
            for result in results
        },
        "confidence": _confidence_row(results),
        "p50_ms": _number(mean(result.latency_ms(0.5) for result in results)),
        "p95_ms": _number(mean(result.latency_ms(0.95) for result in results)),
        "build_seconds": _number(sum(result.build_seconds for result in results)),
    }


def _confidence_row(results: Sequence[Result]) -> dict[str, Any]:
    """Return :class:`Reliability` of first and all matches, and :class:`Unanswered`, as JSON."""
    return {
        "first": _reliability_row(Reliability.of(results, depth=1)),
        "shown": _reliability_row(Reliability.of(results)),
        "unanswered": dataclasses.asdict(Unanswered.of(results)),
    }


def _reliability_row(found: Reliability) -> dict[str, Any]:
    numbers = {name: _number(getattr(found, name)) for name in ("score", "right", "error", "auroc")}
    bins = [[one.number, _number(one.score), _number(one.right), one.count] for one in found.bins]
    return {"count": found.count, **numbers, "bins": bins}


def figures(suite: Suite, measures: Sequence[Measure] = DEFAULT) -> dict[str, Any]:
    """Return ``{"manifest", "measures", "groups": {group: {system: {...}}}}`` for results.json.

    ``pooled`` holds every system's confidence over :data:`~.reliability.POOLED_GROUPS` together.
    """
    return {
        "format": 1,
        "manifest": dict(suite.manifest),
        "measures": [str(measure) for measure in measures],
        "groups": {
            group: {system: _system_row(suite.of(system, group), measures) for system in suite.systems}
            for group in suite.groups
        },
        "pooled": {system: _confidence_row(results) for system, results in _within(pooled(suite)).items()},
    }


def _within(results: Mapping[str, Sequence[Result]]) -> dict[str, Sequence[Result]]:
    """Return the systems that kept to the time limit everywhere and that ran at all."""
    return {
        system: found
        for system, found in results.items()
        if found and not any(result.over_limit for result in found)
    }


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [heading, ["---"] * len(heading), *rows]
    cells = (" | ".join(cell.replace("|", "\\|") for cell in line) for line in lines)
    return "\n".join(f"| {line} |" for line in cells) + "\n"


def _shown(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3f}"


def main_table(suite: Suite, group: str, measures: Sequence[Measure] = DEFAULT) -> str:
    """Return systems against measures for one group; the first measure with its interval."""
    rows = []
    for system in suite.systems:
        results = suite.of(system, group)
        if any(result.over_limit for result in results):
            rows.append([system, OVER, *[""] * len(measures)])
            continue
        first = str(group_interval(results, measures[0]))
        rest = [_shown(macro_mean(results, measure)) for measure in measures[1:]]
        p95 = mean(result.latency_ms(0.95) for result in results)
        rows.append([system, first, *rest, f"{p95:.1f}"])
    return table(["system", *map(str, measures), "p95 ms"], rows)


def type_table(suite: Suite, group: str, measure: Measure) -> str:
    """Return query types against systems; empty when the group's queries have no types."""
    columns = {system: by_type(suite.of(system, group), measure) for system in suite.systems}
    kinds = {kind: len(values) for column in columns.values() for kind, values in column.items()}
    if not kinds:
        return ""
    rows = [
        [kind, str(count), *(_shown(mean(column.get(kind, {}).values())) for column in columns.values())]
        for kind, count in sorted(kinds.items())
    ]
    return table(["type", "queries", *columns], rows)


def set_table(suite: Suite, group: str, measure: Measure) -> str:
    """Return sets against systems."""
    columns = {
        system: {result.set.name: result.mean(measure) for result in suite.of(system, group)}
        for system in suite.systems
    }
    names = [one for one in suite.sets if group in (one.group, one.name)]
    rows = [
        [one.name, str(len(one.queries)), *(_shown(column[one.name]) for column in columns.values())]
        for one in names
    ]
    return table(["set", "queries", *columns], rows)


def confidence_table(results: Mapping[str, Sequence[Result]]) -> str:
    """Return how far scores can be believed, and how often nothing was returned, per system."""
    rows = [[system, *_confidence_cells(found)] for system, found in _within(results).items()]
    return table(
        [
            "system",
            "first matches",
            "right",
            "mean score",
            "error",
            "AUROC",
            "error, all shown",
            "`none` unanswered",
            "answerable unanswered",
        ],
        rows,
    )


def _confidence_cells(results: Sequence[Result]) -> list[str]:
    first, left = Reliability.of(results, depth=1), Unanswered.of(results)
    numbers = (first.right, first.score, first.error, first.auroc, Reliability.of(results).error)
    shares = (_share(left.none_left, left.none), _share(left.answerable_left, left.answerable))
    return [str(first.count), *map(_shown, numbers), *shares]


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f} ({part} of {whole})" if whole else ""


def bin_table(results: Mapping[str, Sequence[Result]]) -> str:
    """Return every bin of the reliability diagrams; systems whose scores leave 0..1 have none."""
    rows = [
        [system, shown, one.range, str(one.count), _shown(one.score), _shown(one.right)]
        for system, found in _within(results).items()
        for shown, depth in MATCHES.items()
        for one in Reliability.of(found, depth=depth).bins
    ]
    return table(["system", "matches", "score", "count", "mean score", "share right"], rows) if rows else ""


def merged_table(suite: Suite, measure: Measure, single: str = "golden", merged: str = GOLDEN_MERGED) -> str:
    """Return what it costs to search all documents of ``single`` at once, over the same requests.

    Both columns are means over documents of each document's mean, with the paired interval of their
    difference. Empty unless the suite holds both groups.
    """
    if not {single, merged} <= set(suite.groups):
        return ""
    sides = {system: (suite.of(system, single), suite.of(system, merged)) for system in suite.systems}
    ran = _within({system: [*alone, *together] for system, (alone, together) in sides.items()})
    rows = [[system, *_merged_cells(*sides[system], measure)] for system in ran]
    return table(["system", single, merged, f"difference in {measure}"], rows)


def _merged_cells(alone: Sequence[Result], together: Sequence[Result], measure: Measure) -> list[str]:
    split = _by_document(together, measure)
    before = [result.values(measure) for result in alone if result.set.name in split]
    after = [split[result.set.name] for result in alone if result.set.name in split]
    means = (mean(mean(values.values()) for values in side) for side in (before, after))
    return [*map(_shown, means), str(paired(before, after))]


def _by_document(results: Iterable[Result], measure: Measure) -> dict[str, dict[str, float]]:
    """Return ``SET`` -> query -> value of requests named ``SET/QUERY``."""
    found: dict[str, dict[str, float]] = {}
    for result in results:
        for name, value in result.values(measure).items():
            document, _, query = name.partition("/")
            found.setdefault(document, {})[query] = value
    return found


def manifest_lines(manifest: Mapping[str, Any]) -> str:
    """Return the run manifest as a Markdown list."""
    machine, versions = manifest.get("machine", {}), manifest.get("versions", {})
    facts = {
        "command": f"`{manifest.get('command', '')}`",
        "commit": manifest.get("commit") or "none",
        "encoder": manifest.get("encoder", ""),
        "seed": manifest.get("seed", ""),
        "machine": f"{machine.get('processor', '')}, {machine.get('cores', '')} cores",
        "versions": ", ".join(f"{name} {number}" for name, number in versions.items()),
    }
    return "\n".join(f"- {name}: {value}" for name, value in facts.items()) + "\n"


def markdown(suite: Suite, measures: Sequence[Measure] = DEFAULT) -> str:
    """Return the whole result page."""
    parts = ["# Ranking quality\n", manifest_lines(suite.manifest)]
    for group in suite.groups:
        parts += [f"## {group}\n", main_table(suite, group, measures), f"### {measures[0]} per set\n"]
        parts += [set_table(suite, group, measures[0])]
        types = type_table(suite, group, measures[0])
        parts += [f"### {measures[0]} per type\n", types] if types else []
        parts += ["### Scores as probabilities, and silence\n", confidence_table(by_system(suite, group))]
    parts += [f"{CONFIDENCE}\n"]
    if together := pooled(suite):
        parts += ["## golden and public pooled\n", confidence_table(together)]
    if costs := merged_table(suite, measures[0]):
        parts += ["## One catalog for all golden documents\n", costs, f"{LOWER_BOUND}\n"]
    parts += ["Means over sets of each set's mean; 95 % bootstrap intervals over queries.\n"]
    return "\n".join(parts)
