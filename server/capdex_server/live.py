"""The live catalog: the holder of the current :class:`Snapshot`, which swaps in the next one."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Final

import anyio

from capdex_engine.errors import CapdexError, ConfigurationError, DocumentError, ModelError
from capdex_engine.operation import Operation
from capdex_server.aliases import Aliases
from capdex_server.build import Builder, build_snapshot
from capdex_server.config import Settings
from capdex_server.logs import get_logger
from capdex_server.permissions import SourceSummary
from capdex_server.snapshot import Snapshot

__all__ = ["Live", "NotReady", "Snapshot", "SourceSummary", "build_snapshot"]

Build = Callable[[Collection[str] | None], Awaitable[Snapshot]]
"""Configured sources to read again (None is all) -> a snapshot, the same one where nothing has changed."""
SHOWN_FILES: Final = 5
"""Named in a log line that counts them all."""
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


class Live:
    """Holds the current snapshot; a reload builds the next beside it and swaps.

    Args:
        build: Builds a snapshot from what the sources hold now.
    """

    def __init__(self, build: Build) -> None:
        self.build = build
        self._current: Snapshot | None = None
        self._problems: Mapping[str, str] = {}
        self._failure: str | None = None
        self._aliases = Aliases()
        self._wanted: set[str] | None = set()
        self._swapped = False
        self._reloading = anyio.Lock()
        self._attempted = anyio.Event()

    @classmethod
    def from_settings(cls, settings: Settings, **parts: Any) -> Live:
        """Return one over a :class:`Builder`; ``parts`` are its keyword arguments."""
        return cls(Builder(settings, **parts))

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

    async def reload(self, only: Collection[str] | None = None, *, raising: bool = False) -> bool:
        """Build anew and swap; return whether there is another snapshot than before.

        The last good snapshot stays when the build fails. Reloads that are asked for during a build
        become one further build together.

        Args:
            only: Configured sources to read again; None is all.
            raising: Raise why there is no catalog, for a command that can do nothing without.
        """
        self._want(only)
        async with self._reloading:
            wanted, self._wanted = self._wanted, set()
            if wanted != set():
                self._swapped = await self._rebuild(wanted, raising=raising)
        return self._swapped

    def _want(self, only: Collection[str] | None) -> None:
        everything = only is None or self._wanted is None or self._current is None
        self._wanted = None if everything else {*(self._wanted or ()), *(only or ())}

    async def _rebuild(self, wanted: Collection[str] | None, *, raising: bool) -> bool:
        started = time.monotonic()
        before, told = self._current, (self._problems, self._failure)
        try:
            snapshot = await (self.build(wanted) if raising else self._attempt(wanted))
            accepted = snapshot is not None and self._accept(snapshot)
        finally:
            self._attempted.set()
        if raising and not accepted:
            raise _joined(list(snapshot.failures.values()) if snapshot else [], str(self._failure))
        if snapshot is not None and not raising:
            self._say(before, snapshot, *told, time.monotonic() - started)
        return accepted and snapshot is not before

    def _accept(self, snapshot: Snapshot) -> bool:
        self._problems = {source: error.message for source, error in snapshot.failures.items()}
        self._aliases = snapshot.aliases
        if self._current is None and snapshot.failures and not snapshot.catalog.operations:
            self._failure = "no source could be loaded, so there is no catalog"
            return False
        self._current, self._failure = snapshot, None
        return True

    async def _attempt(self, wanted: Collection[str] | None) -> Snapshot | None:
        try:
            return await self.build(wanted)
        except (ConfigurationError, ModelError) as error:
            self._fail(error.message)
        except Exception:
            self._failure = "an internal error; see the log"
            _log.exception("catalog.failed")
        return None

    def _fail(self, reason: str) -> None:
        if reason != self._failure:
            _log.error("catalog.failed", reason=reason)
        self._failure = reason

    def _say(
        self,
        before: Snapshot | None,
        snapshot: Snapshot,
        problems: Mapping[str, str],
        failure: str | None,
        seconds: float,
    ) -> None:
        """Log what a build gave, and nothing twice; commands that answer one thing say it themselves."""
        _say_problems(snapshot, problems)
        if self._failure is not None:
            if self._failure != failure:
                _log.error("catalog.not_loaded", reason=self._failure)
            return
        if before is not None and before.catalog is snapshot.catalog:
            return
        _say_remarks(before, snapshot)
        changes = {} if before is None else changes_between(before, snapshot)
        _log.info(
            "catalog.loaded" if before is None else "catalog.reloaded",
            revision=snapshot.revision,
            operations=len(snapshot.catalog.operations),
            kept_out=len(snapshot.catalog.kept_out),
            **changes,
            seconds=round(seconds, 2),
        )


def changes_between(before: Snapshot, after: Snapshot) -> dict[str, int]:
    """Return how many operations were added and removed, how many changed for callers, how many in words."""
    old = {operation.name: operation for operation in before.catalog.operations}
    new = {operation.name: operation for operation in after.catalog.operations}
    both = [(old[name], operation) for name, operation in new.items() if name in old]
    changed = sum(_contract(mine) != _contract(its) for mine, its in both)
    touched = sum((_contract(mine), _words(mine)) != (_contract(its), _words(its)) for mine, its in both)
    return {
        "added": len(new.keys() - old.keys()),
        "removed": len(old.keys() - new.keys()),
        "changed": changed,
        "reworded": touched - changed,
    }


def _contract(operation: Operation) -> tuple[object, ...]:
    return operation.key, operation.schema_digest, operation.availability


def _words(operation: Operation) -> tuple[object, ...]:
    texts = (operation.summary, operation.description, operation.reason, operation.deprecated)
    return (*texts, operation.tags, operation.keywords)


def _joined(errors: Sequence[DocumentError], otherwise: str) -> DocumentError:
    if len(errors) == 1:
        return errors[0]
    lines = [f"{error.details.get('location', '')}: {error.message}" for error in errors]
    return DocumentError("; ".join(lines) or otherwise)


def _say_problems(snapshot: Snapshot, before: Mapping[str, str]) -> None:
    for source, error in snapshot.failures.items():
        if before.get(source) != error.message:
            location = error.details.get("location")
            _log.error("source.failed", source=source, location=location, reason=error.message)
    for source in before.keys() - snapshot.failures.keys():
        _log.info("source.recovered", source=source)


def _say_remarks(before: Snapshot | None, snapshot: Snapshot) -> None:
    """Log settings without a use, and files of folders that are no documents, when these are new."""
    for source, files in snapshot.skipped.items():
        if before is None or before.skipped.get(source) != files:
            shown = list(files[:SHOWN_FILES])
            _log.info("source.not_documents", source=source, count=len(files), files=shown)
    for source, remark in snapshot.remarks:
        if before is None or (source, remark) not in before.remarks:
            _log.warning("setting.idle", source=source, reason=remark)
    for caller, rule in snapshot.idle_rules:
        if before is None or (caller, rule) not in before.idle_rules:
            _log.warning("rule.idle", caller=caller, rule=rule, reason="it fits no operation")
