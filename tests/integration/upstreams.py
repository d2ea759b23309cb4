"""Servers that others wrote, started on loopback from packages in an environment of their own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from leaks import look

ROOT: Final = Path(__file__).resolve().parents[2]

HTTPBIN: Final = """
from httpbin import app
from werkzeug.serving import make_server
server = make_server("127.0.0.1", 0, app, threaded=True)
print(f"http://127.0.0.1:{server.port}", flush=True)
server.serve_forever()
"""
JUPYTER: Final = """
import sys
from jupyter_server.serverapp import ServerApp
app = ServerApp()
options = ["--ip=127.0.0.1", "--port=0", "--no-browser", "--allow-root"]
app.initialize([*options, "--ServerApp.root_dir=" + sys.argv[1]])
app.io_loop.add_callback(lambda: print(f"http://127.0.0.1:{app.port}", flush=True))  # after it has bound
app.start()
"""
_SERVING: Final = re.compile(r"serving (http\S+)/mcp/agent")
CAPDEX: Final = "from capdex_server.cli import main; main()"


def upstream_python(package: str) -> Path:
    """Return the interpreter that has the packages; skip the test where there is none.

    ``CAPDEX_UPSTREAMS_PYTHON`` names another interpreter, which then has to have them (as in CI).
    """
    named = os.environ.get("CAPDEX_UPSTREAMS_PYTHON")
    python = Path(named) if named else ROOT / ".venv-upstreams" / "bin" / "python"
    found = python.exists() and subprocess.run(
        [python, "-c", f"import {package}"], capture_output=True, check=False
    )
    if named and (not found or found.returncode):
        pytest.fail(f"CAPDEX_UPSTREAMS_PYTHON names no interpreter that has {package}")
    if not found or found.returncode:
        pytest.skip(f"needs {package} in an environment of its own: make upstreams")
    return python


def python_program(package: str, program: str) -> str:
    """Return the path of a package's program in the upstreams' environment; skip as above."""
    return str(upstream_python(package).parent / program)


def npm_program(program: str) -> str:
    """Return the path of a program from npm; skip the test where it is not installed.

    ``CAPDEX_UPSTREAMS_NPM`` names a folder whose ``node_modules`` then has to have it (as in CI).
    """
    named = os.environ.get("CAPDEX_UPSTREAMS_NPM")
    folder = Path(named) if named else ROOT / ".venv-upstreams" / "npm"
    path = folder / "node_modules" / ".bin" / program
    if named and not path.exists():
        pytest.fail(f"CAPDEX_UPSTREAMS_NPM names no folder that has {program}")
    if not path.exists() or shutil.which("node") is None:
        pytest.skip(f"needs node and {program}: make upstreams")
    return str(path)


@contextmanager
def server(python: Path | str, script: str, *arguments: str, **environ: str) -> Iterator[str]:
    """Run a script that prints its URL once it listens; yield the URL, and end the process after."""
    with started([str(python), "-c", script, *arguments], environ, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url.startswith("http"), "the server did not start"
        yield url


@dataclass
class Served:
    """A ``capdex serve`` that runs."""

    url: str
    log: list[str]
    """The lines it has logged so far."""
    trail: list[str]
    """The lines of standard output so far: the audit trail, unless it goes elsewhere."""


@contextmanager
def capdex_serve(config: Path, environ: Mapping[str, str]) -> Iterator[Served]:
    """Run ``capdex serve`` on a configuration until the end of the block."""
    command = [sys.executable, "-c", CAPDEX, "serve", "--port", "0", "--config", str(config)]
    with started(command, environ, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None and process.stdout is not None
        log: list[str] = []
        trail: list[str] = []
        for line in process.stderr:
            log.append(line)
            if (found := _SERVING.search(line)) is not None:
                break
        else:
            raise AssertionError("capdex did not start: " + "".join(log))
        # A server whose trail nobody reads sends no call once the pipe is full.
        for lines, stream in ((log, process.stderr), (trail, process.stdout)):
            threading.Thread(target=lines.extend, args=(stream,), daemon=True).start()
        yield Served(found[1], log, trail)
        look("log of capdex serve", "".join(log))
        look("audit trail of capdex serve", "".join(trail))


@contextmanager
def started(command: list[str], environ: Mapping[str, str], stderr: int) -> Iterator[subprocess.Popen[str]]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CAPDEX_")}
    process = subprocess.Popen(
        command, env={**kept, **environ}, stdout=subprocess.PIPE, stderr=stderr, text=True
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
