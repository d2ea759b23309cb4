from __future__ import annotations

import collections
import dataclasses
import hashlib
import json
import os
from pathlib import Path

import pytest

from bench.helpers import OPERATIONS, query_set, write_jsonl
from capdex_bench.documents import GOLDEN, Document, read_manifest
from capdex_bench.formats import read_qrels, read_queries
from capdex_bench.sets import (
    QuerySet,
    golden_set,
    golden_sets,
    load_sets,
    merge,
    one_catalog,
    public_sets,
    query_log,
    read_folder,
)
from capdex_engine.errors import DocumentError

NAMES = sorted(read_manifest())
TYPES = {
    "paraphrase", "terse", "long", "typo", "jargon", "confusable", "multi", "exact", "nonenglish", "none",
}  # fmt: skip


def document(data: bytes = b"{}", **fields: str) -> Document:
    pinned = hashlib.sha256(data).hexdigest()
    given = {
        "file": "shop.json",
        "origin": "example/shop",
        "commit": "abc",
        "path": "shop.json",
        "licence": "MIT",
        "origin_sha256": "0" * 64,
        "sha256": pinned,
    }
    return Document(**{**given, **fields})


def public_folder(path: Path, *, grades: bool = False) -> Path:
    write_jsonl(path / "catalog.jsonl", [{"id": "a", "name": "a"}, {"id": "b", "name": "b"}])
    write_jsonl(path / "queries.jsonl", [{"id": "1", "text": "do a", "type": "terse"}])
    (path / "qrels.tsv").write_text("1\ta\t1\n1\tb\t1\n", encoding="utf-8")
    if grades:
        (path / "grades.tsv").write_text("1\ta\t2\n1\tb\t1\n", encoding="utf-8")
    return path


def test_there_are_eight_golden_sets_and_416_queries():
    queries = [query for name in NAMES for query in read_queries(GOLDEN / name / "queries.jsonl")]
    assert len(NAMES) == 8
    assert len({query.id for query in queries}) == len(queries) == 416
    assert {query.type for query in queries} == TYPES


@pytest.mark.parametrize("name", NAMES)
def test_golden_labels_follow_their_rules(name):
    queries = read_queries(GOLDEN / name / "queries.jsonl")
    qrels = read_qrels(GOLDEN / name / "qrels.tsv")
    assert qrels.keys() <= {query.id for query in queries}
    for query in queries:
        best = sum(grade == 2 for grade in qrels.get(query.id, {}).values())
        assert (query.type == "none") == (query.id not in qrels)
        assert query.type == "none" or best >= (2 if query.type == "multi" else 1)


def test_every_golden_folder_is_in_the_manifest_and_the_other_way_round():
    assert sorted(path.parent.name for path in GOLDEN.glob("*/queries.jsonl")) == NAMES


def test_a_document_is_found_by_its_pinned_hash_in_the_folder_or_its_specs(tmp_path):
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "shop.json").write_bytes(b"{}")
    assert document().find(tmp_path) == tmp_path / "specs" / "shop.json"
    (tmp_path / "shop.json").write_bytes(b"{}")
    assert document().find(tmp_path) == tmp_path / "shop.json"


def test_the_original_of_a_normalised_copy_is_accepted(tmp_path):
    (tmp_path / "shop.json").write_bytes(b"original")
    assert document(origin_sha256=hashlib.sha256(b"original").hexdigest()).find(tmp_path)


def test_an_absent_document_is_an_error_that_says_where_to_get_it(tmp_path):
    with pytest.raises(DocumentError) as caught:
        document().find(tmp_path)
    assert "example/shop" in caught.value.message


def test_another_version_of_a_document_is_refused(tmp_path):
    (tmp_path / "shop.json").write_bytes(b"another version")
    with pytest.raises(DocumentError) as caught:
        document().find(tmp_path)
    assert document().sha256 in caught.value.message


def test_an_unknown_golden_set_is_an_error(tmp_path):
    with pytest.raises(DocumentError):
        golden_set("nothing", tmp_path)


