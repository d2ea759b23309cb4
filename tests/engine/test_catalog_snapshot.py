"""The catalog as others use it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from capdex_engine.catalog import Catalog, Source, build_catalog
from capdex_engine.errors import ConfigurationError, DocumentError
from capdex_engine.operation import Availability, Operation
from catalog_support import body_of, catalog_of, document, load_file, only, operation_with, reader_of, source

NODE = {
    "type": "object",
    "required": ["v"],
    "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/components/schemas/Node"}},
}


def ids(*names: str, prefix: str = "") -> dict[str, Any]:
    return document({f"/{prefix}{name}": {"get": {"operationId": name}} for name in names})


def test_operations_are_sorted_by_name() -> None:
    assert [operation.name for operation in catalog_of(ids("c", "a", "B")).operations] == ["B", "a", "c"]


def test_an_operation_is_found_by_name_and_by_method_and_path() -> None:
    catalog = catalog_of(ids("a"))
    assert catalog.get("a") is catalog.get("GET /a") is catalog.get("get /a") is not None
    assert catalog.get("b") is catalog.get("GET /b") is catalog.get("") is None


def test_a_method_and_path_of_two_sources_finds_nothing() -> None:
    assert catalog_of(ids("a"), ids("a")).get("GET /a") is None


def test_what_is_kept_out_is_found_too() -> None:
    found = catalog_of(document({"noslash": {"get": {"operationId": "a"}}})).get("a")
    assert found is not None and found.availability is Availability.KEPT_OUT


def test_two_sources_of_one_name_are_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError):
        build_catalog([source(ids("a")), source(ids("b"))])


def test_no_source_is_an_empty_catalog() -> None:
    catalog = build_catalog([])
    assert catalog.operations == ()
    assert catalog.near("a") == []


def test_the_order_of_sources_and_paths_changes_neither_names_nor_revision() -> None:
    one, two = ids("a", "b"), ids("b", "c", prefix="x")
    turned = {**two, "paths": dict(reversed(list(two["paths"].items())))}
    first = build_catalog([source(one, "one"), source(two, "two")])
    second = build_catalog([source(turned, "two"), source(one, "one")])
    assert [(op.name, op.key) for op in first.operations] == [(op.name, op.key) for op in second.operations]
    assert first.revision == second.revision


def test_the_revision_follows_names_digests_and_texts() -> None:
    plain = operation_with()
    revisions = {
        catalog_of(tree).revision
        for tree in (
            plain,
            operation_with(summary="Other"),
            operation_with(description="Other"),
            operation_with(tags=["x"]),
            operation_with(deprecated=True),
            operation_with({"name": "q", "in": "query"}),
            operation_with(path="/y"),
        )
    }
    assert len(revisions) == 7
    assert catalog_of(plain).revision in revisions


# --- schemas ---------------------------------------------------------------------------------------


def refs_of(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [ref for child in value.values() for ref in refs_of(child)]
    return [ref for child in value for ref in refs_of(child)] if isinstance(value, list) else []


def assert_self_contained(schema: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(schema)
    json.dumps(schema)
    assert all(ref.removeprefix("#/$defs/") in schema["$defs"] for ref in refs_of(schema))


def node_catalog(schema: Any, **components: Any) -> Catalog:
    content = {"application/json": {"schema": schema}}
    return catalog_of(body_of(content, components={"schemas": {"Node": NODE, **components}}))


def test_a_body_that_is_a_reference_is_inlined_and_kept_while_referred_to() -> None:
    catalog = node_catalog({"$ref": "#/components/schemas/Node"})
    schema = catalog.body_schema(only(catalog))
    assert schema is not None
    assert schema["properties"]["v"] == {"type": "integer"}
    assert list(schema["$defs"]) == ["Node"]
    assert_self_contained(schema)
    assert Draft202012Validator(schema).is_valid({"v": 1, "next": {"v": 2}})
    assert not Draft202012Validator(schema).is_valid({"v": 1, "next": {"v": "x"}})


def test_a_definition_that_nothing_refers_to_any_more_is_dropped() -> None:
    catalog = node_catalog({"$ref": "#/components/schemas/Plain"}, Plain={"type": "string"})
    assert catalog.body_schema(only(catalog)) == {"type": "string"}


def test_aliases_lead_to_the_definition_behind_them() -> None:
    catalog = node_catalog(
        {"$ref": "#/components/schemas/Alias"}, Alias={"$ref": "#/components/schemas/Node"}
    )
    schema = catalog.body_schema(only(catalog))
    assert schema is not None and list(schema["$defs"]) == ["Node"]


def test_odd_component_names_make_keys_that_need_no_escape() -> None:
    schemas = {"My Type/v1~x": {"type": "string"}, "My.Type_v1_x": {"type": "integer"}, "A B": {}, "A_B": {}}
    references = ["My%20Type~1v1~0x", "My.Type_v1_x", "A%20B", "A_B"]
    properties = {str(i): {"$ref": f"#/components/schemas/{ref}"} for i, ref in enumerate(references)}
    catalog = node_catalog({"type": "object", "properties": properties}, **schemas)
    schema = catalog.body_schema(only(catalog))
    assert schema is not None and len(schema["$defs"]) == 4
    assert_self_contained(schema)


def test_the_same_name_in_two_files_makes_two_definitions() -> None:
    files = {"/documents/other.yaml": "Pet: {type: integer}"}
    schema = {"anyOf": [{"$ref": "#/components/schemas/Pet"}, {"$ref": "other.yaml#/Pet"}]}
    tree = body_of(
        {"application/json": {"schema": schema}}, components={"schemas": {"Pet": {"type": "string"}}}
    )
    catalog = catalog_of(tree, files=files)
    assert sorted(str(found) for found in catalog.details(only(catalog)).definitions.values()) == [
        "{'type': 'integer'}",
        "{'type': 'string'}",
    ]


def arguments(**kinds: Any) -> dict[str, Any]:
    parameters = [
        {"name": "id", "in": "path", "schema": {"$ref": "#/components/schemas/Id"}},
        {"name": "q", "in": "query", "description": "word " * 60, "schema": {"type": "string"}},
        {"name": "z", "in": "query", "required": True, "schema": False},
    ]
    tree = document(
        {"/x/{id}": {"post": {"operationId": "x", "parameters": parameters, **kinds}}},
        components={"schemas": {"Id": {"type": "integer", "description": "An id"}, "Node": NODE}},
    )
    catalog = catalog_of(tree)
    return catalog.arguments_schema(only(catalog), with_body=True)


def test_arguments_have_a_slot_for_each_place_with_parameters() -> None:
    schema = arguments()
    assert set(schema["properties"]) == {"pathParams", "queryParams"}
    assert schema["required"] == ["pathParams", "queryParams"]
    assert schema["additionalProperties"] is False
    query = schema["properties"]["queryParams"]
    assert list(query["properties"]) == ["z", "q"]
    assert query["required"] == ["z"] and query["additionalProperties"] is False
    assert len(query["properties"]["q"]["description"]) <= 120
    assert query["properties"]["z"] is False
    assert schema["properties"]["pathParams"]["properties"]["id"]["$ref"] == "#/$defs/Id"
    assert_self_contained(schema)


def test_a_slot_without_required_parameters_is_optional() -> None:
    catalog = catalog_of(operation_with({"name": "q", "in": "cookie"}))
    schema = catalog.arguments_schema(only(catalog))
    assert "required" not in schema and set(schema["properties"]) == {"cookieParams"}
    assert "$defs" not in schema


def test_no_parameters_make_an_empty_object() -> None:
    catalog = catalog_of(operation_with())
    schema = catalog.arguments_schema(only(catalog))
    assert schema == {"type": "object", "properties": {}, "additionalProperties": False}


def test_the_body_is_part_of_the_arguments_when_asked() -> None:
    body = {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}},
    }
    schema = arguments(requestBody=body)
    assert schema["properties"]["body"] == {"$ref": "#/$defs/Node"}
    assert set(schema["$defs"]) == {"Id", "Node"}
    assert "body" in schema["required"]
    assert_self_contained(schema)


def test_an_operation_with_a_broken_structure_has_empty_details() -> None:
    catalog = catalog_of(document({"noslash": {"post": {}}, "/list": []}))
    for operation in catalog.kept_out:
        assert catalog.details(operation).parameters == ()
        assert catalog.describe(operation)["executable"] is False


def test_a_row_of_the_listing_has_all_its_fields() -> None:
    catalog = catalog_of(body_of({"application/json": {"schema": {"type": "object"}}}))
    row = catalog.describe(only(catalog))
    assert row.pop("schemaDigest").startswith("sha256:")
    assert row == {
        "name": "x",
        "source": "api",
        "method": "POST",
        "path": "/x",
        "pathParams": [],
        "queryParams": [],
        "headerParams": [],
        "cookieParams": [],
        "hasBody": True,
        "bodySchema": {"type": "object"},
        "summary": "",
        "executable": True,
        "reason": None,
    }


# --- near names ------------------------------------------------------------------------------------


def test_near_to_a_method_and_path_of_two_sources_are_both_operations() -> None:
    catalog = catalog_of(ids("a"), ids("a"), ids("api2.b"))
    assert catalog.near("GET /a")[:2] == ["api.a", "api2.a"]
    assert catalog.near("get /a", limit=1) == ["api.a"]
    assert catalog.near("GET /a", allowed=lambda operation: operation.source == "api2") == ["api2.a"]
    assert catalog.near("GET /none") == []


def test_near_to_a_method_and_path_is_nothing_that_is_kept_out() -> None:
    assert catalog_of(ids("a"), ids("a"), exclude=("name:*",)).near("GET /a") == []


def test_a_number_as_operation_id_keeps_how_it_is_written() -> None:
    text = b"""
