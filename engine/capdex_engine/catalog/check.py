"""The load report of any number of documents, without their catalog.

One document is read at a time, and of each only an outline stays until all names are known: a few
hundred bytes for an operation. What the report says is what the catalog's own report would say.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from capdex_engine.catalog.assemble import Shelf
from capdex_engine.catalog.loading import Clock, RetrieveFor, load, report_on
from capdex_engine.catalog.names import Nameable, assign_names
from capdex_engine.catalog.report import LoadReport, SourceReport
from capdex_engine.catalog.source import Source
from capdex_engine.errors import ConfigurationError

Watch = Callable[[Source, int], None]
"""Told of each source when it has been read, with the number of its operations."""


def check_documents(
    sources: Iterable[Source | SourceReport],
    *,
    retrieve: RetrieveFor | None = None,
    cache: Path | None = None,
    clock: Clock = time.perf_counter,
    watch: Watch | None = None,
) -> LoadReport:
    """Return what becomes of every source; arguments as for ``build_catalog``.

    Args:
        sources: With distinct names, taken one at a time; a report stands for a source that has no
            document, such as a file that cannot be read.
        retrieve: Source -> reader of the other files that its document refers to.
        cache: Folder for read documents.
        clock: Seconds, for the report.
        watch: Told of each document that has been read.

    Raises:
        ConfigurationError: Two sources have one name.
    """
    outlines: dict[str, _Outline] = {}
    for source in sources:
        outline = _outline_of(source, retrieve, cache, clock)
        if outline.source in outlines:
            raise ConfigurationError(
                f"Two sources are named {outline.source!r}. Give each a name of its own in capdex.toml, "
                "or rename one of the files."
            )
        outlines[outline.source] = outline
        if watch is not None and isinstance(source, Source):
            watch(source, len(outline.names))
    given = iter(assign_names([item for outline in outlines.values() for item in outline.names]))
    return LoadReport(
        tuple(outline.report([next(given) for _ in outline.names]) for outline in outlines.values())
    )


@dataclass(frozen=True, slots=True)
class _Outline:
    """What is kept of one document until all names are known."""

    source: str
    names: list[Nameable]
    report: Callable[[list[str]], SourceReport]
    """The names of its operations -> its report."""


def _outline_of(
    source: Source | SourceReport, retrieve: RetrieveFor | None, cache: Path | None, clock: Clock
) -> _Outline:
    if isinstance(source, SourceReport):
        return _Outline(source.source, [], lambda _: source)
    loaded = load(source, retrieve, cache, clock)
    if loaded.document is None:
        return _Outline(source.name, [], lambda _: report_on(loaded, [], []))
    loaded.document.keep_outline()
    shelf = Shelf(loaded.source, loaded.document)
    return _Outline(source.name, shelf.nameables(), lambda names: report_on(loaded, *shelf.operations(names)))
