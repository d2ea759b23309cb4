"""The fuzzer itself: repeatable, and it finds what is there to be found."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from capdex_bench import fuzz
from capdex_bench.mutate import change, pruned, sample, scratched, written
from capdex_engine.documents import parse_document
from trap_support import FOLDER

TREE: dict[str, Any] = {
    "openapi": "3.1.0",
    "paths": {
        f"/p{n}": {"get": {"parameters": [{"$ref": f"#/components/parameters/P{n}"}]}} for n in range(20)
    },
    "components": {
        "parameters": {f"P{n}": {"name": f"p{n}", "in": "query"} for n in range(20)},
        "schemas": {"Unused": {}},
    },
}


def test_a_pruned_document_keeps_what_its_paths_refer_to_and_no_more() -> None:
    tree = pruned(TREE, Random(1))
    assert len(tree["paths"]) == 8
    assert {f"/p{name[1:]}" for name in tree["components"]["parameters"]} == set(tree["paths"])
    assert "schemas" not in tree["components"] and "schemas" in TREE["components"]


def test_the_same_seed_makes_the_same_document() -> None:
    assert fuzz.attempt(TREE, Random("1:1")) == fuzz.attempt(TREE, Random("1:1"))
    assert len({fuzz.attempt(TREE, Random(f"1:{n}")) for n in range(20)}) > 15


@pytest.mark.parametrize("seed", range(40))
def test_a_changed_tree_is_written_as_json_or_yaml_and_the_original_stays(seed: int) -> None:
    before = json.dumps(TREE)
    random = Random(seed)
    data = written(change(pruned(TREE, random), random), random)
    assert data and scratched(data, random) is not None
    assert json.dumps(TREE) == before


def test_a_sample_follows_its_schema_most_of_the_time() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"enum": [7]}}}
    made = [
        sample(schema, {"A": {"type": "array", "items": {"type": "integer"}}}, Random(n)) for n in range(50)
    ]
    assert sum(isinstance(value, dict) and value.get("b") == 7 for value in made) > 30


def test_documents_to_start_from_are_found_below_a_folder() -> None:
    assert len(fuzz.seeds(FOLDER)) > 40


def test_a_run_over_the_traps_finds_nothing(tmp_path: Path) -> None:
    tally = fuzz.run(fuzz.seeds(FOLDER), 11, lambda number: number < 40, tmp_path)
    assert tally.findings == {}
    assert tally.documents == 40 and tally.outcomes["read"] > 10
    assert list(tmp_path.iterdir()) == []


def test_what_escapes_is_saved_once_and_can_be_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise KeyError("paths")

    monkeypatch.setattr(fuzz, "build_catalog", fail)
    tally = fuzz.run([TREE], 5, lambda number: number < 5, tmp_path)
    ((name, path),) = tally.findings.items()
    assert name.startswith("KeyError") and "--replay" in capsys.readouterr().out
    with pytest.raises(KeyError):
        fuzz.main(["--replay", str(path)])
    monkeypatch.undo()
    assert fuzz.main(["--replay", str(path)]) == 0


def test_a_run_without_documents_is_refused(tmp_path: Path) -> None:
    for arguments in ([], ["--data", str(tmp_path)]):
        with pytest.raises(SystemExit):
            fuzz.main(arguments)


def test_the_command_says_its_seed_and_what_it_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.json").write_text(json.dumps(TREE))
    assert fuzz.main(["--minutes", "0", "--data", str(tmp_path), "--seed", "3"]) == 0
    said = capsys.readouterr().out
    assert "seed 3, 1 documents" in said and "0 documents tried, 0 findings" in said
    assert parse_document((tmp_path / "a.json").read_bytes()) == TREE
