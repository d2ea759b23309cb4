"""What reading a document costs: ``python -m capdex_bench.load DOCUMENT... [--runs N] [--json]``.

Each run is a fresh process that builds the catalog, with no cache and no encoder. Seconds are those of
the build alone (imports done, file read); the memory is the process's largest, interpreter included.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

TABLE: Final = "{:<44} {:>10} {:>9} {:>8} {:>8} {:>8}"
_KIBIBYTE: Final = 1 if sys.platform != "darwin" else 1024
"""Units of ``ru_maxrss`` in a kibibyte."""


@dataclass(frozen=True, slots=True)
class Load:
    """One document, loaded several times."""

    document: str
    operations: int
    size: int
    """Bytes of the document."""
    seconds: float
    """Median of the runs."""
    slowest: float
    peak_mib: float
    """Largest resident set of any run."""
    error: str | None = None


def measure(path: Path, runs: int) -> Load:
    """Load a document ``runs`` times, each in a process of its own."""
    rows = [_one(path) for _ in range(runs)]
    seconds = [row["seconds"] for row in rows]
    return Load(
        document=path.name,
        operations=rows[0]["operations"],
        size=path.stat().st_size,
        seconds=round(statistics.median(seconds), 3),
        slowest=round(max(seconds), 3),
        peak_mib=round(max(row["peakMiB"] for row in rows), 1),
        error=rows[0]["error"],
    )


def load_once(path: Path) -> dict[str, Any]:
    """Build the catalog of one document in this process; return seconds, memory and count."""
    from capdex_engine.catalog import Source, build_catalog
    from capdex_engine.documents import folder_retrieve

    source = Source.from_file(path)
    start = time.perf_counter()
    catalog = build_catalog([source], retrieve=lambda _: folder_retrieve(path.resolve().parent))
    seconds = time.perf_counter() - start
    error = catalog.report.sources[0].error
    return {
        "seconds": seconds,
        "peakMiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 / _KIBIBYTE,
        "operations": len(catalog.operations),
        "error": None if error is None else error.message,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 where a document cannot be read."""
    parser = argparse.ArgumentParser(
        prog="python -m capdex_bench.load", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("documents", nargs="+", type=Path)
    parser.add_argument("--runs", type=int, default=5, help="loads of each document (5)")
    parser.add_argument("--json", action="store_true", help="rows as JSON instead of a table")
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    missing = [path for path in chosen.documents if not path.is_file()]
    if missing or chosen.runs < 1:
        parser.error(f"there is no file {missing[0]}" if missing else "--runs takes a number from 1 on")
    if chosen.once:
        _say(json.dumps(load_once(chosen.documents[0])))
        return 0
    loads = [measure(path, chosen.runs) for path in chosen.documents]
    _say(json.dumps([asdict(load) for load in loads], indent=1) if chosen.json else _table(loads))
    return int(any(load.error for load in loads))


def _one(path: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "capdex_bench.load", "--once", str(path)]
    done = subprocess.run(command, capture_output=True, check=True, text=True)  # noqa: S603 our own module
    row: dict[str, Any] = json.loads(done.stdout)
    return row


def _table(loads: Sequence[Load]) -> str:
    lines = [TABLE.format("document", "operations", "MB", "seconds", "slowest", "MiB")]
    for load in loads:
        lines.append(
            TABLE.format(
                load.document,
                load.operations,
                f"{load.size / 1e6:.1f}",
                f"{load.seconds:.2f}",
                f"{load.slowest:.2f}",
                f"{load.peak_mib:.0f}",
            )
        )
        if load.error:
            lines.append(f"  {load.error}")
    return "\n".join(lines)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
