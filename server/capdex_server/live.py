"""The live catalog: a :class:`Snapshot` under one revision, and the holder that swaps it."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.from_thread
import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from capdex_engine.call import Executor, Request, Response, Transport
from capdex_engine.catalog import Catalog, Source, build_catalog
from capdex_engine.errors import CapdexError, ConfigurationError, DocumentError, ModelError
from capdex_engine.operation import Operation
from capdex_server.aliases import Aliases
from capdex_server.callers import Caller
from capdex_server.config import Settings
from capdex_server.credentials import Credential, DefaultCredentials, explicit_credentials
from capdex_server.logs import get_logger
from capdex_server.outbound import Outbound
from capdex_server.policy import Policy, idle_rules
from capdex_server.remarks import Remark, remarks_on
from capdex_server.sources import Fetch, Loaded, load_sources, retriever

if TYPE_CHECKING:
    from capdex_engine.encode import Encoder
    from capdex_engine.rank import Searcher

Progress = Callable[[int, int], None]
"""``(texts encoded, texts in all)``."""
Credentials = Mapping[str, Mapping[str, Credential]]
_log = get_logger(__name__)


class NotReady(CapdexError):
    """There is no catalog: not yet, or since its first build failed.

    Args:
        failed: The build has failed; asking again helps only when the operator has mended it.
    """

    code = "not_ready"
    http_status = 503

    def __init__(self, *, failed: bool = False) -> None:
        text = (
            "No catalog could be loaded, so there is nothing to search or call. "
            "The server's log says why, and /readyz to those who may know: tell its operator."
            if failed
            else "The catalog is still being built. Try again in a few seconds."
        )
        super().__init__(text, retryable=not failed)


@dataclass(frozen=True, slots=True)
class SourceSummary:
    """One configured source as one caller sees it."""

    name: str
    title: str
    """Of its documents, with commas between."""
    operations: int
    """Operations that the caller may use."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One state of everything; never changes, so that a request sees one revision throughout."""

    catalog: Catalog
    executor: Executor
    searcher: Searcher | None = None
    """None when built without an encoder."""
    failures: Mapping[str, DocumentError] = field(default_factory=dict)
    """Source -> why its document gave nothing."""
    aliases: Aliases = field(default_factory=Aliases)
    """What rules and filters may call the catalog's sources and operations."""
    owners: Mapping[str, str] = field(default_factory=dict)
    """Engine source -> configured source."""
    skipped: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Configured source -> files of its folder that do not look like an API description."""
    remarks: Sequence[Remark] = ()
    """Settings and credentials that fit nothing."""
    idle_rules: Sequence[tuple[str, str]] = ()
    """``(caller, rule)`` for rules that fit no operation."""
    _masks: dict[str, NDArray[np.bool_]] = field(default_factory=dict)

    @property
    def revision(self) -> str:
        """Changes with every change of the catalog."""
        return self.catalog.revision

    def mask(self, caller: Caller, policy: Policy) -> NDArray[np.bool_]:
        """Return which of the catalog's operations the caller may use; computed once per caller."""
        mask = self._masks.get(caller.name)
        if mask is None:
            mask = policy.mask(caller, self.catalog.operations, self.aliases)
            mask.setflags(write=False)
            self._masks[caller.name] = mask
        return mask

    def allows(self, caller: Caller, policy: Policy) -> Callable[[Operation], bool]:
        """Return what says whether the caller may see and call an operation of the catalog."""
        return lambda operation: policy.allows(caller, operation, self.aliases)

    def narrowed(self, mask: NDArray[np.bool_], *, source: str | None, read_only: bool) -> NDArray[np.bool_]:
        """Return the mask without what a search's own filters leave out."""
        if source is None and not read_only:
            return mask
        wanted = (
            (source is None or source in self.aliases.of_source(operation.source))
            and (not read_only or operation.read_only)
            for operation in self.catalog.operations
        )
        return mask & np.fromiter(wanted, np.bool_, len(mask))

    def sources_for(self, caller: Caller, policy: Policy) -> list[SourceSummary]:
        """Return the configured sources with an operation that the caller may use, by name."""
        counts: Counter[str] = Counter()
        titles: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for operation, allowed in zip(self.catalog.operations, self.mask(caller, policy), strict=True):
            if allowed:
                owner = self.owners.get(operation.source, operation.source)
                counts[owner] += 1
                titles[owner].setdefault(operation.api_title)
        return [
            SourceSummary(name, ", ".join(filter(None, titles[name])), counts[name])
            for name in sorted(counts)
        ]


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
        sender = ByOwner(transport or outbound, loaded.owners)
        everything = (*catalog.operations, *catalog.kept_out)
        aliases = Aliases(loaded.names, everything)
        failures = _failures(loaded, catalog)
        return Snapshot(
            catalog,
            _executor(settings, catalog, sender, loaded.credentials),
            searcher,
            failures,
            aliases,
            loaded.owners,
            loaded.skipped,
            remarks_on(catalog, loaded.owners, explicit),
            tuple(idle_rules(settings.callers, everything, aliases, failures)),
        )

    return await anyio.to_thread.run_sync(build, abandon_on_cancel=True)


async def _fetch_all(settings: Settings, outbound: Outbound) -> dict[str, bytes | DocumentError]:
    fetched: dict[str, bytes | DocumentError] = {}

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


def _failures(loaded: Loaded, catalog: Catalog) -> dict[str, DocumentError]:
    failed = dict(loaded.failures)
    for report in catalog.report.failed:
        if report.error is not None:
            report.error.details.setdefault("location", report.location)
            failed[report.source] = report.error
    return failed


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
        self._aliases = Aliases()
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
            raise NotReady(failed=self._attempted.is_set() and not self._reloading.locked())
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
    def aliases(self) -> Aliases:
        """The names of the sources when they were last read, those that failed too."""
        return self._aliases

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
            if snapshot is not None and not raising:
                _say(snapshot, self._failure, time.monotonic() - started)
            self._attempted.set()
        if raising and not swapped:
            raise _joined(list(snapshot.failures.values()) if snapshot else [], str(self._failure))
        return swapped

    def _swap(self, snapshot: Snapshot) -> bool:
        self._problems = {source: error.message for source, error in snapshot.failures.items()}
        self._aliases = snapshot.aliases
        if self._acceptable(snapshot):
            self._current, self._failure = snapshot, None
            return True
        self._failure = (
            "no source could be loaded, so there is no catalog"
            if self._current is None
            else "a source that should load failed; what was loaded before stays"
        )
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


def _joined(errors: Sequence[DocumentError], otherwise: str) -> DocumentError:
    if len(errors) == 1:
        return errors[0]
    lines = [f"{error.details.get('location', '')}: {error.message}" for error in errors]
    return DocumentError("; ".join(lines) or otherwise)


def _say(snapshot: Snapshot, failure: str | None, seconds: float) -> None:
    """Log what a build gave; commands that answer one thing say it themselves."""
    for source, error in snapshot.failures.items():
        _log.error(
            "source.failed", source=source, location=error.details.get("location"), reason=error.message
        )
    if failure is not None:
        _log.error("catalog.not_swapped", reason=failure)
        return
    for source, remark in snapshot.remarks:
        _log.warning("setting.idle", source=source, reason=remark)
    for caller, rule in snapshot.idle_rules:
        _log.warning("rule.idle", caller=caller, rule=rule, reason="it fits no operation")
    _log.info(
        "catalog.loaded",
        revision=snapshot.revision,
        operations=len(snapshot.catalog.operations),
        kept_out=len(snapshot.catalog.kept_out),
        seconds=round(seconds, 2),
    )
