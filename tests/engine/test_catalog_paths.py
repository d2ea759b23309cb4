"""Every operation is found, or is in the report."""

from __future__ import annotations

from typing import Any

import pytest

from capdex_engine.operation import Availability
from catalog_support import catalog_of, document, only, source

OPERATION: dict[str, Any] = {"responses": {"200": {"description": "ok"}}}


def test_every_method_of_a_path_item_is_an_operation() -> None:
    methods = ["get", "put", "post", "delete", "patch", "head", "options", "trace", "query"]
    item = {method: OPERATION for method in methods} | {"additionalOperations": {"COPY": OPERATION}}
    found = {operation.method for operation in catalog_of(document({"/x": item})).operations}
    assert found == {method.upper() for method in methods} | {"COPY"}


def test_a_method_in_upper_case_counts_unless_the_right_one_is_there() -> None:
    catalog = catalog_of(document({"/a": {"GET": OPERATION}, "/b": {"GET": {}, "get": {"summary": "This"}}}))
    assert [(operation.path, operation.summary) for operation in catalog.operations] == [
        ("/a", ""),
        ("/b", "This"),
    ]
    assert catalog.report.sources[0].warnings


def test_a_path_item_by_reference_is_resolved() -> None:
    components = {"pathItems": {"A": {"get": {"operationId": "a"}, "parameters": []}}}
    tree = document({"/a": {"$ref": "#/components/pathItems/A"}}, components=components)
    assert only(catalog_of(tree)).name == "a"


def test_fields_beside_a_path_item_s_reference_count() -> None:
    components = {"pathItems": {"A": {"get": {"operationId": "a"}}}}
    tree = document(
        {"/a": {"$ref": "#/components/pathItems/A", "delete": {"operationId": "d"}}}, components=components
    )
    assert [operation.name for operation in catalog_of(tree).operations] == ["a", "d"]


def test_an_operation_by_reference_to_a_sibling_file_is_resolved_there() -> None:
    files = {
        "/documents/ops/get.yaml": "operationId: get\nparameters: [{$ref: '../shared.yaml#/Q'}]\n",
        "/documents/shared.yaml": "Q: {name: q, in: query, schema: {$ref: '#/T'}}\nT: {type: string}\n",
    }
    catalog = catalog_of(document({"/a": {"get": {"$ref": "ops/get.yaml"}}}), files=files)
    assert only(catalog).query_params == ("q",)
    assert catalog.details(only(catalog)).definitions == {"T": {"type": "string"}}


def test_without_a_retriever_a_sibling_file_is_refused_and_the_rest_stays() -> None:
    catalog = catalog_of(document({"/a": {"get": {"$ref": "ops/get.yaml"}}, "/b": {"get": OPERATION}}))
    assert [operation.path for operation in catalog.operations] == ["/b"]
    assert [operation.path for operation in catalog.kept_out] == ["/a"]


@pytest.mark.parametrize(
    ("path", "item", "keys"),
    [
        ("noslash", {"get": OPERATION, "put": OPERATION}, ["GET noslash", "PUT noslash"]),
        ("/list", [1, 2], ["/list"]),
        ("/ref", {"$ref": "#/nowhere"}, ["/ref"]),
        ("/op", {"get": "text"}, ["GET /op"]),
        ("/opref", {"get": {"$ref": "#/nowhere"}}, ["GET /opref"]),
        ("/method", {"additionalOperations": {"B AD": OPERATION}}, ["B AD /method"]),
    ],
)
def test_what_cannot_be_read_is_kept_out(path: str, item: Any, keys: list[str]) -> None:
    catalog = catalog_of(document({path: item, "/good": {"get": OPERATION}}))
    assert [operation.path for operation in catalog.operations] == ["/good"]
    assert sorted(operation.key for operation in catalog.kept_out) == keys
    assert all(operation.reason for operation in catalog.kept_out)


