"""``capdex search``: what search_capabilities answers."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from capdex_server.cli.options import ConfigOption, JsonOption, SpecOption, prepared
from capdex_server.cli.output import print_json, print_table, reported_errors


def search(
    query: Annotated[str, typer.Argument(help="What you want done, in your own words.")],
    spec: SpecOption = None,
    limit: Annotated[int, typer.Option(help="Matches to return, 1 to 20.")] = 5,
    source: Annotated[str | None, typer.Option(help="Only this source.")] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Only what cannot change anything.")] = False,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Show how the query is read, and what each part adds to the score."),
    ] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find operations by what they do.

    Example: capdex search "who starred my repo" --spec github.json
    """
    wanted: dict[str, Any] = {"query": query, "limit": limit}
    if source is not None:
        wanted["source"] = source
    if read_only:
        wanted["readOnly"] = True
    with reported_errors(as_json), prepared(spec, config) as run:
        from capdex_server.cli.serving import search_once

        answer = search_once(run, wanted, explain=explain)
        if as_json:
            print_json(answer)
        else:
            _print_answer(answer)


def _print_answer(answer: dict[str, Any]) -> None:
    matches = answer["matches"]
    if "readAs" in answer:
        typer.echo(f"read as: {answer['readAs']}")
    if matches:
        print_table(
            f"{len(matches)} match{'es' if len(matches) != 1 else ''}",
            ["score", "name", "method", "path", "source", "summary"],
            [
                [
                    f"{row['score']:.2f}",
                    row["name"],
                    row["method"],
                    row["path"],
                    row["source"],
                    row["summary"],
                ]
                for row in matches
            ],
        )
    for row in matches:
        if "parts" in row:
            parts = sorted(row["parts"].items(), key=lambda part: -abs(part[1]))
            typer.echo(
                f"{row['name']}: " + ", ".join(f"{name} {value:+.2f}" for name, value in parts if value)
            )
    if hint := answer.get("hint"):
        typer.echo(hint)
