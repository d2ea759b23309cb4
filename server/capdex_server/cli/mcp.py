"""``capdex mcp``: the configured MCP servers, and those that a client already has."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from capdex_server.cli.options import CONFIG_FILE, ConfigOption, JsonOption
from capdex_server.cli.output import print_json, print_table, progress, reported_errors

if TYPE_CHECKING:
    from capdex_server.config import Settings
    from capdex_server.upstream.supervisor import Upstream

NamesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="Sources of kind mcp; all by default.")
]


def list_servers(
    names: NamesArgument = None, config: ConfigOption = None, as_json: JsonOption = False
) -> None:
    """Connect to the configured MCP servers and list them with their tools.

    Example: capdex mcp list
    """
    with reported_errors(as_json):
        rows = [_listed(row) for row in _connected(_settings(config, names))]
        if as_json:
            print_json(rows)
            return
        cells = [
            [row["name"], row["transport"], row["state"], str(len(row["tools"])), ", ".join(row["tools"])]
            for row in rows
        ]
        print_table(f"{len(rows)} MCP servers", ["name", "transport", "state", "tools", "names"], cells)
        _say_reasons(rows)


def check(
    names: NamesArgument = None,
    config: ConfigOption = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit code 1 also for a tool in quarantine.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Collect the tools of the configured MCP servers and report limits, quarantine and times.

    Exit code 1 when a server gives no tools.

    Example: capdex mcp check files --json
    """
    with reported_errors(as_json):
        rows = _connected(_settings(config, names))
        if as_json:
            print_json(rows)
        else:
            _print_check(rows)
        bad = [row for row in rows if row["state"] != "up" or row["reason"]]
        if bad or (strict and any(row["quarantine"] for row in rows)):
            raise typer.Exit(1)


def import_servers(
    file: Annotated[
        Path, typer.Argument(help="A client's file that holds mcpServers, or servers (VS Code).")
    ],
    write: Annotated[
        bool, typer.Option("--write", help=f"Add them to the configuration (default: ./{CONFIG_FILE}).")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Turn the MCP servers that a client has into sources of capdex; secrets are never copied.

    Example: capdex mcp import ~/.cursor/mcp.json --write
    """
    from capdex_engine.errors import ConfigurationError
    from capdex_server.mcp_import import import_block, read_block

    with reported_errors(as_json=False):
        try:
            text = file.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            raise ConfigurationError(f"{file} cannot be read as UTF-8 text.") from None
        imported = import_block(read_block(text))
        if write and imported.names:
            path = config or Path(CONFIG_FILE)
            _add(path, imported.toml, imported.names)
            progress(f"{path} has {len(imported.names)} more sources: {', '.join(imported.names)}")
        elif not write:
            typer.echo(imported.toml, nl=False)
        for remark in imported.remarks:
            progress(remark)
        for variable, purpose in imported.variables.items():
            progress(f"set the environment variable {variable} ({purpose})")
        if not imported.names:
            raise typer.Exit(1)


def _settings(config: Path | None, names: list[str] | None) -> Settings:
    """Return the configuration with the MCP servers alone."""
    from capdex_engine.errors import ConfigurationError
    from capdex_server.config import load_settings

    path = config or (Path(CONFIG_FILE) if Path(CONFIG_FILE).is_file() else None)
    settings = load_settings(path, os.environ)
    servers = {name: one for name, one in settings.sources.items() if one.kind == "mcp"}
    unknown = [name for name in names or () if name not in servers]
    if unknown:
        known = ", ".join(servers) or "none"
        raise ConfigurationError(f"There is no source {unknown[0]!r} of kind mcp; there are: {known}.")
    chosen = {name: one for name, one in servers.items() if not names or name in names}
    return settings.model_copy(update={"sources": chosen})


def _connected(settings: Settings) -> list[dict[str, Any]]:
    import anyio

    from capdex_server.upstream.upstreams import Upstreams

    async def collect() -> list[dict[str, Any]]:
        async with Upstreams(settings, os.environ) as upstreams:
            for server in upstreams:
                await server.tried.wait()
            return [_row(server, settings) for server in upstreams]

    return anyio.run(collect)


def _row(server: Upstream, settings: Settings) -> dict[str, Any]:
    from capdex_engine.errors import DocumentError
    from capdex_engine.tools.document import read_tool_document

    listing, found = server.listing, server.found
    try:
        document = read_tool_document(listing.data or b"", location=server.name)
    except DocumentError:
        document = {"server": {}, "tools": [], "quarantine": []}
    return {
        "name": server.name,
        "transport": "http" if settings.sources[server.name].url else "stdio",
        "state": server.state,
        "reason": listing.down or listing.problem,
        "server": document["server"],
        "tools": [tool["name"] for tool in document["tools"]],
        "quarantine": document["quarantine"],
        "pages": found.pages if found else 0,
        "bytes": found.size if found else 0,
        "seconds": round(found.seconds, 3) if found else None,
    }


def _listed(row: dict[str, Any]) -> dict[str, Any]:
    return {key: row[key] for key in ("name", "transport", "state", "reason", "server", "tools")}


def _say_reasons(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if row["reason"]:
            progress(f"{row['name']}: {row['reason']}")


def _print_check(rows: list[dict[str, Any]]) -> None:
    columns = ["name", "state", "tools", "quarantine", "pages", "bytes", "seconds"]
    cells = [
        [
            row["name"],
            row["state"],
            str(len(row["tools"])),
            str(len(row["quarantine"])),
            str(row["pages"]),
            f"{row['bytes']:,}",
            "" if row["seconds"] is None else f"{row['seconds']:.3f}",
        ]
        for row in rows
    ]
    print_table(f"{len(rows)} MCP servers", columns, cells)
    for row in rows:
        for fault in row["quarantine"]:
            typer.echo(f"{row['name']}: {fault['message']} ({fault['code']})")
    _say_reasons(rows)


def _add(path: Path, toml: str, names: list[str]) -> None:
    """Add sources to a configuration, whole or not at all; the result is one that capdex takes.

    Raises:
        ConfigurationError: A name is taken, or the configuration would be wrong.
    """
    from tempfile import NamedTemporaryFile

    from capdex_engine.catalog.store import write_atomically
    from capdex_engine.errors import ConfigurationError
    from capdex_server.config import load_settings

    before = path.read_text(encoding="utf-8") if path.exists() else ""
    taken = set(load_settings(path, {}).sources) if before else set()
    twice = [name for name in names if name in taken]
    if twice:
        raise ConfigurationError(
            f"{path} has a source {twice[0]!r} already; rename or remove one of the two."
        )
    text = f"{before.rstrip()}\n\n{toml}" if before.strip() else toml
    with NamedTemporaryFile("w", dir=path.absolute().parent, suffix=".toml", encoding="utf-8") as trial:
        trial.write(text)
        trial.flush()
        load_settings(Path(trial.name), {})
    write_atomically(path, [text.encode()])
