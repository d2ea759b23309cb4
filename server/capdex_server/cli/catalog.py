"""``capdex catalog``: what a set of API descriptions gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from capdex_server.cli.options import ConfigOption, JsonOption, SpecOption, prepared
from capdex_server.cli.output import print_error, print_json, print_table, reported_errors


def list_operations(
    spec: SpecOption = None, config: ConfigOption = None, as_json: JsonOption = False
) -> None:
    """List every operation, those that cannot be called too.

    Example: capdex catalog list --spec petstore.yaml --json
    """
    from capdex_server.cli.direct import load_catalog

    with reported_errors(as_json), prepared(spec, config) as run:
        catalog, failures = load_catalog(run)
        rows = [catalog.describe(operation) for operation in (*catalog.operations, *catalog.kept_out)]
        if rows or not failures:
            print_json(rows) if as_json else _print_rows(rows)
        _end_with(failures, as_json and not rows)


def check(
    specs: Annotated[
        list[str] | None, typer.Argument(metavar="[SPEC]...", help="Files, folders or URLs.")
    ] = None,
    spec: SpecOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the load report; exit code 1 when a document is unusable.

    Example: capdex catalog check petstore.yaml
    """
    from capdex_server.cli.direct import failure_objects, load_snapshot

    with reported_errors(as_json), prepared([*(specs or ()), *(spec or ())], config) as run:
        snapshot = load_snapshot(run)
        skipped = {source: list(files) for source, files in snapshot.skipped.items()}
        report = {**snapshot.catalog.report.to_json(), "notDocuments": skipped}
        print_json(report) if as_json else _print_report(report)
        _end_with(failure_objects(snapshot), as_json=False)


def _end_with(failures: dict[str, dict[str, Any]], as_json: bool) -> None:
    """Say why documents gave nothing, and end with exit code 1 when there are any."""
    for failure in failures.values():
        print_error(failure, as_json)
        if as_json:
            break  # standard output holds one JSON document
    if failures:
        raise typer.Exit(1)


def _print_rows(rows: list[dict[str, Any]]) -> None:
    print_table(
        f"{len(rows)} operations",
        ["name", "method", "path", "summary", "not callable because"],
        [
            [row["name"], row["method"], row["path"], row["summary"] or "", row["reason"] or ""]
            for row in rows
        ],
    )


def _print_report(report: dict[str, Any]) -> None:
    for source in report["sources"]:
        if source["error"] is None:
            # Outside the table, whose title is folded to its width.
            typer.echo(source["location"])
            print_table(
                f"{source['source']}: {source['operations']} operations, {source['bytes']} bytes, "
                f"{source['seconds']:.2f} s",
                ["what", "where", "why"],
                list(_report_rows(source)),
            )
    for name, files in report["notDocuments"].items():
        for file in files:
            typer.echo(f"{name}: {file} is no API description (no `openapi` or `swagger` field); it is read")
            typer.echo("  only where a document refers to it.")


def _report_rows(source: dict[str, Any]) -> Iterator[list[str]]:
    for row in source["keptOut"]:
        yield [f"{row['kind']} kept out", f"{row['method']} {row['path']} {row['pointer']}", row["reason"]]
    for row in source["notCallable"]:
        yield ["not callable yet", f"{row['count']} operations", row["reason"]]
    for row in source["warnings"]:
        yield ["warning", row["pointer"], row["message"]]
