"""The sweep over a folder of documents, and the count that it is judged by."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from capdex_bench import sweep as sweeping
from capdex_bench.cli import app
from capdex_bench.count import NotCounted, count_operations, is_description, load_tree, version_of
from capdex_bench.sweep import PAGE, Sweep, sweep, sweep_json, sweep_page
from capdex_engine.catalog import LoadReport

KEYED = {"k": {"type": "apiKey", "in": "header", "name": "K"}}
GOOD: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "t", "version": "1"},
    "security": [{"k": []}],
    "paths": {
        "/a": {"get": {"x": 1}, "post": {"x": 1}, "summary": "no operation"},
        "x-note": {"get": {"x": 1}},
    },
    "webhooks": {"done": {"post": {"x": 1}}},
    "components": {"securitySchemes": KEYED},
}


def write(folder: Path, name: str, tree: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(tree if isinstance(tree, str) else json.dumps(tree))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / "world"
    write(home, "good.json", GOOD)
    write(
        home,
        "deep/old.yaml",
        "swagger: '2.0'\ninfo: {title: t, version: '1'}\npaths:\n  /b:\n    get: {x: 1}\n",
    )
    write(home, "part.json", {"type": "object"})
    write(home, "notes.txt", "openapi: 3")
    return home


def run(folder: Path) -> Sweep:
    return sweep(folder, say=lambda _: None, clock=lambda: 0.0)


def test_every_document_is_read_counted_and_callable(folder: Path) -> None:
    found = run(folder)
    assert found.counted == {"good.json": 2, "deep/old.yaml": 1}
    assert found.versions == {"good.json": "OpenAPI 3.1", "deep/old.yaml": "Swagger 2.0"}
    assert (found.usable(), found.callable(), found.missing()) == (1.0, 1.0, {})
    assert found.passed_over == 1
    assert found.passed()


def test_a_document_that_fails_is_a_share_and_a_reason(folder: Path) -> None:
    write(folder, "broken.json", '{"openapi": "3.1.0", ')
    found = run(folder)
    assert found.usable() == pytest.approx(2 / 3)
    assert not found.passed()
    assert found.versions["broken.json"] == "not readable by a plain parser"
    assert sweep_json(found)["reasons"][0]["what"] == "document unusable"


def test_an_operation_that_is_kept_out_is_not_missing(folder: Path) -> None:
    write(folder, "kept.json", {**GOOD, "paths": {"/a/{b}": {"get": {"x": 1}}}})
    found = run(folder)
    assert found.missing() == {}
    assert found.callable() == pytest.approx(3 / 4)


def test_an_operation_that_is_missing_fails_the_sweep(folder: Path) -> None:
    found = run(folder)
    found.counted["good.json"] = 3
    assert found.missing() == {"good.json": (3, 2)}
    assert not found.passed()


@pytest.mark.parametrize("field", ["seconds", "peak_mib"])
def test_too_long_or_too_much_fails_the_sweep(folder: Path, field: str) -> None:
    assert not replace(run(folder), **{field: 1e6}).passed()


def test_an_empty_folder_passes_nothing_by_and_divides_by_nothing(tmp_path: Path) -> None:
    found = run(tmp_path)
    assert found.report == LoadReport()
    assert sweep_page(found)


def test_the_page_has_no_path_of_this_machine(folder: Path) -> None:
    write(folder, "kept.json", {**GOOD, "paths": {"/a/{b}": {"get": {"x": 1}}}})
    page = sweep_page(run(folder))
    assert str(folder) not in page
    assert "not declared as parameters" in page and "Swagger 2.0" in page


def test_the_command_writes_the_page_and_its_exit_code_says_whether_the_limits_hold(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The memory of a whole test session is no measure.
    monkeypatch.setattr(sweeping, "PEAK_MIB", 10**9)
    done = CliRunner().invoke(app, ["documents", str(folder), "--out", str(tmp_path / "out"), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["counted"] == 3
    assert (tmp_path / "out" / PAGE).read_text().startswith("# ")
    write(folder, "broken.json", '{"openapi": "3.1.0", ')
    assert CliRunner().invoke(app, ["documents", str(folder)]).exit_code == 1


def test_references_of_path_items_are_followed_by_the_count(tmp_path: Path) -> None:
    write(tmp_path, "parts/item.yaml", "one:\n  get: {a: 1}\n  put: {a: 1}\n")
    tree = {"paths": {"/a": {"$ref": "parts/item.yaml#/one"}, "/b~": {"$ref": "#/paths/~1a"}}}
    assert count_operations(tree, tmp_path / "root.yaml") == 4


def test_what_the_count_cannot_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotCounted):
        load_tree(write(tmp_path, "a.yaml", "a: [1"))
    assert not is_description([])
    assert version_of({"openapi": "3.0.1"}) == "OpenAPI 3.0"


def test_no_operation_of_the_real_documents_is_missing(specs: Path) -> None:
    found = run(specs)
    assert found.report.failed == ()
    assert found.counted.keys() == found.versions.keys() == {one.source for one in found.report.sources}
    assert found.missing() == {}
    assert sum(found.counted.values()) > 3000
    assert found.callable() >= sweeping.CALLABLE
