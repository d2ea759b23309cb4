"""Each trap, and each document of the team's data folder where present, goes through the whole room."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator as Validator

from capdex_engine.documents import (
    ReadOnly,
    References,
    folder_retrieve,
    parse_document,
    refs_in,
    translate_schema,
    upgrade,
)
from capdex_engine.documents.keywords import subschemas
from capdex_engine.errors import DocumentError
from trap_support import FOLDER as TRAPS

SHARED = Path(os.environ.get("CAPDEX_SHARED", Path(__file__).resolve().parents[3] / "shared"))
ENDINGS = {".json", ".yaml", ".yml"}
DOCUMENTS = {
    f"{folder.name}/{path.relative_to(folder)}": path
    for folder, pattern in ((SHARED / "specs", "*"), (TRAPS, "*/*"))
    for path in sorted(folder.glob(pattern))
    if path.suffix in ENDINGS and path.name != "expected.json"
}
DANGLING = {
    "traps/50-broken-but-common/openapi.yaml": 1,
    "traps/43-external-ref/openapi.yaml": 3,
    "traps/19-cyclic-schema/openapi.yaml": 1,
}
"""References that must not resolve."""
CHECKED = 40
"""Schemas of one document that are put to the meta-schema, which is slow."""


def nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield every mapping outside of extensions and examples."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            yield node
            pending.extend(
                value
                for key, value in node.items()
                if not key.startswith("x-") and key not in {"example", "examples", "default", "enum"}
            )
        elif isinstance(node, list):
            pending.extend(node)


def schemas(tree: dict[str, Any]) -> list[Any]:
    named = tree.get("components", {}).get("schemas") or {}
    return [
        *named.values(),
        *(node["schema"] for node in nodes(tree) if isinstance(node.get("schema"), dict)),
    ]


@pytest.fixture(params=DOCUMENTS)
def document(request: pytest.FixtureRequest) -> tuple[str, Path, dict[str, Any]]:
    path = DOCUMENTS[request.param]
    return request.param, path, upgrade(parse_document(path.read_bytes(), location=str(path)))


def test_it_becomes_one_kind_of_document_with_schemas_that_jsonschema_reads(document):
    name, path, tree = document
    if "/43-" in name and "openapi" not in tree:
        pytest.skip("a file of fragments")
    assert tree["openapi"].startswith("3.")
    read_only = ReadOnly(References(tree, str(path), folder_retrieve(path.parent)), str(path))
    translated = [
        translate_schema(
            schema,
            dialect="3.1" if tree["openapi"].startswith("3.1") else "3.0",
            rewrite_ref=lambda ref: ref,
            is_read_only=read_only,
            read_only_names=read_only.names,
        )
        for schema in schemas(tree)
    ]
    for schema in translated[:: 1 + len(translated) // CHECKED]:
        Validator.check_schema(schema)


def test_every_reference_leads_somewhere_or_says_why_not(document):
    name, path, tree = document
    references = References(tree, str(path), folder_retrieve(path.parent))
    found = set().union(*(refs_in(schema) for schema in schemas(tree)))
    found |= {
        ref
        for holder in nodes({key: tree.get(key) for key in ("paths", "components")})
        if isinstance(ref := holder.get("$ref"), str)
    }
    faults = 0
    for ref in found:
        try:
            references.resolve(ref, str(path))
        except DocumentError as error:
            assert error.details["pointer"]
            faults += 1
    assert faults == DANGLING.get(name, 0)


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if not name.endswith(".json")])
def test_yaml_has_the_shape_and_the_text_that_another_reader_finds(name):
    data = DOCUMENTS[name].read_bytes()
    if len(data) > 1_000_000 or "/40-" in name or b"<<" in data:
        pytest.skip("slow with the other reader, or not for it")
    pending = [(parse_document(data), yaml.load(data, Loader=yaml.CBaseLoader))]
    while pending:
        ours, theirs = pending.pop()
        if isinstance(theirs, dict):
            assert list(ours) == list(theirs)
            pending.extend((ours[key], theirs[key]) for key in theirs)
        elif isinstance(theirs, list):
            pending.extend(zip(ours, theirs, strict=True))
        elif isinstance(ours, str):
            assert ours == theirs
        else:
            assert ours is None or isinstance(ours, bool) or float(ours) == float(theirs)


def test_a_document_of_thousands_of_files_is_read_through_its_references(specs):
    root = specs / "digitalocean-multifile" / "specification" / "DigitalOcean-public.v2.yaml"
    tree = upgrade(parse_document(root.read_bytes()))
    references = References(tree, str(root), folder_retrieve(root.parent))
    pending = [(ref, str(root)) for node in nodes(tree["paths"]) if isinstance(ref := node.get("$ref"), str)][
        :150
    ]
    seen = set(pending)
    while pending and len(seen) < 3000:
        found = references.resolve(*pending.pop())
        for node in nodes(found.value):
            if isinstance(ref := node.get("$ref"), str) and (ref, found.base) not in seen:
                seen.add((ref, found.base))
                pending.append((ref, found.base))
    assert len({base for _, base in seen}) > 100


def test_schemas_are_found_where_they_stand():
    schema = {"items": 1, "properties": {"a": 2}, "allOf": [3], "enum": [4], "default": {"items": 5}}
    assert list(subschemas(schema)) == [1, 2, 3]
    assert list(subschemas(True)) == []
