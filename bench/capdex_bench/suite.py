"""Many systems on many sets, and what is kept of it.

A suite's folder can be read without the data it was made from::

    OUT/suite.json     format, manifest, sets with requests and labels
    OUT/runs.jsonl     one line per system, set and query: the answers and their scores' parts
    OUT/results.json   the figures
    OUT/RESULTS.md     the figures, to read
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from capdex_engine.errors import DocumentError

from .evaluate import DEPTH, Clock, Result, evaluate
from .formats import Query, read_rows, write_lines
from .runs import Answer
from .sets import QuerySet
from .systems import Build, Context

FORMAT: Final = 1
KEPT: Final = DEPTH
"""Answers kept per query."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Suite:
    """Results of several systems on several sets, with the run's manifest."""

    results: tuple[Result, ...]
    manifest: Mapping[str, Any]

    @property
    def systems(self) -> list[str]:
        """Names of the systems, in the order they ran."""
        return list(dict.fromkeys(result.system for result in self.results))

    @property
    def sets(self) -> list[QuerySet]:
        """The sets, in the order they ran."""
        return list({result.set.name: result.set for result in self.results}.values())

    @property
    def groups(self) -> list[str]:
        """The groups of the sets; sets of no group stand for themselves."""
        return list(dict.fromkeys(one.group or one.name for one in self.sets))

    def of(self, system: str, group: str | None = None) -> list[Result]:
        """Return one system's results on the sets of one group, or on all."""
        return [
            result
            for result in self.results
            if result.system == system and group in (None, result.set.group or result.set.name)
        ]


def run_suite(
    sets: Sequence[QuerySet],
    systems: Mapping[str, Build],
    context: Context,
    *,
    clock: Clock,
    say: Say = lambda _: None,
    limit_seconds: float = math.inf,
) -> tuple[Result, ...]:
    """Run every system on every set; each catalog is read once."""
    results: list[Result] = []
    for one in sets:
        operations = one.catalog(context.cache)
        for name, build in systems.items():
            result = evaluate(name, build, one, operations, context, clock=clock, limit_seconds=limit_seconds)
            say(f"{one.name} ({len(operations)} operations) {name}: {sum(result.latencies):.1f} s")
            results.append(result)
    return tuple(results)


def save(folder: Path, suite: Suite) -> None:
    """Write ``suite.json`` and ``runs.jsonl``."""
    head = {
        "format": FORMAT,
        "manifest": dict(suite.manifest),
        "sets": [_set_row(one) for one in suite.sets],
        "results": [_result_row(result) for result in suite.results],
    }
    write_lines(folder / "suite.json", [json.dumps(head, ensure_ascii=False, indent=1)])
    rows = (row for result in suite.results for row in _run_rows(result))
    write_lines(folder / "runs.jsonl", [json.dumps(row, ensure_ascii=False) for row in rows])


def _set_row(one: QuerySet) -> dict[str, Any]:
    return {
        "name": one.name,
        "group": one.group,
        "queries": [[query.id, query.text, query.type] for query in one.queries],
        "qrels": {query: dict(grades) for query, grades in one.qrels.items()},
    }


def _result_row(result: Result) -> dict[str, Any]:
    return {
        "system": result.system,
        "set": result.set.name,
        "build_seconds": round(result.build_seconds, 4),
        "latencies": [round(seconds, 6) for seconds in result.latencies],
        "over_limit": result.over_limit,
        "unknown_labels": list(result.unknown_labels),
    }


def _run_rows(result: Result) -> Iterable[dict[str, Any]]:
    for query, answers in result.run.items():
        kept = [_answer_row(answer) for answer in answers[:KEPT]]
        yield {"system": result.system, "set": result.set.name, "query": query, "answers": kept}


def _answer_row(answer: Answer) -> list[Any]:
    parts = {name: round(value, 5) for name, value in answer.parts.items()}
    return [answer.key, answer.score, answer.source, *([parts] if parts else [])]


def load(folder: Path) -> Suite:
    """Read what :func:`save` wrote.

    Raises:
        DocumentError: When it is absent, damaged, or of another format version.
    """
    path = folder / "suite.json"
    try:
        head = json.loads(path.read_text(encoding="utf-8"))
        found = head["format"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DocumentError(f"{folder} holds no suite: run `capdex bench quality --out` first") from error
    if found != FORMAT:
        raise DocumentError(f"{path.name} has format {found}, not {FORMAT}: run it again", location=str(path))
    sets = {row["name"]: _read_set(row) for row in head["sets"]}
    runs = _read_runs(folder / "runs.jsonl")
    results = (_read_result(row, sets[row["set"]], runs) for row in head["results"])
    return Suite(tuple(results), head["manifest"])


def _read_set(row: Mapping[str, Any]) -> QuerySet:
    queries = tuple(Query(*cells) for cells in row["queries"])
    return QuerySet(name=row["name"], group=row["group"], queries=queries, qrels=row["qrels"])


def _read_runs(path: Path) -> dict[tuple[str, str], dict[str, tuple[Answer, ...]]]:
    runs: dict[tuple[str, str], dict[str, tuple[Answer, ...]]] = {}
    for _, row in read_rows(path):
        answers = tuple(Answer(*cells) for cells in row["answers"])
        runs.setdefault((row["system"], row["set"]), {})[row["query"]] = answers
    return runs


def _read_result(
    row: Mapping[str, Any],
    query_set: QuerySet,
    runs: Mapping[tuple[str, str], dict[str, tuple[Answer, ...]]],
) -> Result:
    return Result(
        system=row["system"],
        set=query_set,
        run=runs.get((row["system"], row["set"]), {}),
        build_seconds=row["build_seconds"],
        latencies=tuple(row["latencies"]),
        over_limit=row["over_limit"],
        unknown_labels=tuple(row["unknown_labels"]),
    )