def test_grades_are_preferred_where_a_folder_has_them(tmp_path):
    plain = read_folder(public_folder(tmp_path / "plain"))
    graded = read_folder(public_folder(tmp_path / "graded", grades=True))
    assert plain.qrels == {"1": {"a": 1, "b": 1}}
    assert graded.qrels == {"1": {"a": 2, "b": 1}}
    assert graded.queries[0].type == "terse"
    assert [operation.key for operation in graded.catalog()] == ["a", "b"]


def test_a_beir_folder_is_read_with_its_test_queries_only(tmp_path):
    write_jsonl(tmp_path / "corpus.jsonl", [{"_id": "d1", "title": "A", "text": "x"}])
    write_jsonl(tmp_path / "queries.jsonl", [{"_id": "1", "text": "x"}, {"_id": "train", "text": "y"}])
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\td1\t1\n", encoding="utf-8")
    found = read_folder(tmp_path)
    assert [query.id for query in found.queries] == ["1"]
    assert found.qrels == {"1": {"d1": 1}}


@pytest.mark.parametrize("where", ["", "datasets", "../datasets"])
def test_public_sets_are_found_in_or_beside_the_data_folder(tmp_path, where):
    data = tmp_path / "specs"
    data.mkdir()
    public_folder(data / where / "one")
    public_folder(data / where / "two")
    assert [(one.name, one.group) for one in public_sets(data)] == [("one", "public"), ("two", "public")]
    assert [one.name for one in load_sets(["two"], data)] == ["two"]


def test_a_folder_may_be_named_as_a_set(tmp_path):
    folder = public_folder(tmp_path / "mine")
    assert load_sets([str(folder), str(folder)], tmp_path)[0].name == "mine"


def test_a_name_that_is_nothing_is_an_error(tmp_path):
    public_folder(tmp_path / "one")
    with pytest.raises(DocumentError):
        load_sets(["three"], tmp_path)
    with pytest.raises(DocumentError):
        public_sets(tmp_path / "one" / "deeper")


def test_a_query_log_becomes_a_set_of_what_was_executed(tmp_path):
    rows = [
        {"query": "stop it", "matches": ["cancelOrder"], "executed": "cancelOrder"},
        {"query": "stop it", "matches": ["cancelOrder"], "executed": "getInvoice"},
        {"query": "nothing came of it", "matches": ["listOrders"]},
        {"query": "gone", "executed": "removedOperation"},
    ]
    found = query_log(write_jsonl(tmp_path / "log.jsonl", rows), OPERATIONS)
    (query,) = found.queries
    assert query.text == "stop it"
    assert found.grades(query) == {"cancelOrder": 2, "getInvoice": 2}


def test_a_query_log_is_read_with_its_rotated_files_and_without_torn_lines(tmp_path):
    path = tmp_path / "log.jsonl"
    for name, query in (("log.jsonl.10", "oldest"), ("log.jsonl.2", "older"), ("log.jsonl", "newest")):
        write_jsonl(tmp_path / name, [{"query": query, "executed": "cancelOrder"}])
    with path.open("a") as log:
        log.write('{"query": "torn", "exec\n7\n')
    found = query_log(path, OPERATIONS)
    assert [query.text for query in found.queries] == ["oldest", "older", "newest"]
    assert len(found.files) == 3


def test_a_query_log_is_a_set_over_the_documents_that_were_served(tmp_path):
    path = write_jsonl(tmp_path / "log.jsonl", [{"query": "show it", "executed": "list"}])
    document = document_set(tmp_path, "api", {}, "/a").documents[0]
    (found,) = load_sets([str(path)], tmp_path, specs=[document])
    assert found.grades(found.queries[0]) == {"GET /a": 2}
    with pytest.raises(DocumentError, match="--spec"):
        load_sets([str(path)], tmp_path)
    write_jsonl(path, [{"query": "show it", "executed": "gone"}])
    with pytest.raises(DocumentError, match="executed"):
        load_sets([str(path)], tmp_path, specs=[document])


def test_merging_keeps_every_label_and_shares_what_sets_share():
    one = query_set({"1": {"listOrders": 2}}, name="one")
    two = query_set({"1": {"getInvoice": 2}, "2": {}}, name="two")
    merged = merge([one, two])
    assert len(merged.operations) == len(OPERATIONS)
    assert [query.id for query in merged.queries] == ["one/1", "two/1", "two/2"]
    keys = {operation.key for operation in merged.operations}
    assert {key for grades in merged.qrels.values() for key in grades} <= keys
    assert merged.qrels["two/1"] == {"one/getInvoice": 2}


