"""Looks for planted secrets in everything that capdex says while the tests run, and fails who said it.

Looked at are log records of every logger; results and errors of executor and service; everything that
capdex's application sends over HTTP, metrics included; what commands print; what other processes of a
test print. A test that is to show a credential is marked ``shows_secrets``.
"""

from __future__ import annotations

import functools
import json
import logging
import subprocess
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from planted import trace_in

_LARGE: Final = 4 * 1024 * 1024


class Watch:
    """What has been found since it was last asked."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.looks = 0

    def look(self, place: str, said: Any) -> None:
        """Note a planted secret in what was said: a text, bytes, or anything that JSON or ``str`` shows."""
        self.looks += 1
        if not isinstance(said, str | bytes):
            said = _text(said)
        trace = trace_in(said)
        if trace is not None:
            self.found.append(f"{place}: …{trace}…")

    def take(self) -> list[str]:
        """Return what was found, and forget it."""
        found, self.found = self.found, []
        return found


_watches: Final = [Watch()]


def look(place: str, said: Any) -> None:
    """Look as the innermost watch does."""
    _watches[-1].look(place, said)


@contextmanager
def own_watch() -> Iterator[Watch]:
    """Find what is said in the block, instead of failing its test."""
    _watches.append(Watch())
    try:
        yield _watches[-1]
    finally:
        _watches.pop()


def _text(said: Any) -> str:
    try:
        return json.dumps(said, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return str(said)


@pytest.fixture(autouse=True)
def no_planted_secret_shows(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    found = _watches[0].take()
    if found and request.node.get_closest_marker("shows_secrets") is None:
        pytest.fail("planted secrets show:\n" + "\n".join(found[:10]), pytrace=False)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "shows_secrets: the test is about showing a credential")
    install()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.passed and report.when == "call":
        for name, text in report.sections:
            if not name.startswith("Captured log"):  # each record has been looked at
                look(f"{report.nodeid}: {name}", text)


def pytest_sessionfinish(session: pytest.Session) -> None:
    # What showed after the last test's own check: captured output, and the end of longer fixtures.
    found = _watches[0].take()
    if found:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        text = "\n".join(["planted secrets show:", *found[:10]])
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.write_line(text, red=True)


@functools.cache
def install() -> None:
    """Look at everything, from now on."""
    _look_at_logs()
    _look_at_results()
    _look_at_http()
    _look_at_commands()


def _look_at_logs() -> None:
    handle = logging.Logger.handle

    def looked(self: logging.Logger, record: logging.LogRecord) -> None:
        look(f"log of {record.name}", str({**record.__dict__, "exc_info": None}))
        if record.exc_info and record.exc_info[1] is not None:
            lines = traceback.format_exception(record.exc_info[1])
            look(f"traceback in log of {record.name}", "".join(lines))
        handle(self, record)

    logging.Logger.handle = looked  # type: ignore[method-assign]


def _look_at_results() -> None:
    from capdex_engine.call import Executor
    from capdex_engine.errors import CapdexError
    from capdex_server.service import Service

    for owner, names in ((Executor, ("execute",)), (Service, ("execute", "search", "capability"))):
        for name in names:
            setattr(owner, name, _looked_async(f"{owner.__name__}.{name}", getattr(owner, name)))
    Executor.prepare = _looked_prepare(Executor.prepare)  # type: ignore[method-assign]
    payload = CapdexError.payload

    def looked(self: CapdexError) -> dict[str, Any]:
        shown = payload(self)
        look(f"error {self.code}", shown)
        return shown

    CapdexError.payload = looked  # type: ignore[method-assign]


def _looked_async(place: str, real: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    async def looked(*arguments: Any, **options: Any) -> Any:
        try:
            result = await real(*arguments, **options)
        except Exception as error:
            look(f"error of {place}", [str(error), getattr(error, "details", None)])
            raise
        look(f"result of {place}", result)
        return result

    return looked


def _looked_prepare(real: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def looked(*arguments: Any, show_credentials: bool = False, **options: Any) -> Any:
        shown = real(*arguments, show_credentials=show_credentials, **options)
        if not show_credentials:
            look("dry run", shown)
        return shown

    return looked


def _look_at_http() -> None:
    from fastapi import FastAPI

    call = FastAPI.__call__

    async def looked(self: FastAPI, scope: Any, receive: Any, send: Any) -> None:
        if self.title != "capdex":
            return await call(self, scope, receive, send)

        async def seen(message: Any) -> None:
            if message["type"] == "http.response.start":
                look(f"headers of {scope['path']}", b"\n".join(b": ".join(one) for one in message["headers"]))
            elif message["type"] == "http.response.body":
                look(f"answer of {scope['path']}", message.get("body", b""))
            await send(message)

        await call(self, scope, receive, seen)

    FastAPI.__call__ = looked  # type: ignore[method-assign]


def _look_at_commands() -> None:
    from typer.testing import CliRunner

    invoke, communicate = CliRunner.invoke, subprocess.Popen.communicate

    def looked(self: CliRunner, *arguments: Any, **options: Any) -> Any:
        result = invoke(self, *arguments, **options)
        look("output of a command", result.output)
        return result

    def read(self: Any, *arguments: Any, **options: Any) -> Any:
        said = communicate(self, *arguments, **options)
        for stream in said:
            if stream and len(stream) < _LARGE:
                look(f"output of process {self.args!r:.80}", stream)
        return said

    CliRunner.invoke = looked  # type: ignore[method-assign]
    subprocess.Popen.communicate = read  # type: ignore[method-assign]
