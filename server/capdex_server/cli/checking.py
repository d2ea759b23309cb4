"""What ``capdex catalog check`` does: every document read, one after the other, and reported on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import anyio
import anyio.from_thread
import anyio.to_thread

from capdex_engine.catalog import Remark, Source, SourceReport
from capdex_engine.catalog.check import check_documents
from capdex_engine.catalog.report import LoadReport
from capdex_engine.errors import DocumentError
from capdex_server.cli.lint import lint
from capdex_server.cli.options import Run
from capdex_server.credentials import DefaultCredentials, Held, explicit_credentials
from capdex_server.outbound import Outbound
from capdex_server.pieces import Piece, ToolsPiece
from capdex_server.places import Place, find_places
from capdex_server.reach import FetchPiece, Retriever
from capdex_server.skills_source import Skills
from capdex_server.sources import with_settings
from capdex_server.upstream.making import connected, upstreams_for

SECONDS_BETWEEN: Final = 5.0
"""Between two lines about the progress."""
Say = Callable[[str], None]
Clock = Callable[[], float]


@dataclass(slots=True)
class Checked:
    """What became of every document of a run."""

    report: LoadReport
    skipped: dict[str, list[str]]
    """Configured source -> files of its folder that are no API description."""
    lint: dict[str, list[Remark]] = field(default_factory=dict)
    """Source -> what the linter says, when asked."""


def check_run(run: Run, *, say: Say, linting: bool = False, clock: Clock = time.monotonic) -> Checked:
    """Check every document of a run's sources; a URL is fetched in its turn.

    Args:
        run: What the command works on.
        say: Told of the progress when it takes long.
        linting: Whether to ask the linter too.
        clock: Seconds, for the progress.
    """

    async def check() -> Checked:
        outbound = Outbound.from_settings(run.settings)
        upstreams = upstreams_for(run.settings, os.environ)

        def tools(source: str) -> bytes:
            assert upstreams is not None  # noqa: S101 - asked for sources of its kind alone
            page: ToolsPiece = anyio.from_thread.run(upstreams.page, source)
            if page.down or page.problem:
                raise DocumentError(str(page.down or page.problem), location=f"mcp://{source}")
            return page.data

        def fetch(source: str, url: str, seconds: float, room: int) -> Piece:
            limits = run.settings.documents.model_copy(update={"timeout": seconds, "max_bytes": room})
            return anyio.from_thread.run(partial(outbound.fetch, url, source=source, limits=limits))

        def skills() -> list[Source | SourceReport]:
            return anyio.from_thread.run(Skills(run.settings, os.environ).check)

        try:
            checking = _Checking(
                run, fetch, tools, skills, Progress(say, clock), linting=linting, clock=clock
            )
            async with connected(upstreams):
                return await anyio.to_thread.run_sync(checking.run, abandon_on_cancel=True)
        finally:
            await outbound.aclose()

    return anyio.run(check)


class Progress:
    """Says now and then how far a long check has come.

    Args:
        say: Told in a sentence.
        clock: Seconds.
    """

    def __init__(self, say: Say, clock: Clock) -> None:
        self._say = say
        self._clock = clock
        self._last = clock()
        self._done = self._operations = 0
        self.total = 0

    def __call__(self, source: Source, operations: int) -> None:
        """Count a document that has been read."""
        self._done += 1
        self._operations += operations
        if self._clock() - self._last >= SECONDS_BETWEEN:
            self._last = self._clock()
            self._say(
                f"{self._done:,} of {self.total:,} documents read, {self._operations:,} operations so far"
            )


class _Checking:
    def __init__(
        self,
        run: Run,
        fetch: Callable[[str, str, float, int], Piece],
        tools: Callable[[str], bytes],
        skills: Callable[[], list[Source | SourceReport]],
        progress: Progress,
        *,
        linting: bool,
        clock: Clock,
    ) -> None:
        self._clock = clock
        self._configs, self._limits = run.settings.sources, run.settings.documents
        self._cache = run.settings.cache / "catalogs"
        self._fetch = fetch
        self._tools = tools
        self._skills = skills
        self._progress = progress
        explicit = explicit_credentials(run.settings, os.environ)
        for name, held in run.credentials.items():
            explicit[name] = {**explicit.get(name, {}), **held}
        self._explicit: Mapping[str, Mapping[str, Any]] = explicit
        self._defaults = DefaultCredentials(self._configs, os.environ)
        self._skipped: dict[str, list[str]] = {}
        self._owners: dict[str, str] = {}
        self._spent: dict[str, float] = {}
        """Configured source -> seconds that fetching its document took."""
        self._linting = linting
        self._places: list[Place] = []
        """To be read again by the linter."""

    def run(self) -> Checked:
        report = check_documents(
            self._sources(), retrieve=self._retriever, cache=self._cache, watch=self._progress
        )
        return Checked(report, self._skipped, self._linted(report))

    def _sources(self) -> Iterator[Source | SourceReport]:
        """Yield each document, or the report on what is none; folders are looked through first."""
        found = {name: self._found(name) for name, config in self._configs.items() if not config.is_remote}
        lists = [places for places in found.values() if not isinstance(places, DocumentError)]
        self._progress.total = sum(map(len, lists)) + len(self._configs) - len(lists)
        for name, config in self._configs.items():
            if config.kind == "skills":
                yield from self._indexes(name)
                continue
            yield from self._read(name, found[name] if name in found else self._found(name))

    def _found(self, name: str) -> list[Place] | DocumentError:
        config = self._configs[name]
        try:
            started = self._clock()
            fetched = self._tools(name) if config.kind == "mcp" else None
            if config.is_url:
                fetched = self._fetcher(name)(config.location, *self._most()).data
            self._spent[name] = self._clock() - started
            places, skipped = find_places(name, config, fetched)
        except DocumentError as error:
            return error
        if skipped:
            self._skipped[name] = skipped
        return places

    def _indexes(self, name: str) -> Iterator[Source | SourceReport]:
        for found in self._skills():
            if isinstance(found, Source):
                self._owners[found.name] = name
            yield found

    def _read(self, name: str, places: list[Place] | DocumentError) -> Iterator[Source | SourceReport]:
        config = self._configs[name]
        if isinstance(places, DocumentError):
            yield SourceReport(name, config.location, error=places)
            return
        for place in places:
            self._owners[place.name] = name
            held = Held(self._explicit.get(name, {}), self._defaults.of(name, place.long_name))
            try:
                yield with_settings(place.read(self._limits), config, held)
            except DocumentError as error:
                yield SourceReport(place.name, place.location, error=error)
            else:
                if self._linting and config.kind == "openapi":
                    self._places.append(place)

    def _retriever(self, source: Source) -> Callable[[str], bytes]:
        owner = self._owners[source.name]
        reads = Retriever(
            source,
            self._configs[owner],
            self._fetcher(owner),
            limits=self._limits,
            clock=self._clock,
            spent=self._spent.get(owner, 0.0),
        )
        return lambda uri: reads(uri).data

    def _fetcher(self, name: str) -> FetchPiece:
        return partial(self._fetch, name)

    def _most(self) -> tuple[float, int]:
        return self._limits.timeout, self._limits.max_bytes

    def _linted(self, report: LoadReport) -> dict[str, list[Remark]]:
        failed = {one.source for one in report.failed}
        return {place.name: self._lint(place) for place in self._places if place.name not in failed}

    def _lint(self, place: Place) -> list[Remark]:
        try:
            source = place.read(self._limits)
        except DocumentError as error:  # it has gone since it was checked
            return [Remark(error.message)]
        return lint(source, self._retriever(source))
