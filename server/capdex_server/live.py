"""The live catalog: a :class:`Snapshot` under one revision, and the holder that swaps it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.from_thread
import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from capdex_engine.call import Executor, Transport
from capdex_engine.catalog import Catalog, Source, build_catalog
from capdex_engine.errors import CapdexError, ConfigurationError, DocumentError, ModelError
from capdex_server.callers import Caller
from capdex_server.config import Settings
from capdex_server.credentials import Credential, DefaultCredentials, explicit_credentials
from capdex_server.logs import get_logger
from capdex_server.outbound import Outbound
from capdex_server.policy import Policy
from capdex_server.sources import Fetch, Loaded, load_sources, retriever

if TYPE_CHECKING:
    from capdex_engine.encode import Encoder
    from capdex_engine.rank import Searcher

Progress = Callable[[int, int], None]
"""``(texts encoded, texts in all)``."""
Credentials = Mapping[str, Mapping[str, Credential]]
_log = get_logger(__name__)


class NotReady(CapdexError):
    """There is no catalog yet; trying again soon is right."""

    code = "not_ready"
    http_status = 503

    def __init__(self) -> None:
        super().__init__("The catalog is still being built. Try again in a few seconds.", retryable=True)


@dataclass(frozen=True, slots=True)
class SourceSummary:
    """One source as one caller sees it."""

    name: str
    title: str
    operations: int
    """Operations that the caller may use."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One state of everything; never changes, so that a request sees one revision throughout."""

    catalog: Catalog
    executor: Executor
    searcher: Searcher | None = None
    """None when built without an encoder."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """Source -> why its document gave nothing."""
    _masks: dict[str, NDArray[np.bool_]] = field(default_factory=dict)

    @property
    def revision(self) -> str:
        """Changes with every change of the catalog."""
        return self.catalog.revision

    def mask(self, caller: Caller, policy: Policy) -> NDArray[np.bool_]:
        """Return which of the catalog's operations the caller may use; computed once per caller."""
        mask = self._masks.get(caller.name)
        if mask is None:
            mask = policy.mask(caller, self.catalog.operations)
            mask.setflags(write=False)
            self._masks[caller.name] = mask
        return mask

    def narrowed(self, mask: NDArray[np.bool_], *, source: str | None, read_only: bool) -> NDArray[np.bool_]:
        """Return the mask without what a search's own filters leave out."""
        if source is None and not read_only:
            return mask
        wanted = (
            (source is None or operation.source == source) and (not read_only or operation.read_only)
            for operation in self.catalog.operations
        )
        return mask & np.fromiter(wanted, np.bool_, len(mask))

    def sources_for(self, caller: Caller, policy: Policy) -> list[SourceSummary]:
        """Return the sources with at least one operation that the caller may use, by name."""
        counts: dict[str, int] = {}
        titles: dict[str, str] = {}
        for operation, allowed in zip(self.catalog.operations, self.mask(caller, policy), strict=True):
            if allowed:
                counts[operation.source] = counts.get(operation.source, 0) + 1
                titles.setdefault(operation.source, operation.api_title)
        return [SourceSummary(name, titles[name], counts[name]) for name in sorted(counts)]


async def build_snapshot(
    settings: Settings,
    *,
    outbound: Outbound,
    encoder: Callable[[], Encoder] | None,
    environ: Mapping[str, str],
    credentials: Credentials | None = None,
    transport: Transport | None = None,
    progress: Progress | None = None,
) -> Snapshot:
    """Read every source and build a catalog, its searcher and its executor.

    Fetching happens here; reading, parsing and encoding in a worker thread. A source that fails is
    in ``failures``, and the others are there.

    Args:
        settings: Sources, limits and the cache folder.
        outbound: Fetches documents, and sends calls unless ``transport`` is given.
        encoder: Called in the worker thread; None builds without a searcher.
        environ: Where credentials are looked up.
        credentials: Further ones (source -> scheme -> value), of the command line; they win.
        transport: Sends calls instead of ``outbound``.
        progress: Told how many texts have been encoded.

    Raises:
        ConfigurationError: A credential is ambiguous or its file unreadable.
        ModelError: The encoder's files are wrong.
    """
    explicit = explicit_credentials(settings, environ)
    for name, held in (credentials or {}).items():
        explicit[name] = {**explicit.get(name, {}), **held}
    defaults = DefaultCredentials(settings.sources, environ)
    fetched = await _fetch_all(settings, outbound)

    def fetch(url: str, source: str) -> bytes:
        return anyio.from_thread.run(partial(outbound.fetch, url, source=source))

    def build() -> Snapshot:
        loaded = load_sources(settings.sources, fetched, explicit, defaults)
        catalog = _catalog(settings, loaded, fetch)
        searcher = _searcher(settings, catalog, encoder, progress) if encoder else None
        executor = _executor(settings, catalog, transport or outbound, loaded.credentials)
        return Snapshot(catalog, executor, searcher, _failures(loaded, catalog))

    return await anyio.to_thread.run_sync(build, abandon_on_cancel=True)


