"""``capdex call``: one call, or the request it would send."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from capdex_server.cli.options import ConfigOption, JsonOption, SpecOption, parse_pairs, prepared
from capdex_server.cli.output import print_json, reported_errors


def call(
    name: Annotated[str, typer.Argument(help='A capability\'s name, or "METHOD /path".')],
    spec: SpecOption = None,
    args: Annotated[
        str,
        typer.Option(
            "--args", metavar="JSON", help="pathParams, queryParams, headerParams, cookieParams, body."
        ),
    ] = "{}",
    document_url: Annotated[
        str | None, typer.Option(help="Where the document comes from; relative servers resolve against it.")
    ] = None,
    server: Annotated[str | None, typer.Option(help="Replaces the document's servers.")] = None,
    server_variable: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Repeatable.")
    ] = None,
    credential: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCHEME=VALUE",
            help='A key or token; ["user","password"] for basic; {"token":…} for OAuth2. Repeatable.',
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the request, send nothing.")] = False,
    show_credentials: Annotated[
        bool, typer.Option("--show-credentials", help="Do not mask credentials in a dry run.")
    ] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Call one operation.

    Example: capdex call getPetById --spec petstore.yaml --args '{"pathParams": {"petId": 7}}' --dry-run
    """
    from capdex_server.credentials import parse_credential

    request = _request(name, args, dry_run)
    held = {
        scheme: parsed
        for scheme, text in parse_pairs("--credential", credential).items()
        if (parsed := parse_credential(text)) is not None
    }
    options: dict[str, Any] = {
        "document_url": document_url,
        "server": server,
        "server_variables": parse_pairs("--server-variable", server_variable),
    }
    if not spec and (held or any(options.values())):
        raise typer.BadParameter(
            "goes with --spec; a configuration file has settings for it", param_hint="an option"
        )
    with reported_errors(as_json), prepared(spec, config, credentials=held, **options) as run:
        from capdex_server.cli.direct import execute, prepare

        answer = (
            prepare(run, request, show_credentials=show_credentials) if dry_run else execute(run, request)
        )
        print_json(answer)


def _request(name: str, args: str, dry_run: bool) -> object:
    """Return execute_capability's input; what is no JSON at all is wrong usage."""
    try:
        arguments = json.loads(args)
    except ValueError as error:
        raise typer.BadParameter(f"is no JSON: {error}", param_hint="--args") from None
    except RecursionError:
        raise typer.BadParameter("is nested too deeply", param_hint="--args") from None
    if not isinstance(arguments, dict):
        return arguments
    return {**arguments, "name": name, **({"dryRun": True} if dry_run else {})}
