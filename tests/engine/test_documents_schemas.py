"""Schemas of every dialect become valid JSON Schema 2020-12 that means what the author meant."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator as Validator

from capdex_engine.documents import parse_document, refs_in, translate_schema
from capdex_engine.errors import DocumentError


def translate(schema: Any, dialect: Any = "3.0", **more: Any) -> Any:
    """Translate a schema (YAML text or a value); the result has passed the meta-schema."""
    value = parse_document(schema.encode()) if isinstance(schema, str) else schema
    result = translate_schema(value, dialect=dialect, rewrite_ref=lambda ref: f"#/$defs/{ref}", **more)
    Validator.check_schema(result)
    return result


def accepts(schema: Any, value: Any, dialect: Any = "3.0") -> bool:
    return Validator(translate(schema, dialect)).is_valid(value)


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ("{type: string, nullable: true}", ["a", None], [5]),
        ("{type: string, nullable: true, enum: [x]}", ["x", None], ["y"]),
        ("{type: string, nullable: false}", ["a"], [None]),
        ("{nullable: true, enum: [x, null]}", ["x", None], ["y"]),
        ("{nullable: true, allOf: [{type: string}]}", ["a", None], [5]),
        ("{type: object, nullable: true, allOf: [{required: [a]}]}", [{"a": 1}, None], [{}, 5]),
        ("{nullable: true, anyOf: [{type: string}, {type: integer}]}", ["a", 1, None], [[]]),
        ("{nullable: true, oneOf: [{type: string}]}", ["a", None], [5]),
        ("{nullable: true, not: {type: 'null'}}", [None, 1], []),
        ("{nullable: true, type: string, const: a}", ["a", None], ["b"]),
        ("{nullable: true}", [None, 1], []),
        ("{type: string, x-nullable: true}", ["a", None], [5]),
        ("{type: number, minimum: 0, exclusiveMinimum: true}", [0.1], [0, -1]),
        ("{type: number, maximum: 9, exclusiveMaximum: true}", [8], [9]),
        ("{type: number, minimum: 0, exclusiveMinimum: false}", [0], [-1]),
        ("{exclusiveMinimum: true}", [0], []),
        ("{exclusiveMinimum: 3}", [4], [3]),
        ("{type: file}", ["bytes"], [5]),
        ("{type: any}", [1, "a", None], []),
        ("{type: int}", [1, "a"], []),
        ("{type: [string, 'null']}", ["a", None], [5]),
        ("{type: [string, date]}", ["a", 5], []),
        ("{type: array}", [[1, "a"]], ["a"]),
        ("{type: array, items: null}", [[1]], ["a"]),
        ("{items: [{type: string}]}", [["a", 5]], [[5]]),
        ("{required: true, type: string}", ["a"], [5]),
        ("{required: 'true', properties: {a: {}}}", [{}], []),
        ("{required: [a, {}, null, a]}", [{"a": 1}], [{}]),
        ("{required: [1, true, 1.10, 007]}", [{"1": 0, "true": 0, "1.10": 0, "007": 0}], [{"1": 0}]),
        ("{dependentRequired: {a: [1]}}", [{"a": 0, "1": 0}], [{"a": 0}]),
        ("{allOf: {type: string}}", ["a"], [5]),
        ("{allOf: [], anyOf: 5, oneOf: null}", [5], []),
        ("{enum: a}", ["b"], []),
        ("{enum: []}", ["b"], []),
        ("{minLength: -1, maxLength: x, minItems: 1.5, maxItems: true, multipleOf: 0}", ["b", 3], []),
        ("{maxLength: 2.0}", ["ab"], ["abc"]),
        ("{minimum: '5', maximum: null, uniqueItems: 1}", [0, [1, 1]], []),
        ("{pattern: '^[\\p{L}]+$'}", ["é", "1"], []),
        ("{pattern: '(['}", ["x"], []),
        ("{pattern: '^a+$'}", ["aa"], ["b"]),
        ("{properties: {a: null}}", [{"a": 1}], []),
        ("{properties: [a]}", [{"a": 1}], []),
        ("{additionalProperties: 'false'}", [{"a": 1}], []),
        ("{additionalProperties: false, properties: {a: {}}}", [{"a": 1}], [{"b": 1}]),
        ("{additionalProperties: {type: integer}}", [{"a": 1}], [{"a": "x"}]),
        ("{additionalProperties: false, patternProperties: {'^\\p{L}$': {}}}", [{"é": 1}], []),
        (
            "{additionalProperties: false, patternProperties: {'^a': {type: integer}}}",
            [{"a": 1}],
            [{"b": 1}, {"a": "x"}],
        ),
        ("{not: {pattern: '\\p{L}'}}", ["x"], []),
        ("{not: {type: string, pattern: '\\p{L}'}}", ["x"], []),
        ("{not: {type: string}}", [5], ["x"]),
        ("{not: null}", [5], []),
        ("{not: {oneOf: [{type: string}, {minLength: 2}]}}", [5, "abc", "a"], []),
        ("{if: {pattern: '\\p{L}'}, then: {minLength: 5}, else: {minLength: 5}}", ["x"], []),
        ("{if: {type: string}, then: {minLength: 2}, else: {minimum: 5}}", ["xy", 5], ["x", 4]),
        ("{oneOf: [{type: integer}, {type: number}]}", [1.5, 1], ["x"]),
        ("{oneOf: [{required: [a]}, {required: [b]}]}", [{"a": 1}, {"b": 1}], [{"a": 1, "b": 1}, {}]),
        ("{oneOf: [{type: string}], anyOf: [{minLength: 2}]}", ["ab"], ["a", [1]]),
        ("{type: string, enum: [1.10, 2, true, 01]}", ["1.10", "2", "true", "01"], ["1.1", "1", 2]),
        ("{type: integer, enum: ['1', 2]}", [1, 2], ["1", 3]),
        ("{type: boolean, enum: ['true']}", [True], [False, "true"]),
        ("{type: array, items: {type: string}, enum: [a, b]}", [["a"]], ["a"]),
        ("{type: integer, enum: [low, high]}", [5], ["low"]),
        ("{type: string, const: 5}", ["5"], [5]),
        ("{enum: [1, '1', null]}", [1, "1", None], [2]),
        (
            "{xml: {}, externalDocs: {}, discriminator: {propertyName: a}, example: 5, x-a: 1, odd: []}",
            [1, "a"],
            [],
        ),
    ],
)
def test_a_schema_accepts_what_its_author_meant(schema, good, bad):
    for value in good:
        assert accepts(schema, value), value
    for value in bad:
        assert not accepts(schema, value), value


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ("{type: [string, 'null'], nullable: true}", ["a", None], [5]),
        ("{type: string, nullable: true}", ["a"], [None]),
        ("{const: 5}", [5], [6]),
        ("{prefixItems: [{type: string}], items: false}", [["a"]], [["a", 1]]),
        ("{dependentRequired: {a: [b, b], c: 5}}", [{"a": 1, "b": 1}, {"c": 1}], [{"a": 1}]),
        ("{dependentSchemas: {a: {required: [b]}}}", [{"a": 1, "b": 1}], [{"a": 1}]),
        ("{propertyNames: {maxLength: 1}}", [{"a": 1}], [{"ab": 1}]),
        ("{contains: {type: string}, minContains: 2}", [["a", "b"]], [["a"]]),
        ("{unevaluatedProperties: false, allOf: [{properties: {a: true}}]}", [{"a": 1}], [{"b": 1}]),
        ("{$ref: D, minLength: 2, $defs: {D: {type: string}}}", ["ab"], ["a", 5]),
        ("{$dynamicRef: D, $defs: {D: {type: string}}}", ["ab"], [5]),
        ("{properties: {a: false}}", [{}], [{"a": 1}]),
        ("{$id: 'https://x/y', $schema: 'https://z', $anchor: a, type: string}", ["a"], [5]),
    ],
)
def test_3_1_is_read_as_json_schema(schema, good, bad):
    for value in good:
        assert accepts(schema, value, "3.1"), value
    for value in bad:
        assert not accepts(schema, value, "3.1"), value


@pytest.mark.parametrize("schema", [True, False])
def test_boolean_schemas_stay(schema):
    assert translate(schema, "3.1") is schema


@pytest.mark.parametrize("schema", [None, [], "text", 5])
def test_what_is_no_schema_accepts_everything(schema):
    assert translate_schema(schema, dialect="3.1", rewrite_ref=str) == {}


def test_in_3_0_constraints_beside_a_reference_mean_nothing_but_texts_and_nullable_do():
    assert translate("{$ref: A, minLength: 5, description: d, title: 5, readOnly: true}") == {
        "$ref": "#/$defs/A",
        "description": "d",
        "readOnly": True,
    }
    assert translate("{$ref: A, nullable: true, description: d}") == {
        "description": "d",
        "anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}],
    }


def test_a_reference_that_is_no_text_is_left_out():
    assert translate({"$ref": 5, "type": "string"}) == {"type": "string"}


def test_properties_named_like_keywords_are_names():
    schema = {
        "type": "object",
        "required": ["$ref", "type"],
        "properties": {
            "$ref": {"type": "string"},
            "type": {"type": "integer"},
            "properties": {"type": "array"},
            "default": {"type": "boolean"},
            "nullable": {"type": "string"},
            "required": {"type": "string"},
            "enum": {"type": "string"},
        },
    }
    assert translate(schema) == schema
    assert refs_in(schema) == set()


def test_values_are_data_and_never_walked():
    data = {"$ref": "#/x", "nullable": True, "type": "any"}
    schema = {"default": data, "enum": [data], "examples": [data], "const": data}
    result = translate(schema, "3.1")
    assert result == schema
    assert refs_in({**schema, "example": data, "x-a": data, "properties": 5}) == set()


def test_texts_and_hints_are_kept():
    schema = {
        "title": "t",
        "description": "d",
        "format": "date",
        "default": None,
        "examples": [1],
        "deprecated": True,
        "readOnly": False,
        "writeOnly": True,
        "contentEncoding": "base64",
        "contentMediaType": "image/png",
    }
    assert translate(schema) == schema
    wrong = dict.fromkeys(schema, 5)
    assert translate(wrong) == {"default": 5}


def test_references_are_found_and_rewritten_at_every_schema_position():
    positions = {
        **{
            key: {"$ref": key}
            for key in ("additionalProperties", "not", "items", "contains", "propertyNames")
        },
        **{key: [{"$ref": key}] for key in ("allOf", "anyOf", "prefixItems")},
        **{
            key: {"n": {"$ref": key}}
            for key in ("properties", "$defs", "dependentSchemas", "patternProperties")
        },
        "if": {"$ref": "if"},
        "then": {"$ref": "then"},
        "$dynamicRef": "dynamic",
    }
    expected = (positions.keys() - {"$dynamicRef"}) | {"dynamic"}
    assert refs_in(positions) == expected
    assert refs_in(translate(positions, "3.1")) == {f"#/$defs/{name}" for name in expected}


def test_an_error_of_the_rewriter_comes_through():
    def refuse(ref: str) -> str:
        raise DocumentError("dangling", pointer=ref)

    with pytest.raises(DocumentError):
        translate_schema({"items": {"$ref": "x"}}, dialect="3.0", rewrite_ref=refuse)


def is_read_only(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("readOnly") is True


READ_ONLY = "{readOnly: true}"


@pytest.mark.parametrize(
    "schema",
    [
        f"{{required: [id, n], properties: {{id: {READ_ONLY}, n: {{}}}}}}",
        f"{{allOf: [{{properties: {{id: {READ_ONLY}}}}}, {{required: [id, n]}}]}}",
        f"{{properties: {{id: {READ_ONLY}}}, allOf: [{{allOf: [{{required: [id, n]}}]}}]}}",
        f"{{required: [id, n], allOf: [{{allOf: [{{properties: {{id: {READ_ONLY}}}}}]}}]}}",
        f"{{anyOf: [{{required: [id, n]}}], properties: {{id: {READ_ONLY}}}}}",
        "{required: [id, n], allOf: [{$ref: Base}]}",
    ],
)
def test_read_only_properties_are_not_required(schema):
    result = translate(schema, is_read_only=is_read_only, read_only_names=lambda _: {"id"})
    result.setdefault("$defs", {})["Base"] = {}
    assert Validator(result).is_valid({"n": 1})
    assert not Validator(result).is_valid({"id": 1})


def test_in_3_1_a_reference_beside_required_counts_too():
    schema = {"$ref": "Base", "required": ["id", "n"]}
    result = translate(schema, "3.1", is_read_only=is_read_only, read_only_names=lambda _: {"id"})
    assert result["required"] == ["n"]


def test_for_responses_required_stays_as_it_is():
    assert translate(f"{{required: [id], properties: {{id: {READ_ONLY}}}}}")["required"] == ["id"]


def test_a_property_inside_a_read_only_one_of_the_same_name_is_required():
    schema = f"{{properties: {{id: {READ_ONLY}, sub: {{required: [id], properties: {{id: {{}}}}}}}}}}"
    assert translate(schema, is_read_only=is_read_only)["properties"]["sub"]["required"] == ["id"]


def nested(levels: int, wrap: Any) -> Any:
    schema: Any = {"type": "string"}
    for _ in range(levels):
        schema = wrap(schema)
    return schema


WRAPS = {
    "items": lambda inner: {"items": inner},
    "properties": lambda inner: {"properties": {"a": inner}},
    "allOf": lambda inner: {"allOf": [inner]},
    "nullable": lambda inner: {"nullable": True, "oneOf": [{}], "anyOf": [inner]},
}


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
@pytest.mark.parametrize("levels", [60, 10_000])
def test_a_schema_too_deep_is_a_document_error(levels, wrap):
    schema = nested(levels, wrap)
    with pytest.raises(DocumentError):
        translate_schema(schema, dialect="3.0", rewrite_ref=str)
    assert refs_in(schema) == set()


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
def test_whatever_depth_is_translated_jsonschema_can_check(wrap):
    for levels in range(10, 60, 2):
        try:
            translate(nested(levels, wrap))
        except DocumentError:
            break


def test_data_of_any_depth_is_left_alone():
    data = nested(10_000, lambda inner: [inner])
    result = translate_schema({"default": data}, dialect="3.0", rewrite_ref=str)
    assert isinstance(result, dict)
    assert result["default"] is data


KEYWORDS = st.sampled_from(
    [
        *(
            "type",
            "nullable",
            "enum",
            "const",
            "required",
            "properties",
            "items",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
        ),
        *(
            "additionalProperties",
            "patternProperties",
            "minLength",
            "maxLength",
            "minimum",
            "exclusiveMinimum",
        ),
        *(
            "multipleOf",
            "pattern",
            "format",
            "default",
            "examples",
            "$ref",
            "$id",
            "$defs",
            "definitions",
            "if",
        ),
        *(
            "then",
            "else",
            "prefixItems",
            "contains",
            "dependentRequired",
            "uniqueItems",
            "title",
            "deprecated",
        ),
        *("$schema", "$anchor", "$vocabulary", "$comment", "unevaluatedItems", "contentSchema", "x-nullable"),
    ]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.just(10**400)
    | st.floats()
    | st.sampled_from(["string", "integer", "null", "any", "file", "([", "^a", "a", "\\p{L}", "#/x"])
)
GARBAGE = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(KEYWORDS | st.sampled_from(["a", "(["]), inner, max_size=4)
    ),
    max_leaves=25,
)


@given(GARBAGE, st.sampled_from(["3.0", "3.1"]))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_comes_in_a_valid_schema_comes_out(schema, dialect):
    before = copy.deepcopy(schema)
    result = translate_schema(schema, dialect=dialect, rewrite_ref=lambda _: "#", is_read_only=is_read_only)
    Validator.check_schema(result)
    assert repr(schema) == repr(before)


INSTANCES = st.recursive(
    st.sampled_from([None, True, 0, 1, 2, 1.5, "", "a", "ab"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=5,
)
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null"])


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, min_size=1, max_size=3)
    names = st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
            "enum": st.lists(INSTANCES, min_size=1, max_size=3),
            "const": INSTANCES,
            "required": st.lists(st.sampled_from("ab"), unique=True),
            "properties": names,
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$"]), inner, max_size=2),
            "additionalProperties": inner,
            "items": inner,
            "allOf": some,
            "anyOf": some,
            "oneOf": some,
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
            "minimum": st.integers(0, 2),
            "exclusiveMaximum": st.integers(0, 2),
            "maxLength": st.integers(0, 2),
            "minItems": st.integers(0, 2),
        },
    )


SCHEMAS = st.recursive(
    st.booleans() | st.fixed_dictionaries({}, optional={"type": TYPES, "minimum": st.integers(0, 2)}),
    _schemas,
    max_leaves=6,
)


@given(SCHEMAS, st.lists(INSTANCES, min_size=1, max_size=5), st.sampled_from(["3.0", "3.1"]))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_the_letter_of_a_schema_accepts_its_translation_accepts_too(schema, values, dialect):
    translated = Validator(translate_schema(schema, dialect=dialect, rewrite_ref=str))
    for value in values:
        if Validator(schema).is_valid(value):
            assert translated.is_valid(value), json.dumps([schema, value])
