"""Parameters: merged, resolved, with defaults; and the paths they belong to."""

from __future__ import annotations

from typing import Any

import pytest

from capdex_engine.catalog.parameters import variables_of
from capdex_engine.operation import Availability, Parameter
from catalog_support import catalog_of, document, only, operation_with

TEXT = {"type": "string"}


def parameters_of(*declared: Any, path: str = "/x", item: Any = None, **fields: Any) -> list[Parameter]:
    operation = {"operationId": "x", "parameters": list(declared)}
    tree = document({path: {"get": operation, **(item or {})}}, **fields)
    catalog = catalog_of(tree)
    assert only(catalog).availability is Availability.READY, only(catalog).reason
    return list(catalog.details(only(catalog)).parameters)


@pytest.mark.parametrize(
    ("location", "style", "explode"),
    [
        ("path", "simple", False),
        ("query", "form", True),
        ("header", "simple", False),
        ("cookie", "form", True),
    ],
)
def test_style_and_explode_have_openapi_s_defaults(location: str, style: str, explode: bool) -> None:
    path = "/{p}" if location == "path" else "/x"
    (parameter,) = parameters_of({"name": "p", "in": location, "schema": TEXT}, path=path)
    assert (parameter.style, parameter.explode) == (style, explode)


def test_explode_is_off_by_default_for_other_styles() -> None:
    (parameter,) = parameters_of({"name": "p", "in": "query", "style": "pipeDelimited", "schema": TEXT})
    assert parameter.explode is False


@pytest.mark.parametrize("style", ["matrix", ["form"], 7])
def test_a_style_of_another_location_is_remarked(style: Any) -> None:
    catalog = catalog_of(operation_with({"name": "p", "in": "query", "style": style}))
    assert catalog.details(only(catalog)).parameters[0].style == "form"
    assert catalog.report.sources[0].warnings[0].pointer == "/paths/~1x/get/parameters/0"


def test_a_path_parameter_is_always_required() -> None:
    (parameter,) = parameters_of({"name": "p", "in": "path", "required": False}, path="/{p}")
    assert parameter.required


def test_the_operation_s_parameter_wins_over_the_path_item_s_by_name_and_place() -> None:
    item = {
        "parameters": [
            {"name": "limit", "in": "query", "schema": {"type": "string"}},
            {"name": "limit", "in": "header", "schema": {"type": "string"}},
        ]
    }
    found = parameters_of({"name": "limit", "in": "query", "schema": {"type": "integer"}}, item=item)
    assert [(each.location, each.schema) for each in found] == [
        ("query", {"type": "integer"}),
        ("header", {"type": "string"}),
    ]


def test_of_duplicates_on_one_level_the_first_counts() -> None:
    catalog = catalog_of(
        operation_with(
            {"name": "q", "in": "query", "schema": TEXT},
            {"name": "q", "in": "query", "schema": {"type": "integer"}},
        )
    )
    assert catalog.details(only(catalog)).parameters[0].schema == TEXT
    assert catalog.report.sources[0].warnings


def test_headers_that_openapi_reserves_are_ignored() -> None:
    found = parameters_of(
        {"name": "AUTHORIZATION", "in": "header", "required": True},
        {"name": "accept", "in": "header"},
        {"name": "Content-Type", "in": "header"},
        {"name": "X-Mine", "in": "header"},
    )
    assert [parameter.name for parameter in found] == ["X-Mine"]


def test_a_parameter_with_content_has_its_media_type_and_schema() -> None:
    (parameter,) = parameters_of(
        {"name": "f", "in": "query", "content": {"application/json": {"schema": {"type": "object"}}}}
    )
    assert parameter.content_type == "application/json"
    assert parameter.schema == {"type": "object"}


@pytest.mark.parametrize("content", [{"application/json": {}}, {"application/json": None}])
def test_content_without_a_schema_accepts_everything(content: Any) -> None:
    (parameter,) = parameters_of({"name": "f", "in": "query", "content": content})
    assert parameter.schema is True


def test_a_parameter_without_a_schema_accepts_everything() -> None:
    assert parameters_of({"name": "f", "in": "query"})[0].schema is True


def test_references_to_references_are_followed() -> None:
    components = {
        "parameters": {
            "Alias": {"$ref": "#/components/parameters/Real"},
            "Real": {"name": "q", "in": "query", "schema": {"$ref": "#/components/schemas/Q"}},
        },
        "schemas": {"Q": {"$ref": "#/components/schemas/Text"}, "Text": TEXT},
    }
    catalog = catalog_of(
        document(
            {
                "/x": {
                    "get": {"parameters": [{"$ref": "#/components/parameters/Alias", "description": "Mine"}]}
                }
            },
            components=components,
        )
    )
    details = catalog.details(only(catalog))
    assert details.parameters[0].schema == {"$ref": "#/$defs/Text"}
    assert details.parameters[0].description == "Mine"
    assert details.definitions == {"Text": TEXT}


def test_required_names_come_first() -> None:
    catalog = catalog_of(
        operation_with(
            {"name": "a", "in": "query"},
            {"name": "b", "in": "query", "required": True},
            {"name": "c", "in": "query"},
            {"name": "d", "in": "query", "required": True},
        )
    )
    assert only(catalog).query_params == ("b", "d", "a", "c")
    assert only(catalog).required_params == (("query", "b"), ("query", "d"))