@pytest.mark.parametrize("paths", [None, {}, {"/a": {}}, {"/a": None}, {"x-foo": {"get": {}}}, [], "text"])
def test_a_document_without_operations_is_an_empty_catalog(paths: Any) -> None:
    catalog = catalog_of(document(paths))
    assert (catalog.operations, catalog.kept_out) == ((), ())
    assert catalog.report.sources[0].error is None


def test_paths_with_a_fragment_or_a_query_stay_as_they_are() -> None:
    tree = document({"/b#acl": {"get": OPERATION}, "/?Action=X": {"post": OPERATION}})
    catalog = catalog_of(tree)
    assert [operation.path for operation in catalog.operations] == ["/b#acl", "/?Action=X"]
    assert all(operation.executable for operation in catalog.operations)


def test_webhooks_and_callbacks_are_in_the_report_only() -> None:
    callbacks = {
        "onEvent": {"{$request.body#/url}": {"post": OPERATION}},
        "lost": {"$ref": "#/nowhere"},
        "odd": 7,
    }
    tree = document(
        {"/s": {"post": {"operationId": "s", "callbacks": callbacks}}},
        webhooks={"newPet": {"post": OPERATION, "summary": "x"}, "lost": {"$ref": "#/nowhere"}},
    )
    catalog = catalog_of(tree)
    assert [operation.name for operation in catalog.operations] == ["s"]
    assert catalog.kept_out == ()
    entries = catalog.report.sources[0].kept_out
    assert [(entry.kind, entry.method, entry.path) for entry in entries] == [
        ("webhook", "POST", "newPet"),
        ("webhook", "", "lost"),
        ("callback", "POST", "{$request.body#/url}"),
        ("callback", "", "lost"),
    ]
    assert all(entry.reason and entry.pointer for entry in entries)


def test_texts_are_cleaned_and_the_summary_falls_back() -> None:
    operation = {
        "description": "Lists <b>pets</b>. See [docs](https://x.test).\u202e",
        "tags": ["pets\u200b", "pets", 7, None, {"a": 1}],
    }
    found = only(catalog_of(document({"/x": {"get": operation}}, info={"title": "My <i>API</i>"})))
    assert found.summary == "Lists pets."
    assert found.description == "Lists pets. See docs."
    assert found.tags == ("pets", "7")
    assert found.api_title == "My API"


@pytest.mark.parametrize(
    ("identifier", "kept"),
    [(404, "404"), (" padded ", " padded "), ("a\u202eb", "ab"), ("", None), (None, None), (["x"], None)],
)
def test_the_original_operation_id_stays_searchable(identifier: Any, kept: str | None) -> None:
    assert only(catalog_of(document({"/x": {"get": {"operationId": identifier}}}))).operation_id == kept


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[1, 2]",
        b"{",
        b"{}",
        b'{"openapi": "2.0"}',
        b'{"openapi": null}',
        b"\xff\xfe\x00",
        b'{"swagger": "1.2"}',
    ],
)
def test_a_document_that_cannot_be_used_is_reported_and_the_others_load(data: bytes) -> None:
    from capdex_engine.catalog import build_catalog

    catalog = build_catalog([source(data, "bad"), source(document({"/x": {"get": OPERATION}}), "good")])
    assert len(catalog.operations) == 1
    (report,) = catalog.report.failed
    assert report.source == "bad"
    assert report.error is not None and report.error.code == "document_error"
    assert catalog.report.to_json()["sources"][0]["error"]["code"] == "document_error"


def test_an_operation_nested_too_deeply_is_kept_out_alone() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(100):
        schema = {"type": "array", "items": schema}
    tree = document(
        {
            "/deep": {"post": {"requestBody": {"content": {"application/json": {"schema": schema}}}}},
            "/good": {"get": OPERATION},
        }
    )
    catalog = catalog_of(tree)
    assert [operation.path for operation in catalog.operations] == ["/good"]
    assert catalog.kept_out[0].availability is Availability.KEPT_OUT
