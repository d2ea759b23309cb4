"""``capdex bench documents``: a folder of the world's documents through the catalog builder.

Every document is read by the engine and counted by :mod:`.count`; the page says how many are usable,
whether an operation is missing, how many are callable once a server and credentials are given, and what
the rest suffers from.
"""

from __future__ import annotations

import os
import platform
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from capdex_engine.catalog import LoadReport, Source, SourceReport, SourceSettings
from capdex_engine.catalog.check import check_documents
from capdex_engine.catalog.reasons import Reason, group_reasons
from capdex_engine.documents import folder_retrieve
from capdex_engine.errors import DocumentError

from .count import NotCounted, count_operations, is_description, load_tree, version_of
from .figures import table

SERVER: Final = "https://server.invalid"
"""Given to every document; nothing is sent."""
USABLE: Final = 0.995
CALLABLE: Final = 0.99
"""Shares of documents and of operations that the check asks for."""
SECONDS: Final = 15 * 60
PEAK_MIB: Final = 6 * 1024
SLOWEST: Final = 5
ENDINGS: Final = frozenset({".json", ".yaml", ".yml"})
PAGE: Final = "DOCUMENTS.md"
Say = Callable[[str], None]


class Anything:
    """Holds every credential: what is then not callable lacks more than one."""

    def __contains__(self, name: object) -> bool:
        return True


@dataclass(slots=True)
class Sweep:
    """What a sweep found."""

    report: LoadReport
    """Sources are named by their file's place in the folder."""
    counted: dict[str, int] = field(default_factory=dict)
    """Source -> operations by the independent count; without those it cannot read."""
    versions: dict[str, str] = field(default_factory=dict)
    """Source -> version of OpenAPI."""
    passed_over: int = 0
    """Files that are no API description."""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_mib: float = 0.0
    """Largest resident memory of the process."""

    def usable(self) -> float:
        """Return the share of documents that could be used."""
        return 1 - len(self.report.failed) / max(1, len(self.report.sources))

    def callable(self) -> float:
        """Return the share of all operations, kept out ones among them, that can be called."""
        totals = self.report.totals()
        known = totals["operations"] + totals["broken"]
        return float((totals["operations"] - totals["notCallable"]) / max(1, known))

    def missing(self) -> dict[str, tuple[int, int]]:
        """Return source -> ``(counted, found)`` for every document whose numbers differ."""
        found = {one.source: one.operations + one.broken for one in self.report.sources if not one.error}
        counts = ((name, count, found[name]) for name, count in self.counted.items() if name in found)
        return {name: (count, there) for name, count, there in counts if count != there}

    def passed(self) -> bool:
        """Whether every limit holds."""
        return all(holds for *_, holds in _limits(self))


def sweep(folder: Path, *, say: Say, clock: Callable[[], float] = time.perf_counter) -> Sweep:
    """Read every document below ``folder``, one at a time and in this process.

    Args:
        folder: References are followed inside it only.
        say: Told of the progress.
        clock: Seconds.
    """
    start = clock()
    files = sorted(path for path in folder.rglob("*") if path.suffix in ENDINGS and path.is_file())
    found = Sweep(LoadReport())

    def watch(source: Source, operations: int) -> None:
        done = len(found.versions)
        if done % 200 == 0:
            say(f"{done} documents read, {clock() - start:.0f} s")

    retrieve = folder_retrieve(folder)
    found.report = check_documents(_sources(files, folder, found), retrieve=lambda _: retrieve, watch=watch)
    found.seconds = clock() - start
    # Kilobytes on Linux, bytes on macOS.
    unit = 1024 * 1024 if sys.platform == "darwin" else 1024
    used = resource.getrusage(resource.RUSAGE_SELF)
    found.peak_mib = used.ru_maxrss / unit
    found.cpu_seconds = used.ru_utime + used.ru_stime
    return found


def _sources(files: list[Path], folder: Path, found: Sweep) -> Iterator[Source | SourceReport]:
    settings = SourceSettings(server=SERVER, credentials=Anything())
    for path in files:
        name = path.relative_to(folder).as_posix()
        try:
            tree = load_tree(path)
            if not is_description(tree):
                found.passed_over += 1
                continue
            found.versions[name] = version_of(tree)
            found.counted[name] = count_operations(tree, path)
        except (NotCounted, KeyError, IndexError, ValueError, TypeError, AttributeError):
            found.versions.setdefault(name, "not readable by a plain parser")
        tree = None
        try:
            data = path.read_bytes()
        except OSError as error:
            yield SourceReport(name, name, error=DocumentError(f"It cannot be read: {error.strerror}."))
            continue
        yield Source(name, str(path.absolute()), data, settings=settings)


