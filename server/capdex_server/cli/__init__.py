"""The ``capdex`` command.

Exit codes: 0 for a result, 1 for an error object, 2 for wrong usage. `catalog diff` has those of `diff`: 0
for equal, 1 for different, 2 for trouble. Every command imports what it
needs when it runs, so that ``capdex --help`` pays for none of it.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Annotated

import typer

import capdex_engine
from capdex_server.cli import (
    audit,
    call,
    catalog,
    demo,
    difference,
    mcp,
    models,
    policy,
    search,
    serve,
    skills,
    token,
)

app = typer.Typer(
    name="capdex",
    help="Find API operations in your own words, and call them safely.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
catalog_app = typer.Typer(help="Read API descriptions.", no_args_is_help=True)
policy_app = typer.Typer(help="Who may call what, and why.", no_args_is_help=True)
models_app = typer.Typer(help="The encoder that models.lock pins.", no_args_is_help=True)
token_app = typer.Typer(help="Tokens for callers.", no_args_is_help=True)

mcp_app = typer.Typer(help="Upstream MCP servers.", no_args_is_help=True)

app.command("search")(search.search)
app.command("call")(call.call)
app.command("serve")(serve.serve)
app.command("stdio")(serve.stdio)
app.command("demo")(demo.demo)
app.command("audit")(audit.audit)
app.command("skills")(skills.skills)
catalog_app.command("list")(catalog.list_operations)
catalog_app.command("check")(catalog.check)
catalog_app.command("diff")(difference.diff)
policy_app.command("explain")(policy.explain)
policy_app.command("list")(policy.list_permitted)
mcp_app.command("list")(mcp.list_servers)
mcp_app.command("check")(mcp.check)
mcp_app.command("import")(mcp.import_servers)
models_app.command("verify")(models.verify)
models_app.command("path")(models.path)
token_app.command("new")(token.new)
app.add_typer(token_app, name="token")
app.add_typer(catalog_app, name="catalog")
app.add_typer(policy_app, name="policy")
app.add_typer(mcp_app, name="mcp")
app.add_typer(models_app, name="models")
for command in entry_points(group="capdex.commands"):
    app.add_typer(command.load(), name=command.name)


def show_version(value: bool) -> None:
    """Print the version and end, when asked to."""
    if value:
        typer.echo(f"capdex {capdex_engine.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Find API operations in your own words, and call them safely."""


def main() -> None:
    """Run the command line."""
    app()
