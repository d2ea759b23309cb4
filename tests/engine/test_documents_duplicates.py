"""Keys that a mapping has more than once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex_engine.documents import parse_document, upgrade
from capdex_engine.documents.duplicates import DUPLICATES
from catalog_support import catalog_of

HEAD = '"openapi": "3.1.0", "info": {"title": "T"}, "servers": [{"url": "https://api.test"}]'


def read(text: str) -> tuple[dict[str, Any], set[str]]:
    """The tree, and the pointers of its duplicate keys."""
    tree = parse_document(text.encode())
    rows = tree.pop(DUPLICATES, [])
    assert all(isinstance(message, str) for message, _ in rows)
    return tree, {pointer for _, pointer in rows}


@pytest.mark.parametrize("text", ['{"a": 1, "b": 2, "a": 3}', "a: 1\nb: 2\na: 3\n"])
def test_the_last_one_wins_and_is_told(text: str) -> None:
    assert read(text) == ({"a": 3, "b": 2}, {"/a"})


@pytest.mark.parametrize("start", ["", "# YAML\n"])
def test_the_pointer_leads_to_the_key(start: str) -> None:
    text = start + '{"a": [{}, {"x/y": {"k": 1, "k": 2, "k": 3, "l": 0, "l": 0}}]}'
    tree, pointers = read(text)
    assert tree == {"a": [{}, {"x/y": {"k": 3, "l": 0}}]}
    assert pointers == {"/a/1/x~1y/k", "/a/1/x~1y/l"}


@pytest.mark.parametrize("start", ["", "# YAML\n"])
def test_two_path_items_of_one_path_are_put_together(start: str) -> None:
    text = '{"paths": {"/a": {"get": {"x": 1}, "summary": "s"}, "/b": {}, "/a": {"post": {"y": 2}}}}'
    tree, pointers = read(start + text)
    item = {"get": {"x": 1}, "summary": "s", "post": {"y": 2}}
    assert tree == {"paths": {"/a": item, "/b": {}}}
    assert pointers == {"/paths/~1a"}


def test_of_a_method_in_both_the_last_one_counts_and_is_told() -> None:
    tree, pointers = read('{"paths": {"/a": {"get": 1, "put": 1}, "/a": {"get": 2}, "/a": {"post": 3}}}')
    assert tree == {"paths": {"/a": {"get": 2, "put": 1, "post": 3}}}
    assert pointers == {"/paths/~1a", "/paths/~1a/get"}


def test_what_was_told_of_either_item_is_still_told() -> None:
    text = '{"paths": {"/a": {"get": 1, "get": 2}, "/a": {"put": {"s": 1, "s": 2}, "head": 1, "head": 2}}}'
    assert read(text)[1] == {"/paths/~1a", "/paths/~1a/get", "/paths/~1a/head", "/paths/~1a/put/s"}


def test_two_sections_of_paths_are_put_together() -> None:
    tree, pointers = read("paths:\n  /a: {get: 1}\npaths:\n  /a: {put: 2}\n  /b: {get: 3}\n")
    assert tree == {"paths": {"/a": {"get": 1, "put": 2}, "/b": {"get": 3}}}
    assert pointers == {"/paths", "/paths/~1a"}


def test_a_property_named_paths_is_no_section() -> None:
    tree, _ = read('{"properties": {"paths": {"type": "string"}, "paths": {"minLength": 1}}}')
    assert tree == {"properties": {"paths": {"minLength": 1}}}


def test_an_item_that_yaml_shares_with_another_path_stays_as_it_is() -> None:
    tree, _ = read("paths:\n  /a: &a {get: 1}\n  /b: *a\n  /a: {put: 2}\n")
    assert tree == {"paths": {"/a": {"get": 1, "put": 2}, "/b": {"get": 1}}}


def test_a_merge_key_makes_no_duplicate() -> None:
    assert read("a: &a {x: 1}\nb: {<<: *a, x: 2}\n") == ({"a": {"x": 1}, "b": {"x": 2}}, set())


def test_the_document_s_own_key_of_that_name_is_not_believed() -> None:
    assert parse_document(f'{{"{DUPLICATES}": [7]}}'.encode()) == {}


def test_many_of_one_key_take_no_quadratic_time() -> None:
    items = ", ".join(f'"/a": {{"get": {index}, "x-{index}": 1}}' for index in range(20_000))
    tree, pointers = read(f'{{"paths": {{{items}}}}}')
    assert len(tree["paths"]["/a"]) == 20_001
    assert pointers == {"/paths/~1a", "/paths/~1a/get"}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers()), max_size=6))
def test_json_and_yaml_agree_with_python_on_values(pairs: list[tuple[str, int]]) -> None:
    text = "{" + ", ".join(f"{json.dumps(key)}: {value}" for key, value in pairs) + "}"
    expected = dict(pairs), {f"/{key}" for key, _ in pairs if [k for k, _ in pairs].count(key) > 1}
    assert read(text) == read("# YAML\n" + text) == expected


def test_the_upgrade_keeps_what_was_told() -> None:
    tree = parse_document(b'{"swagger": "2.0", "info": {}, "info": {}, "paths": {}}')
    assert upgrade(tree)[DUPLICATES] == tree[DUPLICATES] != []


def test_both_operations_are_in_the_catalog_with_a_remark() -> None:
    paths = '{"/a": {"get": {"operationId": "g"}}, "/a": {"post": {"operationId": "p"}}}'
    catalog = catalog_of(f'{{{HEAD}, "paths": {paths}}}'.encode())
    assert [operation.name for operation in catalog.operations] == ["g", "p"]
    assert [remark.pointer for remark in catalog.report.sources[0].warnings] == ["/paths/~1a"]


def test_duplicates_in_another_file_are_remarked_with_its_name() -> None:
    schema = '{"schema": {"$ref": "sub/s.json#/A"}, "name": "q", "in": "query"}'
    paths = f'{{"/a": {{"get": {{"parameters": [{schema}]}}}}}}'
    files = {"/documents/sub/s.json": '{"A": {"type": "string", "type": "integer"}}'}
    catalog = catalog_of(f'{{{HEAD}, "paths": {paths}}}'.encode(), files=files)
    assert [remark.pointer for remark in catalog.report.sources[0].warnings] == ["sub/s.json#/A/type"]
