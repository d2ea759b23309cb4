"""Builds snapshots: reads what is due, keeps what each document last gave, makes catalog and searcher."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.from_thread
import anyio.to_thread

from capdex_engine.call import CallTool, Executor, Request, Response, Tokens, Transport
from capdex_engine.catalog import Catalog, Source, build_catalog
from capdex_engine.errors import DocumentError, shown_location
from capdex_server.aliases import Aliases
from capdex_server.config import Settings
from capdex_server.credentials import Credential, DefaultCredentials, Secrets, read_secrets
from capdex_server.oauth import OwnedTokens, TokenStore
from capdex_server.outbound import Outbound, configured_origins
from capdex_server.pieces import FetchFailed, Piece, Stamp, read_file, stamp_of
from capdex_server.policy import Policy, idle_rules
from capdex_server.reach import Retriever
from capdex_server.remarks import remarks_on
from capdex_server.skills_source import Skills, read_skills
from capdex_server.snapshot import Snapshot
from capdex_server.sources import Doc, Loaded, Reading, changed_on_disk, combine, part_name, read_source

if TYPE_CHECKING:
    from capdex_engine.encode import Encoder
    from capdex_engine.rank import Searcher
    from capdex_server.upstream.upstreams import Upstreams

Progress = Callable[[int, int], None]
"""``(texts encoded, texts in all)``."""
Credentials = Mapping[str, Mapping[str, Credential]]
Pages = Mapping[str, Piece | DocumentError]
"""Configured source -> its document, or why its URL gave none."""
STAYS: Final = "What it gave before stays in use."


class ByOwner:
    """A ``Transport`` that sends under the names that sources are configured by.

    A folder gives several engine sources; addresses, like everything an operator sets, are the
    configured source's.
    """

    def __init__(self, transport: Transport, owners: Mapping[str, str]) -> None:
        self._transport = transport
        self._owners = owners

    async def __call__(self, request: Request, *, source: str, timeout: float, max_bytes: int) -> Response:
        """Send as :class:`Transport` says."""
        owner = self._owners.get(source, source)
        return await self._transport(request, source=owner, timeout=timeout, max_bytes=max_bytes)


async def build_snapshot(settings: Settings, **parts: Any) -> Snapshot:
    """Read every source once and build a snapshot; ``parts`` are the arguments of :class:`Builder`.

    Raises:
        ConfigurationError: A credential is ambiguous or its file unreadable.
        ModelError: The encoder's files are wrong.
    """
    return await Builder(settings, **parts)()


@dataclass(slots=True)
class _Draft:
    """A catalog, and what it was made from."""

    readings: dict[str, Reading]
    loaded: Loaded
    catalog: Catalog

    def failures(self) -> dict[str, DocumentError]:
        """Return source -> why it, or one document of it, gave nothing."""
        failed = dict(self.loaded.failures)
        for report in self.catalog.report.failed:
            if report.error is not None:
                report.error.details.setdefault("location", shown_location(report.location))
                failed[report.source] = _bare(report.error)
        return failed


class Builder:
    """Builds one snapshot after another; one at a time.

    Fetching happens on the event loop; reading, parsing and encoding in a worker thread. A source
    that fails is in the snapshot's ``failures``, and the others are there. A document that had loaded
    and now fails, or has lost a file that it refers to, is served as it was.

    Args:
        settings: Sources, limits and the cache folder.
        outbound: Fetches documents, and sends calls unless ``transport`` is given.
        encoder: Called in the worker thread; None builds without a searcher.
        environ: Where credentials are looked up.
        credentials: Further ones (source -> scheme -> value), of the command line; they win.
        transport: Sends calls instead of ``outbound``.
        upstreams: MCP servers, connected by whoever uses the builder; None where there are none.
        progress: Told how many texts have been encoded.
        clock: Seconds, for limits on fetching.
        skills: Remote skills; those that the settings name.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        outbound: Outbound,
        encoder: Callable[[], Encoder] | None,
        environ: Mapping[str, str],
        credentials: Credentials | None = None,
        transport: Transport | None = None,
        upstreams: Upstreams | None = None,
        progress: Progress | None = None,
        clock: Callable[[], float] = time.monotonic,
        skills: Skills | None = None,
    ) -> None:
        self.settings = settings
        self.skills = skills or Skills(settings, environ, clock=clock)
        self._outbound = outbound
        self._encoder = encoder
        self._environ = environ
        self._given = credentials or {}
        self._transport = transport
        self.upstreams = upstreams
        self._progress = progress
        self._clock = clock
        # Tokens outlive a reload: what they are for is in their key.
        self._tokens = TokenStore(
            transport or outbound,
            clock=clock,
            configured={name: configured_origins(config) for name, config in settings.sources.items()},
        )
        self._pages: dict[tuple[str, str], Piece] = {}
        self._ahead: dict[str, tuple[Piece | DocumentError, float]] = {}
        self._last: dict[str, Reading] = {}
        self._served: dict[str, Reading] = {}
        self._good: dict[tuple[str, str], Doc] = {}
        self._names: Mapping[str, tuple[str, ...]] = {}
        self._secrets = Secrets()
        self._ready: Encoder | None = None
        self._built: Snapshot | None = None

    async def __call__(self, only: Collection[str] | None = None) -> Snapshot:
        """Read sources and return the snapshot; the same one as before where nothing has changed.

        Args:
            only: Configured sources to read again; of the others what was read before is used.

        Raises:
            ConfigurationError: A credential is ambiguous or its file unreadable.
            ModelError: The encoder's files are wrong.
        """
        names = [name for name in self.settings.sources if only is None or name in only or not self._last]
        secrets = read_secrets(self.settings, self._environ, self._given)
        pages, spent = await self._fetch_pages(names)
        work = partial(self._build, names, pages, spent, secrets)
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)

    async def fetch(self, name: str) -> None:
        """Fetch a URL's document ahead of the build that takes it, so that no build waits for it."""
        self._ahead[name] = await self._page(name)

    def waits(self, name: str) -> bool:
        """Return whether a document that has been fetched ahead waits for a build to take it."""
        return name in self._ahead

    def postpone(self, name: str) -> None:
        """Let the next build go without a URL's document that is still being fetched."""
        location = self.settings.sources[name].location
        late: Piece | DocumentError = FetchFailed("The document is still being fetched.", location=location)
        if self._is_server(name):
            late = self._tools(name)
        self._ahead.setdefault(name, (late, 0.0))

    def changed(self) -> dict[str, dict[Path, Stamp | None]]:
        """Return source -> its files that are not as they were read, with their stamps now."""
        found = {
            name: changed_on_disk(reading, self.settings.sources[name])
            for name, reading in self._last.items()
        }
        return {name: files for name, files in found.items() if files}

    def files(self) -> dict[Path, set[str]]:
        """Return every file that was read or missed -> the sources that it belongs to."""
        found: dict[Path, set[str]] = {}
        for name, reading in self._last.items():
            for path in reading.seen:
                found.setdefault(path, set()).add(name)
        return found

    def failing(self) -> dict[str, float | None]:
        """Return the sources to try again -> the seconds that a server asks to wait, where one does."""
        waits: dict[str, float | None] = {}
        for name, reading in self._last.items():
            errors = [error for error in _errors(reading) if isinstance(error, FetchFailed)]
            asked = [error.retry_after for error in errors if error.retry_after is not None]
            if self._is_server(name):
                continue  # it is connected to again without a build
            if errors or reading.error or reading.unreadable or self._failed(name):
                waits[name] = max(asked, default=None)
        return waits

    def _failed(self, name: str) -> bool:
        owners = self._built.owners if self._built else {}
        failures = self._built.failures if self._built else {}
        return any(owners.get(source, source) == name for source in failures)

    async def _fetch_pages(
        self, names: Collection[str]
    ) -> tuple[dict[str, Piece | DocumentError], dict[str, float]]:
        pages: dict[str, Piece | DocumentError] = {}
        spent: dict[str, float] = {}

        async def one(name: str) -> None:
            ahead = self._ahead.pop(name, None)
            if ahead is None or (self._is_server(name) and self._is_tried(name)):
                ahead = await self._page(name)
            pages[name], spent[name] = ahead

        async with anyio.create_task_group() as group:
            for name in names:
                if self.settings.sources[name].is_remote:
                    group.start_soon(one, name)
        return pages, spent

    async def _page(self, name: str) -> tuple[Piece | DocumentError, float]:
        """Return what a source's URL or server gives, and the seconds that it took."""
        started, url = self._clock(), self.settings.sources[name].location
        page: Piece | DocumentError
        if self._is_server(name):
            if self.upstreams is not None:
                await self.upstreams.servers[name].tried.wait()
            return self._tools(name), self._clock() - started
        if self.settings.sources[name].kind == "skills":
            return await self.skills.page(), 0.0
        try:
            since, limits = self._pages.get((name, url)), self.settings.documents
            page = await self._outbound.fetch(url, source=name, since=since, limits=limits)
        except DocumentError as error:
            page = _bare(error)
        return page, self._clock() - started

    def _is_server(self, name: str) -> bool:
        return self.settings.sources[name].kind == "mcp"

    def _is_tried(self, name: str) -> bool:
        return self.upstreams is not None and self.upstreams.servers[name].tried.is_set()

    def _tools(self, name: str) -> Piece | DocumentError:
        """Return the tools of a server as they are known now."""
        try:
            if self.upstreams is None:
                raise DocumentError("No MCP server is connected here.", location=f"mcp://{name}")
            return self.upstreams.now(name)
        except DocumentError as error:
            return _bare(error)

    def _build(
        self, names: Collection[str], pages: Pages, spent: Mapping[str, float], secrets: Secrets
    ) -> Snapshot:
        fresh = {name: self._read(name, pages.get(name), spent.get(name, 0.0)) for name in names}
        same = self._built is not None and secrets == self._secrets
        if self._built and same and all(one.same_as(self._last[name]) for name, one in fresh.items()):
            # The bytes are the same: the old ones are shared by what serves.
            self._last |= {name: replace(one, docs=self._last[name].docs) for name, one in fresh.items()}
            return self._built
        readings = {**self._last, **fresh}
        defaults = DefaultCredentials(self.settings.sources, self._environ)
        draft = self._draft(readings, secrets, defaults)
        failures, mended = self._mended(draft)
        if self._built and same and _same_documents(mended, self._served):
            everything = (*self._built.catalog.operations, *self._built.catalog.kept_out)
            aliases = Aliases({**draft.loaded.names, **self._names}, everything)
            visible = draft.loaded.visible
            snapshot = replace(self._built, failures=failures, aliases=aliases, visible=visible)
        else:
            if failures and not _same_documents(mended, readings):
                draft = self._draft(mended, secrets, defaults)
                # What serves as it was and fails all the same counts as the failure that it is.
                failures = {**draft.failures(), **failures}
            snapshot = self._snapshot(draft, failures, secrets)
            self._keep(draft)
        self._last, self._secrets, self._built = readings, secrets, snapshot
        return snapshot

    def _read(self, name: str, page: Piece | DocumentError | None, spent: float) -> Reading:
        """Read a source; where a document is as it was, read again what it refers to."""
        if self.settings.sources[name].kind == "skills" and page is not None:
            return read_skills(name, page)
        reading = read_source(name, self.settings.sources[name], page, self.settings.documents)
        reading.spent = spent
        if isinstance(page, Piece):
            self._pages[name, self.settings.sources[name].location] = page
        before = {doc.location: doc for doc in self._last[name].docs} if name in self._last else {}
        for doc in reading.docs:
            known = before.get(doc.location)
            if known is not None and known.data == doc.data:
                doc.data = known.data
                read = self._reader(name, reading, doc, doc.named(name))
                for uri in known.pieces:
                    _attempt(read, uri)
        return reading

    def _reader(self, name: str, reading: Reading, doc: Doc, source: Source) -> Callable[[str], bytes]:
        """Return what reads the files that a document refers to, each once per reading."""

        def fetch(url: str, seconds: float, room: int) -> Piece:
            limits = self.settings.documents.model_copy(update={"timeout": seconds, "max_bytes": room})
            since = self._pages.get((name, url))
            ask = partial(self._outbound.fetch, url, source=name, since=since, limits=limits)
            self._pages[name, url] = piece = anyio.from_thread.run(ask)
            return piece

        def from_disk(path: Path, real: Path, room: int) -> Piece:
            reading.seen[path] = stamp_of(path)
            piece = read_file(real, room)
            reading.seen[path] = piece.stamp
            return piece

        retriever = Retriever(
            source,
            self.settings.sources[name],
            fetch,
            read=from_disk,
            limits=self.settings.documents,
            clock=self._clock,
            spent=reading.spent,
        )

        def read(uri: str) -> bytes:
            piece = doc.pieces.get(uri)
            if piece is None:
                try:
                    piece = retriever(uri)
                except DocumentError as error:
                    piece = _bare(error)
                doc.pieces[uri] = piece
            if isinstance(piece, DocumentError):
                raise DocumentError(piece.message, **piece.details)
            return piece.data

        return read

    def _draft(self, readings: dict[str, Reading], secrets: Secrets, defaults: DefaultCredentials) -> _Draft:
        loaded = combine(readings, self.settings.sources, secrets, defaults)

        def retrieve(source: Source) -> Callable[[str], bytes]:
            owner = loaded.owners[source.name]
            return self._reader(owner, readings[owner], loaded.docs[source.name], source)

        catalog = build_catalog(loaded.sources, retrieve=retrieve, cache=self.settings.cache / "catalogs")
        return _Draft(readings, loaded, catalog)

    def _mended(self, draft: _Draft) -> tuple[dict[str, DocumentError], dict[str, Reading]]:
        """Return all failures, and the readings with documents that fail as they last were good."""
        failures = draft.failures()
        broken: set[tuple[str, str]] = set()
        for own, doc in draft.loaded.docs.items():
            key = (draft.loaded.owners[own], doc.location)
            lost = _lost(doc, self._good.get(key))
            if lost is not None:
                failures.setdefault(own, lost)
            if own in failures and key in self._good:
                broken.add(key)
                failures[own] = _staying(failures[own])
        mended = {}
        for name, reading in draft.readings.items():
            docs, stays = self._documents(name, reading, broken)
            mended[name] = replace(reading, docs=docs)
            failures |= stays
        return {**draft.loaded.troubles, **failures}, mended

    def _documents(
        self, name: str, reading: Reading, broken: Collection[tuple[str, str]]
    ) -> tuple[list[Doc], dict[str, DocumentError]]:
        """Return the documents to serve of a source, and failures of files that stay as they were."""
        if reading.error is not None:
            kept = self._served[name].docs if name in self._served else []
            return kept, {name: _staying(reading.error)} if kept else {}
        docs = {
            doc.location: self._good[name, doc.location] if (name, doc.location) in broken else doc
            for doc in reading.docs
        }
        stays: dict[str, DocumentError] = {}
        emptied = {
            path: DocumentError(f"The file {Path(path).name} is empty.", location=path)
            for path in reading.skipped
            if (stamp := reading.seen.get(Path(path))) and stamp[2] == 0
        }
        for location, error in {**emptied, **reading.unreadable}.items():
            good = self._good.get((name, location))
            if good is not None:
                docs[location] = good
                stays[part_name(name, location)] = _staying(error)
        return [docs[location] for location in sorted(docs)], stays

    def _keep(self, draft: _Draft) -> None:
        """Remember what is served, and which documents are good."""
        bad = draft.failures()
        self._served, self._names = draft.readings, draft.loaded.names
        self._good = {
            (draft.loaded.owners[own], doc.location): doc
            for own, doc in draft.loaded.docs.items()
            if own not in bad or (draft.loaded.owners[own], doc.location) in self._good
        }
        used = {(name, config.location) for name, config in self.settings.sources.items()}
        used |= {(owner, uri) for (owner, _), doc in self._good.items() for uri in doc.pieces}
        self._pages = {key: piece for key, piece in self._pages.items() if key in used}

    def _snapshot(self, draft: _Draft, failures: Mapping[str, DocumentError], secrets: Secrets) -> Snapshot:
        loaded, catalog = draft.loaded, draft.catalog
        sender = ByOwner(self._transport or self._outbound, loaded.owners)
        everything = (*catalog.operations, *catalog.kept_out)
        aliases = Aliases(loaded.names, everything)
        snapshot = Snapshot(
            catalog,
            _executor(
                self.settings,
                catalog,
                sender,
                loaded.credentials,
                OwnedTokens(self._tokens, loaded.owners),
                self.skills.caller(loaded.docs, self.upstreams),
            ),
            self._searcher(catalog),
            failures,
            aliases,
            loaded.owners,
            loaded.skipped,
            remarks_on(catalog, loaded.owners, secrets.schemes()),
            tuple(
                idle_rules(
                    self.settings.callers, everything, aliases, failures, self.settings.quotas.capability
                )
            ),
            loaded.tenants,
            loaded.visible,
        )
        if snapshot.searcher is not None:
            snapshot.prepare(self.settings.callers, Policy(read_only=self.settings.read_only))
        return snapshot

    def _searcher(self, catalog: Catalog) -> Searcher | None:
        if self._encoder is None:
            return None
        self._ready = self._ready or self._encoder()
        if self._built is not None and self._built.catalog.operations == catalog.operations:
            return self._built.searcher
        return _searcher(self.settings, catalog, self._ready, self._progress)


