"""The tools of an upstream MCP server -> the same record and store as a document's operations."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from capdex_engine.catalog.context import Reading
from capdex_engine.catalog.paths import Found
from capdex_engine.catalog.reader import read_document
from capdex_engine.catalog.report import KeptOut
from capdex_engine.catalog.source import Source
from capdex_engine.catalog.store import Store
from capdex_engine.catalog.texts import MAX_DESCRIPTION, MAX_SUMMARY, clean_text, clip, first_sentence
from capdex_engine.documents import References, Resolved
from capdex_engine.errors import DocumentError
from capdex_engine.operation import MCP_METHOD
from capdex_engine.text import tokens
from capdex_engine.tools.document import read_tool_document

_SCHEMA: Final = re.compile(r"mcp-schema:(\d+)/(inputSchema|outputSchema)")


def read_tools(source: Source, *, extra: dict[str, Any], path: Path | None) -> Store:
    """Read a source's tools into a store; arguments as for ``read_document``.

    Each schema is a file of its own to the reader, since its references start at its own root.

    Raises:
        DocumentError: The source's bytes are no list of tools.
    """
    document = read_tool_document(source.data, location=source.location)
    tools, server = document["tools"], document["server"]

    def retrieve(uri: str) -> bytes:
        found = _SCHEMA.fullmatch(uri)
        if found is None:
            raise DocumentError("a tool's schema refers to nothing outside itself.", location=uri)
        return json.dumps(tools[int(found[1])][found[2]]).encode()

    title = clean_text(server.get("title") or server.get("name") or source.name, MAX_SUMMARY)
    tree = {"openapi": "3.1.0", "info": {"title": title}, **document}
    finders = (_finder(source.location), _outside)
    references = References(tree, source.location, retrieve)
    return read_document(tree, references, source.location, extra=extra, path=path, finders=finders)


def _finder(location: str) -> Any:
    def find(reading: Reading) -> Iterator[Found]:
        for index, tool in enumerate(reading.tree["tools"]):
            place = Resolved(tool, reading.base, f"/tools/{index}")
            operation = Resolved(_operation(tool, index), reading.base, place.pointer)
            item = Resolved({}, reading.base, place.pointer)
            hint = tool.get("annotations", {}).get("readOnlyHint") is True
            yield Found(MCP_METHOD, f"{location}/{tool['name']}", item, operation, place, read_only_hint=hint)

    return find


def _outside(reading: Reading, _: Iterable[Found]) -> Iterator[KeptOut]:
    for index, fault in enumerate(reading.tree["quarantine"]):
        reason = f"{fault['message']} ({fault['code']})"
        yield KeptOut("tool", MCP_METHOD, f"{reading.base}/{fault['name']}", reason, f"/quarantine/{index}")


def _operation(tool: dict[str, Any], index: int) -> dict[str, Any]:
    """Return a tool as OpenAPI would describe it."""
    schema = tool["inputSchema"]
    operation: dict[str, Any] = {
        "operationId": tool["name"],
        "summary": _summary(tool),
        "description": tool.get("description"),
        "requestBody": {
            "required": bool(schema.get("required")),
            "content": {"application/json": {"schema": {"$ref": f"mcp-schema:{index}/inputSchema"}}},
        },
    }
    if "outputSchema" in tool:
        content = {"application/json": {"schema": {"$ref": f"mcp-schema:{index}/outputSchema"}}}
        operation["responses"] = {"result": {"description": "Structured content.", "content": content}}
    return operation


def _summary(tool: dict[str, Any]) -> str:
    """Return the title with the description's first sentence; a title that repeats the name says nothing."""
    title = clean_text(tool.get("title"), MAX_SUMMARY)
    sentence = first_sentence(clean_text(tool.get("description"), MAX_DESCRIPTION))
    if sentence and set(tokens(title)) <= {*tokens(str(tool["name"])), *tokens(sentence)}:
        title = ""
    return clip(f"{title}: {sentence}" if title and sentence else title or sentence, MAX_SUMMARY)
