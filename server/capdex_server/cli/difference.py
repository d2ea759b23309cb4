"""``capdex catalog diff``: what changed for a caller between two sets of API descriptions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from capdex_server.cli.options import ConfigOption, JsonOption, prepared
from capdex_server.cli.output import print_error, print_json, reported_errors

if TYPE_CHECKING:
    from capdex_engine.catalog import Catalog
    from capdex_engine.catalog.difference import Difference
    from capdex_engine.operation import Operation

DIFFERENT: Final = 1
TROUBLE: Final = 2
"""Exit codes, those of ``diff``."""
_BREAKING: Final = "!"


def diff(
    old: Annotated[str, typer.Argument(metavar="OLD", help="A file, a folder or a URL.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The same, later.")],
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List operations added, removed and changed, with what changed for a caller.

    A change that may break a call is marked with "!". Answers are not compared. Exit code 0: equal,
    1: different, 2: a document cannot be read, or wrong usage.

    Example: capdex catalog diff petstore-1.yaml petstore-2.yaml
    """
    from capdex_engine.catalog.difference import compare_catalogs

    try:
        with reported_errors(as_json):
            before, after = _catalog(old, config, as_json), _catalog(new, config, as_json)
    except typer.Exit:  # whatever went wrong, it is no difference
        raise typer.Exit(TROUBLE) from None
    difference = compare_catalogs(before, after)
    if as_json:
        revisions = {"old": before.revision, "new": after.revision}
        print_json({**difference.to_json(), "revisions": revisions})
    else:
        for line in _lines(difference):
            typer.echo(line)
    raise typer.Exit(0 if difference.equal else DIFFERENT)


def _catalog(spec: str, config: Path | None, as_json: bool) -> Catalog:
    """Return the catalog of one side; end in trouble when a document of it cannot be used."""
    from capdex_server.cli.direct import load_catalog

    with prepared([spec], config) as run:
        catalog, failures = load_catalog(run)
    for failure in failures.values():
        print_error(failure, as_json)
        if as_json:
            break  # standard output holds one JSON document
    if failures:
        raise typer.Exit(TROUBLE)
    return catalog


def _lines(difference: Difference) -> Iterator[str]:
    for operation in difference.removed:
        yield f"{_BREAKING} removed  {_title(operation)}"
    for operation in difference.added:
        yield f"  added    {_title(operation)}"
    for changed in difference.changed:
        yield f"{_BREAKING if changed.breaking else ' '} changed  {_title(changed.new)}"
        for change in changed.changes:
            yield f"    {_BREAKING if change.breaking else ' '} {change.text}"
    if difference.equal:
        yield "Nothing changed for a caller."
        return
    yield (
        f"{len(difference.added):,} added, {len(difference.removed):,} removed, "
        f"{len(difference.changed):,} changed; {difference.breaking:,} may break a call"
    )


def _title(operation: Operation) -> str:
    return f"{operation.name}  {operation.method} {operation.path}"
