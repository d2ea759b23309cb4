"""Latency as JSON values and as a Markdown page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .evaluate import mean
from .figures import manifest_lines, table
from .latency import Timings, quantiles_ms, ratio
from .latency_catalog import Stock


def latency_json(
    timings: Timings, stock: Stock, *, threads: int, manifest: Mapping[str, Any]
) -> dict[str, Any]:
    """Return everything measured; times in milliseconds."""
    return {
        "manifest": dict(manifest),
        "operations": len(stock.operations),
        "different_operations": stock.own,
        "requests": len(timings.search),
        "threads": threads,
        "encoding_ms": _rounded(quantiles_ms(timings.encoding)),
        "search_ms": _rounded(quantiles_ms(timings.search)),
        "ratio_of_medians": round(ratio(timings), 3),
        "stages_ms": {stage: _rounded(quantiles_ms(spent)) for stage, spent in timings.stages.items()},
        "texts_per_search": round(mean(timings.texts), 3),
        "processor_share": round(timings.busy, 3),
    }


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in values.items()}


def latency_page(timings: Timings, stock: Stock, *, threads: int, manifest: Mapping[str, Any]) -> str:
    """Return what was measured, to read."""
    facts = {
        "operations": f"{len(stock.operations):,}: {stock.description}",
        "requests": f"{len(timings.search)}, each put once before it counted",
        "threads": threads,
        "processor time": f"{timings.busy:.2f} of wall time (below 1: others used the machine as well)",
    }
    whole = {"encoding the request alone": timings.encoding, "whole search, answer included": timings.search}
    return "\n".join(
        [
            "# Latency\n",
            manifest_lines(manifest) + "".join(f"- {name}: {value}\n" for name, value in facts.items()),
            _table(whole),
            f"Ratio of medians: {ratio(timings):.2f}. A search encodes {mean(timings.texts):.2f} texts on "
            "average: the request, its reading in correct English where it differs, each need of several.\n",
            "## By stage\n",
            _table(timings.stages),
            "Of searches of their own, watched; medians of stages need not add up to that of the whole.\n",
        ]
    )


def _table(rows: Mapping[str, Sequence[float]]) -> str:
    return table(
        ["milliseconds", "median", "p90", "p99"], [_row(name, spent) for name, spent in rows.items()]
    )


def _row(name: str, seconds: Sequence[float]) -> list[str]:
    return [name, *(f"{value:.2f}" for value in quantiles_ms(seconds).values())]
