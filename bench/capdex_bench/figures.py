"""The figures of a suite, as JSON values and as Markdown tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .evaluate import Result, macro_mean, mean
from .intervals import SEED, Interval, interval
from .measures import DEFAULT, Measure
from .suite import Suite

OVER: str = "over the limit"


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
        "p50_ms": _number(mean(result.latency_ms(0.5) for result in results)),
        "p95_ms": _number(mean(result.latency_ms(0.95) for result in results)),
        "build_seconds": _number(sum(result.build_seconds for result in results)),
    }


def figures(suite: Suite, measures: Sequence[Measure] = DEFAULT) -> dict[str, Any]:
    """Return ``{"manifest", "measures", "groups": {group: {system: {...}}}}`` for results.json."""
    return {
        "format": 1,
        "manifest": dict(suite.manifest),
        "measures": [str(measure) for measure in measures],
        "groups": {
            group: {system: _system_row(suite.of(system, group), measures) for system in suite.systems}
            for group in suite.groups
        },
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
    parts += ["Means over sets of each set's mean; 95 % bootstrap intervals over queries.\n"]
    return "\n".join(parts)
