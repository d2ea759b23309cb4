from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from capdex_engine.errors import ConfigurationError
from capdex_server.audit_reading import Filter, Joiner, Row, follow, lines_of, moment
from capdex_server.cli import app

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def line(event: str, identity: str, minute: int = 0, **more: object) -> str:
    row = {"time": f"2026-01-31T12:{minute:02}:00.000Z", "event": event, "id": identity}
    row |= {"tenant": "acme", "caller": "bot", "capability": "getOrder", "digest": "sha256:1"}
    if event != "started":
        row |= {"outcome": "ok", "status": 200, "ms": 5, "bytes": 9}
    return json.dumps({**row, **more}) + "\n"


def joined(*lines: str) -> list[Row]:
    joiner = Joiner()
    return [*joiner.rows(lines), *joiner.unfinished()]


@pytest.fixture
def trail(tmp_path: Path) -> Path:
    """A trail over three files, with a call that has no end and a line that is torn."""
    path = tmp_path / "audit.jsonl"
    (tmp_path / "audit.jsonl.10").write_text(line("started", "a", 1))
    (tmp_path / "audit.jsonl.2").write_text(line("ended", "a", 2) + line("started", "b", 3) + '{"time":"20\n')
    denied = {
        "capability": "dropAll",
        "outcome": "forbidden",
        "status": None,
        "tenant": "other",
        "caller": "eve",
    }
    path.write_text(
        line("refused", "c", 4, **denied)
        + line("started", "d", 5)
        + line("ended", "d", 6, status=404, outcome="error_status")
    )
    return path


def run(*arguments: object, **options: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["audit", *map(str, arguments)], **options)
    return result.exit_code, result.stdout, result.stderr


def ids(*arguments: object) -> str:
    code, out, _ = run(*arguments, "--json")
    assert code == 0
    return "".join(json.loads(one)["id"] for one in out.splitlines())


def test_two_lines_become_one_row_under_the_time_of_its_start():
    (row,) = joined(line("started", "a", 1), line("ended", "a", 2))
    assert (row.outcome, row.status, row.ms, row.bytes) == ("ok", 200, 5, 9)
    assert row.time == NOON + timedelta(minutes=1)


def test_an_end_whose_start_was_rotated_away_is_a_row():
    assert [row.outcome for row in joined(line("ended", "a"))] == ["ok"]


def test_a_start_without_an_end_is_unfinished():
    (row,) = joined(line("started", "a"))
    assert (row.outcome, row.failed, row.status) == ("unfinished", True, None)


@pytest.mark.parametrize(
    "damaged",
    [
        '{"time":"2026-01-31T12:00:00.000Z","event":"started","id":"b","ten',
        "text",
        "[]",
        "{}",
        "7",
        "null",
        '{"event":"started","time":7}',
        line("other", "b").strip(),
        line("started", "b", time="2026-01-31T12:00:00").strip(),
        "[" * 100_000,
        "\x00\ufffd",
    ],
    ids=lambda text: text[:20],
)
def test_a_damaged_line_is_counted_and_costs_no_other(damaged):
    joiner = Joiner()
    rows = list(joiner.rows([line("started", "a"), damaged + "\n", "\n", line("ended", "a")]))
    assert [row.id for row in rows] == ["a"] and joiner.damaged == 1


def test_files_are_read_in_the_order_in_which_they_were_written(trail):
    assert [row.id for row in joined(*lines_of(trail))] == ["a", "c", "d", "b"]


def test_a_trail_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(ConfigurationError):
        list(lines_of(tmp_path / "none"))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], "abcd"),
        (["--tenant", "other"], "c"),
        (["--caller", "bot"], "abd"),
        (["--capability", "drop*"], "c"),
        (["--capability", "get"], ""),
        (["--outcome", "unfinished"], "b"),
        (["--failed"], "bcd"),
        (["--since", "2026-01-31T12:03:00Z"], "bcd"),
        (["--since", "2026-01-31T13:03:00+01:00"], "bcd"),
        (["--until", "2026-01-31T12:03"], "a"),
        (["--since", "2026-01-31", "--until", "2026-02-01"], "abcd"),
        (["--since", "1h"], ""),
        (["--limit", "2"], "bd"),
    ],
)
def test_filters(trail, options, expected):
    assert ids(trail, *options) == expected


def test_a_table_says_what_is_left_out(trail):
    code, out, said = run(trail, "--limit", 3)
    assert code == 0
    assert "dropAll" in out and "unfinished" in out and "forbidden" in out
    assert "1 older rows" in said and "1 lines are damaged" in said


def test_a_table_brings_nothing_that_a_terminal_obeys(tmp_path):
    path = tmp_path / "audit.jsonl"
    path.write_text(line("refused", "a", capability="\x1b[31m[red]\n", caller="\u202ebot", outcome="\x07"))
    _, out, _ = run(path)
    assert "\x1b" not in out and "\u202e" not in out and "\x07" not in out
    assert "\\x1b[31m[red]\\n" in out


def test_standard_input_is_read_among_other_lines(trail):
    text = "serving on port 8000\n" + line("refused", "x")
    code, out, said = run("-", "--json", input=text)
    assert (code, json.loads(out)["id"]) == (0, "x") and "1 lines" in said


def test_the_configured_trail_is_read(trail, tmp_path, monkeypatch):
    (tmp_path / "capdex.toml").write_text('[audit]\nto = "audit.jsonl"\n')
    monkeypatch.chdir(tmp_path)
    assert ids() == "abcd"


def test_without_a_file_the_settings_must_name_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, said = run()
    assert code == 2 and "capdex audit FILE" in said


@pytest.mark.parametrize("text", ["yesterday", "2", "2y", "-1h", "", "999999999w", "2026-13-01"])
def test_a_time_that_is_none_is_wrong_usage(trail, text):
    code, _, said = run(trail, "--since", text)
    assert code == 2 and "2h" in said


def test_times():
    assert moment("2h", NOON) == NOON - timedelta(hours=2)
    assert moment("7D", NOON) == NOON - timedelta(days=7)
    assert moment("2026-01-31 12:00", NOON) == NOON


def test_following_reads_on_through_a_rotation(tmp_path):
    path = tmp_path / "audit.jsonl"
    steps = iter(
        [
            lambda: path.write_text("a\nb"),
            lambda: path.open("a").close(),
            lambda: append(path, "c\nd\n"),
            lambda: (append(path, "e\n"), path.rename(tmp_path / "audit.jsonl.1"), append(path, "f\n")),
            lambda: (path.unlink(), append(path, "g\n")),
        ]
    )

    class Enough(Exception):
        pass

    def wait() -> None:
        step = next(steps, None)
        if step is None:
            raise Enough
        step()

    seen = []
    with pytest.raises(Enough):
        for text in follow(path, wait):
            seen.append(text)
    assert seen == ["a", "bc", "d", "e", "f", "g"]


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_a_filter_of_nothing_wants_everything():
    assert all(Filter().fits(row) for row in joined(line("refused", "a"), line("started", "b")))


def test_a_long_trail_is_read_in_bounded_memory(tmp_path):
    path = tmp_path / "audit.jsonl"
    path.write_text("".join(line("refused", f"{number:05}") for number in range(5000)))
    _, out, said = run(path, "--limit", 1, "--json")
    assert json.loads(out)["id"] == "04999" and "4999 older" in said
    assert sys.getsizeof(out) < 1000
