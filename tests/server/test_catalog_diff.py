"""``capdex catalog diff``: its lines, its JSON, and exit codes as ``diff`` has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from capdex_server.cli import app

OLD: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "t", "version": "1"},
    "servers": [{"url": "https://api.test"}],
    "paths": {"/pets": {"get": {"operationId": "listPets"}}, "/gone": {"get": {"operationId": "gone"}}},
}
NEW: dict[str, Any] = {
    **OLD,
    "paths": {
        "/pets": {
            "get": {
                "operationId": "listPets",
                "parameters": [{"name": "kind", "in": "query", "required": True}],
            },
            "post": {"operationId": "addPet"},
        }
    },
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CAPDEX_CACHE", str(tmp_path / "cache"))
    (tmp_path / "old.json").write_text(json.dumps(OLD))
    (tmp_path / "new.json").write_text(json.dumps(NEW))
    return tmp_path


def diff(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["catalog", "diff", *map(str, arguments)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def test_equal_documents_end_with_0_whatever_their_files_are_called(home: Path) -> None:
    (home / "copy.json").write_text(json.dumps(OLD, indent=1))
    code, stdout, _ = diff("old.json", "copy.json", "--json")
    assert (code, json.loads(stdout)["equal"]) == (0, True)
    assert diff("old.json", "copy.json")[0] == 0


def test_different_documents_end_with_1_and_a_line_for_each_difference() -> None:
    code, stdout, _ = diff("old.json", "new.json")
    assert code == 1
    assert stdout.splitlines() == [
        "! removed  gone  GET /gone",
        "  added    addPet  POST /pets",
        "! changed  listPets  GET /pets",
        "    ! query parameter kind is new, and required",
        "1 added, 1 removed, 1 changed; 2 may break a call",
    ]


def test_json_tells_what_the_lines_tell() -> None:
    code, stdout, _ = diff("old.json", "new.json", "--json")
    told = json.loads(stdout)
    assert code == 1
    assert (told["equal"], told["breaking"]) == (False, 2)
    assert [row["name"] for row in told["added"]] == ["addPet"]
    assert [row["path"] for row in told["removed"]] == ["/gone"]
    (changed,) = told["changed"]
    assert changed["was"] == {"name": "listPets", "method": "GET", "path": "/pets"}
    assert changed["changes"] == [
        {"kind": "parameter", "text": "query parameter kind is new, and required", "breaking": True}
    ]
    assert told["revisions"]["old"] != told["revisions"]["new"]


def test_folders_are_compared_document_by_document(home: Path) -> None:
    for side in ("before", "after"):
        (home / side / "api").mkdir(parents=True)
        (home / side / "api" / "a.json").write_text(json.dumps(OLD))
        (home / side / "api" / "b.json").write_text(json.dumps(OLD if side == "before" else NEW))
    code, stdout, _ = diff("before/api", "after/api", "--json")
    told = json.loads(stdout)
    assert code == 1
    assert {row["source"] for row in (*told["added"], *told["removed"])} == {"api.b"}


def test_a_document_that_cannot_be_read_is_trouble_and_no_difference(home: Path) -> None:
    (home / "bad.json").write_text("[1]")
    for arguments in (("old.json", "bad.json"), ("bad.json", "old.json")):
        code, stdout, stderr = diff(*arguments)
        assert (code, stdout) == (2, "")
        assert "bad.json" in stderr
        code, stdout, _ = diff(*arguments, "--json")
        assert (code, json.loads(stdout)["error"]["code"]) == (2, "document_error")


@pytest.mark.parametrize("arguments", [("old.json",), ("old.json", "gone.json")])
def test_wrong_usage_is_trouble(arguments: tuple[str, ...]) -> None:
    assert diff(*arguments)[0] == 2
