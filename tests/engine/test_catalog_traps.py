"""The team's traps: the facts on the catalog, and every validation against the arguments' schema."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from capdex_engine.catalog import Catalog
from capdex_engine.operation import SLOTS, Operation
from catalog_support import load_file

TRAPS = [
    "01-path-simple",
    "02-path-label",
    "03-path-matrix",
    "04-query-form-explode",
    "05-query-space-pipe",
    "06-query-deepobject",
    "07-query-allow-reserved",
    "08-param-content-json",
    "09-header-cookie",
    "10-path-encoding-traversal",
    "11-server-basepath-variables",
    "13-relative-server",
    "14-operationid-missing",
    "15-operationid-duplicate",
    "16-operationid-long-odd",
    "17-path-level-params",
    "18-ref-everything",
    "19-cyclic-schema",
    "21-nullable",
    "23-readonly-writeonly",
    "24-allof-required",
    "25-oneof-discriminator",
    "26-additional-properties",
    "27-defaults-nulls-falsy",
    "28-enum-yaml-words",
    "29-multipart-file-json",
    "30-form-urlencoded",
    "31-raw-and-scalar-bodies",
    "32-optional-and-get-body",
    "33-content-type-choice",
    "34-swagger2-basics",
    "35-swagger2-form-collection",
    "36-security-schemes",
    "38-webhooks-and-empty",
    "40-bom-encodings",
    "41-trailing-slash-collisions",
    "42-escaped-ref",
    "43-external-ref",
    "44-name-clash",
    "48-partial-segments",
    "50-broken-but-common",
]
METHOD_PATH = re.compile(r"[A-Z]+ /")


@pytest.fixture
def trap(shared: Path, request: pytest.FixtureRequest) -> tuple[Path, dict[str, Any]]:
    folder = shared / "traps" / request.param
    return folder, json.loads((folder / "expected.json").read_text())


def found(catalog: Catalog, key: str) -> Operation:
    operation = catalog.get(key)
    assert operation is not None, key
    return operation


def listed(catalog: Catalog) -> set[str]:
    return {name for operation in catalog.operations for slot in SLOTS for name in operation.params(slot)}


@pytest.mark.parametrize("trap", TRAPS, indirect=True)
def test_the_catalog_s_facts_hold(trap: tuple[Path, dict[str, Any]]) -> None:
    folder, expected = trap
    facts = expected.get("catalog", {})
    catalog = load_file(folder / "openapi.yaml")
    names = [operation.name for operation in catalog.operations]
    assert len(set(names)) == len(names) and all(
        re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name) for name in names
    )
    assert all(catalog.get(operation.key) is operation for operation in catalog.operations)
    if "count" in facts:
        assert len(names) == facts["count"]
    assert not listed(catalog) & set(facts.get("must_not_list_parameters", ()))
    for key, fields in facts.items():
        if METHOD_PATH.match(key):
            row = catalog.describe(found(catalog, key))
            assert {name: row[name] for name in fields} == fields
    searchable = {operation.key for operation in catalog.operations}
    assert searchable >= set(facts.get("must_contain", ())) | set(facts.get("reachable", ()))
    flagged = {*facts.get("flagged_with_reason", ()), *facts.get("flagged", ())}
    kept_out = {operation.key: operation for operation in catalog.kept_out}
    kept_out |= {operation.path: operation for operation in catalog.kept_out}
    assert all(kept_out[key].reason for key in flagged)
    for name, count in facts.get("docs", {}).items():
        assert len(load_file(folder / name).operations) == count


@pytest.mark.parametrize("trap", TRAPS, indirect=True)
def test_arguments_are_judged_as_expected(trap: tuple[Path, dict[str, Any]]) -> None:
    folder, expected = trap
    for case in expected.get("validate", ()):
        if not case["strict"]:
            continue
        catalog = load_file(folder / case.get("doc", "openapi.yaml"))
        schema = catalog.arguments_schema(found(catalog, case["op"]), with_body=True)
        Draft202012Validator.check_schema(schema)
        arguments = {key: case[key] for key in (*SLOTS.values(), "body") if key in case}
        assert Draft202012Validator(schema).is_valid(arguments) is case["valid"], case


def test_reordering_the_paths_keeps_names_and_digests(shared: Path, tmp_path: Path) -> None:
    text = (shared / "traps" / "14-operationid-missing" / "openapi.yaml").read_text()
    head, *paths = re.split(r"(?m)^(?=  /)", text)
    (tmp_path / "openapi.yaml").write_text(head + "".join(reversed(paths)))
    first = load_file(shared / "traps" / "14-operationid-missing" / "openapi.yaml")
    second = load_file(tmp_path / "openapi.yaml")
    assert first.operations != ()
    assert [(op.key, op.name, op.schema_digest) for op in first.operations] == [
        (op.key, op.name, op.schema_digest) for op in second.operations
    ]


def test_long_and_odd_ids_keep_their_original(shared: Path) -> None:
    catalog = load_file(shared / "traps" / "16-operationid-long-odd" / "openapi.yaml")
    assert found(catalog, "GET /h").operation_id == found(catalog, "GET /h").name == "404"
    assert found(catalog, "GET /e").operation_id == "actions/list-jobs"
    assert found(catalog, "GET /a").name != found(catalog, "GET /b").name


def test_an_operation_that_refers_to_itself_is_flagged_and_a_cycle_is_kept(shared: Path) -> None:
    catalog = load_file(shared / "traps" / "19-cyclic-schema" / "openapi.yaml")
    assert [operation.key for operation in catalog.kept_out] == ["POST /self"]
    schema = catalog.body_schema(found(catalog, "POST /n"))
    assert schema is not None and set(schema["$defs"]) == {"Node", "Peer"}
    json.dumps(schema)


@pytest.mark.parametrize("name", ["openapi.yaml", "openapi-31.yaml"])
def test_server_made_fields_are_not_demanded(shared: Path, name: str) -> None:
    catalog = load_file(shared / "traps" / "23-readonly-writeonly" / name)
    schema = catalog.body_schema(found(catalog, "POST /n"))
    assert schema is not None and set(schema.get("required", ())) == {"name", "pw"}


def test_all_fields_of_a_composition_are_named(shared: Path) -> None:
    catalog = load_file(shared / "traps" / "24-allof-required" / "openapi.yaml")
    assert set(found(catalog, "POST /n").body_properties) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("name", "url", "base"),
    [
        ("openapi.yaml", "https://host.test/specs/openapi.yaml", "https://host.test/v3"),
        ("relative.yaml", "https://host.test/specs/openapi.yaml", "https://host.test/specs/v3"),
        ("none.yaml", "https://host.test/specs/openapi.yaml", "https://host.test"),
        ("openapi.yaml", None, None),
    ],
)
def test_relative_servers_resolve_against_the_document(
    shared: Path, name: str, url: str | None, base: str | None
) -> None:
    catalog = load_file(shared / "traps" / "13-relative-server" / name, document_url=url)
    operation = found(catalog, "GET /pets")
    assert catalog.details(operation).base_url == base
    assert operation.executable is (base is not None)


def test_no_reference_leaves_the_document_s_folder(shared: Path) -> None:
    catalog = load_file(shared / "traps" / "43-external-ref" / "openapi.yaml")
    assert {operation.key for operation in catalog.kept_out} == {"POST /evil1", "POST /evil2", "POST /evil3"}
    assert found(catalog, "GET /a").query_params == ("q",)
    schema = catalog.arguments_schema(found(catalog, "POST /b"), with_body=True)
    assert not Draft202012Validator(schema).is_valid({"body": {"self": {"owner": {"name": 5}}}})


def test_a_generated_document_shares_its_schemas(shared: Path, tmp_path: Path) -> None:
    script = shared / "traps" / "46-large-document" / "gen.py"
    made = subprocess.run([sys.executable, str(script), "600"], capture_output=True, check=True)
    (tmp_path / "big.yaml").write_bytes(made.stdout)
    catalog = load_file(tmp_path / "big.yaml")
    assert len(catalog.operations) == 600
    response = catalog.details(found(catalog, "GET /r599/{id}")).responses["200"]
    assert len(response["schema"]["$defs"]) == 500
