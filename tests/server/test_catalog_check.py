"""``capdex catalog check`` over few documents, many, and things that are none."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from capdex_engine.catalog import Source
from capdex_server.cli import app
from capdex_server.cli.check_pages import FEW
from capdex_server.cli.checking import SECONDS_BETWEEN, Progress
from capdex_server.cli.lint import MAX_REMARKS, lint

GOOD: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "t", "version": "1"},
    "servers": [{"url": "https://api.test"}],
    "paths": {"/x": {"get": {"responses": {"200": {"description": "ok"}}}}},
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CAPDEX_CACHE", str(tmp_path / "cache"))
    return tmp_path


def write(path: Path, tree: object = GOOD) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(tree if isinstance(tree, str) else json.dumps(tree))
    return path


def check(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["catalog", "check", *map(str, arguments)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def checked(*arguments: object) -> tuple[int, dict[str, Any]]:
    code, stdout, _ = check(*arguments, "--json")
    return code, json.loads(stdout)


def with_operation(**fields: Any) -> dict[str, Any]:
    return {**GOOD, "paths": {**GOOD["paths"], "/y/{z}": {"get": fields}}}


def test_an_operation_that_is_kept_out_is_a_fault_only_with_strict(home: Path) -> None:
    spec = write(home / "a.json", with_operation(responses={}))
    code, report = checked(spec)
    assert (code, report["operations"], report["broken"]) == (0, 1, 1)
    assert report["sources"][0]["keptOut"][0]["pointer"] == "/paths/~1y~1{z}/get"
    assert check(spec, "--strict")[0] == 1
    assert check(write(home / "good.json"), "--strict")[0] == 0


def test_many_documents_give_totals_reasons_and_a_line_for_what_is_amiss(home: Path) -> None:
    folder = home / "many"
    for number in range(FEW + 5):
        write(folder / f"fine{number}.json")
    write(folder / "partly.json", with_operation(responses={}))
    write(folder / "broken.json", '{"openapi": "3.0.3", "paths": ')
    code, stdout, stderr = check(folder)
    assert code == 1
    assert "partly.json" in stdout and "broken.json" in stdout and "fine1.json" not in stdout
    assert "2 of 17 documents" in stdout
    assert "not declared as parameters" in stdout
    assert str(folder / "broken.json") in stderr
    _, report = checked(folder)
    assert (report["documents"], report["failed"], report["operations"]) == (17, 1, 16)
    assert {row["what"] for row in report["reasons"]} == {"document unusable", "operation kept out"}


def test_names_are_those_that_the_catalog_gives(home: Path) -> None:
    spec = {**GOOD, "servers": []}
    write(home / "two" / "a.json", spec)
    write(home / "two" / "b.json", spec)
    _, report = checked(home / "two")
    names = [source["notCallable"][0]["operations"] for source in report["sources"]]
    assert names == [["two.a.getX"], ["two.b.getX"]]


@pytest.mark.parametrize("files", [{}, {"notes.txt": "hello"}, {"data.json": "{}"}])
def test_a_folder_without_a_document_is_unusable(home: Path, files: dict[str, str]) -> None:
    folder = home / "folder"
    folder.mkdir()
    for name, text in files.items():
        write(folder / name, text)
    code, report = checked(folder)
    assert (code, report["failed"]) == (1, 1)
    assert report["sources"][0]["error"]["code"] == "document_error"


@pytest.mark.parametrize("text", ["", "\x00\x01", "plain words", "[1]", '{"openapi": "4.0.0"}'])
def test_a_file_that_is_no_description_is_unusable(home: Path, text: str) -> None:
    code, report = checked(write(home / "odd.json", text))
    assert (code, report["failed"]) == (1, 1)


@pytest.mark.parametrize("name", ["gone.json", ""])
def test_a_document_that_is_not_there_is_wrong_usage(home: Path, name: str) -> None:
    assert check(home / "nowhere" / name)[0] == 2


def test_the_same_document_twice_is_wrong_usage(home: Path) -> None:
    spec = write(home / "a.json")
    assert check(spec, spec)[0] == 2


def test_what_only_looks_like_a_file_is_passed_over(home: Path) -> None:
    write(home / "team" / "good.json")
    (home / "team" / "folder.json").mkdir()
    os.mkfifo(home / "team" / "pipe.json")
    code, report = checked(home / "team")
    assert (code, report["documents"]) == (0, 1)


def test_a_file_of_a_folder_that_cannot_be_read_costs_the_others_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home / "team" / "good.json")
    bad = write(home / "team" / "secret.json")
    plain = os.open

    def refusing(path: Any, *arguments: Any, **options: Any) -> Any:
        if path == bad:
            raise PermissionError(13, "Permission denied")
        return plain(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refusing)
    code, report = checked(home / "team")
    assert code == 1
    assert {source["source"]: source["error"] is None for source in report["sources"]} == {
        "team.good": True,
        "team.secret": False,
    }


def test_progress_is_told_now_and_then() -> None:
    said: list[str] = []
    times = iter([0.0, 1.0, SECONDS_BETWEEN, SECONDS_BETWEEN, SECONDS_BETWEEN + 1])
    progress = Progress(said.append, lambda: next(times))
    progress.total = 3
    for operations in (2, 3, 4):
        progress(Source("a", "a.json", b""), operations)
    assert len(said) == 1
    assert "2 of 3" in said[0] and "5 operations" in said[0]


def test_settings_of_the_configuration_show_in_the_report(home: Path) -> None:
    write(home / "api.json", {**with_operation(deprecated=True, security=[{"own": []}]), "servers": []})
    settings = """
        [sources.api]
        location = "api.json"
        server = "https://api.test"
        exclude = ["path:/x"]
        security = [{ own = [] }]
        [sources.api.security_schemes.own]
        type = "apiKey"
        in = "header"
        name = "X-Key"
        [sources.api.overrides."GET /nowhere"]
        summary = "Nothing"
    """
    write(home / "capdex.toml", settings)
    code, report = checked()
    (source,) = report["sources"]
    assert code == 0
    assert [row["path"] for row in source["keptOut"] if row.get("bySettings")] == ["/x"]
    assert "GET /nowhere" in source["warnings"][0]["message"]
    write(home / "capdex.toml", settings.replace('exclude = ["path:/x"]', "hide_deprecated = true"))
    (source,) = checked()[1]["sources"]
    assert source["operations"] == 1
    assert source["notCallable"][0]["availability"] == "no_credential"


def test_the_configuration_cures_texts_and_chooses_the_server(home: Path) -> None:
    write(home / "api.json", {**GOOD, "servers": [{"url": "https://{zone}.test"}]})
    write(
        home / "capdex.toml",
        """
        [sources.api]
        location = "api.json"
        include = ["method:GET"]
        server_variables = { zone = "eu" }
        [sources.api.overrides."GET /x"]
        summary = "Find\\u202e people"
        keywords = ["staff"]
        """,
    )
    result = CliRunner().invoke(app, ["catalog", "list", "--json"])
    (row,) = json.loads(result.stdout)
    assert (row["summary"], row["executable"], row["reason"]) == ("Find people", True, None)
    assert checked()[1]["warnings"] == 0


def test_the_linter_says_what_it_says_and_changes_no_exit_code(home: Path) -> None:
    pytest.importorskip("openapi_spec_validator")
    spec = write(home / "a.json", {**GOOD, "info": {"title": "t"}})
    code, report = checked(spec, "--lint")
    assert code == 0
    assert report["lint"]["a"][0]["pointer"] == "/info"
    assert "version" in report["lint"]["a"][0]["message"]
    assert "lint" not in checked(spec)[1]
    assert "lint" in check(spec, "--lint")[1]


def test_the_linter_reads_other_files_by_our_reader_alone() -> None:
    pytest.importorskip("openapi_spec_validator")
    asked: list[str] = []

    def retrieve(uri: str) -> bytes:
        asked.append(uri)
        return b'{"type": "object"}'

    other = {"$ref": "weird+scheme://elsewhere.test/part.json"}
    tree = {**GOOD, "components": {"schemas": {"A": other}}}
    lint(Source("a", "/documents/a.json", json.dumps(tree).encode()), retrieve)
    assert asked == ["weird+scheme://elsewhere.test/part.json"]


def test_what_the_linter_says_is_bounded_and_its_crash_is_a_remark() -> None:
    pytest.importorskip("openapi_spec_validator")
    paths = {f"/{number}": {"get": {}} for number in range(MAX_REMARKS + 20)}
    many = lint(Source("a", "/a.json", json.dumps({**GOOD, "paths": paths}).encode()), lambda _: b"")
    assert len(many) == MAX_REMARKS + 1

    def failing(_: str) -> bytes:
        raise RuntimeError("boom")

    tree = {**GOOD, "components": {"schemas": {"A": {"$ref": "b.json"}}}}
    assert lint(Source("a", "/a.json", json.dumps(tree).encode()), failing)


def test_without_the_linter_the_line_to_type_is_shown(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("capdex_server.cli.lint.find_spec", lambda _: None)
    code, _, stderr = check(write(home / "a.json"), "--lint")
    assert code == 2
    assert "pip install 'openapi-spec-validator" in stderr


def test_a_url_that_is_none_and_a_pipe_are_told_plainly(home: Path) -> None:
    code, stdout, stderr = check("http://[::1")
    assert code == 1 and "no http(s) URL" in stdout + stderr
    os.mkfifo(home / "pipe.json")
    code, report = checked(home / "pipe.json")
    assert code == 1 and "no regular file" in report["sources"][0]["error"]["message"]


def test_a_url_s_secrets_are_not_shown(home: Path) -> None:
    code, out, err = check("http://user:hunter2@127.0.0.1:9/x.yaml?api_key=topsecret")
    assert code == 1
    assert "hunter2" not in out + err and "topsecret" not in out + err
