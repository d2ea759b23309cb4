"""Real documents: none crashes, none loses an operation."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from capdex_engine.catalog import build_catalog
from capdex_engine.catalog.paths import METHODS
from capdex_engine.catalog.source import Source
from capdex_engine.documents import parse_document, refs_in
from catalog_support import load_file

DOCUMENTS = [
    "adyen-checkout-v71.json",
    "adyen-management-v3.yaml",
    "argo-workflows.swagger2.json",
    "asana.yaml",
    "box.json",
    "docker-engine.swagger2.yaml",
    "github-rest.json",
    "oai-link-example.json",
    "oai-petstore-expanded.swagger2.yaml",
    "oai-tictactoe-31.yaml",
    "oai-uber.swagger2.json",
    "oai-uspto.yaml",
    "oai-webhook-example-31.yaml",
    "openai.yaml",
    "paypal-invoicing.json",
    "paypal-orders.json",
    "qdrant.json",
    "readme-parameters-style-30.json",
    "readme-parameters-style-31.yaml",
    "readme-petstore.swagger2.json",
    "readme-polymorphism-30.yaml",
    "readme-schema-types-31.json",
    "redocly-museum-31.yaml",
    "slack-web.swagger2.json",
    "spotify-official.yml",
    "swagger-petstore3.yaml",
    "twilio-messaging.yaml",
    "xero-accounting.yaml",
    "xero-files.yaml",
    "digitalocean-multifile/specification/DigitalOcean-public.v2.yaml",
]
MiB = 1024 * 1024


def operations_in(tree: dict[str, Any]) -> int:
    items = (item for item in (tree.get("paths") or {}).values() if isinstance(item, dict))
    return sum(key in METHODS for item in items for key in item)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_operation_is_in_the_catalog_with_schemas_that_hold(specs: Path, name: str) -> None:
    path = specs / name
    if not path.exists():
        pytest.skip(f"{name} is not there")
    catalog = load_file(path)
    report = catalog.report.sources[0]
    assert report.error is None
    assert catalog.kept_out == ()
    assert len(catalog.operations) == operations_in(parse_document(path.read_bytes()))
    for operation in catalog.operations:
        row = catalog.describe(operation)
        json.dumps(row)
        schema = catalog.arguments_schema(operation, with_body=True)
        assert {ref.removeprefix("#/$defs/") for ref in refs_in(schema)} <= set(schema.get("$defs", ()))
    for operation in catalog.operations[:: max(1, len(catalog.operations) // 5)]:
        Draft202012Validator.check_schema(catalog.arguments_schema(operation, with_body=True))
        json.dumps(dict(catalog.details(operation).responses))


def test_a_large_document_leaves_little_behind(specs: Path, tmp_path: Path) -> None:
    source = Source.from_file(specs / "github-rest.json")
    build_catalog([source], cache=tmp_path)
    tracemalloc.start()
    catalog = build_catalog([source], cache=tmp_path)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert catalog.report.sources[0].cached
    assert kept < 12 * MiB
