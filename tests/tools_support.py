"""A catalog of tools, and of a document beside them."""

from __future__ import annotations

import json
from typing import Any

from capdex_engine.catalog import Catalog, Source, SourceSettings, build_catalog
from capdex_engine.tools import Quarantined, ToolCollection
from capdex_engine.tools.document import tool_document

READ: dict[str, Any] = {
    "name": "read_file",
    "title": "Read File",
    "description": "Reads a text file. It must be below the root.",
    "inputSchema": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"path": {"type": "string"}, "head": {"type": "integer", "exclusiveMinimum": 0}},
        "required": ["path"],
        "additionalProperties": False,
    },
    "outputSchema": {"type": "object", "properties": {"content": {"type": "string"}}},
    "annotations": {"readOnlyHint": True},
}
TREE: dict[str, Any] = {
    "name": "tree",
    "inputSchema": {
        "type": "object",
        "properties": {
            "node": {"$ref": "#/definitions/Node"},
            "again": {"$ref": "#/properties/depth"},
            "depth": {"type": "integer"},
        },
        "definitions": {"Node": {"type": "object", "properties": {"child": {"$ref": "#/definitions/Node"}}}},
    },
}
FAULT = Quarantined("bad\\u202e", "MCP_CATALOG_INVALID_TOOL", "The tool 'bad\\u202e' is left out: its name.")


def tools_source(*tools: dict[str, Any], name: str = "files", **settings: Any) -> Source:
    found = ToolCollection(tools, (FAULT,))
    data = tool_document(found, {"name": "fs", "title": "Files", "version": "1"})
    return Source(name, f"mcp://{name}", data, settings=SourceSettings(**settings), kind="mcp")


def document_source(name: str = "shop") -> Source:
    operation = {"operationId": "read_file", "responses": {}}
    document = {
        "openapi": "3.0.3",
        "servers": [{"url": "https://shop.example"}],
        "paths": {"/f": {"get": operation}},
    }
    return Source(name, f"/{name}.json", json.dumps(document).encode())


def catalog_of(*sources: Source, **options: Any) -> Catalog:
    return build_catalog(sources, **options)
