"""Measuring what a document's load costs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from capdex_bench.load import main, measure


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "api.json"
    tree = {"openapi": "3.1.0", "paths": {f"/p{n}": {"get": {}} for n in range(3)}}
    path.write_text(json.dumps(tree))
    return path


def test_a_load_is_measured_in_processes_of_its_own(document: Path) -> None:
    load = measure(document, 2)
    assert (load.document, load.operations, load.size) == ("api.json", 3, document.stat().st_size)
    assert 0 < load.seconds <= load.slowest
    assert load.peak_mib > 1
    assert load.error is None


def test_the_table_and_the_rows_say_the_same(document: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(document), "--runs", "1"]) == 0
    assert "api.json" in capsys.readouterr().out
    assert main([str(document), "--runs", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["operations"] == 3


def test_a_document_that_cannot_be_read_is_told_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.yaml").write_text("just text")
    assert main([str(tmp_path / "bad.yaml"), "--runs", "1"]) == 1
    assert "root is a single value" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["nowhere.yaml"], ["--runs", "0"]])
def test_a_wrong_argument_is_refused(arguments: list[str], document: Path) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([str(document), *arguments])
    assert stopped.value.code == 2
