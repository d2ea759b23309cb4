"""Swagger 2.0 documents read like OpenAPI 3.0 ones."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex_engine.documents import DELIMITER, References, parse_document, upgrade
from capdex_engine.documents.upgrade_schemas import ORIGINAL


def swagger(text: str = "", **more: Any) -> dict[str, Any]:
    return upgrade(
        {"swagger": "2.0", "info": {}, "paths": {}, **parse_document(f"x-a: 1\n{text}".encode()), **more}
    )


def operation(parameters: str, head: str = "", own: str = "") -> dict[str, Any]:
    tree = swagger(f"{head}\npaths: {{/x: {{post: {{{own} parameters: [{parameters}], responses: {{}}}}}}}}")
    return tree["paths"]["/x"]["post"]


def servers(text: str) -> list[str]:
    return [server["url"] for server in swagger(text)["servers"]]


def test_any_other_tree_is_returned_as_it_is():
    for tree in ({"openapi": "3.1.0", "swagger": "2.0"}, {"openapi": "3.0.0"}, {"a": 1}, {"swagger": "1.2"}):
        assert upgrade(tree) is tree


def test_a_version_written_as_a_number_is_one_too():
    assert upgrade({"swagger": 2.0, "paths": {}})["openapi"].startswith("3.0")


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        (
            "host: a.test:8443\nbasePath: /v1/\nschemes: [http, https]",
            ["https://a.test:8443/v1", "http://a.test:8443/v1"],
        ),
        ("host: a.test\nschemes: [http]", ["http://a.test"]),
        ("host: a.test\nschemes: [ws]", ["https://a.test"]),
        ("host: a.test\nschemes: [HTTP]", ["http://a.test"]),
        ("host: a.test\nbasePath: v1", ["https://a.test/v1"]),
        ("host: a.test/\nbasePath: /", ["https://a.test"]),
        ("host: 'http://a.test'\nbasePath: /b", ["http://a.test/b"]),
        ("basePath: /v1", ["/v1"]),
        ("host: ''", ["/"]),
        ("host: 5\nbasePath: [x]", ["/"]),
        ("", ["/"]),
    ],
)
def test_host_base_path_and_schemes_make_the_servers(text, urls):
    assert servers(text) == urls


def test_schemes_of_an_operation_make_its_own_servers():
    found = operation("", "host: a.test\nbasePath: /b\nschemes: [https]", "schemes: [http],")
    assert found["servers"] == [{"url": "http://a.test/b"}]


def test_a_body_parameter_becomes_the_request_body():
    body = operation("{name: b, in: body, required: true, description: d, schema: {type: object}}")[
        "requestBody"
    ]
    assert body == {
        "required": True,
        "description": "d",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }


def test_consumes_of_the_operation_replace_those_of_the_document():
    body, head = "{name: b, in: body, schema: {}}", "consumes: [application/xml]"
    assert list(operation(body, head)["requestBody"]["content"]) == ["application/xml"]
    own = operation(body, head, "consumes: [a/b, c/d],")["requestBody"]["content"]
    assert list(own) == ["a/b", "c/d"]
    assert list(operation(body, head, "consumes: [],")["requestBody"]["content"]) == ["application/json"]
    assert list(operation(body, "consumes: 5")["requestBody"]["content"]) == ["application/json"]


FILE = "{name: f, in: formData, type: file}"
TEXT = "{name: t, in: formData, type: string, required: true, description: d}"


@pytest.mark.parametrize(
    ("parameters", "consumes", "types"),
    [
        (TEXT, "[]", ["application/x-www-form-urlencoded"]),
        (TEXT, "[application/json]", ["application/x-www-form-urlencoded"]),
        (TEXT, "[multipart/form-data]", ["multipart/form-data"]),
        (
            TEXT,
            "[application/x-www-form-urlencoded, multipart/form-data]",
            ["application/x-www-form-urlencoded", "multipart/form-data"],
        ),
        (FILE, "[]", ["multipart/form-data"]),
        (FILE, "[application/x-www-form-urlencoded]", ["multipart/form-data"]),
        (
            f"{FILE}, {TEXT}",
            "[application/x-www-form-urlencoded, multipart/form-data]",
            ["multipart/form-data"],
        ),
    ],
)
def test_form_parameters_make_a_form_of_a_fitting_type(parameters, consumes, types):
    body = operation(parameters, f"consumes: {consumes}")["requestBody"]
    assert list(body["content"]) == types


def test_form_parameters_are_the_properties_of_one_object():
    body = operation(f"{FILE}, {TEXT}")["requestBody"]
    assert body["required"] is True
    assert body["content"]["multipart/form-data"]["schema"] == {
        "type": "object",
        "required": ["t"],
        "properties": {
            "f": {"type": "string", "format": "binary"},
            "t": {"type": "string", "description": "d"},
        },
    }


def test_a_form_parameter_s_name_is_text_and_one_that_is_none_breaks_nothing():
    odd = "{in: formData, name: {a: b}, type: string}"
    number = "{in: formData, name: 1.10, type: string}"
    body = operation(f"{odd}, {number}, {TEXT}")["requestBody"]
    (media,) = body["content"].values()
    assert set(media["schema"]["properties"]) == {"1.10", "t"}


def test_arrays_in_forms_say_how_they_are_joined():
    arrays = ", ".join(
        f"{{name: {kind}, in: formData, type: array, items: {{type: string}}, collectionFormat: {kind}}}"
        for kind in ("csv", "ssv", "tsv", "pipes", "multi")
    )
    media = operation(arrays)["requestBody"]["content"]["application/x-www-form-urlencoded"]
    assert media["encoding"] == {
        "csv": {"style": "form", "explode": False},
        "ssv": {"style": "spaceDelimited", "explode": False},
        "tsv": {"style": "form", "explode": False, DELIMITER: "\t"},
        "pipes": {"style": "pipeDelimited", "explode": False},
        "multi": {"style": "form", "explode": True},
    }
    assert "required" not in media["schema"]


@pytest.mark.parametrize(
    ("place", "kind", "style", "explode", "delimiter"),
    [
        ("query", None, "form", False, None),
        ("query", "csv", "form", False, None),
        ("query", "ssv", "spaceDelimited", False, None),
        ("query", "pipes", "pipeDelimited", False, None),
        ("query", "tsv", "form", False, "\t"),
        ("query", "multi", "form", True, None),
        ("query", "odd", "form", False, None),
        ("query", ["odd"], "form", False, None),
        ("path", None, "simple", False, None),
        ("path", "pipes", "simple", False, "|"),
        ("header", "ssv", "simple", False, " "),
        ("path", "multi", "simple", False, None),
    ],
)
def test_collection_format_becomes_style_and_explode(place, kind, style, explode, delimiter):
    parameter = {"name": "p", "in": place, "type": "array", "items": {"type": "integer"}}
    if kind is not None:
        parameter["collectionFormat"] = kind
    tree = swagger(paths={"/x": {"get": {"parameters": [parameter]}}})
    found = tree["paths"]["/x"]["get"]["parameters"][0]
    assert (found["style"], found["explode"], found.get(DELIMITER)) == (style, explode, delimiter)
    assert found["schema"] == {"type": "array", "items": {"type": "integer"}}


def test_a_plain_parameter_carries_its_keywords_in_a_schema():
    found = operation(
        "{name: q, in: query, required: true, description: "
        "d, type: integer, minimum: 0, exclusiveMinimum: true,"
        " default: 3, allowEmptyValue: true, x-nullable: true}"
    )
    assert found["parameters"] == [
        {
            "name": "q",
            "in": "query",
            "required": True,
            "description": "d",
            "allowEmptyValue": True,
            "x-nullable": True,
            "schema": {
                "type": "integer",
                "minimum": 0,
                "exclusiveMinimum": True,
                "default": 3,
                "x-nullable": True,
                "nullable": True,
            },
        }
    ]
    assert "requestBody" not in found


SHARED = """
parameters:
  B: {name: b, in: body, schema: {$ref: '#/definitions/D'}}
  F: {name: f, in: formData, type: string}
  Q: {name: q, in: query, type: string}
  R: {$ref: '#/parameters/F'}
