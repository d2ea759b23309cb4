"""What the production searcher makes of requests, and how sure it says it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from ..curves import calibration_error
from ..evaluate import Result, macro_mean
from ..measures import Measure
from ..reliability import auroc
from .material import GROUPS

MEASURES: Final = tuple(
    Measure.parse(name) for name in ("nDCG@10", "hit@1", "recall@5", "abstention", "falseAbstention")
)
COLUMNS: Final = (*map(str, MEASURES), "calibration error", "AUROC")

Figures = Mapping[str, Mapping[str, float]]
"""Group -> column -> value."""


def figures(results: Sequence[Result]) -> Figures:
    """Return the columns of each group: macro means over its sets, the last two over all its answers."""
    columns: Mapping[str, Callable[[Sequence[Result]], float]] = {
        **{str(one): _mean_of(one) for one in MEASURES},
        "calibration error": calibration_error,
        "AUROC": first_match_auroc,
    }
    grouped = {group: [one for one in results if one.set.group == group] for group in GROUPS}
    return {
        group: {name: column(own) for name, column in columns.items()}
        for group, own in grouped.items()
        if own
    }


def _mean_of(measure: Measure) -> Callable[[Sequence[Result]], float]:
    return lambda results: macro_mean(results, measure)


def first_match_auroc(results: Iterable[Result]) -> float:
    """Return how likely a right first match scores above a wrong one, over requests with an answer."""
    return auroc(
        [
            (answers[0].score, answers[0].key in grades)
            for result in results
            for query in result.set.queries
            if (grades := result.set.grades(query)) and (answers := result.run.get(query.id, ()))
        ]
    )


def page(rows: Mapping[str, Figures]) -> str:
    """Return one Markdown table per group, with a row for each blend."""
    from ..figures import table

    parts = []
    for group in GROUPS:
        own = {name: found[group] for name, found in rows.items() if group in found}
        if own:
            body = [[name, *(_shown(found[column]) for column in COLUMNS)] for name, found in own.items()]
            parts += [f"## {group}\n", table(["blend", *COLUMNS], body)]
    return "\n".join(parts)


def _shown(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3f}"
