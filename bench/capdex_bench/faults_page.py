"""The page of ``capdex bench faults``."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from .faults import RATIO, failures
from .faults_calls import PAUSE

NAME: Final = "FAULTS.md"


def faults_page(figures: Mapping[str, Any]) -> str:
    """Return the figures of :func:`capdex_bench.faults.measure_faults` as Markdown."""
    bad = failures(figures)
    lines = [
        "# Faults of an upstream, and what callers are told",
        "",
        f"`capdex bench faults` wrote this page: {platform.system()}, {platform.machine()}, Python "
        f"{platform.python_version()}. A real `capdex serve` with a time limit of {figures['timeout']:g} s "
        "for a call was called through `/mcp/agent`; each fault is a raw socket's doing, on loopback.",
        "",
        "**All is well.**" if not bad else "**Not well:** " + "; ".join(bad) + ".",
        "",
        *_summary(figures),
        "",
        "## Fault, answer, time",
        "",
        "A number is the status of an answer, `+` an answer cut short (`truncated`). An answer that breaks "
        "off is an error for GET, which can be repeated, and a truncated answer for POST, which took effect.",
        "",
        "| fault | GET | retryable | s | POST | s |",
        "|---|---|---|--:|---|--:|",
        *(_row(row) for row in figures["rows"]),
        "",
    ]
    return "\n".join(lines)


def write_page(figures: Mapping[str, Any], folder: Path) -> str:
    """Write the page into a folder; return it."""
    page = faults_page(figures)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / NAME).write_text(page, encoding="utf-8")
    return page


def _summary(figures: Mapping[str, Any]) -> list[str]:
    alone, calm, faulty = figures["alone"], figures["calm"], figures["faulty"]
    return [
        f"Healthy calls to another API, {figures['rate']:g} a second, in turn alone, beside "
        f"{len(figures['rows'])} callers of something sound, and while each of as many faults was called "
        f"again {PAUSE:g} s after its last answer:",
        "",
        "| | calls | p50 ms | p99 ms |",
        "|---|--:|--:|--:|",
        f"| alone | {alone['calls']} | {alone['p50_ms']} | {alone['p99_ms']} |",
        f"| beside sound calls ({figures['sound_calls']}) | {calm['calls']} | {calm['p50_ms']} "
        f"| {calm['p99_ms']} |",
        f"| beside faults ({figures['fault_calls']}) | {faulty['calls']} | {faulty['p50_ms']} "
        f"| {faulty['p99_ms']} |",
        f"| faults to sound (at most {RATIO:g}) | | {faulty['p50_ms'] / calm['p50_ms']:.2f} "
        f"| {figures['ratio']:.2f} |",
        "",
        f"- The server {'still answers' if figures['alive'] else 'is gone'}. `internal_error`: "
        f"{len(figures['internal'])}. Answers other than expected: {len(figures['wrong'])}.",
        f"- Memory of the server: {figures['rss_before']} MiB before, {figures['rss_after']} MiB after, "
        f"{figures['rss_peak']} MiB at most.",
        f"- Planted credential in answers and in {figures['log_lines']} lines of the log: "
        f"{len(figures['leaks'])} times; the upstream echoes it raw, in base64, percent-encoded, in headers.",
    ]


def _row(row: Mapping[str, Any]) -> str:
    get, post = row["GET"], row["POST"]
    retryable = {True: "yes", False: "no", None: ""}[get["retryable"]]
    masked = ", masked" if get["masked"] else ""
    return (
        f"| {row['text']} | {get['said']}{masked} | {retryable} | {get['seconds']:.2f} "
        f"| {post['said']} | {post['seconds']:.2f} |"
    )
