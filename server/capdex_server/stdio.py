"""``capdex stdio``: the MCP server over standard input and output, for this machine's user."""

from __future__ import annotations

import anyio
from mcp.server.stdio import stdio_server

from capdex_server.agent import build_server
from capdex_server.callers import LOCAL
from capdex_server.config import Settings
from capdex_server.live import Live
from capdex_server.quotas import Quotas
from capdex_server.service import Service
from capdex_server.trails import open_trails
from capdex_server.watch import keep_current


async def serve_stdio(live: Live, settings: Settings, quotas: Quotas) -> None:
    """Serve until the client closes its end.

    The first catalog is built while the session opens; requests that need
    it wait a while for it.
    Standard output belongs to the protocol: logs go to standard error.

    Raises:
        ConfigurationError: The audit trail is to go to standard output, or to a file that cannot be written.
    """
    trails = open_trails(settings, stdout=False)
    server = build_server(Service(live, settings, trails=trails, quotas=quotas), lambda: LOCAL)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keep_current, live, settings)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
        tasks.cancel_scope.cancel()
    await quotas.aclose()