definitions: {D: {type: object}}
"""


def test_shared_parameters_keep_their_reference_and_shared_bodies_are_filled_in():
    found = operation("{$ref: '#/parameters/Q'}, {$ref: '#/parameters/B'}", SHARED)
    assert found["parameters"] == [{"$ref": "#/components/parameters/Q"}]
    assert found["requestBody"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/D"}
    form = operation("{$ref: '#/parameters/R'}", SHARED)["requestBody"]["content"]
    assert form["application/x-www-form-urlencoded"]["schema"]["properties"] == {"f": {"type": "string"}}


def test_a_reference_into_a_list_that_moves_is_filled_in():
    tree = swagger(
        "paths:\n  /a: {post: {parameters: [{name: b, in: body, "
        "schema: {}}, {name: q, in: query, type: string}]}}\n"
        "  /b: {post: {parameters: [{$ref: '#/paths/~1a/post/parameters/0'}, "
        "{$ref: '#/paths/~1a/post/parameters/1'}]}}\n"
    )
    found = tree["paths"]["/b"]["post"]
    assert found["parameters"] == [{"name": "q", "in": "query", "schema": {"type": "string"}}]
    assert "requestBody" in found


def test_dangling_cyclic_and_foreign_parameter_references_are_left_for_the_reader():
    head = "parameters: {A: {$ref: '#/parameters/A'}}"
    refs = "{$ref: '#/parameters/Nope'}, {$ref: 'other.yaml#/Q'}, {$ref: '#/parameters/A'}, 5"
    found = operation(refs, head)["parameters"]
    assert [value["$ref"] for value in found[:3]] == [
        "#/components/parameters/Nope",
        "other.yaml#/Q",
        "#/components/parameters/A",
    ]
    assert found[3] == 5


def test_body_parameters_of_a_path_item_are_those_of_its_operations():
    tree = swagger(
        "paths:\n  /x:\n    parameters: [{name: b, in: body, "
        "schema: {type: string}}, {name: p, in: path, type: string}]\n"
        "    post: {}\n    put: {parameters: [{name: c, in: body, schema: {type: integer}}]}\n"
    )
    item = tree["paths"]["/x"]
    assert [parameter["name"] for parameter in item["parameters"]] == ["p"]
    types = [item[m]["requestBody"]["content"]["application/json"]["schema"]["type"] for m in ("post", "put")]
    assert types == ["string", "integer"]


def test_own_form_parameters_replace_those_of_the_path_item_by_name():
    tree = swagger(
        "paths:\n  /x:\n    parameters: [{name: a, in: formData, "
        "type: string}, {name: b, in: formData, type: string}]\n"
        "    post: {parameters: [{name: b, in: formData, type: integer}]}\n"
    )
    media = tree["paths"]["/x"]["post"]["requestBody"]["content"]["application/x-www-form-urlencoded"]
    assert {name: schema["type"] for name, schema in media["schema"]["properties"].items()} == {
        "a": "string",
        "b": "integer",
    }


def test_definitions_responses_and_schemes_move_to_components():
    tree = swagger(
        "definitions: {P: {properties: {$ref: {type: string}, q: {$ref: '#/definitions/P'}}}}\n"
        "responses: {R: {description: r, schema: {$ref: '#/definitions/P'}}}\nproduces: [a/b]\n"
        "paths: {/x: {get: {responses: {200: {$ref: '#/responses/R'}, 404: {description: n}}}}}\n"
    )
    components = tree["components"]
    assert components["schemas"]["P"]["properties"]["q"] == {"$ref": "#/components/schemas/P"}
    assert components["schemas"]["P"]["properties"]["$ref"] == {"type": "string"}
    assert components["responses"]["R"]["content"] == {"a/b": {"schema": {"$ref": "#/components/schemas/P"}}}
    assert tree["paths"]["/x"]["get"]["responses"] == {
        "200": {"$ref": "#/components/responses/R"},
        "404": {"description": "n"},
    }


def test_schemas_speak_the_words_of_3_0():
    schema = {
        "discriminator": "kind",
        "allOf": [{"x-nullable": True}, {}],
        "items": [{"type": "file"}],
        "properties": {"x-nullable": {"type": "string"}, "discriminator": {}},
        "additionalProperties": {"$ref": "#/definitions/A%20b"},
        "example": {"$ref": "#/definitions/kept"},
    }
    found = swagger(definitions={"A b": schema})["components"]["schemas"]["A b"]
    assert found == {
        **schema,
        "discriminator": {"propertyName": "kind"},
        "allOf": [{"x-nullable": True, "nullable": True}, {}],
        "items": [{"type": "string", "format": "binary"}],
        "additionalProperties": {"$ref": "#/components/schemas/A%20b"},
    }


def test_what_does_not_change_is_not_copied():
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert swagger(definitions={"A": schema})["components"]["schemas"]["A"] is schema


def test_a_reference_into_a_place_that_moves_leads_into_the_kept_original():
    tree = swagger(
        "paths: {/a: {get: {responses: {200: {schema: {items: {$ref: '#/definitions/D'}}}}}}}\n"
        "definitions: {D: {type: string}, E: {$ref: "
        "'#/paths/~1a/get/responses/200/schema'}, F: {$ref: '#/paths/~1b'}}\n"
    )
    refs = References(tree, "", None)
    found = refs.resolve("#/components/schemas/E", "").value
    assert refs.resolve(found["items"]["$ref"], "").value == {"type": "string"}
    assert tree["components"]["schemas"]["F"] == {"$ref": "#/paths/~1b"}
    assert ORIGINAL not in swagger()


def test_a_path_item_by_reference_is_filled_in_and_a_foreign_one_is_kept():
    tree = swagger(
        "paths:\n  /a: {get: {parameters: [{name: q, in: query, type: string}]}}\n"
        "  /b: {$ref: '#/paths/~1a', put: {}}\n  /c: {$ref: 'c.yaml'}\n"
        "  /d: {$ref: '#/nope'}\n  /e: 5\n  x-f: {get: 1}\n"
    )
    paths = tree["paths"]
    assert paths["/b"]["get"] == paths["/a"]["get"]
    assert "put" in paths["/b"]
    assert (paths["/c"], paths["/d"], paths["/e"]) == ({"$ref": "c.yaml"}, {"$ref": "#/nope"}, 5)
    assert paths["x-f"] == {"get": 1}


def test_response_headers_and_examples_find_their_3_0_places():
    tree = swagger(
        "paths: {/x: {get: {produces: [a/b], responses: {200: {description: d, schema: {},"
        " headers: {H: {type: integer, description: h}}, examples: {a/b: 5}}}}}}"
    )
    assert tree["paths"]["/x"]["get"]["responses"]["200"] == {
        "description": "d",
        "headers": {"H": {"description": "h", "schema": {"type": "integer"}}},
        "content": {"a/b": {"schema": {}, "example": 5}},
    }


@pytest.mark.parametrize(
    ("flow", "name"),
    [
        ("implicit", "implicit"),
        ("password", "password"),
        ("application", "clientCredentials"),
        ("accessCode", "authorizationCode"),
    ],
)
def test_oauth_flows_have_their_3_0_names(flow, name):
    scheme = {
        "type": "oauth2",
        "flow": flow,
        "tokenUrl": "https://t",
        "scopes": {"s": ""},
        "description": "d",
    }
    found = swagger(securityDefinitions={"o": scheme})["components"]["securitySchemes"]["o"]
    assert found == {
        "type": "oauth2",
        "description": "d",
        "flows": {name: {"tokenUrl": "https://t", "scopes": {"s": ""}}},
    }


def test_basic_is_an_http_scheme_and_api_keys_stay():
    key = {"type": "apiKey", "in": "header", "name": "K"}
    found = swagger(securityDefinitions={"b": {"type": "basic"}, "k": key, "odd": 5, "o": {"type": "oauth2"}})
    assert found["components"]["securitySchemes"] == {
        "b": {"type": "http", "scheme": "basic"},
        "k": key,
        "odd": 5,
        "o": {"type": "oauth2", "flows": {}},
    }


def test_what_belongs_to_no_change_is_kept():
    tree = swagger("security: [{k: []}]\ntags: [{name: t}]\nx-own: 1\nexternalDocs: {url: u}")
    assert {key: tree[key] for key in ("security", "tags", "x-own", "externalDocs")} == {
        "security": [{"k": []}],
        "tags": [{"name": "t"}],
        "x-own": 1,
        "externalDocs": {"url": "u"},
    }


def test_a_schema_ten_thousand_levels_deep_is_left_for_the_translation_to_refuse():
    schema: dict[str, Any] = {}
    for _ in range(10_000):
        schema = {"items": schema}
    assert upgrade({"swagger": "2.0", "definitions": {"A": schema}})["components"]["schemas"]["A"]


KEYS = st.sampled_from(
    [
        *(
            "paths",
            "/x",
            "get",
            "post",
            "parameters",
            "responses",
            "200",
            "schema",
            "in",
            "name",
            "type",
            "items",
        ),
        *(
            "definitions",
            "$ref",
            "consumes",
            "produces",
            "securityDefinitions",
            "flow",
            "headers",
            "examples",
        ),
        *(
            "host",
            "basePath",
            "schemes",
            "collectionFormat",
            "required",
            "discriminator",
            "properties",
            "allOf",
        ),
    ]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(0, 9)
    | st.sampled_from(
        [
            "body",
            "formData",
            "query",
            "array",
            "file",
            "multi",
            "#/parameters/x",
            "#/definitions/a",
            "x.yaml",
            "oauth2",
            "",
        ]
    )
)
GARBAGE = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=30,
)


@given(st.dictionaries(KEYS, GARBAGE, max_size=6))
def test_garbage_neither_crashes_the_upgrade_nor_is_changed_by_it(tree):
    tree["swagger"] = "2.0"
    before = copy.deepcopy(tree)
    json.dumps(upgrade(tree))
    assert tree == before


@pytest.mark.parametrize(
    ("status", "own", "content"),
    [
        ("200", {"produces": ["image/png", "image/*"]}, {"image/png": {}, "image/*": {}}),
        ("204", {"produces": ["image/png"]}, None),
        ("404", {"produces": ["image/png"]}, None),
        ("200", {}, None),
    ],
)
def test_an_answer_without_a_schema_is_of_the_types_that_its_operation_produces(status, own, content) -> None:
    responses = {status: {"description": "x"}}
    tree = {
        "swagger": "2.0",
        "produces": ["text/csv"],
        "paths": {"/a": {"get": {**own, "responses": responses}}},
    }
    upgraded = upgrade(tree)["paths"]["/a"]["get"]["responses"][status]
    assert upgraded.get("content") == content
