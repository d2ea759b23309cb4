"""What changed between two catalogs, in a caller's words."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capdex_engine.catalog.difference import MAX_CHANGES, Difference, compare_catalogs
from capdex_engine.catalog.schema_changes import Place, schema_changes
from catalog_support import body_of, catalog_of, document, operation_with


def difference(old: Any, new: Any, **settings_: Any) -> Difference:
    return compare_catalogs(catalog_of(old), catalog_of(new, **settings_))


def told(old: Any, new: Any, **settings_: Any) -> list[tuple[str, bool]]:
    """What is told of the one operation that changed."""
    found = difference(old, new, **settings_)
    assert not (found.added or found.removed), found
    (changed,) = found.changed
    return [(change.text, change.breaking) for change in changed.changes]


def query(schema: Any = None, **fields: Any) -> dict[str, Any]:
    return {"name": "q", "in": "query", **({} if schema is None else {"schema": schema}), **fields}


def json_body(schema: Any, **fields: Any) -> dict[str, Any]:
    return body_of({"application/json": {"schema": schema}}, **fields)


GET = {"operationId": "getPet", "summary": "Get"}
PET = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}


def test_equal_catalogs_have_no_difference() -> None:
    tree = document({"/a": {"get": GET}})
    found = difference(tree, copy.deepcopy(tree))
    assert found.equal
    assert found.to_json() == {"equal": True, "breaking": 0, "added": [], "removed": [], "changed": []}


def test_operations_come_and_go() -> None:
    found = difference(
        document({"/a": {"get": {"operationId": "a"}}}), document({"/b": {"put": {"operationId": "b"}}})
    )
    assert [op.name for op in found.added] == ["b"]
    assert [op.name for op in found.removed] == ["a"]
    assert found.breaking == 1
    assert not found.equal


def test_the_same_place_under_another_name_is_renamed() -> None:
    old, new = (document({"/a": {"get": {"operationId": name}}}) for name in ("before", "after"))
    assert told(old, new) == [("is named after instead of before", True)]


def test_the_same_name_at_another_place_is_moved() -> None:
    old, new = document({"/a": {"get": GET}}), document({"/v2/a": {"post": GET}})
    assert told(old, new) == [("is POST /v2/a instead of GET /a", True)]


def test_another_name_for_a_path_variable_is_no_new_operation() -> None:
    old = document({"/pets/{id}": {"get": {"parameters": [PET]}}})
    new = document({"/pets/{pet}": {"get": {"parameters": [{**PET, "name": "pet"}]}}})
    texts = [text for text, _ in told(old, new)]
    assert "path parameter id is gone" in texts and "path parameter pet is new, and required" in texts


def test_two_operations_that_swap_names_are_both_renamed() -> None:
    def tree(first: str, second: str) -> Any:
        return document({"/a": {"get": {"operationId": first}}, "/b": {"get": {"operationId": second}}})

    found = difference(tree("x", "y"), tree("y", "x"))
    assert [[change.kind for change in each.changes] for each in found.changed] == [["renamed"]] * 2


def test_documents_of_one_folder_are_compared_each_with_its_own() -> None:
    one, other = document({"/a": {"get": {"summary": "One"}}}), document({"/a": {"get": {"summary": "Two"}}})
    assert compare_catalogs(catalog_of(one, other), catalog_of(one, other)).equal
    found = compare_catalogs(catalog_of(one, other), catalog_of(one, document({"/a": {"get": {}}})))
    assert [(each.new.source, len(each.changes)) for each in found.changed] == [("api2", 1)]


@pytest.mark.parametrize(
    ("old", "new", "text", "breaking"),
    [
        ([], [query({})], "query parameter q is new", False),
        ([], [query({}, required=True)], "query parameter q is new, and required", True),
        ([query({})], [], "query parameter q is gone", True),
        ([query({})], [query({}, required=True)], "query parameter q became required", True),
        ([query({}, required=True)], [query({})], "query parameter q is no longer required", False),
        ([query({})], [query({"type": "string"})], "query parameter q is string; it was of any type", True),
        (
            [query({"type": "integer"})],
            [query({"type": "number"})],
            "query parameter q is number; it was integer",
            False,
        ),
        (
            [query({"type": "number"})],
            [query({"type": "integer"})],
            "query parameter q is integer; it was number",
            True,
        ),
        (
            [query({"type": "string"})],
            [query({"type": ["string", "null"]})],
            "query parameter q is string or null; it was string",
            False,
        ),
        (
            [query({"enum": ["a", "b"]})],
            [query({"enum": ["b"]})],
            'query parameter q no longer takes "a"',
            True,
        ),
        ([query({"enum": ["a"]})], [query({"enum": ["a", "b"]})], 'query parameter q takes "b" too', False),
        ([query({})], [query({"enum": ["a"]})], 'query parameter q must be one of "a" now', True),
        (
            [query({"enum": ["a"]})],
            [query({})],
            "query parameter q takes other values than the listed ones now",
            False,
        ),
        (
            [query({"maximum": 5})],
            [query({"maximum": 9})],
            "query parameter q has a maximum of 9 instead of 5",
            False,
        ),
        (
            [query({"maximum": 9})],
            [query({"maximum": 5})],
            "query parameter q has a maximum of 5 instead of 9",
            True,
        ),
        (
            [query({"minLength": 1})],
            [query({"minLength": 2})],
            "query parameter q has a minimum length of 2 instead of 1",
            True,
        ),
        ([query({})], [query({"minimum": 1})], "query parameter q has a minimum of 1 now", True),
        (
            [query({"maxItems": 3})],
            [query({})],
            "query parameter q has no maximum number of items any more (it was 3)",
            False,
        ),
        ([query({})], [query({"pattern": "a+"})], 'query parameter q has a pattern now: "a+"', True),
        (
            [query({"format": "date"})],
            [query({"format": "date-time"})],
            'query parameter q has the format "date-time" instead of "date"',
            True,
        ),
        ([query({"uniqueItems": True})], [query({})], "query parameter q changed in uniqueItems", False),
        (
            [query({"items": {"type": "string"}})],
            [query({"items": {"type": "integer"}})],
            "query parameter q property [] is integer; it was string",
            True,
        ),
        (
            [query({"type": "array"})],
            [query({"type": "array"}, explode=False)],
            "query parameter q is written in another way into the request",
            False,
        ),
    ],
)
def test_a_parameter_changes(old: list[Any], new: list[Any], text: str, breaking: bool) -> None:
    assert told(operation_with(*old), operation_with(*new)) == [(text, breaking)]


NAME = {"name": {"type": "string"}}


@pytest.mark.parametrize(
    ("old", "new", "text", "breaking"),
    [
        ({"properties": NAME}, {"properties": {**NAME, "age": {}}}, "body property age is new", False),
        (
            {"properties": NAME},
            {"properties": {**NAME, "age": {}}, "required": ["age"]},
            "body property age is new, and required",
            True,
        ),
        ({"properties": NAME}, {}, "body property name is gone", True),
        (
            {"properties": NAME},
            {"properties": NAME, "required": ["name"]},
            "body property name became required",
            True,
        ),
        (
            {"properties": NAME, "required": ["name"]},
            {"properties": NAME},
            "body property name is no longer required",
            False,
        ),
        (
            {"properties": {"a": {"items": {"properties": {"b": {"type": "string"}}}}}},
            {"properties": {"a": {"items": {"properties": {"b": {"type": "boolean"}}}}}},
            "body property a[].b is boolean; it was string",
            True,
        ),
        ({}, {"additionalProperties": False}, "body takes no other properties now", True),
        ({"additionalProperties": False}, {}, "body takes other properties too", False),
        (
            {"additionalProperties": {"type": "string"}},
            {"additionalProperties": {"type": "integer"}},
            "body property {} is integer; it was string",
            True,
        ),
        (
            {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            {"anyOf": [{"type": "string"}]},
            "body lost 1 alternative",
            True,
        ),
        (
            {"anyOf": [{"type": "string"}]},
            {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "body has 1 alternative more",
            False,
        ),
        (
            {"anyOf": [{"type": "string"}, {"properties": NAME}]},
            {"anyOf": [{"type": "string"}, {"properties": NAME, "required": ["name"]}]},
            "body property name became required",
            True,
        ),
    ],
)
def test_a_body_changes(old: Any, new: Any, text: str, breaking: bool) -> None:
    assert told(json_body(old), json_body(new)) == [(text, breaking)]


def test_how_a_schema_is_put_together_is_no_change() -> None:
    parts = {"A": {"type": "object", "properties": NAME}, "B": {"required": ["name"]}}
    old = json_body({"type": "object", "properties": NAME, "required": ["name"]})
    new = json_body(
        {"allOf": [{"$ref": "#/components/schemas/A"}, {"$ref": "#/components/schemas/B"}]},
        components={"schemas": parts},
    )
    assert [text for text, _ in told(old, new)] == ["arguments changed in a part of their schemas"]
    assert (
        schema_changes(
            {"type": "object", "properties": NAME, "required": ["name"]},
            {"allOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]},
            Place("body", "body"),
            old_definitions={},
            new_definitions=parts,
        )
        == []
    )


def cyclic(**leaf: Any) -> dict[str, Any]:
    node = {"properties": {"child": {"$ref": "#/components/schemas/Node"}, "value": leaf}}
    return json_body({"$ref": "#/components/schemas/Node"}, components={"schemas": {"Node": node}})


def test_a_cycle_is_walked_once() -> None:
    assert told(cyclic(type="string"), cyclic(type="integer")) == [
        ("body property value is integer; it was string", True)
    ]


def test_bodies_and_media_types_come_and_go() -> None:
    none = document({"/x": {"post": {"operationId": "x"}}})
    some, must = json_body({}), json_body({}, body={"required": True})
    assert told(none, some) == [("body is new", False)]
    assert told(none, must) == [("body is new, and required", True)]
    assert told(some, none) == [("body is gone", True)]
    assert told(some, must) == [("body became required", True)]
    assert told(must, some) == [("body is no longer required", False)]
    both = body_of({"application/json": {"schema": {}}, "text/plain": {"schema": {"type": "string"}}})
    assert told(some, both) == [("body may be text/plain too", False)]
    assert told(both, some) == [("body can no longer be text/plain", True)]


def test_what_stands_in_every_media_type_is_told_once() -> None:
    old, new = (
        body_of(
            {kind: {"schema": schema} for kind in ("application/json", "application/x-www-form-urlencoded")}
        )
        for schema in ({"type": "object"}, {"type": "object", "properties": NAME})
    )
    assert told(old, new) == [("body property name is new", False)]


SCHEMES = {
    "components": {
        "securitySchemes": {
            "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
            "login": {"type": "http", "scheme": "basic"},
        }
    }
}
HELD = {"credentials": frozenset({"key", "login"})}


@pytest.mark.parametrize(
    ("old", "new", "breaking"),
    [
        ([], [{"key": []}], True),
        ([{"key": []}], [], False),
        ([{"key": []}], [{"key": []}, {"login": []}], False),
        ([{"key": []}, {"login": []}], [{"key": []}], True),
        ([{"key": []}], [{"key": [], "login": []}], True),
        ([{"key": []}], [{}, {"login": []}], False),
        ([{}, {"key": []}], [{"key": []}], True),
    ],
)
def test_security_breaks_when_what_sufficed_does_no_more(old: Any, new: Any, breaking: bool) -> None:
    before = catalog_of(document({"/x": {"get": {"security": old}}}, **SCHEMES), **HELD)
    after = catalog_of(document({"/x": {"get": {"security": new}}}, **SCHEMES), **HELD)
    (changed,) = compare_catalogs(before, after).changed
    (change,) = changed.changes
    assert (change.kind, change.breaking) == ("security", breaking)


def test_a_new_server_is_told_and_breaks_no_call() -> None:
    old = document({"/x": {"get": {}}})
    assert told(old, {**old, "servers": [{"url": "https://new.test"}]}) == [
        ("is called at https://new.test instead of https://api.test", False)
    ]


def test_availability_is_told_with_its_reason() -> None:
    old = document({"/x": {"get": {}}})
    bad = document({"/x": {"get": {"parameters": [{"$ref": "#/nowhere"}]}}})
    for new in ({**old, "servers": []}, bad):
        ((text, breaking),) = told(old, new)
        assert text.startswith("can no longer be called: ") and breaking
        assert told(new, old) == [("can be called now", False)]


def test_texts_are_told_and_break_nothing() -> None:
    old = document({"/x": {"get": {"operationId": "x", "summary": "A", "description": "B", "tags": ["t"]}}})
    new = document(
        {"/x": {"get": {"operationId": "x", "summary": "C", "description": "D", "deprecated": True}}}
    )
    found = told(old, new)
    assert len(found) == 4
    assert not any(breaking for _, breaking in found)


def test_what_the_settings_leave_out_does_not_exist() -> None:
    tree = document({"/a": {"get": {"operationId": "a"}}, "/b": {"get": {"operationId": "b"}}})
    found = compare_catalogs(catalog_of(tree), catalog_of(tree, exclude=("b",)))
    assert [op.name for op in found.removed] == ["b"]
    assert compare_catalogs(catalog_of(tree, exclude=("b",)), catalog_of(tree, exclude=("b",))).equal


def test_very_many_changes_are_counted_beyond_a_limit() -> None:
    many = {f"p{number}": {} for number in range(MAX_CHANGES + 50)}
    found = told(json_body({}), json_body({"properties": many, "required": ["p149"]}))
    assert len(found) == MAX_CHANGES + 1
    assert found[0] == ("body property p149 is new, and required", True)
    assert found[-1] == ("50 more changes", False)


_SCHEMAS = st.recursive(
    st.sampled_from(
        [{}, {"type": "string"}, {"type": "integer"}, {"enum": ["a"]}, {"type": "string", "maxLength": 3}]
    ),
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from("ab"), inner).map(lambda found: {"properties": found}),
        inner.map(lambda found: {"type": "array", "items": found}),
        st.lists(inner, min_size=1, max_size=2).map(lambda found: {"anyOf": found}),
        st.lists(inner, min_size=1, max_size=2).map(lambda found: {"allOf": found}),
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(_SCHEMAS, _SCHEMAS)
def test_a_difference_is_told_exactly_when_a_digest_differs(old: Any, new: Any) -> None:
    before, after = catalog_of(json_body(old)), catalog_of(json_body(new))
    same = before.operations[0].schema_digest == after.operations[0].schema_digest
    assert compare_catalogs(before, after).equal is same
    assert compare_catalogs(after, before).equal is same
    assert compare_catalogs(before, before).equal


def test_an_operation_that_is_kept_out_is_neither_added_nor_removed() -> None:
    broken = {"operationId": "bad", "parameters": [{"name": "a", "in": "query", "schema": {"$ref": "#/no"}}]}
    plain = document({"/pets": {"get": GET}})
    both = document({"/pets": {"get": GET}, "/bad": {"get": broken}})
    assert len(catalog_of(both).kept_out) == 1
    assert difference(plain, both).equal and difference(both, plain).equal
