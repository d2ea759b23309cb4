"""Whatever stands in a document, reading it ends in a catalog and a report."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog_support import catalog_of, document

SEED: dict[str, Any] = document(
    {
        "/x/{id}": {
            "summary": "s",
            "servers": [
                {"url": "https://{h}", "variables": {"h": {"default": "a.test", "enum": ["a.test"]}}}
            ],
            "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
            "post": {
                "operationId": "x",
                "tags": ["t"],
                "summary": "s",
                "description": "d",
                "deprecated": False,
                "security": [{"k": ["s"]}],
                "parameters": [
                    {"$ref": "#/components/parameters/Q"},
                    {
                        "name": "c",
                        "in": "query",
                        "content": {"application/json": {"schema": {"type": "object"}}},
                    },
                ],
                "requestBody": {
                    "required": True,
                    "content": {
                        "multipart/form-data": {
                            "schema": {"$ref": "#/components/schemas/S"},
                            "encoding": {"a": {"contentType": "text/plain"}},
                        }
                    },
                },
                "responses": {"200": {"description": "d", "content": {"application/json": {"schema": {}}}}},
                "callbacks": {"c": {"u": {"post": {}}}},
            },
        }
    },
    webhooks={"w": {"post": {}}},
    security=[{}],
    components={
        "parameters": {"Q": {"name": "q", "in": "query", "style": "form", "explode": True}},
        "schemas": {
            "S": {
                "type": "object",
                "required": ["a"],
                "properties": {
                    "a": {"type": "string", "readOnly": True},
                    "s": {"$ref": "#/components/schemas/S"},
                },
                "allOf": [{"oneOf": [{"enum": [1]}]}],
            }
        },
        "securitySchemes": {
            "k": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "/t", "scopes": {}}}}
        },
    },
)


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [path, *(place for key, child in children for place in places(child, (*path, key)))]


PLACES = [place for place in places(SEED) if place]
ODD = st.sampled_from(
    [
        None,
        True,
        0,
        1.5,
        "",
        "text",
        "#/nowhere",
        [],
        {},
        [None],
        [[]],
        {"$ref": "#/paths"},
        {"$ref": 5},
        {"$ref": "#/components/schemas/S"},
        {"a": None},
        ["x", {}],
        {"": {}},
        "�",
        [{"name": [], "in": {}}],
    ]
)


def replaced(tree: Any, place: tuple[Any, ...], value: Any) -> Any:
    node = tree
    for key in place[:-1]:
        try:
            node = node[key]
        except (LookupError, TypeError):
            return tree
    try:
        node[place[-1]] = copy.deepcopy(value)
    except (LookupError, TypeError):
        return tree
    return tree


@given(st.lists(st.tuples(st.sampled_from(PLACES), ODD), min_size=1, max_size=3))
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_value_anywhere_breaks_the_reading(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    tree = copy.deepcopy(SEED)
    for place, value in changes:
        tree = replaced(tree, place, value)
    catalog = catalog_of(tree)
    for operation in (*catalog.operations, *catalog.kept_out):
        catalog.describe(operation)
        json.dumps(catalog.arguments_schema(operation, with_body=True))
        json.dumps(dict(catalog.details(operation).responses))
        assert operation.executable or operation.reason
    catalog.report.to_json()