async def _fetch_all(settings: Settings, outbound: Outbound) -> dict[str, bytes | CapdexError]:
    fetched: dict[str, bytes | CapdexError] = {}

    async def one(name: str, url: str) -> None:
        try:
            fetched[name] = await outbound.fetch(url, source=name)
        except DocumentError as error:
            fetched[name] = error

    async with anyio.create_task_group() as group:
        for name, source in settings.sources.items():
            if source.is_url:
                group.start_soon(one, name, source.location)
    return fetched


def _catalog(settings: Settings, loaded: Loaded, fetch: Fetch) -> Catalog:
    def retrieve(source: Source) -> Callable[[str], bytes]:
        owner = loaded.owners[source.name]
        return retriever(source, owner, settings.sources[owner], fetch)

    return build_catalog(loaded.sources, retrieve=retrieve, cache=settings.cache / "catalogs")


def _searcher(
    settings: Settings, catalog: Catalog, encoder: Callable[[], Encoder], progress: Progress | None
) -> Searcher:
    # Late: without a search, neither ranking nor vectors are loaded.
    from capdex_engine.encode import VectorStore
    from capdex_engine.rank import Searcher

    ready = encoder()
    store = VectorStore(settings.cache / "vectors", ready)
    return Searcher.build(catalog.operations, ready, store=store, progress=progress)


def _executor(
    settings: Settings, catalog: Catalog, transport: Transport, credentials: Credentials
) -> Executor:
    limits = settings.limits
    return Executor(
        catalog,
        transport=transport,
        credentials=credentials,
        clock=time.monotonic,
        timeout=limits.timeout,
        max_response_bytes=limits.max_response_bytes,
        max_answer_bytes=limits.max_answer_bytes,
    )


def _failures(loaded: Loaded, catalog: Catalog) -> dict[str, str]:
    failed = {report.source: report.error.message for report in catalog.report.failed if report.error}
    return {**loaded.failures, **failed}


class Live:
    """Holds the current snapshot; a reload builds the next beside it and swaps.

    Args:
        build: Builds a snapshot from what the sources hold now.
    """

    def __init__(self, build: Callable[[], Awaitable[Snapshot]]) -> None:
        self._build = build
        self._current: Snapshot | None = None
        self._problems: Mapping[str, str] = {}
        self._failure: str | None = None
        self._reloading = anyio.Lock()
        self._attempted = anyio.Event()

    @classmethod
    def from_settings(cls, settings: Settings, **parts: Any) -> Live:
        """Return one over :func:`build_snapshot`; ``parts`` are its keyword arguments."""
        return cls(partial(build_snapshot, settings, **parts))

    @property
    def current(self) -> Snapshot:
        """The snapshot to answer from.

        Raises:
            NotReady: None has been built yet.
        """
        if self._current is None:
            raise NotReady
        return self._current

    @property
    def ready(self) -> bool:
        """Whether there is a snapshot."""
        return self._current is not None

    @property
    def problems(self) -> Mapping[str, str]:
        """Source -> what failed when it was last read; empty when all is well."""
        return self._problems

    @property
    def failure(self) -> str | None:
        """Why the last build as a whole gave nothing, or None."""
        return self._failure

    async def wait(self, seconds: float) -> None:
        """Return once a first build has ended, well or not, or after the given time."""
        with anyio.move_on_after(seconds):
            await self._attempted.wait()

    async def reload(self, *, raising: bool = False) -> bool:
        """Build anew and swap; return whether it was swapped.

        The last good snapshot stays when the build fails, or when a source fails that had loaded.

        Args:
            raising: Raise why it was not swapped, for a command that can do nothing without.
        """
        async with self._reloading:
            started = time.monotonic()
            snapshot = await (self._build() if raising else self._attempt())
            swapped = snapshot is not None and self._swap(snapshot)
            if snapshot is not None and swapped:
                _say_loaded(snapshot, time.monotonic() - started)
            self._attempted.set()
        if raising and not swapped:
            raise DocumentError(" ".join(self._problems.values()) or str(self._failure))
        return swapped

    def _swap(self, snapshot: Snapshot) -> bool:
        self._problems = snapshot.failures
        if self._acceptable(snapshot):
            self._current, self._failure = snapshot, None
            return True
        self._failure = "a source that should load failed; what was loaded before stays"
        _log.error("catalog.kept", failures=dict(snapshot.failures))
        return False

    async def _attempt(self) -> Snapshot | None:
        try:
            return await self._build()
        except (ConfigurationError, ModelError) as error:
            self._failure = error.message
            _log.error("catalog.failed", reason=error.message)
        except Exception:
            self._failure = "an internal error; see the log"
            _log.exception("catalog.failed")
        return None

    def _acceptable(self, snapshot: Snapshot) -> bool:
        if self._current is not None:
            return set(snapshot.failures) <= set(self._current.failures)
        return bool(snapshot.catalog.operations) or not snapshot.failures


def _say_loaded(snapshot: Snapshot, seconds: float) -> None:
    for source, reason in snapshot.failures.items():
        _log.error("source.failed", source=source, reason=reason)
    _log.info(
        "catalog.loaded",
        revision=snapshot.revision,
        operations=len(snapshot.catalog.operations),
        kept_out=len(snapshot.catalog.kept_out),
        seconds=round(seconds, 2),
    )
