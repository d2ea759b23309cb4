"""Searches while documents change: a real server on a real port, its document rewritten again and again.

Every operation of version N says so in its name and in its parameters, so that an answer made from two
versions shows itself.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx2
import numpy as np

from capdex_engine.errors import CapdexError

OPERATIONS: Final = 60
PERIOD: Final = 1.0
"""Seconds between two versions of the document."""
START: Final = 120.0
"""Seconds that the server may take for its first catalog."""
THINGS: Final = ("invoice", "worker", "shipment", "ticket", "repository", "account", "holiday", "payment")
_SERVE: Final = "import sys; from capdex_server.cli import main; sys.argv[0] = 'capdex'; main()"
_VERSION: Final = re.compile(r"V(\d+)$")


class ReloadFailed(CapdexError):
    """The server did not start."""

    code = "reload_failed"


@dataclass(slots=True)
class Phase:
    """What one stretch of searches gave."""

    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    mixed: list[str] = field(default_factory=list)
    versions: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """Revision -> versions seen under it."""

    def note(self, answer: dict[str, Any]) -> None:
        """Check one answer: all of one version, names and schemas alike, and always that of its revision."""
        seen: set[int] = set()
        for match in answer["matches"]:
            found = _VERSION.search(match["name"])
            named = int(found[1]) if found else -1
            seen |= {named} | {int(name[1:]) for name in match["queryParams"]}
            if match["argumentsSchema"] and f'"v{named}"' not in json.dumps(match["argumentsSchema"]):
                seen.add(-1)
        known = self.versions[answer["revision"]]
        known |= seen
        if len(known) != 1:
            self.mixed.append(f"{answer['revision']}: versions {sorted(known)}")

    def row(self) -> dict[str, Any]:
        """Return the figures."""
        p50, p99 = np.percentile(self.seconds, [50, 99]) * 1000 if self.seconds else (0.0, 0.0)
        return {
            "searches": len(self.seconds) + len(self.failures),
            "failures": len(self.failures),
            "mixed": len(self.mixed),
            "revisions": len(self.versions),
            "p50_ms": round(float(p50), 1),
            "p99_ms": round(float(p99), 1),
        }


def measure_reload(*, seconds: float, rate: float, operations: int = OPERATIONS) -> dict[str, Any]:
    """Search at a steady rate, first over a document at rest, then over one that changes; return the figures.

    Args:
        seconds: Of each of the two.
        rate: Searches a second.
        operations: Of the document.

    Raises:
        ReloadFailed: The server did not start.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "things.json"
        _write(path, 0, operations)
        with _served(path, Path(folder)) as url:
            return asyncio.run(_measured(url, path, seconds, rate, operations))


def document(version: int, operations: int) -> dict[str, Any]:
    """Return a document all of whose operations bear the version."""
    paths = {}
    for number in range(operations):
        thing = f"{THINGS[number % len(THINGS)]} {number}"
        paths[f"/{thing.replace(' ', '/')}"] = {
            "get": {
                "operationId": f"get{thing.title().replace(' ', '')}V{version}",
                "summary": f"Get {thing}",
                "parameters": [{"name": f"v{version}", "in": "query", "schema": {"type": "string"}}],
                "responses": {"200": {"description": "ok"}},
            }
        }
    info = {"title": "Things", "version": str(version)}
    return {"openapi": "3.1.0", "info": info, "servers": [{"url": "https://x.example"}], "paths": paths}


def _write(path: Path, version: int, operations: int) -> None:
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(document(version, operations)), encoding="utf-8")
    beside.replace(path)


@contextmanager
def _served(path: Path, folder: Path) -> Iterator[str]:
    command = [sys.executable, "-c", _SERVE, "serve", "--port", "0", "--spec", str(path)]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("CAPDEX_")}
    environ["CAPDEX_CACHE"] = str(folder / "cache")
    log = (folder / "log").open("w+", encoding="utf-8")
    with (
        log,
        subprocess.Popen(command, stderr=log, stdout=log, cwd=folder, env=environ) as server,  # noqa: S603 - ours
    ):
        try:
            yield _url_in(folder / "log", server)
        finally:
            server.terminate()


def _url_in(log: Path, server: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + START
    while time.monotonic() < deadline and server.poll() is None:
        found = re.search(r"(http://\S+?)/mcp/agent", log.read_text(encoding="utf-8"))
        if found:
            return found[1]
        time.sleep(0.1)
    raise ReloadFailed(f"The server did not start: {log.read_text(encoding='utf-8')[-500:]}")


async def _measured(url: str, path: Path, seconds: float, rate: float, operations: int) -> dict[str, Any]:
    async with httpx2.AsyncClient(base_url=url, timeout=30, trust_env=False) as client:
        await _ready(client)
        await _searches(client, 2.0, rate)  # connections and caches
        rest = await _searches(client, seconds, rate)
        writing = asyncio.create_task(_rewrite(path, operations))
        changing = await _searches(client, seconds, rate)
        writing.cancel()
        with suppress(asyncio.CancelledError):
            await writing
    faults = (rest.failures + changing.failures + rest.mixed + changing.mixed)[:10]
    return {"rate": rate, "at_rest": rest.row(), "changing": changing.row(), "faults": faults}


async def _ready(client: httpx2.AsyncClient) -> None:
    deadline = time.monotonic() + START
    while time.monotonic() < deadline:
        if (await client.get("/readyz")).status_code == 200:
            return
        await asyncio.sleep(0.2)
    raise ReloadFailed("The server has no catalog.")


async def _rewrite(path: Path, operations: int) -> None:
    for version in itertools.count(1):
        await asyncio.sleep(PERIOD)
        await asyncio.to_thread(_write, path, version, operations)


async def _searches(client: httpx2.AsyncClient, seconds: float, rate: float) -> Phase:
    """Search at a steady rate whatever the answers take."""
    phase = Phase()
    start = time.monotonic()
    async with asyncio.TaskGroup() as group:
        for number in range(int(seconds * rate)):
            await asyncio.sleep(max(start + number / rate - time.monotonic(), 0))
            group.create_task(_search(client, phase, number))
    return phase


async def _search(client: httpx2.AsyncClient, phase: Phase, number: int) -> None:
    started = time.monotonic()
    query = {"query": f"get the {THINGS[number % len(THINGS)]}", "limit": 10}
    try:
        answer = await client.post("/search", json=query)
    except httpx2.HTTPError as error:
        phase.failures.append(repr(error))
        return
    if answer.status_code != 200 or not answer.json()["matches"]:
        phase.failures.append(f"{answer.status_code}: {answer.text[:200]}")
        return
    phase.seconds.append(time.monotonic() - started)
    phase.note(answer.json())