openapi: 3.0.3
info: {title: 1.10}
paths: {/x: {get: {operationId: 1.10, tags: [2.0, 1.20]}}}
"""
    operation = only(catalog_of(text))
    assert (operation.name, operation.operation_id) == ("1.10", "1.10")
    assert operation.tags == ("2.0", "1.20")
    assert operation.api_title == "1.10"


def test_near_names_are_the_nearest_first() -> None:
    catalog = catalog_of(ids("createIssue", "createIssues", "deletePet", "listIssues"))
    assert catalog.near("create_isue")[:2] == ["createIssue", "createIssues"]
    assert catalog.near("createIssue", limit=1) == ["createIssue"]
    assert catalog.near("zzzz") == catalog.near("") == []


def test_near_names_are_only_those_that_are_allowed_and_searchable() -> None:
    tree = document(
        {"/a": {"get": {"operationId": "createIssue"}}, "b": {"get": {"operationId": "createIssu"}}}
    )
    catalog = catalog_of(tree)

    def none(_operation: Operation) -> bool:
        return False

    assert catalog.near("createIssu") == ["createIssue"]
    assert catalog.near("createIssu", allowed=none) == []


@given(st.text(max_size=70))
def test_any_text_may_be_asked_for(text: str) -> None:
    assert len(NEAR.near(text, limit=2)) <= 2


NEAR = catalog_of(ids("a", "createIssue", "x" * 64))

# --- report ----------------------------------------------------------------------------------------


def test_the_report_tells_what_became_of_each_source() -> None:
    ticks = iter([1.0, 3.5])
    tree = document({"/a": {"get": {}}, "b": {"get": {}}}, servers=[{"url": "/"}])
    given_source = source(tree)
    (row,) = build_catalog([given_source], clock=lambda: next(ticks)).report.to_json()["sources"]
    assert (row["source"], row["title"], row["operations"]) == ("api", "Test", 1)
    assert (row["seconds"], row["bytes"], row["cached"], row["error"]) == (
        2.5,
        len(given_source.data),
        False,
        None,
    )
    assert row["keptOut"][0]["path"] == "b"
    assert row["notCallable"][0]["availability"] == "no_server"
    assert row["notCallable"][0]["operations"] == ["getA"]
    json.dumps(row)


def test_remarks_are_bounded() -> None:
    same = [{"name": "q", "in": "query"}] * 700
    remarks = catalog_of(operation_with(*same)).report.sources[0].warnings
    assert len(remarks) == 501


def test_a_missing_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(DocumentError) as caught:
        Source.from_file(tmp_path / "none.yaml")
    assert caught.value.details["location"].endswith("none.yaml")


def test_a_source_is_named_like_its_file(tmp_path: Path) -> None:
    path = tmp_path / "my.api.json"
    path.write_text(json.dumps(ids("a")))
    assert only(load_file(path)).source == "my.api"


# --- cache -----------------------------------------------------------------------------------------


def everything(catalog: Catalog) -> Any:
    rows = (*catalog.operations, *catalog.kept_out)
    return [
        (row, catalog.details(row), dict(catalog.details(row).responses), catalog.describe(row))
        for row in rows
    ]


RICH = body_of(
    {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}},
    components={"schemas": {"Node": NODE}, "securitySchemes": {"k": {"type": "http", "scheme": "basic"}}},
    security=[{"k": []}],
    webhooks={"w": {"post": {}}},
)


def test_a_kept_document_is_not_parsed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given_source = source(RICH)
    first = build_catalog([given_source], cache=tmp_path)

    def parse(*_args: Any, **_more: Any) -> None:
        raise AssertionError("parsed again")

    monkeypatch.setattr("capdex_engine.catalog.document.parse_document", parse)
    second = build_catalog([given_source], cache=tmp_path)
    assert second.report.sources[0].cached and not first.report.sources[0].cached
    assert everything(first) == everything(second)
    assert first.revision == second.revision


def test_kept_or_not_the_catalog_is_the_same(tmp_path: Path) -> None:
    assert everything(build_catalog([source(RICH)], cache=tmp_path)) == everything(
        build_catalog([source(RICH)])
    )


@pytest.mark.parametrize("damage", [b"", b"junk"])
def test_a_damaged_store_is_built_again(tmp_path: Path, damage: bytes) -> None:
    build_catalog([source(RICH)], cache=tmp_path)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(damage + whole[len(damage) : -5] if damage else b"")
    catalog = build_catalog([source(RICH)], cache=tmp_path)
    assert not catalog.report.sources[0].cached
    assert path.read_bytes() == whole


def test_a_changed_document_replaces_its_store(tmp_path: Path) -> None:
    build_catalog([source(RICH)], cache=tmp_path)
    build_catalog([source(RICH, "other")], cache=tmp_path)
    catalog = build_catalog([source(ids("a"))], cache=tmp_path)
    assert only(catalog).name == "a"
    assert len(list(tmp_path.iterdir())) == 2


def test_settings_do_not_need_a_new_store(tmp_path: Path) -> None:
    from capdex_engine.catalog import SourceSettings

    build_catalog([source(RICH)], cache=tmp_path)
    settings = SourceSettings(server="https://own.test", credentials=frozenset({"k"}))
    catalog = build_catalog([source(RICH, settings=settings)], cache=tmp_path)
    assert catalog.report.sources[0].cached
    assert catalog.details(only(catalog)).base_url == "https://own.test"
    assert only(catalog).executable


def cached_with(files: dict[str, str] | None, folder: Path) -> Catalog:
    tree = document({"/a": {"get": {"operationId": "a", "parameters": [{"$ref": "q.yaml#/Q"}]}}})
    retrieve = None if files is None else (lambda _source: reader_of(files))
    return build_catalog([source(tree)], retrieve=retrieve, cache=folder)


def test_a_changed_or_missing_or_new_sibling_file_builds_again(tmp_path: Path) -> None:
    old = {"/documents/q.yaml": "Q: {name: old, in: query}"}
    new = {"/documents/q.yaml": "Q: {name: new, in: query}"}
    assert only(cached_with(old, tmp_path)).query_params == ("old",)
    assert cached_with(old, tmp_path).report.sources[0].cached
    assert only(cached_with(new, tmp_path)).query_params == ("new",)
    assert only(cached_with({}, tmp_path)).availability is Availability.KEPT_OUT
    assert only(cached_with(None, tmp_path)).availability is Availability.KEPT_OUT
    assert only(cached_with(old, tmp_path)).query_params == ("old",)


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert only(build_catalog([source(ids("a"))], cache=tmp_path / "file")).name == "a"