def _attempt(read: Callable[[str], bytes], uri: str) -> None:
    """Read for the record; a failure is in the record too."""
    with contextlib.suppress(DocumentError):
        read(uri)


def _bare(error: DocumentError) -> DocumentError:
    """Return an error without the frames it came through: they hold documents, and it is kept."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def _staying(error: DocumentError) -> DocumentError:
    if error.message.endswith(STAYS):
        return error
    return DocumentError(f"{error.message} {STAYS}", **error.details)


def _lost(doc: Doc, good: Doc | None) -> DocumentError | None:
    """Return an error where a file that the document refers to has been read before and cannot be now."""
    for uri, piece in doc.pieces.items():
        if isinstance(piece, DocumentError) and good and isinstance(good.pieces.get(uri), Piece):
            return DocumentError(
                f"A file that the document refers to cannot be read any more: {piece.message}", location=uri
            )
    return None


def _errors(reading: Reading) -> Iterator[DocumentError]:
    if reading.error is not None:
        yield reading.error
    for doc in reading.docs:
        yield from (piece for piece in doc.pieces.values() if isinstance(piece, DocumentError))


def _same_documents(mine: Mapping[str, Reading], its: Mapping[str, Reading]) -> bool:
    return mine.keys() == its.keys() and all(
        len(mine[name].docs) == len(its[name].docs)
        and all(one.same_as(other) for one, other in zip(mine[name].docs, its[name].docs, strict=True))
        for name in mine
    )


def _searcher(settings: Settings, catalog: Catalog, encoder: Encoder, progress: Progress | None) -> Searcher:
    # Late: without a search, neither ranking nor vectors are loaded.
    from capdex_engine.encode import VectorStore
    from capdex_engine.rank import Searcher

    store = VectorStore(settings.cache / "vectors", encoder)
    return Searcher.build(catalog.operations, encoder, store=store, progress=progress)


def _executor(
    settings: Settings,
    catalog: Catalog,
    transport: Transport,
    credentials: Credentials,
    tokens: Tokens,
    call_tool: CallTool,
) -> Executor:
    limits = settings.limits
    return Executor(
        catalog,
        transport=transport,
        credentials=credentials,
        tokens=tokens,
        call_tool=call_tool,
        clock=time.monotonic,
        timeout=limits.timeout,
        max_response_bytes=limits.max_response_bytes,
        max_answer_bytes=limits.max_answer_bytes,
    )
