"""Digests: what changes them, and what does not."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capdex_engine.catalog.digest import canonical, components, reach_digests, skeleton
from catalog_support import body_of, catalog_of, document, only

PETS: dict[str, Any] = document(
    {
        "/pets/{id}": {
            "put": {
                "operationId": "putPet",
                "summary": "Replace a pet",
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}},
                    {"name": "dry", "in": "query", "description": "Try only", "schema": {"type": "boolean"}},
                ],
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}},
                },
            }
        }
    },
    components={
        "schemas": {
            "Pet": {
                "type": "object",
                "title": "A pet",
                "required": ["name", "kind"],
                "properties": {
                    "name": {"type": "string", "description": "What it is called"},
                    "kind": {"enum": ["cat", "dog"]},
                    "description": {"type": "string"},
                    "owner": {"$ref": "#/components/schemas/Owner"},
                },
            },
            "Owner": {
                "type": "object",
                "properties": {
                    "age": {"type": "integer"},
                    "pets": {"type": "array", "items": {"$ref": "#/components/schemas/Pet"}},
                },
            },
        }
    },
)

Change = Callable[[dict[str, Any]], Any]


def operation(tree: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = tree["paths"]["/pets/{id}"]["put"]
    return found


def schema(tree: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = tree["components"]["schemas"][name]
    return found


def digest_after(change: Change) -> str:
    tree = copy.deepcopy(PETS)
    change(tree)
    return only(catalog_of(tree)).schema_digest


UNCHANGED = digest_after(lambda tree: None)

TEXT_EDITS: list[Change] = [
    lambda tree: operation(tree).update(summary="Other", description="Other", tags=["x"], deprecated=True),
    lambda tree: operation(tree)["parameters"][1].update(description="Other", example=True),
    lambda tree: operation(tree)["parameters"].reverse(),
    lambda tree: schema(tree, "Pet").update(title="Other", description="x", examples=[{}], externalDocs={}),
    lambda tree: schema(tree, "Pet")["required"].reverse(),
    lambda tree: schema(tree, "Pet")["properties"]["kind"]["enum"].reverse(),
    lambda tree: schema(tree, "Pet")["properties"]["name"].update(description="Other", deprecated=True),
    lambda tree: schema(tree, "Owner").update({"description": "x", "x-internal": 1, "$comment": "y"}),
    lambda tree: operation(tree).update(operationId="another"),
    lambda tree: operation(tree).update(responses={"200": {"description": "x"}}),
]
REAL_CHANGES: list[Change] = [
    lambda tree: operation(tree)["parameters"][1].update(required=True),
    lambda tree: operation(tree)["parameters"][1].update(name="dryRun"),
    lambda tree: operation(tree)["parameters"][1].update(explode=False),
    lambda tree: operation(tree)["parameters"][1].update(allowReserved=True),
    lambda tree: operation(tree)["parameters"][1].update(schema={"type": "integer"}),
    lambda tree: operation(tree)["parameters"].pop(),
    lambda tree: operation(tree)["requestBody"].update(required=False),
    lambda tree: operation(tree)["requestBody"]["content"].update({"text/plain": {}}),
    lambda tree: schema(tree, "Pet")["required"].pop(),
    lambda tree: schema(tree, "Pet")["properties"].pop("description"),
    lambda tree: schema(tree, "Pet")["properties"]["description"].update(maxLength=3),
    lambda tree: schema(tree, "Owner")["properties"]["age"].update(minimum=0),
    lambda tree: tree["paths"].update({"/pets/{id}/": tree["paths"].pop("/pets/{id}")}),
]


@pytest.mark.parametrize("edit", TEXT_EDITS)
def test_text_edits_and_order_do_not_change_the_digest(edit: Change) -> None:
    assert digest_after(edit) == UNCHANGED


@pytest.mark.parametrize("change", REAL_CHANGES)
def test_what_a_caller_depends_on_changes_the_digest(change: Change) -> None:
    assert digest_after(change) != UNCHANGED


def test_a_digest_is_marked_with_its_algorithm() -> None:
    kind, _, value = UNCHANGED.partition(":")
    assert kind == "sha256"
    assert len(bytes.fromhex(value)) == 32


def test_the_method_is_part_of_the_digest() -> None:
    tree = document({"/a": {"get": {}, "delete": {}}})
    digests = {operation.schema_digest for operation in catalog_of(tree).operations}
    assert len(digests) == 2


def test_the_order_of_paths_and_components_does_not_matter() -> None:
    tree = copy.deepcopy(PETS)
    tree["paths"] = {"/other": {"get": {}}, **tree["paths"]}
    tree["components"]["schemas"] = dict(reversed(list(tree["components"]["schemas"].items())))
    found = catalog_of(tree).get("putPet")
    assert found is not None and found.schema_digest == UNCHANGED


def test_a_property_named_like_a_descriptive_keyword_stays() -> None:
    schema = {"properties": {"description": {"type": "string", "description": "gone"}}, "title": "gone"}
    assert skeleton(schema, str) == {"properties": {"description": {"type": "string"}}}


def test_a_default_stays() -> None:
    assert skeleton({"default": 3, "description": "x"}, str) == {"default": 3}


@given(st.dictionaries(st.text(max_size=3), st.integers() | st.lists(st.text(max_size=2)), max_size=5))
def test_canonical_json_does_not_depend_on_the_order_of_keys(value: dict[str, Any]) -> None:
    assert canonical(dict(reversed(list(value.items())))) == canonical(value)
    assert json.loads(canonical(value)) == value


nodes = st.sampled_from("abcdef")
graphs = st.dictionaries(nodes, st.lists(nodes, max_size=3).map(tuple), max_size=6)


def reached_from(start: str, edges: dict[str, tuple[str, ...]]) -> set[str]:
    found, pending = {start}, [start]
    while pending:
        new = set(edges.get(pending.pop(), ())) - found
        found |= new
        pending += new
    return found


@given(graphs, nodes, nodes)
def test_a_digest_changes_exactly_with_what_is_reached(
    edges: dict[str, tuple[str, ...]], start: str, changed: str
) -> None:
    own = {node: node for node in "abcdef"}
    before = reach_digests(own, edges)
    after = reach_digests({**own, changed: "changed"}, edges)
    assert (before[start] != after[start]) == (changed in reached_from(start, edges))


@given(graphs)
def test_connected_sets_partition_the_nodes_targets_first(edges: dict[str, tuple[str, ...]]) -> None:
    found = components(edges, "abcdef")
    assert sorted(node for members in found for node in members) == list("abcdef")
    place = {node: index for index, members in enumerate(found) for node in members}
    assert all(place[target] <= place[node] for node, targets in edges.items() for target in targets)


def test_a_chain_longer_than_the_stack_has_digests() -> None:
    edges = {str(index): [str(index + 1)] for index in range(20_000)}
    own = {str(index): "x" for index in range(20_001)}
    assert len(reach_digests(own, edges)) == 20_001


def test_a_large_cycle_has_digests_that_cover_all_of_it() -> None:
    edges = {str(index): [str((index + 1) % 1500)] for index in range(1500)}
    own = {str(index): "x" for index in range(1500)}
    before = reach_digests(own, edges)
    after = reach_digests({**own, "1000": "y"}, edges)
    assert not set(before.values()) & set(after.values())


@given(graphs, st.permutations("abcdef"), st.lists(st.sampled_from("xy"), min_size=6, max_size=6))
def test_the_names_of_nodes_change_no_digest(
    edges: dict[str, tuple[str, ...]], order: list[str], contents: list[str]
) -> None:
    renamed = dict(zip("abcdef", order, strict=True))
    own = dict(zip("abcdef", contents, strict=True))
    before = reach_digests(own, edges)
    after = reach_digests(
        {renamed[node]: value for node, value in own.items()},
        {renamed[node]: tuple(renamed[target] for target in targets) for node, targets in edges.items()},
    )
    assert {renamed[node]: value for node, value in before.items()} == after


@st.composite
def schema_graphs(draw: st.DrawFn) -> dict[str, dict[str, Any]]:
    """Components ``a`` to ``e`` that refer to each other at many places."""
    found: dict[str, dict[str, Any]] = {}
    for name in "abcde":
        one, two = ({"$ref": f"#/components/schemas/{draw(st.sampled_from('abcde'))}"} for _ in "12")
        found[name] = draw(
            st.sampled_from(
                [
                    {"type": "string"},
                    {"type": "object", "properties": {"p": one, "q": {"type": "array", "items": two}}},
                    {"anyOf": [one, {"type": "null"}, two]},
                    {"type": "object", "additionalProperties": one},
                ]
            )
        )
    return found


def graph_digest(schemas: dict[str, Any], start: str) -> str:
    tree = body_of({"application/json": {"schema": {"$ref": f"#/components/schemas/{start}"}}})
    return only(catalog_of({**tree, "components": {"schemas": schemas}})).schema_digest


@settings(max_examples=40, deadline=None)
@given(schema_graphs(), st.permutations(["zz", "b", "Other", "a", "M"]))
def test_renaming_components_changes_no_digest(schemas: dict[str, Any], names: list[str]) -> None:
    renamed = dict(zip("abcde", names, strict=True))
    text = re.sub(r"schemas/(\w+)", lambda match: f"schemas/{renamed[match[1]]}", json.dumps(schemas))
    after = {renamed[name]: schema for name, schema in json.loads(text).items()}
    assert graph_digest(after, renamed["a"]) == graph_digest(schemas, "a")


@settings(max_examples=40, deadline=None)
@given(schema_graphs(), st.sampled_from("abcde"))
def test_a_change_in_a_definition_changes_the_digest_where_it_is_reached(
    schemas: dict[str, Any], changed: str
) -> None:
    edges = {name: tuple(re.findall(r"schemas/(\w)", json.dumps(each))) for name, each in schemas.items()}
    after = {**schemas, changed: {**schemas[changed], "minProperties": 3}}
    is_other = graph_digest(after, "a") != graph_digest(schemas, "a")
    assert is_other == (changed in reached_from("a", edges))


def test_which_property_refers_to_which_definition_counts() -> None:
    leaves = {"A": {"type": "string"}, "B": {"type": "integer"}}
    first = {"properties": {"p": refer("A"), "q": refer("B")}}
    second = {"properties": {"p": refer("B"), "q": refer("A")}}
    assert graph_digest({"S": first, **leaves}, "S") != graph_digest({"S": second, **leaves}, "S")
    reordered = {"properties": dict(reversed(first["properties"].items()))}
    assert graph_digest({"S": first, **leaves}, "S") == graph_digest({"S": reordered, **leaves}, "S")


def refer(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}
