"""Fuzzing the reader: ``python -m capdex_bench.fuzz --minutes 10 --data FOLDER``.

Real documents are changed at random and read as capdex reads them: the catalog, everything that it gives
out, and calls with sample arguments. Nothing but :class:`~capdex_engine.errors.CapdexError` may come out of
that, and nothing may stall. Whatever does is saved and can be read again with ``--replay FILE``.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, Final

from jsonschema import Draft202012Validator

from capdex_bench.mutate import change, pruned, sample, scratched, written
from capdex_engine.call import Executor
from capdex_engine.catalog import Catalog, Source, build_catalog
from capdex_engine.documents import parse_document
from capdex_engine.errors import CapdexError
from capdex_engine.operation import Operation

ENDINGS: Final = frozenset({".json", ".yaml", ".yml"})
STALL_SECONDS: Final = 30
"""After so long reading one document counts as stalled."""
MAX_OPERATIONS: Final = 30
"""Operations of one document that are looked at."""


class Stalled(Exception):
    """Reading one document has taken too long."""


@dataclass(slots=True)
class Tally:
    """What was tried, and what came of it."""

    documents: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    """``refused``: documents that are no use; ``read``: the others; operations and calls by outcome."""
    findings: dict[str, Path] = field(default_factory=dict)
    """Last lines of the traceback -> the input that was saved for it."""


def seeds(folder: Path) -> list[dict[str, Any]]:
    """Return the documents below a folder that are API descriptions."""
    found: list[dict[str, Any]] = []
    for path in sorted(folder.rglob("*")):
        if path.suffix in ENDINGS and path.is_file():
            try:
                tree = parse_document(path.read_bytes())
            except CapdexError:
                continue
            if "openapi" in tree or "swagger" in tree:
                found.append(json.loads(json.dumps(tree)))  # plain values, which YAML can write too
    return found


def attempt(tree: dict[str, Any], random: Random) -> bytes:
    """Return a document made wrong."""
    data = written(change(pruned(tree, random), random), random)
    return scratched(data, random) if random.random() < 0.25 else data


def examine(data: bytes, random: Random, outcomes: Counter[str] | None = None) -> None:
    """Read a document and all that its catalog gives out; anything that is raised is a fault of ours.

    Every file that the document refers to is the document itself.
    """
    counted = Counter[str]() if outcomes is None else outcomes
    source = Source("fuzz", "/documents/fuzz.yaml", data)
    catalog = build_catalog([source], retrieve=lambda _: lambda _uri: data)
    report = catalog.report.to_json()
    json.dumps(report)
    counted["refused" if catalog.report.failed else "read"] += 1
    for operation in (*catalog.operations[:MAX_OPERATIONS], *catalog.kept_out[:MAX_OPERATIONS]):
        counted[f"operation {operation.availability.value}"] += 1
        _look_at(catalog, operation)
        counted[_call(catalog, operation, random)] += 1


def run(trees: Sequence[dict[str, Any]], seed: int, going: Callable[[int], bool], folder: Path) -> Tally:
    """Try documents as long as ``going(number)`` says so; number n depends on ``seed`` and n alone."""
    tally = Tally()
    while going(tally.documents):
        random = Random(f"{seed}:{tally.documents}")  # noqa: S311 repeatable, not secret
        try:
            data = attempt(random.choice(trees), random)
        except RecursionError:
            data = b"{}"  # it is nested too deeply to be written
        try:
            with _time_limit():
                examine(data, random, tally.outcomes)
        except Exception as error:  # whatever it is, it is what we look for
            _keep(tally, data, error, folder, f"{seed}:{tally.documents}")
        tally.documents += 1
    return tally


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 where something was found."""
    parser = argparse.ArgumentParser(
        prog="python -m capdex_bench.fuzz", description="Fuzz the document reader."
    )
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--data", type=Path, action="append", help="folder of documents; may be repeated")
    parser.add_argument("--seed", type=int, default=None, help="of the whole run; else from the clock")
    parser.add_argument("--out", type=Path, default=Path("runs/fuzz"), help="folder for what is found")
    parser.add_argument("--replay", type=Path, help="read one saved input again and let its fault come out")
    chosen = parser.parse_args(arguments)
    if chosen.replay is not None:
        return _replay(chosen.replay)
    if not chosen.data:
        parser.error("--data FOLDER names the documents to start from")
    trees = [tree for folder in chosen.data for tree in seeds(folder)]
    if not trees:
        parser.error("there is no API description in these folders")
    seed = chosen.seed if chosen.seed is not None else time.time_ns() % 1_000_000_000
    _say(f"seed {seed}, {len(trees)} documents to start from")
    end = time.monotonic() + chosen.minutes * 60
    tally = run(trees, seed, lambda _: time.monotonic() < end, chosen.out)
    _tell(tally)
    return int(bool(tally.findings))


def _look_at(catalog: Catalog, operation: Operation) -> None:
    json.dumps(catalog.describe(operation))
    schema = catalog.arguments_schema(operation, with_body=True)
    json.dumps(schema)
    Draft202012Validator.check_schema(schema)
    json.dumps(dict(catalog.details(operation).responses))
    catalog.near(operation.name[:-1])
    if not operation.executable and not operation.reason:
        raise AssertionError(f"{operation.name} is not executable, and no reason is told")


def _call(catalog: Catalog, operation: Operation, random: Random) -> str:
    schema = catalog.arguments_schema(operation, with_body=True)
    arguments = sample(schema, schema.get("$defs", {}), random)
    given = arguments if isinstance(arguments, dict) else {}
    caller = Executor(catalog, transport=_no_transport, clock=time.monotonic)
    try:
        json.dumps(caller.prepare({**given, "name": operation.name}))
    except CapdexError as error:
        json.dumps(error.payload())
        if error.code == "internal_error":
            raise
        return f"call {error.code}"
    return "call prepared"


async def _no_transport(*_: Any, **__: Any) -> Any:
    raise AssertionError("a dry run sends nothing")


@contextmanager
def _time_limit() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise Stalled(f"reading took longer than {STALL_SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(STALL_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _keep(tally: Tally, data: bytes, error: Exception, folder: Path, number: str) -> None:
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
    key = f"{type(error).__name__} {where}"
    if key in tally.findings:
        return
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{sha256(data).hexdigest()[:16]}.input"
    path.write_bytes(data)
    path.with_suffix(".txt").write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    tally.findings[key] = path
    _say(f"found ({number}): {key}: {str(error)[:200]}\n  --replay {path}")


def _replay(path: Path) -> int:
    examine(path.read_bytes(), Random(0))  # noqa: S311
    _say("nothing came out of it")
    return 0


def _tell(tally: Tally) -> None:
    _say(f"{tally.documents} documents tried, {len(tally.findings)} findings")
    for outcome, count in sorted(tally.outcomes.items()):
        _say(f"  {outcome}: {count}")


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
