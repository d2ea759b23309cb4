"""How the load report is shown: every detail of a few documents, what is amiss among many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import typer

from capdex_engine.catalog import LoadReport, Remark, SourceReport
from capdex_engine.catalog.reasons import group_reasons
from capdex_engine.errors import shown_location
from capdex_server.cli.checking import Checked
from capdex_server.cli.output import print_table

FEW: Final = 10
"""Documents that are shown one by one, with all that is said of each."""
MAX_ROWS: Final = 200
"""Rows of one table; ``--json`` has everything."""
_MB: Final = 1_000_000


def report_json(checked: Checked) -> dict[str, Any]:
    """Return the whole report: totals, grouped ``reasons``, ``sources`` and ``notDocuments``.

    ``lint`` is there only when the linter was asked: source -> its remarks.
    """
    lint = {name: [remark.to_json() for remark in remarks] for name, remarks in checked.lint.items()}
    report = checked.report
    return {
        **report.totals(),
        "reasons": [reason.to_json() for reason in group_reasons(report)],
        "sources": [source.to_json() for source in report.sources],
        "notDocuments": checked.skipped,
        **({"lint": lint} if lint else {}),
    }


def print_report(checked: Checked) -> None:
    """Print the report for people."""
    report = checked.report
    if len(report.sources) <= FEW:
        for source in report.sources:
            if source.error is None:
                _print_source(source, checked.lint.get(source.source, ()))
    else:
        _print_many(checked)
    _print_skipped(checked.skipped)
    if len(report.sources) > 1:
        typer.echo(_totals(report))


def _print_source(source: SourceReport, lint: Sequence[Remark]) -> None:
    # Outside the table, whose title is folded to its width.
    typer.echo(shown_location(source.location))
    rows = [*_report_rows(source), *(["lint", remark.pointer, remark.message] for remark in lint)]
    title = f"{source.source}: {source.operations} operations, {source.size} bytes, {source.seconds:.2f} s"
    _print_rows(title, ["what", "where", "why"], rows)


def _report_rows(source: SourceReport) -> Iterator[list[str]]:
    for entry in source.kept_out:
        what = "left out" if entry.by_settings else f"{entry.kind} kept out"
        yield [what, f"{entry.method} {entry.path} {entry.pointer}", entry.reason]
    for group in source.not_callable:
        yield ["not callable yet", f"{len(group.names)} operations", group.reason]
    for remark in source.warnings:
        yield ["warning", remark.pointer, remark.message]


def _print_many(checked: Checked) -> None:
    report = checked.report
    amiss = [source for source in report.sources if source.error or source.broken or source.warnings]
    rows = [_line(source, len(checked.lint.get(source.source, ()))) for source in amiss]
    columns = ["document", "operations", "kept out", "warnings", "lint", "unusable because"]
    _print_rows(f"{len(amiss)} of {len(report.sources)} documents with something amiss", columns, rows)
    reasons = [
        [reason.what, reason.text, f"{reason.count:,}", f"{reason.documents:,}", reason.example]
        for reason in group_reasons(report)
    ]
    _print_rows("Reasons, alike ones together", ["what", "why", "count", "documents", "for example"], reasons)


def _line(source: SourceReport, lint: int) -> list[str]:
    error = "" if source.error is None else source.error.message
    numbers = (source.operations, source.broken, len(source.warnings), lint)
    return [shown_location(source.location), *(f"{number:,}" if number else "" for number in numbers), error]


def _print_rows(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if not rows:
        typer.echo(title)
        return
    print_table(title, columns, rows[:MAX_ROWS])
    if len(rows) > MAX_ROWS:
        typer.echo(f"{len(rows) - MAX_ROWS:,} more rows; --json has them all.")


def _print_skipped(skipped: dict[str, list[str]]) -> None:
    for name, files in skipped.items():
        for file in files if len(files) <= FEW else files[:1]:
            typer.echo(f"{name}: {file} is no API description (no `openapi` or `swagger` field); it is read")
            typer.echo("  only where a document refers to it.")
        if len(files) > FEW:
            typer.echo(f"  The same holds for {len(files) - 1:,} more files; --json names them all.")


def _totals(report: LoadReport) -> str:
    total = report.totals()
    return (
        f"{total['documents']:,} documents, {total['failed']:,} of them unusable: "
        f"{total['operations']:,} operations in search, {total['notCallable']:,} of them not callable yet; "
        f"{total['broken']:,} kept out by their structure, {total['warnings']:,} warnings; "
        f"{total['bytes'] / _MB:,.1f} MB in {total['seconds']:.1f} s"
    )
