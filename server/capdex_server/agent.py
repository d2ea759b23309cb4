"""The MCP server: two tools for agents, in both protocol eras."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NoReturn

import mcp_types as types
from mcp.server import Server
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from capdex_engine import __version__
from capdex_engine.call import ToolResult
from capdex_engine.errors import CapdexError
from capdex_server.callers import Caller
from capdex_server.service import Service, safely
from capdex_server.skills_resource import resource_handlers
from capdex_server.tools import INPUTS, INSTRUCTIONS, SEARCH, TOOL_SCOPES, tools_for

LIST_TTL_MS = 60_000
"""How long a client may keep the list of tools: the sources in its text change with the catalog."""


def build_server(service: Service, current: Callable[[], Caller]) -> Server[Any]:
    """Return the MCP server.

    Args:
        service: What the tools call.
        current: The caller of the request that is being handled.
    """

    async def on_list(
        _: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        try:
            return await safely(_list(service, current))
        except CapdexError as error:
            raise MCPError(types.INTERNAL_ERROR, error.message) from None

    async def on_call(
        _: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if params.name not in TOOL_SCOPES:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:80]}")
        return await _call(service, current, params.name, params.arguments or {})

    return Server(
        "capdex",
        version=__version__,
        title="capdex",
        instructions=INSTRUCTIONS,
        on_list_tools=on_list,
        on_call_tool=on_call,
        get_tool_input_schema=INPUTS.get,
        cache_hints={"tools/list": CacheHint(ttl_ms=LIST_TTL_MS, scope="private")},
        **resource_handlers(service, current),
    )


async def _list(service: Service, current: Callable[[], Caller]) -> types.ListToolsResult:
    return types.ListToolsResult(tools=tools_for(await service.sources(current())))


async def _call(
    service: Service, current: Callable[[], Caller], name: str, arguments: dict[str, Any]
) -> types.CallToolResult:
    try:
        caller = await safely(_caller(current))
        if TOOL_SCOPES[name] not in caller.scopes:
            await _refuse(service, caller, name)
        if name == SEARCH:
            return _result(await service.search(caller, arguments))
        answer = await service.execute(caller, arguments)
        if isinstance(answer, ToolResult):
            return types.CallToolResult.model_validate(answer, by_name=False)
        return _result(answer, is_error=_failed(answer))
    except CapdexError as error:
        return _result(error.payload(), is_error=True)


async def _caller(current: Callable[[], Caller]) -> Caller:
    return current()


async def _refuse(service: Service, caller: Caller, tool: str) -> NoReturn:
    # HTTP answers 403 before this; here it holds for every other way in.
    if tool != SEARCH:
        await service.trails.audit.refused(caller, "insufficient_scope")
    raise MCPError(types.INVALID_REQUEST, f"Your token lacks the scope {TOOL_SCOPES[tool]!r}.")


def _failed(answer: dict[str, Any]) -> bool:
    status = answer.get("status")
    return isinstance(status, int) and status >= 400


def _result(payload: dict[str, Any], *, is_error: bool = False) -> types.CallToolResult:
    """Return the payload as text and as structured content, both fit for UTF-8."""
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    sound = text.encode("utf-8", "replace").decode("utf-8")
    if sound != text:
        text, payload = sound, json.loads(sound)
    return types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content=payload, is_error=is_error
    )
