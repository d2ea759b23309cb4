"""Arguments that mean harm; ``python hostile_arguments.py NAME`` checks one set of them.

The child process prints the issues as JSON; the tests give it little time and memory.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, Final

Made = tuple[Any, dict[str, Any], Any]
"""Schema of the body, its definitions, and the body."""
MADE: Final[dict[str, Callable[[], Made]]] = {}
_OBJECT: Final = {"type": "object"}


def _hostile(maker: Callable[[], Made]) -> Callable[[], Made]:
    MADE[maker.__name__] = maker
    return maker


@_hostile
def many_different_objects_that_must_be_unique() -> Made:
    return {"uniqueItems": True}, {}, [{"a": n, "b": [n]} for n in range(100_000)]


@_hostile
def many_objects_of_which_two_are_equal() -> Made:
    items = [{"a": n, "b": [1.0]} for n in range(100_000)]
    return {"uniqueItems": True}, {}, [*items, {"b": [1], "a": 99_999}]


@_hostile
def many_items_and_many_alternatives() -> Made:
    branches = [{"properties": {f"k{n}": {"const": n}}, "required": [f"k{n}"]} for n in range(500)]
    return {"items": {"anyOf": branches}}, {}, [{"x": n} for n in range(50_000)]


@_hostile
def alternatives_that_multiply_by_reference() -> Made:
    definitions = {
        f"A{n}": {"anyOf": [{"$ref": f"#/$defs/A{n + 1}"}, {"$ref": f"#/$defs/A{n + 1}"}]} for n in range(40)
    }
    return {"$ref": "#/$defs/A0"}, {**definitions, "A40": {"type": "integer"}}, "x"


@_hostile
def alternatives_that_multiply_by_depth() -> Made:
    node = {"anyOf": [{"properties": {"n": {"$ref": "#/$defs/N"}}, "required": [k]} for k in "nab"]}
    value: Any = {"n": 5}
    for _ in range(50):
        value = {"n": value}
    return {"$ref": "#/$defs/N"}, {"N": {"type": "object", **node}}, value


@_hostile
def many_items_and_a_huge_enum() -> Made:
    return {"items": {"enum": [f"v{n}" for n in range(100_000)]}}, {}, [f"w{n}" for n in range(50_000)]


@_hostile
def everything_is_missing() -> Made:
    return {"items": {"required": [f"n{n}" for n in range(20_000)]}}, {}, [{} for _ in range(2000)]


@_hostile
def every_name_is_unknown() -> Made:
    known = {f"name{n}": {} for n in range(500)}
    return (
        {"properties": known, "additionalProperties": False},
        {},
        {f"nam{n}x": 1 for n in range(50_000)},
    )


@_hostile
def many_names_and_many_patterns() -> Made:
    patterns = {f"^(x+x+)+y{n}$": {"type": "string"} for n in range(200)}
    return (
        {"patternProperties": patterns, "additionalProperties": False},
        {},
        {"x" * 30 + str(n): 1 for n in range(20_000)},
    )


@_hostile
def texts_for_a_catastrophic_pattern() -> Made:
    return {"items": {"pattern": "^(a+)+$"}}, {}, ["a" * 40 + "!" for _ in range(20_000)]


@_hostile
def many_texts_where_objects_are_wanted() -> Made:
    branches = [{"type": "array", "items": _OBJECT}, {"type": "array", "items": {"type": "array"}}]
    return {"anyOf": branches}, {}, ["{}"] * 50_000


@_hostile
def evaluated_members_through_many_ways() -> Made:
    definitions: dict[str, Any] = {
        f"A{n}": {"allOf": [{"$ref": f"#/$defs/A{n + 1}"}] * 2, "properties": {f"p{n}": {}}}
        for n in range(40)
    }
    schema = {"allOf": [{"$ref": "#/$defs/A0"}], "unevaluatedProperties": False}
    return schema, {**definitions, "A40": {}}, {"x": 1}


@_hostile
def objects_ten_thousand_levels_deep() -> Made:
    value: Any = 1
    for _ in range(10_000):
        value = {"a": value}
    return {"$ref": "#/$defs/N"}, {"N": {"properties": {"a": {"$ref": "#/$defs/N"}}}}, value


@_hostile
def lists_ten_thousand_levels_deep() -> Made:
    value: Any = []
    for _ in range(10_000):
        value = [value]
    return {"uniqueItems": True, "items": {"const": value}}, {}, value


def issues(name: str) -> list[dict[str, str]]:
    """Return the issues that a caller would get."""
    from call_support import details, json_body, prepared
    from capdex_engine.errors import InvalidArguments

    schema, definitions, body = MADE[name]()
    try:
        prepared(details(body=json_body(schema), definitions=definitions), body=body)
    except InvalidArguments as error:
        return list(error.details["issues"])
    return []


if __name__ == "__main__":
    sys.stdout.write(json.dumps(issues(sys.argv[1])))
