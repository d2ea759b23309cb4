"""A suite as one static HTML page: tables, plots, and a browser of queries. Nothing is fetched."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from .curves import latency_against_quality, recall_curve
from .evaluate import Result, mean
from .figures import (
    CONFIDENCE,
    LOWER_BOUND,
    MATCHES,
    bin_table,
    by_type,
    confidence_table,
    main_table,
    manifest_lines,
    merged_table,
    set_table,
    type_table,
)
from .measures import DEFAULT, Measure
from .reliability import Reliability, by_system, pooled
from .suite import Suite
from .svg import Counted, bars, lines, reliability, scatter

SHOWN: Final = 10
"""Answers shown per system in the browser."""

_ASSETS: Final = Path(__file__).parent / "page"
_CODE: Final = re.compile(r"`([^`]*)`")
_MARKED: Final = r"<code>\1</code>"


def html_table(markdown: str) -> str:
    """Return a Markdown table, as :mod:`.figures` writes it, as HTML."""
    rows = [
        [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in markdown.strip().split("\n")
    ]
    head, body = rows[0], rows[2:]
    cells = "".join(f"<th>{_CODE.sub(_MARKED, escape(cell))}</th>" for cell in head)
    lines_ = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in body)
    return f'<div class="wide"><table><thead><tr>{cells}</tr></thead><tbody>{lines_}</tbody></table></div>'


def _list(markdown: str) -> str:
    items = (line.removeprefix("- ") for line in markdown.strip().split("\n"))
    marked = (_CODE.sub(_MARKED, escape(item)) for item in items)
    return "".join(f"<li>{item}</li>" for item in marked)


def _type_bars(suite: Suite, group: str, measure: Measure) -> str:
    columns = {
        system: {
            kind: mean(values.values()) for kind, values in by_type(suite.of(system, group), measure).items()
        }
        for system in suite.systems
    }
    if not any(columns.values()):
        return ""
    return bars(f"{measure} per query type", columns, y_label=str(measure))


def _series(results: Sequence[Result]) -> dict[str, Counted]:
    """Return first and all matches of a system, each named with its figures; no points, no probabilities."""
    found = {shown: Reliability.of(results, depth=depth) for shown, depth in MATCHES.items()}
    return {
        f"{shown} ({_told(one)})": [(held.score, held.right, held.count) for held in one.bins]
        for shown, one in found.items()
    }


def _told(found: Reliability) -> str:
    area = "unknown" if math.isnan(found.auroc) else f"{found.auroc:.3f}"
    matches = f"{found.count} match{'' if found.count == 1 else 'es'}"
    return f"error {found.error:.3f}, AUROC {area}, {matches}"


def _diagram(system: str, results: Sequence[Result]) -> str:
    series = _series(results)
    if not any(series.values()):
        return ""
    name = f"Reliability of {system}"
    plot = reliability(name, series, x_label="score (predicted probability)", y_label="share that is right")
    return f"<figure><figcaption>{escape(name)}</figcaption>{plot}</figure>"


def _confidence(results: Mapping[str, Sequence[Result]]) -> str:
    """Return figures, reliability diagrams and their bins; systems over the limit are left out."""
    bins = bin_table(results)
    within = {system: found for system, found in results.items() if not any(one.over_limit for one in found)}
    return (
        "<h3>Scores as probabilities, and silence</h3>"
        + html_table(confidence_table(results))
        + _note(CONFIDENCE)
        + "".join(_diagram(system, found) for system, found in within.items())
        + (f"<details><summary>Counts of all bins</summary>{html_table(bins)}</details>" if bins else "")
    )


def _note(text: str) -> str:
    return f"<p>{_CODE.sub(_MARKED, escape(text))}</p>"


def _across(suite: Suite, measure: Measure) -> str:
    """Return what concerns several groups at once."""
    together, costs = pooled(suite), merged_table(suite, measure)
    return (f"<h2>golden and public pooled</h2>{_confidence(together)}" if together else "") + (
        f"<h2>One catalog for all golden documents</h2>{html_table(costs)}{_note(LOWER_BOUND)}"
        if costs
        else ""
    )


def _plots(suite: Suite, group: str, measure: Measure) -> list[str]:
    recalls = {system: recall_curve(suite.of(system, group)) for system in suite.systems}
    return [
        _type_bars(suite, group, measure),
        lines("Recall by depth", recalls, x_label="k", y_label="recall@k"),
        scatter(
            "Latency against quality",
            latency_against_quality(suite, group, measure),
            x_label="milliseconds (p95)",
            y_label=str(measure),
        ),
    ]


def _section(suite: Suite, group: str, measures: Sequence[Measure]) -> str:
    tables = [
        main_table(suite, group, measures),
        set_table(suite, group, measures[0]),
        type_table(suite, group, measures[0]),
    ]
    figures = "".join(f"<figure>{plot}</figure>" for plot in _plots(suite, group, measures[0]) if plot)
    return (
        f"<h2>{escape(group)}</h2>"
        + "".join(map(html_table, filter(None, tables)))
        + figures
        + _confidence(by_system(suite, group))
    )


def _answer_rows(result: Result | None, query: str) -> list[list[Any]]:
    answers = result.run.get(query, ())[:SHOWN] if result else ()
    return [
        [answer.key, round(answer.score, 4), {name: round(v, 3) for name, v in answer.parts.items()}]
        for answer in answers
    ]


def browser_data(suite: Suite, measure: Measure) -> dict[str, Any]:
    """Return what the page's browser shows: per query its labels and every system's first answers."""
    by_set: dict[str, dict[str, Result]] = {}
    for result in suite.results:
        by_set.setdefault(result.set.name, {})[result.system] = result
    values = {(r.set.name, r.system): r.values(measure) for r in suite.results}
    rows = [
        {
            "set": one.name,
            "id": query.id,
            "text": query.text,
            "type": query.type,
            "labels": dict(one.grades(query)),
            "values": [
                values[one.name, s].get(query.id) if s in by_set[one.name] else None for s in suite.systems
            ],
            "answers": [_answer_rows(by_set[one.name].get(s), query.id) for s in suite.systems],
        }
        for one in suite.sets
        for query in one.queries
    ]
    return {"systems": suite.systems, "measure": str(measure), "queries": rows}


def _embedded(data: Mapping[str, Any]) -> str:
    """Return JSON that cannot end the script element it stands in."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def report_page(suite: Suite, measures: Sequence[Measure] = DEFAULT) -> str:
    """Return the page; ``measures[0]`` is the one that plots and the browser use."""
    page = (_ASSETS / "report.html").read_text(encoding="utf-8")
    parts = {
        "STYLE": (_ASSETS / "report.css").read_text(encoding="utf-8"),
        "MANIFEST": _list(manifest_lines(suite.manifest)),
        "SECTIONS": "".join(_section(suite, group, measures) for group in suite.groups)
        + _across(suite, measures[0]),
        "DATA": _embedded(browser_data(suite, measures[0])),
        "SCRIPT": (_ASSETS / "report.js").read_text(encoding="utf-8"),
    }
    return re.sub(r"\{\{([A-Z]+)\}\}", lambda match: parts[match[1]], page)
