from __future__ import annotations

import io
import json
import logging

import pytest

from capdex_server.logs import configure_logs, get_logger


@pytest.fixture(autouse=True)
def restore():
    root, own = logging.getLogger(), logging.getLogger("capdex_server")
    handlers, levels = root.handlers[:], (root.level, own.level)
    yield
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    own.setLevel(levels[1])


def test_lines_are_json_when_nobody_watches():
    stream = io.StringIO()
    configure_logs(stream=stream)
    get_logger("capdex_server.x").info("event", count=1)
    get_logger("capdex_server.x").debug("not shown")
    logging.getLogger("library").info("not shown")
    logging.getLogger("library").warning("careful")
    first, second = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert (first["event"], first["count"], first["level"]) == ("event", 1, "info")
    assert (second["event"], second["level"]) == ("careful", "warning")


def test_a_terminal_gets_text_for_people():
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    configure_logs(stream=stream)
    get_logger("capdex_server.x").warning("event", count=1)
    assert "event" in stream.getvalue() and not stream.getvalue().startswith("{")


def test_quiet_leaves_only_warnings():
    stream = io.StringIO()
    configure_logs(quiet=True, stream=stream)
    get_logger("capdex_server.x").info("event")
    assert stream.getvalue() == ""


@pytest.mark.parametrize("tty", [False, True])
def test_a_traceback_shows_no_local_variables(tty, monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: tty, raising=False)
    configure_logs(stream=stream)

    def fail() -> None:
        token = "tok" + "en-value"  # noqa: F841
        raise ValueError("why")

    try:
        fail()
    except ValueError as error:
        get_logger("capdex_server.x").error("failed", exc_info=error)
    assert "ValueError" in stream.getvalue()
    assert "token-value" not in stream.getvalue()


def test_without_configuration_nothing_reaches_standard_output(capsys):
    get_logger("capdex_server.y").info("event")
    get_logger("capdex_server.y").warning("event")
    assert capsys.readouterr().out == ""
