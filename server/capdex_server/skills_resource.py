"""The skills as an MCP resource, ``skill://index.json``, in the shape that capdex itself reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from capdex_engine.errors import CapdexError
from capdex_engine.skills.entries import INDEX_URL
from capdex_server.callers import SEARCH_SCOPE, Caller
from capdex_server.service import Service, safely

_TEXT: Final = {"type": "string"}
_FIELDS: Final = ("name", "title", "description", "capability", "url")
SKILLS_OUTPUT: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "skills": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": dict.fromkeys(_FIELDS, _TEXT),
                "required": list(_FIELDS),
            },
        },
        "instruction": {"type": "string", "description": "For a prompt; empty where there is no skill."},
    },
    "required": ["skills", "instruction"],
}
_RESOURCE: Final = types.Resource(
    uri=INDEX_URL,
    name="skills",
    title="Remote skills",
    description="The remote skills that you may call through execute_capability, with the text about them.",
    mime_type="application/json",
)


def resource_handlers(service: Service, current: Callable[[], Caller]) -> dict[str, Any]:
    """Return the handlers of an MCP server that list and read the one resource there is.

    Args:
        service: Knows the skills.
        current: The caller of the request that is being handled.
    """

    async def on_list(
        _: ServerRequestContext[Any], __: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[_RESOURCE])

    async def on_read(
        _: ServerRequestContext[Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        if params.uri != INDEX_URL:
            text = f"There is one resource, {INDEX_URL}. Call a skill through execute_capability."
            raise MCPError(types.INVALID_PARAMS, text)
        text = json.dumps(await _skills(service, current), ensure_ascii=False)
        contents = types.TextResourceContents(uri=INDEX_URL, mime_type="application/json", text=text)
        return types.ReadResourceResult(contents=[contents])

    return {"on_list_resources": on_list, "on_read_resource": on_read}


async def _skills(service: Service, current: Callable[[], Caller]) -> dict[str, Any]:
    try:
        caller = await safely(_caller(current))
        if SEARCH_SCOPE not in caller.scopes:
            raise MCPError(types.INVALID_REQUEST, f"Your token lacks the scope {SEARCH_SCOPE!r}.")
        return await service.skills(caller)
    except CapdexError as error:
        raise MCPError(types.INTERNAL_ERROR, error.message) from None


async def _caller(current: Callable[[], Caller]) -> Caller:
    return current()