def write_sweep(found: Sweep, out: Path) -> str:
    """Write the page to the folder ``out``, and return it."""
    out.mkdir(parents=True, exist_ok=True)
    page = sweep_page(found)
    (out / PAGE).write_text(page, encoding="utf-8")
    return page


def sweep_page(found: Sweep) -> str:
    """Return the page, in Markdown; no path of this machine is in it."""
    totals = found.report.totals()
    reasons = group_reasons(found.report)
    slow = sorted(found.report.sources, key=lambda one: -one.seconds)[:SLOWEST]
    return "\n".join(
        [
            "# The world's documents\n",
            f"`capdex bench documents FOLDER --out bench` over {totals['documents']:,} documents "
            f"({totals['bytes'] / 1e6:,.0f} MB; {found.passed_over:,} files that are no API description "
            f"passed over), in one process, nothing cached. Python {platform.python_version()}, "
            f"{os.cpu_count()} CPUs. The time holds the independent count: each document is parsed twice.\n",
            table(["", "measured", "asked for", "holds"], [_limit_row(*each) for each in _limits(found)]),
            "## By kind\n",
            table(["kind", "documents", "unusable", "operations", "kept out", "not callable"], _kinds(found)),
            "## Reasons\n",
            "Alike ones together, names and numbers as “…”. Every operation has a server and every "
            "credential here, so what is not callable yet lacks something else.\n",
            table(["what", "why", "count", "documents"], [_reason_row(reason) for reason in reasons]),
            "## The slowest\n",
            table(
                ["document", "MB", "operations", "seconds"],
                [
                    [one.source, f"{one.size / 1e6:.1f}", f"{one.operations:,}", f"{one.seconds:.1f}"]
                    for one in slow
                ],
            ),
        ]
    )


def _reason_row(reason: Reason) -> list[str]:
    return [reason.what, reason.text, f"{reason.count:,}", f"{reason.documents:,}"]


def _kinds(found: Sweep) -> list[list[str]]:
    groups: dict[str, Counter[str]] = {}
    for one in found.report.sources:
        counts = groups.setdefault(found.versions.get(one.source, "unknown"), Counter())
        counts["documents"] += 1
        counts["unusable"] += one.error is not None
        counts["operations"] += one.operations
        counts["kept out"] += one.broken
        counts["not callable"] += one.waiting
    columns = ("documents", "unusable", "operations", "kept out", "not callable")
    return [[kind, *(f"{counts[name]:,}" for name in columns)] for kind, counts in sorted(groups.items())]


def _limits(found: Sweep) -> list[tuple[str, str, str, bool]]:
    totals = found.report.totals()
    documents, operations = totals["documents"], totals["operations"] + totals["broken"]
    missing = found.missing()
    ready = totals["operations"] - totals["notCallable"]
    return [
        (
            "documents usable",
            f"{documents - totals['failed']:,} of {documents:,} ({found.usable():.2%})",
            f"{USABLE:.1%}",
            found.usable() >= USABLE,
        ),
        (
            "operations, with those kept out, against the independent count",
            f"{operations:,} against {sum(found.counted.values()):,}; "
            f"{len(missing):,} of {len(found.counted):,} documents differ",
            "none differs",
            not missing,
        ),
        (
            "operations callable once a server and credentials are given",
            f"{ready:,} of {operations:,} ({found.callable():.3%})",
            f"{CALLABLE:.0%}",
            found.callable() >= CALLABLE,
        ),
        (
            "time (processor time)",
            f"{found.seconds:.0f} s ({found.cpu_seconds:.0f} s)",
            f"{SECONDS} s",
            found.seconds <= SECONDS,
        ),
        ("peak memory", f"{found.peak_mib:,.0f} MiB", f"{PEAK_MIB:,} MiB", found.peak_mib <= PEAK_MIB),
    ]


def _limit_row(name: str, measured: str, asked: str, holds: bool) -> list[str]:
    return [name, measured, asked, "yes" if holds else "NO"]


def sweep_json(found: Sweep) -> dict[str, Any]:
    """Return the figures, the reasons with an example each, and the documents that differ in their count."""
    return {
        **found.report.totals(),
        "usableShare": round(found.usable(), 6),
        "callableShare": round(found.callable(), 6),
        "counted": sum(found.counted.values()),
        "miscounted": {name: list(numbers) for name, numbers in found.missing().items()},
        "wallSeconds": round(found.seconds, 1),
        "cpuSeconds": round(found.cpu_seconds, 1),
        "peakMiB": round(found.peak_mib, 1),
        "reasons": [reason.to_json() for reason in group_reasons(found.report)],
    }
