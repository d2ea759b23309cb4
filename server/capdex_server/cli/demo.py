"""``capdex demo``: the whole line once, on the embedded API, through the official MCP client."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from capdex_server.cli.options import prepared
from capdex_server.cli.output import progress, reported_errors

if TYPE_CHECKING:
    from mcp import Client

QUERY: Final = "how much vacation does she have left"
CALL: Final[Mapping[str, Any]] = {"name": "getTimeOffBalance", "pathParams": {"workerId": "wrk_1005"}}


def demo(
    keep: Annotated[
        bool | None,
        typer.Option("--serve/--once", help="Go on serving, or end (default: go on at a terminal)."),
    ] = None,
) -> None:
    """Start the server on the embedded API and show one search and one call.

    Example: capdex demo --once
    """
    with reported_errors(as_json=False), prepared(None, None) as run:
        import anyio

        from capdex_server.app import create_app
        from capdex_server.cli.serving import live_of, quotas_of
        from capdex_server.config_trails import AuditConfig
        from capdex_server.demo import run_in_thread
        from capdex_server.logs import configure_logs

        configure_logs(quiet=True)
        started = time.monotonic()
        progress("starting the server on the embedded workforce API")
        # Standard output is for what is shown.
        settings = run.settings.model_copy(update={"audit": AuditConfig(to="off")})
        app = create_app(live_of(run), settings, quotas=quotas_of(run))
        with run_in_thread(app, port=run.settings.port) as url:
            if not anyio.run(show, url):
                raise typer.Exit(1)
            seconds = time.monotonic() - started
            keep = sys.stdin.isatty() and sys.stdout.isatty() if keep is None else keep
            typer.echo(_how_to_connect(url, seconds, serving=keep))
            if keep:
                _wait_for_interrupt()


async def show(url: str) -> bool:
    """Search and call through ``/mcp/agent`` as an agent would, and print both with their answers.

    Returns:
        Whether both tools gave results.
    """
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    async with Client(streamable_http_client(f"{url}/mcp/agent")) as client:
        tools = await client.list_tools()
        typer.echo(f"\nTools at {url}/mcp/agent: {', '.join(tool.name for tool in tools.tools)}\n")
        found = await _call(client, "search_capabilities", {"query": QUERY, "limit": 3})
        _print_matches(found)
        answer = await _call(client, "execute_capability", CALL)
        _print_json({key: answer[key] for key in ("status", "body", "error") if key in answer})
        return "matches" in found and answer.get("status") == 200


async def _call(client: Client, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    typer.echo(f"> {tool} {json.dumps(arguments, ensure_ascii=False)}")
    result = await client.call_tool(tool, dict(arguments))
    return dict(result.structured_content or {})


def _print_matches(found: Mapping[str, Any]) -> None:
    for match in found.get("matches", ()):
        typer.echo(
            f"  {match['score']:.2f}  {match['name']:<21}  {match['method']:<5} {match['path']:<36}  "
            f"{match['summary']}"
        )
    if "error" in found:
        _print_json(found)
    typer.echo("")


def _print_json(value: Mapping[str, Any]) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def _how_to_connect(url: str, seconds: float, *, serving: bool) -> str:
    state = "It is serving now; stop it with Ctrl-C." if serving else "Start it to stay with: make serve"
    return (
        f"\nReady in {seconds:.1f} s. {state}\n"
        f"Connect a client:\n"
        f"  Streamable HTTP   {url}/mcp/agent   (capdex serve --spec YOUR_API.yaml)\n"
        f"  started by it     capdex stdio --spec YOUR_API.yaml\n"
        f'  in its JSON       {{"mcpServers": {{"capdex": {{"type": "http", "url": "{url}/mcp/agent"}}}}}}'
    )


def _wait_for_interrupt() -> None:
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        typer.echo("")
