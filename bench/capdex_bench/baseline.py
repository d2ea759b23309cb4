"""The committed figures that a change must not fall below.

``baseline.json`` holds the production ranker's value per query on a fixed choice of sets: the
golden ones, and the probes, which guard single fields. ``capdex bench quality --check`` runs those
sets again and fails on a drop beyond the noise: the whole paired interval of the difference lies
below zero, overall or for one query type.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from capdex_engine.errors import DocumentError

from .evaluate import Result
from .intervals import Interval, differences, interval
from .measures import Measure

FORMAT: Final = 1
TOLERANCE: Final = 0.005
"""A mean drop up to this is let pass even when it is certain: it moves no decision."""
TYPE_LEVEL: Final = 0.995
"""Level of the per-type intervals; higher, since there are ten of them."""
TYPE_TOLERANCE: Final = 0.05


@dataclass(frozen=True, slots=True)
class Baseline:
    """Values per set and query of one system under one measure."""

    measure: Measure
    system: str
    sets: Mapping[str, Mapping[str, float]]

    @classmethod
    def of(cls, results: Sequence[Result], measure: Measure) -> Baseline:
        """Take one system's results as the baseline."""
        values = {result.set.name: result.values(measure) for result in results}
        return cls(measure, results[0].system, values)

    def only(self, names: Collection[str]) -> Baseline:
        """Return the part of the baseline on the named sets.

        Raises:
            DocumentError: When it holds none of them.
        """
        sets = {name: values for name, values in self.sets.items() if name in names}
        if not sets:
            raise DocumentError(f"the baseline holds none of {', '.join(sorted(names))}")
        return Baseline(self.measure, self.system, sets)


@dataclass(frozen=True, slots=True)
class Check:
    """What became of a baseline's queries."""

    overall: Interval
    """Difference of means over sets, new minus baseline."""
    failures: tuple[str, ...]
    """What fell beyond the noise; empty when all is well."""
    fallen: tuple[tuple[str, float, float], ...]
    """``(SET/QUERY, before, now)``, the largest fall first."""


def write_baseline(path: Path, baseline: Baseline) -> None:
    """Write the file, one line per query so that a diff can be read."""
    body = {
        "format": FORMAT,
        "measure": str(baseline.measure),
        "system": baseline.system,
        "sets": {
            name: {query: value for query, value in sorted(values.items())}
            for name, values in sorted(baseline.sets.items())
        },
    }
    path.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8", newline="\n")


def read_baseline(path: Path) -> Baseline:
    """Read a baseline.

    Raises:
        DocumentError: When it is absent, damaged, or of another format version.
    """
    try:
        body: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if body["format"] != FORMAT:
            raise DocumentError(
                f"{path.name} has format {body['format']}, not {FORMAT}: write it again", location=str(path)
            )
        return Baseline(Measure.parse(body["measure"]), body["system"], body["sets"])
    except (OSError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise DocumentError(f"{path} is no readable baseline: {error}", location=str(path)) from error


def _dropped(found: Interval, tolerance: float) -> bool:
    return found.below_zero and found.mean < -tolerance


def check(baseline: Baseline, results: Sequence[Result]) -> Check:
    """Compare results with the baseline, query by query.

    Raises:
        DocumentError: When a set or a query of the baseline was not run: then it is out of date.
    """
    now = {result.set.name: result.values(baseline.measure) for result in results}
    old = list(baseline.sets.values())
    try:
        deltas = differences(old, [now[name] for name in baseline.sets])
    except (KeyError, ValueError) as error:
        raise DocumentError(f"the baseline is out of date ({error}): write it again") from error
    overall = interval(deltas)
    failures = [f"{baseline.measure} overall: {overall}"] if _dropped(overall, TOLERANCE) else []
    for kind, found in _by_type(baseline, results, deltas).items():
        if _dropped(found, TYPE_TOLERANCE):
            failures.append(f"{baseline.measure} for type {kind}: {found}")
    return Check(overall, tuple(failures), _fallen(baseline, now))


def _by_type(
    baseline: Baseline, results: Sequence[Result], deltas: Sequence[Sequence[float]]
) -> dict[str, Interval]:
    types = {(r.set.name, query.id): query.type for r in results for query in r.set.queries}
    found: dict[str, list[float]] = {}
    for (name, values), moved in zip(baseline.sets.items(), deltas, strict=True):
        for query, delta in zip(values, moved, strict=True):
            found.setdefault(types[name, query], []).append(delta)
    return {kind: interval([values], level=TYPE_LEVEL) for kind, values in sorted(found.items()) if kind}


def _fallen(
    baseline: Baseline, now: Mapping[str, Mapping[str, float]]
) -> tuple[tuple[str, float, float], ...]:
    rows = [
        (f"{name}/{query}", before, now[name][query])
        for name, values in baseline.sets.items()
        for query, before in values.items()
        if now[name][query] < before - 1e-6
    ]
    return tuple(sorted(rows, key=lambda row: (row[2] - row[1], row[0])))
