from __future__ import annotations

import hashlib
import json

from bench.helpers import query_set, write_jsonl
from capdex_bench.manifest import run_manifest
from capdex_bench.sets import read_folder


def made(sets, **more):
    given = {"systems": ["bm25"], "encoder": "words", "seed": 7, "command": "capdex bench quality"}
    return run_manifest(sets, **{**given, **more})


def test_the_manifest_says_what_ran_on_what():
    found = made([query_set({})])
    assert (found["systems"], found["encoder"], found["seed"]) == (["bm25"], "words", 7)
    assert found["versions"].keys() >= {"python", "capdex", "numpy", "onnxruntime"}
    assert found["machine"]["cores"] >= 1
    json.dumps(found)


def test_the_manifest_hashes_what_each_set_was_read_from(tmp_path):
    folder = tmp_path / "shop"
    catalog = write_jsonl(folder / "catalog.jsonl", [{"id": "a"}])
    write_jsonl(folder / "queries.jsonl", [{"id": "1", "text": "x"}])
    (folder / "qrels.tsv").write_text("1\ta\t1\n", encoding="utf-8")
    found = made([read_folder(folder)])["data"]["shop"]
    assert found["shop/catalog.jsonl"] == hashlib.sha256(catalog.read_bytes()).hexdigest()
    assert len(found) == 3


def test_the_manifest_names_no_path_of_this_machine(tmp_path):
    folder = tmp_path / "shop"
    write_jsonl(folder / "catalog.jsonl", [{"id": "a"}])
    write_jsonl(folder / "queries.jsonl", [{"id": "1", "text": "x"}])
    (folder / "qrels.tsv").write_text("1\ta\t1\n", encoding="utf-8")
    assert str(tmp_path) not in json.dumps(made([read_folder(folder)]))


def test_outside_a_repository_there_is_no_commit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert made([])["commit"] == ""


def test_without_git_there_is_no_commit(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert made([])["commit"] == ""
