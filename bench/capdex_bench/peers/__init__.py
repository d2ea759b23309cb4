"""Other people's tool search on the same sets, each in a process of its own with a time limit."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from capdex_engine.errors import ConfigurationError
from capdex_engine.operation import SLOTS, Operation

from ..evaluate import DEPTH, Result
from ..formats import write_lines
from ..runs import Answer
from ..sets import QuerySet

RUNNER: Final = Path(__file__).parent / "runner.py"


@dataclass(frozen=True, slots=True)
class Peer:
    """A peer, and what must be installed to run it."""

    name: str
    requires: str
    needs_model: bool = False
    """Whether it takes a local sentence-transformers folder."""


PEERS: Final = {
    peer.name: peer
    for peer in (
        Peer("fastmcp", "fastmcp"),
        Peer("callbus-bm25", "callbus"),
        Peer("callbus-hybrid", "callbus", needs_model=True),
        Peer("graph-tool-call", "graph-tool-call"),
        Peer("stackone", "stackone-ai"),
        Peer("bigtool", "langgraph-bigtool", needs_model=True),
    )
}


def find_peers(names: Sequence[str], model: Path | None) -> list[Peer]:
    """Return the named peers, or all that can run with what is given.

    Raises:
        ConfigurationError: For an unknown name, or a named peer that needs a model and gets none.
    """
    for name in names:
        if name not in PEERS:
            raise ConfigurationError(f"no peer {name!r}: know {', '.join(PEERS)}")
        if PEERS[name].needs_model and model is None:
            raise ConfigurationError(f"{name} needs --model, a local sentence-transformers folder")
    chosen = [PEERS[name] for name in names] or list(PEERS.values())
    return [peer for peer in chosen if model is not None or not peer.needs_model]


def peer_row(operation: Operation) -> dict[str, Any]:
    """Return an operation as peers get it; the name is the document's own where it has one."""
    params = [name for location in SLOTS for name in operation.params(location)]
    return {
        "id": operation.key,
        "name": operation.operation_id or operation.name,
        "summary": operation.summary,
        "description": operation.description,
        "params": [*params, *operation.body_properties],
    }


def run_peer(
    peer: Peer,
    query_set: QuerySet,
    operations: Sequence[Operation],
    *,
    python: str,
    limit_seconds: float,
    model: Path | None = None,
) -> Result:
    """Run one peer on one set with the interpreter ``python``, which must have it installed.

    Past the limit (start, building and all queries together) it is stopped, and the result says so.

    Raises:
        ConfigurationError: When it fails, most often because it is not installed there.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_lines(folder / "rows.jsonl", [json.dumps(peer_row(one)) for one in operations])
        queries = [json.dumps({"id": one.id, "text": one.text}) for one in query_set.queries]
        write_lines(folder / "queries.jsonl", queries)
        files = [str(folder / name) for name in ("rows.jsonl", "queries.jsonl", "out.json")]
        command = [python, str(RUNNER), peer.name, *files, str(DEPTH), *([str(model)] if model else [])]
        try:
            done = subprocess.run(  # noqa: S603  (the interpreter is the operator's choice)
                command, capture_output=True, text=True, timeout=limit_seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return Result(peer.name, query_set, {}, over_limit=True)
        except OSError as error:
            raise ConfigurationError(f"{python} cannot be started: {error.strerror}") from error
        if done.returncode:
            raise ConfigurationError(_failure(peer, python, done.stderr))
        found = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    return _result(peer, query_set, operations, found)


def _failure(peer: Peer, python: str, stderr: str) -> str:
    last = stderr.strip().split("\n")[-1]
    return f"{peer.name} failed: {last}. Is it installed there? {python} -m pip install {peer.requires}"


def _result(
    peer: Peer, query_set: QuerySet, operations: Sequence[Operation], found: dict[str, Any]
) -> Result:
    sources = {operation.key: operation.source for operation in operations}
    run = {
        query: tuple(Answer(key, score, sources.get(key, "")) for key, score in answers)
        for query, answers in found["answers"].items()
    }
    return Result(
        peer.name,
        query_set,
        run,
        build_seconds=found["build_seconds"],
        latencies=tuple(found["latencies"]),
    )