def test_merging_makes_names_unique(tmp_path):
    sets = [read_folder(public_folder(tmp_path / name)) for name in ("one", "two")]
    operations = merge(sets).operations  # the catalogs name their source, so nothing is shared
    assert len({operation.name for operation in operations}) == len(operations)


def document_set(folder: Path, name: str, labels: dict[str, dict[str, int]], *paths: str) -> QuerySet:
    """Return a set over a small document with one operation per path, all named alike."""
    operations = {path: {"get": {"operationId": "list", "responses": {}}} for path in paths}
    body = {"openapi": "3.1.0", "info": {"title": name, "version": "1"}, "paths": operations}
    document = folder / f"{name}.json"
    document.write_text(json.dumps(body), encoding="utf-8")
    return dataclasses.replace(query_set(labels, name=name), operations=(), documents=(document,))


def two_documents(folder: Path) -> list[QuerySet]:
    shop = document_set(folder, "shop", {"1": {"GET /orders": 2}, "2": {}}, "/orders", "/invoices")
    return [shop, document_set(folder, "zoo.v1", {"1": {"GET /orders": 1}}, "/orders")]


def test_one_catalog_holds_every_operation_under_its_document_and_a_name_of_its_own(tmp_path):
    found = one_catalog(two_documents(tmp_path), name="all")
    assert sorted(operation.key for operation in found.operations) == [
        "shop/GET /invoices",
        "shop/GET /orders",
        "zoo.v1/GET /orders",
    ]
    assert len({operation.name for operation in found.operations}) == 3
    assert (found.name, found.group) == ("all", "all")


def test_one_catalog_keeps_labels_and_leaves_out_requests_that_another_document_may_serve(tmp_path):
    found = one_catalog(two_documents(tmp_path), name="all")
    assert [query.id for query in found.queries] == ["shop/1", "zoo.v1/1"]
    assert found.qrels == {"shop/1": {"shop/GET /orders": 2}, "zoo.v1/1": {"zoo.v1/GET /orders": 1}}


def test_one_catalog_fails_when_a_document_does(tmp_path):
    sets = two_documents(tmp_path)
    sets[1].documents[0].write_text("{", encoding="utf-8")
    with pytest.raises(DocumentError):
        one_catalog(sets, name="all")


def test_golden_merged_is_asked_for_by_its_name(tmp_path, monkeypatch):
    monkeypatch.setattr("capdex_bench.sets.golden_sets", lambda data: two_documents(data))
    (found,) = load_sets(["golden-merged"], tmp_path)
    assert (found.name, found.group, len(found.operations)) == ("golden-merged", "golden-merged", 3)


@pytest.fixture(scope="module")
def data(shared):
    return Path(os.environ.get("CAPDEX_BENCH_DATA", shared / "specs"))


def test_the_golden_documents_are_the_pinned_ones(data):
    assert [one.name for one in golden_sets(data)] == NAMES


@pytest.mark.parametrize("name", ["docker-engine.swagger2", "paypal-invoicing"])
def test_golden_labels_name_operations_of_the_catalog(data, name, tmp_path):
    one = golden_set(name, data)
    keys = {operation.key for operation in one.catalog(tmp_path)}
    assert not {key for grades in one.qrels.values() for key in grades} - keys


def test_golden_documents_as_one_catalog_keep_every_label(data, tmp_path):
    sets = [golden_set(name, data) for name in ("docker-engine.swagger2", "paypal-invoicing")]
    found = one_catalog(sets, name="two", cache=tmp_path)
    keys = {operation.key for operation in found.operations}
    assert {key for grades in found.qrels.values() for key in grades} <= keys
    assert {query.id for query in found.queries} == found.qrels.keys()
    assert "none" not in {query.type for query in found.queries}


def test_the_public_sets_label_rows_of_their_catalogs(shared):
    sets = public_sets(shared)
    assert len(sets) == 8
    missing = collections.Counter(
        one.name
        for one in sets
        for grades in one.qrels.values()
        for key in grades.keys() - {operation.key for operation in one.operations}
    )
    assert not missing
