"""The upstream MCP servers of a configuration; where it has none, nothing of the MCP client is loaded."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from capdex_server.config import Settings

if TYPE_CHECKING:
    from capdex_server.upstream.upstreams import Upstreams


def upstreams_for(settings: Settings, environ: Mapping[str, str]) -> Upstreams | None:
    """Return the servers that the settings name, not yet connected; None where they name none."""
    if not any(source.kind == "mcp" for source in settings.sources.values()):
        return None
    from capdex_server.upstream.upstreams import Upstreams

    return Upstreams(settings, environ)


@asynccontextmanager
async def connected(upstreams: Upstreams | None) -> AsyncIterator[None]:
    """Keep servers, where there are any, connected for as long as the context lasts."""
    if upstreams is None:
        yield
    else:
        async with upstreams:
            yield
