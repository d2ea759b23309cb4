"""``capdex audit``: reads and filters the audit trail."""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from capdex_server.cli.options import CONFIG_FILE, ConfigOption
from capdex_server.cli.output import print_table, progress, reported_errors

if TYPE_CHECKING:
    from capdex_server.audit_reading import Filter, Joiner, Row

NEWEST: Final = 100
"""Rows of a table, unless --limit says else."""
_POLL: Final = 0.5
_COLUMNS: Final = ("time", "tenant", "caller", "capability", "outcome", "status", "ms", "bytes")


def audit(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="The trail; its rotated files are read too. - is standard input. Default: audit.to.",
            show_default=False,
        ),
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="Of this tenant.")] = None,
    caller: Annotated[str | None, typer.Option(help="Of this caller.")] = None,
    capability: Annotated[str | None, typer.Option(metavar="GLOB", help="Of these capabilities.")] = None,
    outcome: Annotated[
        str | None,
        typer.Option(
            help="ok, error_status, error_result, dry_run, unfinished, cancelled, forbidden, drift, or an "
            "error's code."
        ),
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="From 2026-01-31T12:00:00Z on, or from 2h ago.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Before a time, written likewise.")
    ] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="All that gave no good answer: refused, failed, unfinished.")
    ] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what comes.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object on each line.")] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, help=f"The newest so many (default: {NEWEST}; with --json all).", show_default=False
        ),
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Show who called what, and what became of it: one row for each execute.

    A call that was started and has no end is `unfinished`: the server was killed, or it is still on its way.

    Example: capdex audit --since 2h --failed
    """
    from capdex_server.audit_reading import Filter, Joiner

    wanted = Filter(tenant, caller, capability, outcome, _moment(since), _moment(until), failed)
    with reported_errors(as_json=False):
        path = file or _configured(config)
        if follow:
            return _follow(path, wanted, as_json)
        joiner = Joiner()
        rows, left_out = _newest(joiner, path, wanted, limit or (None if as_json else NEWEST))
        _print(rows, as_json)
        if left_out:
            progress(f"{left_out} older rows are not shown; --limit shows more")
        if joiner.damaged:
            progress(f"{joiner.damaged} lines are damaged or none of an audit trail, and left out")


def _moment(text: str | None) -> datetime | None:
    from capdex_server.audit_reading import moment

    try:
        return moment(text, datetime.now(UTC)) if text is not None else None
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} {error}") from None


def _configured(config: Path | None) -> Path:
    import os

    from capdex_engine.errors import ConfigurationError
    from capdex_server.config import load_settings

    found = config or (Path(CONFIG_FILE) if Path(CONFIG_FILE).is_file() else None)
    path = load_settings(found, os.environ, with_sources=False).audit.file
    if path is None:
        raise ConfigurationError("The settings write no audit trail to a file. Name one: capdex audit FILE.")
    return path


def _newest(joiner: Joiner, path: Path, wanted: Filter, limit: int | None) -> tuple[list[Row], int]:
    from capdex_server.audit_reading import lines_of

    lines: Iterable[str] = _piped() if str(path) == "-" else lines_of(path)
    kept: deque[Row] = deque(maxlen=limit)
    count = 0
    for row in _all(joiner, lines):
        if wanted.fits(row):
            kept.append(row)
            count += 1
    return sorted(kept, key=lambda row: row.time), count - len(kept)


def _piped() -> Iterator[str]:
    return (line.decode("utf-8", "replace") for line in sys.stdin.buffer)


def _all(joiner: Joiner, lines: Iterable[str]) -> Iterator[Row]:
    yield from joiner.rows(lines)
    yield from joiner.unfinished()


def _follow(path: Path, wanted: Filter, as_json: bool) -> None:
    from capdex_server.audit_reading import Joiner, follow

    lines: Iterable[str] = _piped() if str(path) == "-" else follow(path, lambda: time.sleep(_POLL))
    try:
        for row in Joiner().rows(lines):
            if wanted.fits(row):
                typer.echo(json.dumps(row.to_json()) if as_json else "  ".join(_cells(row)))
    except KeyboardInterrupt:
        return


def _print(rows: list[Row], as_json: bool) -> None:
    if as_json:
        for row in rows:
            typer.echo(json.dumps(row.to_json()))
        return
    print_table(f"{len(rows)} executes", _COLUMNS, [_cells(row) for row in rows])


def _cells(row: Row) -> list[str]:
    known = row.to_json()
    return [str(known.get(column, "")) for column in _COLUMNS]
