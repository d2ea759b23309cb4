"""What public bug reports tell of other readers, from documents of our own to a prepared call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from call_support import Clock, Upstream
from capdex_engine.call import Executor
from capdex_engine.catalog import Catalog
from capdex_engine.errors import CapdexError
from catalog_support import body_of, catalog_of, document, only, operation_with

JSON = "application/json"


def prepared(catalog: Catalog, **call: Any) -> dict[str, Any]:
    """Return what a dry run shows of the one operation, or ``{"error": code}``."""
    try:
        return Executor(catalog, transport=Upstream(), clock=Clock()).prepare(
            {"name": only(catalog).name, **call}
        )
    except CapdexError as error:
        return {"error": error.code}


DATES = b"""
openapi: 3.0.3
info: {title: 2022-01-16, version: 2022-01-16}
servers: [{url: https://api.test}]
paths:
  /2022-01-16:
    get:
      operationId: 2022-01-16
      summary: 2022-01-16T10:20:30Z
      tags: [2022-01-16]
      parameters:
        - name: v
          in: query
          schema: {type: string, enum: [2022-01-16, 2022-1-6, 2022-01-16 10:20:30], default: 2022-01-16}
        - {name: at, in: query, schema: {type: string, example: 2022-01-16t10:20:30.5+01:00}}
        - {name: t, in: query, schema: {type: string, enum: [10:20, 10:20:30, 1_000, 0o17, 017]}}
      responses: {200: {description: ok}, 2XX: {description: 2022-01-16}}
"""


def test_dates_of_yaml_stay_text_character_for_character() -> None:
    catalog = catalog_of(DATES)
    operation = only(catalog)
    assert (operation.name, operation.path, operation.api_title) == (
        "2022-01-16",
        "/2022-01-16",
        "2022-01-16",
    )
    assert (operation.summary, operation.tags) == ("2022-01-16T10:20:30Z", ("2022-01-16",))
    slot = json.loads(json.dumps(catalog.arguments_schema(operation)))["properties"]["queryParams"]
    schema = slot["properties"]
    assert schema["v"]["enum"] == ["2022-01-16", "2022-1-6", "2022-01-16 10:20:30"]
    assert schema["v"]["default"] == "2022-01-16"
    assert schema["t"]["enum"] == ["10:20", "10:20:30", "1_000", "0o17", "017"]
    assert list(catalog.details(operation).responses) == ["200", "2XX"]
    assert prepared(catalog, queryParams={"v": "2022-1-6"})["url"].endswith("?v=2022-1-6")


@pytest.mark.parametrize(
    ("version", "bounds", "accepted", "refused"),
    [
        ("3.0.3", {"minimum": 0, "exclusiveMinimum": True}, 1, 0),
        ("3.0.3", {"maximum": 9, "exclusiveMaximum": True}, 8, 9),
        ("3.0.3", {"minimum": 0, "exclusiveMinimum": False}, 0, -1),
        ("3.1.0", {"exclusiveMinimum": 0}, 1, 0),
        ("3.1.0", {"exclusiveMaximum": 9, "maximum": 20}, 8, 9),
        ("3.1.0", {"minimum": 0, "exclusiveMinimum": True}, 1, 0),
    ],
)
def test_exclusive_bounds_of_either_kind_bind(
    version: str, bounds: dict[str, Any], accepted: int, refused: int
) -> None:
    catalog = catalog_of(body_of({JSON: {"schema": {"type": "integer", **bounds}}}, openapi=version))
    assert prepared(catalog, body=accepted)["body"] == str(accepted)
    assert prepared(catalog, body=refused) == {"error": "invalid_capability_arguments"}


SCHEMES = {
    "a": {"type": "apiKey", "in": "header", "name": "X-A"},
    "b": {"type": "apiKey", "in": "header", "name": "X-B"},
    "c": {"type": "http", "scheme": "bearer"},
}


@pytest.mark.parametrize(
    ("security", "held", "executable", "sent"),
    [
        ([{"a": [], "b": []}, {"c": []}], {"c"}, True, {"authorization"}),
        ([{"a": [], "b": []}, {"c": []}], {"a", "b"}, True, {"x-a", "x-b"}),
        ([{"a": [], "b": []}, {"c": []}], {"a"}, False, None),
        ([{"a": []}, {}], set(), True, set()),
        ([{"a": []}, {}], {"a"}, True, {"x-a"}),
        ([], set(), True, set()),
    ],
)
def test_alternatives_of_security_are_a_choice_and_their_members_belong_together(
    security: list[Any], held: set[str], executable: bool, sent: set[str] | None
) -> None:
    tree = document(
        {"/x": {"get": {"operationId": "x", "security": security}}}, components={"securitySchemes": SCHEMES}
    )
    catalog = catalog_of(tree, credentials=frozenset(held))
    assert only(catalog).executable is executable
    if sent is not None:
        caller = Executor(
            catalog,
            transport=Upstream(),
            clock=Clock(),
            credentials={"api": {name: f"secret-{name}" for name in held}},
        )
        headers = caller.prepare({"name": "x"})["headers"]
        assert {name.lower() for name in headers} & {"x-a", "x-b", "authorization"} == sent


def test_a_cycle_of_swagger_2_is_kept_and_judges_deep_down() -> None:
    node = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "next": {"$ref": "#/definitions/Node"}},
    }
    body = {"name": "b", "in": "body", "schema": {"$ref": "#/definitions/Node"}}
    catalog = catalog_of(
        {
            "swagger": "2.0",
            "info": {"title": "T", "version": "1"},
            "host": "api.test",
            "paths": {"/x": {"post": {"operationId": "x", "parameters": [body]}}},
            "definitions": {"Node": node},
        }
    )
    assert "error" not in prepared(catalog, body={"next": {"next": {"n": 1}}})
    assert prepared(catalog, body={"next": {"next": {"n": "x"}}}) == {"error": "invalid_capability_arguments"}
    json.dumps(catalog.body_schema(only(catalog)))


def test_a_parameter_behind_a_url_is_never_dropped_without_a_word() -> None:
    catalog = catalog_of(operation_with({"$ref": "https://elsewhere.test/p.yaml#/P"}))
    assert catalog.operations == ()
    assert "elsewhere.test/p.yaml#/P cannot be followed" in (only(catalog).reason or "")


def test_a_pattern_of_another_dialect_costs_only_itself() -> None:
    schema = {"type": "string", "pattern": r"^[\p{L}\p{M}]+$", "maxLength": 3}
    catalog = catalog_of(body_of({JSON: {"schema": schema}}))
    assert prepared(catalog, body="é!")["body"] == '"é!"'
    assert prepared(catalog, body="long") == {"error": "invalid_capability_arguments"}


CONTENT = "#/paths/~1a/post/requestBody/content/"


def test_a_part_of_a_part_may_be_referred_to() -> None:
    tree = document(
        {
            "/a": {
                "post": {
                    "operationId": "a",
                    "parameters": [
                        {
                            "name": "q",
                            "in": "query",
                            "schema": {"type": "object", "properties": {"in/er~": {"type": "integer"}}},
                        }
                    ],
                    "requestBody": {
                        "content": {
                            "application/vnd.a+json": {"schema": {"items": [{}, {"type": "boolean"}]}}
                        }
                    },
                }
            },
            "/b": {
                "post": {
                    "operationId": "b",
                    "parameters": [{"$ref": "#/paths/~1a/post/parameters/0"}],
                    "requestBody": {
                        "content": {
                            JSON: {
                                "schema": {
                                    "properties": {
                                        "x": {
                                            "$ref": "#/paths/~1a/post/parameters/0/schema/properties/in~1er~0"
                                        },
                                        "y": {"$ref": CONTENT + "application~1vnd.a%2Bjson/schema/items/1"},
                                    }
                                }
                            }
                        }
                    },
                }
            },
        }
    )
    catalog = catalog_of(tree)
    caller = Executor(catalog, transport=Upstream(), clock=Clock())
    assert caller.prepare({"name": "b", "body": {"x": 1, "y": True}})["method"] == "POST"
    with pytest.raises(CapdexError) as wrong:
        caller.prepare({"name": "b", "body": {"x": True, "y": 1}})
    assert {issue["pointer"] for issue in wrong.value.details["issues"]} == {"/x", "/y"}
    operation = catalog.get("b")
    assert operation is not None and operation.query_params == ("q",)


def test_servers_of_path_and_operation_take_their_own_variables() -> None:
    variables = {"region": {"default": "eu", "enum": ["eu", "us"]}, "v": {"default": "2"}}
    tree = document(
        {
            "/a": {
                "servers": [{"url": "https://{region}.test/v{v}/", "variables": variables}],
                "get": {"operationId": "a"},
                "post": {
                    "operationId": "own",
                    "servers": [{"url": "https://own.test/{v}", "variables": variables}],
                },
            },
            "/b": {"get": {"operationId": "b"}},
        }
    )
    caller = Executor(catalog_of(tree), transport=Upstream(), clock=Clock())
    urls = {name: caller.prepare({"name": name})["url"] for name in ("a", "own", "b")}
    assert urls == {"a": "https://eu.test/v2/a", "own": "https://own.test/2/a", "b": "https://api.test/b"}


def test_a_path_key_with_a_query_or_a_fragment_is_called_as_it_stands() -> None:
    tree = document(
        {
            "/x?action=list": {"get": {"operationId": "list", "parameters": [{"name": "q", "in": "query"}]}},
            "/x?action=get#one": {"get": {"operationId": "one"}},
        }
    )
    catalog = catalog_of(tree)
    caller = Executor(catalog, transport=Upstream(), clock=Clock())
    listed = caller.prepare({"name": "list", "queryParams": {"q": "a b"}})["url"]
    assert listed == "https://api.test/x?action=list&q=a%20b"
    assert caller.prepare({"name": "one"})["url"].startswith("https://api.test/x?action=get")


def test_in_3_1_what_stands_beside_a_reference_counts() -> None:
    schemas = {"Name": {"type": "string", "minLength": 2}}
    schema = {"$ref": "#/components/schemas/Name", "maxLength": 3}
    for version, accepts_long in (("3.1.0", False), ("3.0.3", True)):
        tree = body_of({JSON: {"schema": schema}}, openapi=version, components={"schemas": schemas})
        catalog = catalog_of(tree)
        assert prepared(catalog, body="a") == {"error": "invalid_capability_arguments"}
        assert ("error" not in prepared(catalog, body="abcd")) is accepts_long


def test_a_discriminator_s_mapping_refuses_nothing_and_breaks_nothing() -> None:
    cat = {"type": "object", "required": ["lives"], "properties": {"kind": {"type": "string"}}}
    schema = {
        "oneOf": [{"$ref": "#/components/schemas/Cat"}],
        "discriminator": {"propertyName": "kind", "mapping": {"c": "Cat", "d": "https://x.test/d.yaml#/D"}},
    }
    catalog = catalog_of(body_of({JSON: {"schema": schema}}, components={"schemas": {"Cat": cat}}))
    assert "error" not in prepared(catalog, body={"kind": "d", "lives": 9})
    assert prepared(catalog, body={"kind": "c"}) == {"error": "invalid_capability_arguments"}


PET = {"properties": {"owner": {"$ref": "common.yaml#/Owner"}}, "required": ["owner"]}
OWNER = "Owner: {type: object, properties: {pet: {$ref: pet.json}, n: {type: integer}}}"
FILES = {
    "/documents/paths/pets.yaml": "post:\n  operationId: pet\n  requestBody: {$ref: '../bodies.yaml#/Pet'}",
    "/documents/bodies.yaml": "Pet: {content: {application/json: {schema: {$ref: 'schemas/pet.json'}}}}",
    "/documents/schemas/pet.json": json.dumps(PET),
    "/documents/schemas/common.yaml": OWNER,
}


def test_a_document_of_many_files_is_one_catalog() -> None:
    catalog = catalog_of(document({"/pets": {"$ref": "paths/pets.yaml"}}), files=FILES)
    assert "error" not in prepared(catalog, body={"owner": {"pet": {"owner": {"n": 1}}}})
    assert prepared(catalog, body={"owner": {"pet": {"owner": {"n": "x"}}}}) == {
        "error": "invalid_capability_arguments"
    }
    assert prepared(catalog, body={"owner": {"pet": {}}}) == {"error": "invalid_capability_arguments"}
