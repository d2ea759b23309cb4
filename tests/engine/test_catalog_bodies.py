"""Request bodies and responses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from capdex_engine.catalog.bodies import preference
from capdex_engine.operation import Availability, Body
from catalog_support import body_of, catalog_of, document, only

OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}}


def read(content: Any, **fields: Any) -> Body:
    catalog = catalog_of(body_of(content, **fields))
    body = catalog.details(only(catalog)).body
    assert body is not None
    return body


def test_media_types_are_sorted_by_preference() -> None:
    wanted = [
        "application/json; charset=utf-8",
        "application/merge-patch+json",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "text/plain",
        "application/octet-stream",
        "application/xml",
        "image/png",
        "*/*",
    ]
    body = read({name: {"schema": OBJECT} for name in reversed(wanted)})
    assert [media.content_type for media in body.media_types] == wanted


def test_media_types_of_one_rank_keep_the_document_s_order() -> None:
    body = read({"application/b+json": {}, "application/a+json": {}})
    assert [media.content_type for media in body.media_types] == ["application/b+json", "application/a+json"]


@pytest.mark.parametrize("odd", ["", "json", "application", "*", "a/b/c;;"])
def test_every_media_type_has_a_rank(odd: str) -> None:
    assert preference(odd) >= preference("application/json")


def test_encoding_is_kept_where_it_counts() -> None:
    encoding = {"a": {"style": "deepObject", "explode": True, "headers": {}, "x-y": 1}, "b": 7}
    body = read({"multipart/form-data": {"schema": OBJECT, "encoding": encoding}})
    assert body.media_types[0].encoding == {"a": {"style": "deepObject", "explode": True}}


def test_an_encoding_s_value_of_a_wrong_type_is_left_out_with_a_remark() -> None:
    encoding = {"a": {"style": ["form"], "explode": "no", "contentType": None, "allowReserved": True}}
    catalog = catalog_of(body_of({"multipart/form-data": {"schema": OBJECT, "encoding": encoding}}))
    body = catalog.details(only(catalog)).body
    assert body is not None and body.media_types[0].encoding == {"a": {"allowReserved": True}}
    assert len(catalog.report.sources[0].warnings) == 2


def test_a_body_is_optional_unless_it_says_otherwise() -> None:
    assert not read({"application/json": {}}).required
    assert read({"application/json": {}}, body={"required": True}).required


def test_without_a_schema_everything_is_accepted() -> None:
    catalog = catalog_of(body_of({"application/json": {}}))
    assert only(catalog).has_body
    assert catalog.body_schema(only(catalog)) == {}


@pytest.mark.parametrize("body", [None, {"content": {}}, {"content": None}, {}])
def test_a_body_without_any_media_type_is_none(body: Any) -> None:
    catalog = catalog_of(document({"/x": {"post": {"requestBody": body}}}))
    assert only(catalog).executable
    assert not only(catalog).has_body
    assert catalog.body_schema(only(catalog)) is None


@pytest.mark.parametrize("body", [{"required": True}, [1], {"$ref": "#/nowhere"}])
def test_a_body_that_cannot_be_read_keeps_the_operation_out(body: Any) -> None:
    catalog = catalog_of(document({"/x": {"post": {"requestBody": body}}}))
    assert only(catalog).availability is Availability.KEPT_OUT


def test_a_media_type_that_cannot_be_read_is_left_out_while_another_is_left() -> None:
    catalog = catalog_of(
        body_of({"application/json": {"schema": {"$ref": "#/nowhere"}}, "text/plain": {"schema": OBJECT}})
    )
    body = catalog.details(only(catalog)).body
    assert body is not None and [media.content_type for media in body.media_types] == ["text/plain"]
    assert catalog.report.sources[0].warnings


def test_a_broken_definition_keeps_out_whoever_reaches_it() -> None:
    schemas = {
        "Outer": {"type": "object", "properties": {"inner": {"$ref": "#/components/schemas/Inner"}}},
        "Inner": {"type": "array", "items": {"$ref": "#/components/schemas/Missing"}},
        "Fine": OBJECT,
    }

    def using(name: str) -> dict[str, Any]:
        return {
            "requestBody": {
                "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}
            }
        }

    tree = document(
        {"/bad": {"post": using("Outer")}, "/good": {"post": using("Fine")}}, components={"schemas": schemas}
    )
    catalog = catalog_of(tree)
    assert [operation.path for operation in catalog.operations] == ["/good"]
    assert "Missing" in str(catalog.kept_out[0].reason)


def test_property_names_are_found_through_references_and_compositions() -> None:
    schemas = {
        "Base": {"properties": {"a": {}, "id": {"readOnly": True}}},
        "More": {
            "allOf": [{"$ref": "#/components/schemas/Base"}, {"properties": {"b": {}}}],
            "properties": {"c": {}},
        },
    }
    tree = body_of(
        {"application/json": {"schema": {"type": "array", "items": {"$ref": "#/components/schemas/More"}}}},
        components={"schemas": schemas},
    )
    assert only(catalog_of(tree)).body_properties == ("c", "a", "b")


def test_at_most_forty_property_names_are_kept() -> None:
    many = {f"p{index}": {} for index in range(60)}
    tree = body_of({"application/json": {"schema": {"properties": many}}})
    assert len(only(catalog_of(tree)).body_properties) == 40


def test_read_only_properties_are_not_demanded_in_requests_but_promised_in_responses() -> None:
    pet = {
        "type": "object",
        "required": ["id", "name"],
        "properties": {"id": {"type": "string", "readOnly": True}, "name": {"type": "string"}},
    }
    reference = {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}
    operation = {"requestBody": {"content": reference}, "responses": {"200": {"content": reference}}}
    catalog = catalog_of(document({"/x": {"post": operation}}, components={"schemas": {"Pet": pet}}))
    schema = catalog.body_schema(only(catalog))
    assert schema is not None and schema["required"] == ["name"]
    response = catalog.details(only(catalog)).responses["200"]
    assert response["schema"]["required"] == ["id", "name"]


def test_responses_are_kept_with_their_preferred_media_type() -> None:
    responses = {
        "200": {
            "description": "All <b>good</b>",
            "content": {"text/html": {}, "application/json": {"schema": {"type": "array"}}},
        },
        "204": {"description": "Nothing"},
        "404": {"$ref": "#/components/responses/Missing"},
        "default": None,
        "x-more": {},
    }
    catalog = catalog_of(document({"/x": {"get": {"responses": responses}}}))
    found = catalog.details(only(catalog)).responses
    assert dict(found) == {
        "200": {"description": "All good", "contentType": "application/json", "schema": {"type": "array"}},
        "204": {"description": "Nothing"},
        "default": {"description": ""},
    }
    assert len(catalog.report.sources[0].warnings) == 1


def test_a_broken_response_schema_costs_only_itself() -> None:
    content = {"application/json": {"schema": {"$ref": "#/nowhere"}}}
    catalog = catalog_of(document({"/x": {"get": {"responses": {"200": {"content": content}}}}}))
    assert only(catalog).executable
    found = catalog.details(only(catalog)).responses
    assert dict(found) == {"200": {"description": "", "contentType": "application/json"}}


def test_a_response_with_a_cycle_is_self_contained() -> None:
    schemas = {"Node": {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}}}}
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}}
    tree = document(
        {"/x": {"get": {"responses": {"200": {"content": content}}}}}, components={"schemas": schemas}
    )
    catalog = catalog_of(tree)
    schema = catalog.details(only(catalog)).responses["200"]["schema"]
    assert schema["properties"]["next"] == {"$ref": "#/$defs/Node"}
    assert set(schema["$defs"]) == {"Node"}


MADE = {"type": "object", "properties": {"id": {"type": "integer", "readOnly": True}, "n": {}}}
PLAIN = {"type": "object", "properties": {"id": {}, "n": {}}, "required": ["id", "n"]}
SEALED = {"properties": {"id": {"readOnly": True}}}


def of_schema(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [of_schema("Made"), of_schema("Demand")]},
        {"allOf": [of_schema("Demand"), of_schema("Made")]},
        {"allOf": [of_schema("Plain"), SEALED]},
        {"allOf": [of_schema("Nested"), SEALED]},
        {**SEALED, "allOf": [of_schema("Plain")]},
        of_schema("Whole"),
    ],
)
def test_what_one_branch_calls_read_only_no_other_branch_demands(version: str, schema: Any) -> None:
    schemas = {
        "Made": MADE,
        "Plain": PLAIN,
        "Demand": {"required": ["id", "n"]},
        "Nested": {"allOf": [of_schema("Plain"), of_schema("Nested2")]},
        "Nested2": {"allOf": [of_schema("Nested"), {"required": ["id"]}]},
        "Whole": {"allOf": [of_schema("Made"), of_schema("Demand")]},
    }
    tree = body_of({"application/json": {"schema": schema}}, components={"schemas": schemas})
    catalog = catalog_of({**tree, "openapi": version})
    found = catalog.body_schema(only(catalog))
    assert found is not None
    validator = Draft202012Validator(found)
    if "Nested" not in json.dumps(schema):
        assert validator.is_valid({"n": 1})
        assert not validator.is_valid({"id": 1})
    assert '"id", "n"' not in json.dumps(found)


def test_the_same_definition_demands_its_names_where_nothing_makes_them_read_only() -> None:
    schema = {"properties": {"a": {"allOf": [of_schema("Plain"), SEALED]}, "b": of_schema("Plain")}}
    tree = body_of({"application/json": {"schema": schema}}, components={"schemas": {"Plain": PLAIN}})
    catalog = catalog_of(tree)
    validator = Draft202012Validator(catalog.body_schema(only(catalog)) or False)
    assert validator.is_valid({"a": {"n": 1}})
    assert not validator.is_valid({"b": {"n": 1}})
