"""``capdex catalog``: what a set of API descriptions gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from capdex_engine.errors import shown_location
from capdex_server.cli.options import ConfigOption, JsonOption, SpecOption, prepared
from capdex_server.cli.output import print_error, print_json, print_table, progress, reported_errors

if TYPE_CHECKING:
    from capdex_engine.catalog import LoadReport

MAX_FAILURES: Final = 20
"""Unusable documents that standard error names."""


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
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit code 1 also for an operation that is kept out.")
    ] = False,
    linting: Annotated[
        bool, typer.Option("--lint", help="Ask openapi-spec-validator too; it changes no exit code.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the load report; exit code 1 when a document is unusable.

    An operation that is kept out of search costs its document nothing and is listed with the reason;
    one that is not callable yet waits for a setting. Webhooks, callbacks and what the settings leave out
    are no faults, with --strict neither.

    Example: capdex catalog check petstore.yaml
    """
    from capdex_server.cli.check_pages import print_report, report_json
    from capdex_server.cli.checking import check_run
    from capdex_server.cli.lint import require_linter

    with reported_errors(as_json), prepared([*(specs or ()), *(spec or ())], config) as run:
        if linting:
            require_linter()
        checked = check_run(run, say=progress, linting=linting)
        print_json(report_json(checked)) if as_json else print_report(checked)
        _end_with(failures_in(checked.report), as_json=False)
        if strict and checked.report.totals()["broken"]:
            raise typer.Exit(1)


def failures_in(report: LoadReport) -> dict[str, dict[str, Any]]:
    """Return source -> SPEC's error object with its location, for each document that is unusable."""
    failures = {}
    for one in report.failed:
        if one.error is not None:
            one.error.details.setdefault("location", shown_location(one.location))
            failures[one.source] = one.error.payload()
    return failures


def _end_with(failures: dict[str, dict[str, Any]], as_json: bool) -> None:
    """Say why documents gave nothing, and end with exit code 1 when there are any."""
    for number, failure in enumerate(failures.values()):
        if number == MAX_FAILURES:
            progress(f"{len(failures) - number} more documents are unusable; --json has them all.")
            break
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
