"""A server that is killed under load: every call that reached the upstream has its line in the trail."""

from __future__ import annotations

import http.client
import json
import os
import queue
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest

ROUNDS: Final = 3
CALLERS: Final = 6
OPERATIONS: Final = 150
"""Each is called once a round at most, so that no line can stand for another call's."""
CAPDEX: Final = [sys.executable, "-c", "from capdex_server.cli import main; main()"]


class Upstream:
    """Remembers which operations were called; answers slowly, so that calls are on their way at any time."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.called = threading.Event()
        upstream = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                upstream.seen.append(self.path.removeprefix("/do/"))
                upstream.called.set()
                time.sleep(0.02)
                with suppress(OSError):
                    self.send_response(200)
                    self.send_header("Content-Length", "0")
                    self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    found = Upstream()
    thread = threading.Thread(target=found.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield found
    found.server.shutdown()
    found.server.server_close()
    thread.join()


@pytest.fixture
def config(tmp_path: Path, upstream: Upstream) -> Path:
    paths = {
        f"/do/op{number}": {
            "post": {"operationId": f"op{number}", "responses": {"200": {"description": "ok"}}}
        }
        for number in range(OPERATIONS)
    }
    document = {"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "paths": paths}
    (tmp_path / "api.json").write_text(json.dumps(document))
    path = tmp_path / "capdex.toml"
    path.write_text(
        'port = 0\ncache = "cache"\n[audit]\nto = "audit.jsonl"\nmax_bytes = 20000\nkeep = 100\n'
        f'[sources.api]\nlocation = "api.json"\nserver = "{upstream.url}"\n'
    )
    return path


@contextmanager
def serving(config: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start ``capdex serve``; yield the process, and its port once it has a catalog; kill it at the end."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("CAPDEX_")}
    process = subprocess.Popen(
        [*CAPDEX, "serve", "--config", str(config)], env=environ, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        lines = iter(process.stderr.readline, "")
        port = next(
            int(found[1]) for line in lines if (found := re.search(r"serving http://[^:]+:(\d+)", line))
        )
        drained = threading.Thread(target=process.stderr.read, daemon=True)
        drained.start()
        while not ready(port):
            assert process.poll() is None
            time.sleep(0.05)
        yield process, port
    finally:
        process.kill()
        process.wait()
        drained.join()
        process.stderr.close()


def ask(port: int, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, json.dumps(body) if body is not None else None)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null")
    finally:
        connection.close()


def ready(port: int) -> bool:
    try:
        return ask(port, "GET", "/readyz")[0] == 200
    except OSError:
        return False  # bound, and not listening yet


def call_all(port: int, names: queue.SimpleQueue[str]) -> None:
    """Call one operation after another until there is none left, or no server."""
    with suppress(OSError, http.client.HTTPException, queue.Empty, ValueError):
        while True:
            ask(port, "POST", "/execute", {"name": names.get_nowait()})


def load_until_killed(config: Path, upstream: Upstream, chance: random.Random) -> None:
    names: queue.SimpleQueue[str] = queue.SimpleQueue()
    for number in chance.sample(range(OPERATIONS), OPERATIONS):
        names.put(f"op{number}")
    with serving(config) as (process, port):
        upstream.called.clear()
        callers = [threading.Thread(target=call_all, args=(port, names)) for _ in range(CALLERS)]
        for caller in callers:
            caller.start()
        assert upstream.called.wait(30)
        time.sleep(chance.uniform(0, 0.6))
        process.kill()
    for caller in callers:
        caller.join()


def trail(config: Path) -> list[dict[str, Any]]:
    """Return every line of the trail; each must be whole."""
    from capdex_server.audit_reading import lines_of

    return [json.loads(line) for line in lines_of(config.parent / "audit.jsonl") if line.strip()]


def test_every_call_that_reached_the_upstream_was_written_down_before(
    config: Path, upstream: Upstream
) -> None:
    seed = random.randrange(2**32)
    sys.stderr.write(f"seed {seed}\n")
    chance = random.Random(seed)
    lines = reached = 0
    for _ in range(ROUNDS):
        load_until_killed(config, upstream, chance)
        written = trail(config)
        started = [row["capability"] for row in written[lines:] if row["event"] == "started"]
        # A request that was under way when its sender was killed may still come in: wait for silence.
        seen = settled(upstream)[reached:]
        assert len(set(seen)) == len(seen) > 0
        assert set(seen) <= set(started), f"seed {seed}"
        lines, reached = len(written), reached + len(seen)
    with serving(config) as (_, port):
        assert ask(port, "POST", "/execute", {"name": "op0"})[1]["status"] == 200
        shown = subprocess.run(
            [*CAPDEX, "audit", str(config.parent / "audit.jsonl"), "--json"],
            capture_output=True,
            text=True,
            check=True,
        )
    rows = [json.loads(line) for line in shown.stdout.splitlines()]
    written = trail(config)
    open_ones = {row["id"] for row in written if row["event"] == "started"} - {
        row["id"] for row in written if row["event"] == "ended"
    }
    assert {row["id"] for row in rows if row["outcome"] == "unfinished"} == open_ones
    assert 0 < len(open_ones) <= ROUNDS * CALLERS, f"seed {seed}"
    assert rows[-1]["outcome"] == "ok" and len(rows) == sum(row["event"] == "started" for row in written)


def settled(upstream: Upstream) -> list[str]:
    before = -1
    while len(upstream.seen) != before:
        before = len(upstream.seen)
        time.sleep(0.05)
    return list(upstream.seen)