def test_swagger_s_tabs_are_kept_as_delimiter() -> None:
    tree = {
        "swagger": "2.0",
        "host": "api.test",
        "paths": {
            "/x": {
                "get": {
                    "parameters": [
                        {
                            "name": "t",
                            "in": "query",
                            "type": "array",
                            "items": {"type": "string"},
                            "collectionFormat": "tsv",
                        }
                    ]
                }
            }
        },
    }
    catalog = catalog_of(tree)
    assert catalog.details(only(catalog)).parameters[0].delimiter == "\t"


@pytest.mark.parametrize(
    ("path", "variables"),
    [
        ("/{a}/{b}", ["a", "b"]),
        ("/{a}.{b}", ["a", "b"]),
        ("/{a}/{a}", ["a"]),
        ("/{+rest}", ["rest"]),
        ("/x{?q*}", ["q"]),
        ("/{Bucket}#acl", ["Bucket"]),
        ("/?Action=List&Name={Name}", ["Name"]),
    ],
)
def test_template_variables_are_matched_by_name(path: str, variables: list[str]) -> None:
    found = parameters_of(*({"name": name, "in": "path", "required": True} for name in variables), path=path)
    assert [parameter.name for parameter in found] == variables


BAD: list[tuple[str, Any]] = [
    ("/{v}", []),
    ("/x", [{"name": "ghost", "in": "path", "required": True}]),
    ("/x", [{"in": "query"}]),
    ("/x", ["text"]),
    ("/x", [{"$ref": "#/components/parameters/None"}]),
    ("/x", [{"name": "q", "in": "query", "schema": {"$ref": "#/components/schemas/None"}}]),
    ("/x", [{"name": "q", "in": "querystring", "required": True}]),
    ("/x", {"name": "q"}),
]


@pytest.mark.parametrize(("path", "parameters"), BAD)
def test_a_bad_operation_is_kept_out_with_a_reason_and_the_rest_stays(path: str, parameters: Any) -> None:
    tree = document(
        {
            path: {"get": {"operationId": "bad", "parameters": parameters}},
            "/good": {"get": {"operationId": "good"}},
        }
    )
    catalog = catalog_of(tree)
    assert [operation.name for operation in catalog.operations] == ["good"]
    (bad,) = catalog.kept_out
    assert bad.name == "bad" and bad.reason
    entry = catalog.report.sources[0].kept_out[0]
    assert (entry.name, entry.reason) == ("bad", bad.reason)
    assert entry.pointer.endswith("/get")


def test_an_optional_parameter_in_an_unknown_place_is_left_out_with_a_remark() -> None:
    catalog = catalog_of(operation_with({"name": "q", "in": "body"}))
    assert catalog.details(only(catalog)).parameters == ()
    assert catalog.report.sources[0].warnings


@pytest.mark.parametrize("template", ["/files/{path+}", "/files/{+path}", "/files/{path*}"])
def test_a_variable_that_takes_slashes_is_declared_by_its_bare_name(template: str) -> None:
    assert variables_of(template) == ["path"]


ODD_NAMES = [
    ("header", "X-\u540d"),
    ("header", "a b"),
    ("header", "a:"),
    ("cookie", "a;b"),
    ("cookie", "a\tb"),
]


@pytest.mark.parametrize(("location", "name"), [*ODD_NAMES, ("header", ""), ("cookie", "a=b")])
def test_a_name_that_http_cannot_send_is_left_out_or_keeps_the_operation_out(
    location: str, name: str
) -> None:
    optional = catalog_of(operation_with({"name": name, "in": location}))
    assert only(optional).executable and not optional.details(only(optional)).parameters
    assert [remark.pointer for remark in optional.report.sources[0].warnings] == [
        "/paths/~1x/get/parameters/0"
    ]
    required = only(catalog_of(operation_with({"name": name, "in": location, "required": True})))
    assert required.availability is Availability.KEPT_OUT
    assert location in str(required.reason)


def test_any_name_is_one_in_the_query_and_tokens_are_in_a_header() -> None:
    declared = [
        {"name": "\u540d [x]", "in": "query"},
        {"name": "X-A_b.1", "in": "header"},
        {"name": "__Host-id", "in": "cookie"},
    ]
    assert [parameter.name for parameter in parameters_of(*declared)] == [one["name"] for one in declared]


@pytest.mark.parametrize("place", ["query", "formData"])
def test_a_format_of_arrays_in_arrays_is_remarked(place: str) -> None:
    inner = {"type": "array", "collectionFormat": "pipes", "items": {"type": "integer"}}
    parameter = {"name": "p", "in": place, "type": "array", "collectionFormat": "csv", "items": inner}
    paths = {"/x": {"post": {"parameters": [parameter], "responses": {}}}}
    catalog = catalog_of({"swagger": "2.0", "info": {}, "host": "api.test", "paths": paths})
    assert only(catalog).executable
    (remark,) = catalog.report.sources[0].warnings
    assert "collectionFormat" in remark.message and remark.pointer
