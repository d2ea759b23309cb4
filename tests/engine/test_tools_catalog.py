"""Tools of MCP servers in the catalog, beside operations of documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from capdex_engine.catalog import Catalog, Source
from capdex_engine.catalog.difference import compare_catalogs
from capdex_engine.operation import Availability
from tools_support import FAULT, READ, TREE, catalog_of, document_source, tools_source


def only(catalog: Catalog) -> Any:
    [operation] = catalog.operations
    return operation


def test_a_tool_is_an_operation_of_method_mcp() -> None:
    catalog = catalog_of(tools_source(READ))
    operation = only(catalog)
    assert (operation.name, operation.method, operation.path) == ("read_file", "MCP", "mcp://files/read_file")
    assert (operation.operation_id, operation.api_title) == ("read_file", "Files")
    assert operation.summary == "Reads a text file."
    assert operation.description == "Reads a text file. It must be below the root."
    assert (operation.has_body, operation.body_required) == (True, True)
    assert operation.body_properties == ("path", "head")
    assert operation.executable
    assert catalog.get("MCP mcp://files/read_file") is operation


def test_the_body_is_the_input_schema_and_the_response_the_output_schema() -> None:
    catalog = catalog_of(tools_source(READ))
    schema = catalog.body_schema(only(catalog))
    assert schema is not None and schema["properties"]["head"] == {"type": "integer", "exclusiveMinimum": 0}
    assert (schema["required"], schema["additionalProperties"]) == (["path"], False)
    responses = catalog.details(only(catalog)).responses
    assert responses["result"]["schema"] == READ["outputSchema"]


def test_references_start_at_the_schemas_own_root_and_recursion_stays() -> None:
    other = {
        **TREE,
        "name": "other",
        "inputSchema": {**TREE["inputSchema"], "definitions": {"Node": {"type": "null"}}},
    }
    catalog = catalog_of(tools_source(TREE, other))
    tree, node = catalog.get("tree"), catalog.get("other")
    assert tree is not None and node is not None
    schema = catalog.body_schema(tree)
    assert schema is not None
    key = schema["properties"]["node"]["$ref"].removeprefix("#/$defs/")
    assert schema["$defs"][key]["properties"]["child"] == {"$ref": f"#/$defs/{key}"}
    again = schema["properties"]["again"]["$ref"].removeprefix("#/$defs/")
    assert schema["$defs"][again] == {"type": "integer"}
    plain = catalog.body_schema(node)
    assert plain is not None
    assert plain["$defs"][plain["properties"]["node"]["$ref"].removeprefix("#/$defs/")] == {"type": "null"}


def test_a_schema_that_is_its_own_child_stays_so() -> None:
    recursive = {"name": "walk", "inputSchema": {"type": "object", "properties": {"next": {"$ref": "#"}}}}
    catalog = catalog_of(tools_source(recursive))
    schema = catalog.body_schema(only(catalog))
    assert schema is not None
    key = schema["properties"]["next"]["$ref"].removeprefix("#/$defs/")
    assert schema["$defs"][key]["properties"]["next"] == schema["properties"]["next"]


@pytest.mark.parametrize(
    "ref", ["#/definitions/None", "https://schemas.example/x.json", "other.json", "/etc/passwd"]
)
def test_a_reference_that_leads_nowhere_keeps_its_tool_alone_out(ref: str) -> None:
    broken = {"name": "broken", "inputSchema": {"type": "object", "properties": {"a": {"$ref": ref}}}}
    catalog = catalog_of(tools_source(READ, broken))
    assert only(catalog).name == "read_file"
    [kept_out] = catalog.kept_out
    assert kept_out.availability is Availability.KEPT_OUT and ref in str(kept_out.reason)


def test_what_is_in_quarantine_is_in_the_load_report() -> None:
    report = catalog_of(tools_source(READ)).report
    [row] = report.to_json()["sources"][0]["keptOut"]
    assert (row["kind"], row["method"]) == ("tool", "MCP")
    assert FAULT.code in row["reason"]
    assert report.totals()["broken"] == 1


@pytest.mark.parametrize(("trusted", "read_only"), [(False, False), (True, True)])
def test_a_hint_counts_only_where_the_source_is_trusted(trusted: bool, read_only: bool) -> None:
    assert only(catalog_of(tools_source(READ, trusted=trusted))).read_only is read_only
    assert only(catalog_of(tools_source(TREE, trusted=trusted))).read_only is False


def test_tools_of_a_server_that_is_down_stay_in_search_with_the_reason() -> None:
    down = catalog_of(tools_source(READ, unavailable="The server of files is down: it ended."))
    up = catalog_of(tools_source(READ))
    assert (only(down).executable, only(down).reason) == (False, "The server of files is down: it ended.")
    assert only(down).schema_digest == only(up).schema_digest
    assert down.revision != up.revision


def test_names_clash_over_sources_as_for_documents() -> None:
    catalog = catalog_of(tools_source(READ), document_source(), tools_source(READ, name="more"))
    assert [one.name for one in catalog.operations] == ["files.read_file", "more.read_file", "shop.read_file"]
    odd = {"name": "résumé/löschen now!", "inputSchema": {}}
    operation = only(catalog_of(tools_source(odd)))
    assert operation.name == "resume_loschen_now"
    assert operation.operation_id == "résumé/löschen now!"
    assert operation.path == "mcp://files/résumé/löschen now!"


def test_texts_and_order_change_no_digest_and_a_property_does() -> None:
    reworded = {**READ, "title": "x", "description": "y"}
    changed = {**READ, "inputSchema": {**READ["inputSchema"], "required": ["path", "head"]}}
    [before], [words], [after] = (
        catalog_of(tools_source(one)).operations for one in (READ, reworded, changed)
    )
    assert before.schema_digest == words.schema_digest != after.schema_digest
    assert tools_source(READ, TREE).data == tools_source(TREE, READ).data


def test_a_change_is_seen_by_the_comparison_of_catalogs() -> None:
    changed = {**READ, "inputSchema": {**READ["inputSchema"], "required": ["path", "head"]}}
    difference = compare_catalogs(catalog_of(tools_source(READ)), catalog_of(tools_source(changed)))
    assert "read_file" in str(difference.to_json())


def test_settings_apply_to_tools() -> None:
    settings: dict[str, Any] = {
        "exclude": ("name:tree",),
        "overrides": {"read_file": {"summary": "Look into a file", "keywords": ["cat"]}},
    }
    operation = only(catalog_of(tools_source(READ, TREE, **settings)))
    assert (operation.summary, operation.keywords) == ("Look into a file", ("cat",))


def test_tools_are_cached_by_content(tmp_path: Path) -> None:
    first = catalog_of(tools_source(READ), cache=tmp_path)
    again = catalog_of(tools_source(READ), cache=tmp_path)
    assert [report.cached for report in (first.report.sources[0], again.report.sources[0])] == [False, True]
    assert again.operations == first.operations
    assert again.body_schema(only(again)) == first.body_schema(only(first))


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"tools": 1}', b'{"tools": [], "quarantine": []}'])
def test_what_is_no_list_of_tools_is_a_failed_source(data: bytes) -> None:
    report = catalog_of(Source("files", "mcp://files", data, kind="mcp")).report
    assert [one.source for one in report.failed] == ["files"]


def test_invisible_characters_of_texts_are_not_shown() -> None:
    spoken = {**TREE, "title": "A\u202etree", "description": "Shows\x00 \U000e0041it."}
    operation = only(catalog_of(tools_source(spoken)))
    assert operation.summary == "Atree: Shows it."
