"""What commands print: JSON for programs, tables for people, errors with the next step."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from capdex_engine.errors import CapdexError, ConfigurationError


def print_json(value: Any) -> None:
    """Write one JSON document to standard output."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write a table; cells are plain text, never markup."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    # Piped output keeps every column whole instead of folding it to 80 characters.
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def progress(message: str) -> None:
    """Tell the person at the terminal what takes time."""
    typer.echo(f"capdex: {message}", err=True)


@contextmanager
def reported_errors(as_json: bool) -> Iterator[None]:
    """Turn our own errors into an error object (or a line on standard error) and exit code 1.

    A wrong setting or option is wrong usage: a line on standard error and exit code 2. Warnings are
    lines on standard error, unless the command configures logs of its own.
    """
    from capdex_server.logs import warnings_as_lines

    try:
        with warnings_as_lines():
            yield
    except ConfigurationError as error:
        print_error(error.payload(), as_json=False)
        raise typer.Exit(2) from None
    except CapdexError as error:
        print_error(error.payload(), as_json)
        raise typer.Exit(1) from None


def print_error(payload: Mapping[str, Any], as_json: bool) -> None:
    """Write an error object: as JSON on standard output, or as a line on standard error."""
    if as_json:
        print_json(payload)
        return
    error = payload["error"]
    place = f"{error.get('location', '')}{error.get('pointer', '')}"
    where = f"{place}: " if place and str(error.get("location", "")) not in error["message"] else ""
    typer.echo(f"error: {where}{error['message']} ({error['code']})", err=True)
    for issue in error.get("issues", ()):
        typer.echo(f"  {issue.get('in', 'input')}{issue.get('pointer', '')}: {issue['message']}", err=True)
