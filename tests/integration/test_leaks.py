"""The look-out for planted secrets finds them in every form and at every place, and is on."""

from __future__ import annotations

import base64
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
import typer
from fastapi import FastAPI
from typer.testing import CliRunner

import leaks
from call_support import details, executor
from capdex_engine.call import Response
from capdex_engine.errors import CapdexError, MissingCredentials, UpstreamUnreachable
from capdex_server.logs import get_logger
from leaks import own_watch
from planted import PREFIX, forms, planted, trace_in

pytestmark = pytest.mark.anyio
SECRET = planted("the look-out's own", '/"é+')
TESTS = Path(leaks.__file__).parent


def coded(*parts: str) -> str:
    return base64.b64encode("".join(parts).encode()).decode()


@pytest.mark.parametrize(
    "text",
    [
        *sorted(forms(SECRET)),
        coded("user:", SECRET),
        coded("us:", SECRET, ":x"),
        coded("a", SECRET),
        quote(coded("user:", SECRET)),
        json.dumps(json.dumps({"key": SECRET})),
        "".join(f"%{byte:02X}" for byte in SECRET.encode()),
        "".join(f"\\u{ord(one):04x}" for one in SECRET),
    ],
)
def test_a_planted_secret_is_seen_in_every_form(text: str):
    assert trace_in(f"before {text} after")
    assert trace_in(f"before {text} after".encode())


@pytest.mark.parametrize("text", ["", "pl4nted", "Bearer ***", coded("user:password"), "%70%71", "\\u0070"])
def test_what_holds_no_planted_secret_is_not_seen(text: str):
    assert trace_in(text) is None


def test_planted_secrets_are_the_same_each_time_and_differ_by_purpose():
    assert planted("a") == planted("a") != planted("b")
    assert planted("a").startswith(PREFIX)


def test_a_line_of_a_log_is_looked_at():
    with own_watch() as watch:
        get_logger("capdex_server.leaky").warning("called", headers={"X-Key": SECRET})
        logging.getLogger("library").warning("sent %s", coded("user:", SECRET))
        try:
            raise ValueError(SECRET)
        except ValueError:
            logging.getLogger("capdex_engine.leaky").exception("failed")
    found = watch.take()
    assert [one.partition(":")[0] for one in found] == [
        "log of capdex_server.leaky",
        "log of library",
        "traceback in log of capdex_engine.leaky",
    ]


async def test_results_and_errors_of_calls_are_looked_at():
    async def leaky(*_: Any, **__: Any) -> Response:
        return Response(200, (("X-Echo", SECRET),), b"{}", truncated=False)

    async def failing(*_: Any, **__: Any) -> Response:
        raise UpstreamUnreachable(f"no way to {SECRET}")

    with own_watch() as watch:
        # Neither call uses the secret as its credential, so nothing masks it.
        await executor(details(), upstream=leaky).execute({"name": "op"})
        with pytest.raises(CapdexError) as caught:
            await executor(details(), upstream=failing).execute({"name": "op"})
        caught.value.payload()
        executor(details()).prepare({"name": "op", "headerParams": {}})
    places = [one.partition(":")[0] for one in watch.take()]
    assert places == [
        "result of Executor.execute",
        "error of Executor.execute",
        "error upstream_unreachable",
    ]


def test_an_error_object_is_looked_at():
    with own_watch() as watch:
        MissingCredentials("op", "key", f"set {SECRET}").payload()
    assert watch.take()


@pytest.mark.parametrize(("title", "seen"), [("capdex", True), ("an upstream of a test", False)])
async def test_what_capdexs_application_sends_is_looked_at(title: str, seen: bool):
    app = FastAPI(title=title)

    @app.get("/metrics")
    def metrics() -> dict[str, str]:
        return {"key": SECRET}

    with own_watch() as watch:
        async with httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=app), base_url="http://127.0.0.1"
        ) as client:
            await client.get("/metrics")
    assert [one.partition(":")[0] for one in watch.take()] == ["answer of /metrics"] * seen


def test_output_of_commands_and_processes_is_looked_at():
    app = typer.Typer()
    app.command()(lambda: typer.echo(SECRET))
    with own_watch() as watch:
        CliRunner().invoke(app, [])
        code = "import os, sys; sys.stderr.write(os.environ['PLANTED'])"
        environ = {**os.environ, "PLANTED": planted("process")}
        subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, check=True)
    places = [one.partition(" '")[0].partition(":")[0] for one in watch.take()]
    assert places[0] == "output of a command" and places[1].startswith("output of process")


LEAKY = """
import logging
import pytest
from planted import planted

def test_says_it():
    logging.getLogger("capdex_server.leaky").warning(planted("x"))

def test_says_nothing():
    logging.getLogger("capdex_server.sound").warning("nothing")

@pytest.mark.shows_secrets
def test_is_about_it():
    logging.getLogger("capdex_server.leaky").warning(planted("x"))

def test_prints_it():
    print(planted("x"))
"""


def test_a_session_that_leaks_fails_and_says_which_test_and_where(tmp_path: Path):
    (tmp_path / "test_leaky.py").write_text(LEAKY)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    path = os.pathsep.join([str(TESTS), *sys.path])
    with own_watch():  # its output is a leak, which is meant
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "leaks", "-q", "-rA", "--rootdir", ".", "."],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            check=False,
            text=True,
        )
    assert done.returncode == 1, done.stdout
    assert "ERROR test_leaky.py::test_says_it" in done.stdout
    assert "log of capdex_server.leaky" in done.stdout
    assert "test_prints_it: Captured stdout call" in done.stdout
    assert "ERROR test_leaky.py::test_says_nothing" not in done.stdout
    assert "ERROR test_leaky.py::test_is_about_it" not in done.stdout
