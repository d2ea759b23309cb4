"""Keeps a live catalog up to date: files are watched, URLs polled, failing sources tried again.

Events are hints. What counts is whether a file is still as it was when it was last read, so that lost
events, links that are swapped and file systems without events cost time, never a change.
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from capdex_server.build import Builder
from capdex_server.config import DOCUMENT_ENDINGS, Settings
from capdex_server.live import Live
from capdex_server.logs import get_logger
from capdex_server.schedule import Schedule
from capdex_server.upstream.making import connected

SETTLE: Final = 0.3
"""Seconds for which files must stay as they are before they are read: editors write in steps."""
MAX_SETTLES: Final = 20
"""Times that is waited for; a file that never rests is read all the same."""
LOOK: Final = 10.0
"""Seconds between two looks at the files when events work."""
LOOK_WITHOUT_EVENTS: Final = 2.0
PATIENCE: Final = 3.0
"""Seconds that the first catalog waits for URLs while other sources are there."""
Tell = Callable[[set[Path]], None]
Events = Callable[[Collection[Path], bool, Tell], Awaitable[None]]
"""``(folders, recursive, tell)``: tells the paths that something happened to, until cancelled."""
Sleep = Callable[[float], Awaitable[Any]]
_log = get_logger(__name__)


async def file_events(folders: Collection[Path], recursive: bool, tell: Tell) -> None:
    """Tell paths as the operating system does, until cancelled.

    Raises:
        OSError: A folder cannot be watched.
    """
    # Late: commands that answer once watch nothing.
    from watchfiles import awatch

    stop = anyio.Event()

    async def stop_in_time() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            # The library waits in a thread that cancelling does not reach; it looks at this.
            stop.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop_in_time)
        changes = awatch(
            *folders, watch_filter=None, debounce=200, step=50, stop_event=stop, recursive=recursive
        )
        async for batch in changes:
            tell({Path(path) for _, path in batch})
        tasks.cancel_scope.cancel()


async def keep_current(live: Live, settings: Settings) -> None:
    """Build the first catalog, then keep it current until cancelled.

    A URL that is slow holds the first catalog up for :data:`PATIENCE` seconds at most, as long as
    there is another source to serve; its document joins when it has come.
    """
    builder = live.build
    if not isinstance(builder, Builder):
        if not live.ready:
            await live.reload()
        return
    async with connected(builder.upstreams), anyio.create_task_group() as tasks:
        late = {} if live.ready else _fetched_ahead(builder, tasks)
        await _some(late, wait_for_one=len(late) == len(settings.sources))
        late = {name: come for name, come in late.items() if not come.is_set()}
        for name in late:
            builder.postpone(name)
        if not live.ready:
            await live.reload()
        keeper = Keeper(live, builder, settings)
        if builder.upstreams is not None:
            tasks.start_soon(keeper.follow, builder.upstreams.changed)
        await keeper.run(late)


def _fetched_ahead(builder: Builder, tasks: TaskGroup) -> dict[str, anyio.Event]:
    """Begin to fetch every URL; return source -> what is set when its document has come, or will not."""
    come = {name: anyio.Event() for name, source in builder.settings.sources.items() if source.is_remote}

    async def fetch(name: str) -> None:
        await builder.fetch(name)
        come[name].set()

    for name in come:
        tasks.start_soon(fetch, name)
    return come


async def _some(come: Mapping[str, anyio.Event], *, wait_for_one: bool) -> None:
    """Return when all have come, or when patience is over and, where one is needed, one has."""
    with anyio.move_on_after(PATIENCE):
        for event in come.values():
            await event.wait()
    if wait_for_one and come and not any(event.is_set() for event in come.values()):
        async with anyio.create_task_group() as either:

            async def until(event: anyio.Event) -> None:
                await event.wait()
                either.cancel_scope.cancel()

            for event in come.values():
                either.start_soon(until, event)


class Keeper:
    """Reloads what has changed.

    Args:
        live: What to keep current; its first build has ended.
        builder: What it builds with.
        settings: Intervals and switches.
        clock, sleep, chance, events: The outside world.
    """

    def __init__(
        self,
        live: Live,
        builder: Builder,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = anyio.sleep,
        chance: Callable[[], float] = random.random,
        events: Events = file_events,
    ) -> None:
        self._live, self._builder = live, builder
        self._sources = settings.sources
        self._watches = settings.reload.watch
        self._sleep, self._events = sleep, events
        intervals = {name: one.polled(settings.reload.refresh) for name, one in self._sources.items()}
        self._schedule = Schedule(intervals, clock=clock, chance=chance)
        self._note(self._sources)
        self._rescheduled = anyio.Event()
        self._hinted: set[Path] = set()
        self._hint = anyio.Event()
        self._blind = False
        self._files: frozenset[Path] = frozenset()

    async def run(self, late: Mapping[str, anyio.Event] | None = None) -> None:
        """Watch, poll and retry until cancelled.

        Args:
            late: Sources that are being fetched -> what is set when that has ended.
        """
        async with anyio.create_task_group() as tasks:
            for name, come in (late or {}).items():
                self._schedule.begin([name])
                tasks.start_soon(self._take, name, come.wait)
            tasks.start_soon(self._keep_time, tasks)
            if self._watches and not all(source.is_url for source in self._sources.values()):
                tasks.start_soon(self._keep_watch)

    async def follow(self, changed: Callable[[], Awaitable[Collection[str]]]) -> None:
        """Read MCP servers again whenever they are said to have changed, until cancelled."""
        while True:
            await self.reload(await changed())

    async def _take(self, name: str, fetched: Callable[[], Awaitable[Any]]) -> None:
        """Read a URL's source once its document has been fetched; meanwhile others are read."""
        await fetched()
        if self._builder.waits(name):
            await self.reload({name})
        else:  # another build has taken it
            self._note({name})
            self._rescheduled.set()

    async def reload(self, names: Collection[str]) -> None:
        """Reload sources, and plan when they are read again."""
        await self._live.reload(names)
        self._note(names)
        self._rescheduled.set()

    def _note(self, names: Collection[str]) -> None:
        failing = self._builder.failing()
        if self._live.failure is not None:
            # The build as a whole failed: anything may mend it.
            failing, names = {**dict.fromkeys(self._sources), **failing}, self._sources
        self._schedule.read(names, failing)

    async def _keep_time(self, tasks: TaskGroup) -> None:
        while True:
            self._rescheduled = anyio.Event()
            await self._first(self._rescheduled, self._schedule.wait())
            due = self._schedule.due()
            self._schedule.begin(due)
            urls = {name for name in due if self._sources[name].is_url}
            for name in urls:
                tasks.start_soon(self._take, name, partial(self._builder.fetch, name))
            if due - urls:
                await self.reload(due - urls)

    async def _first(self, event: anyio.Event, seconds: float | None) -> None:
        """Return when the event comes, or after the given seconds if there are any."""

        async def until(what: Callable[[], Awaitable[Any]]) -> None:
            await what()
            either.cancel_scope.cancel()

        async with anyio.create_task_group() as either:
            either.start_soon(until, event.wait)
            if seconds is not None:
                either.start_soon(until, partial(self._sleep, seconds))

    async def _keep_watch(self) -> None:
        while True:
            flat, deep = await anyio.to_thread.run_sync(self._folders)
            async with anyio.create_task_group() as watching:
                for folders, recursive in ((flat, False), (deep, True)):
                    if folders:
                        watching.start_soon(self._listen, folders, recursive)
                # What happened while nobody listened is seen by looking.
                await self._look()
                while await anyio.to_thread.run_sync(self._folders) == (flat, deep):
                    await self._first(self._hint, LOOK_WITHOUT_EVENTS if self._blind else LOOK)
                    await self._look()
                watching.cancel_scope.cancel()

    async def _listen(self, folders: Collection[Path], recursive: bool) -> None:
        try:
            await self._events(sorted(folders), recursive, self._told)
        except Exception as error:  # the library's own class, and OSError: too many watches, a folder gone
            if not self._blind:
                _log.warning("watch.without_events", reason=str(error) or type(error).__name__)
            self._blind = True

    def _told(self, paths: set[Path]) -> None:
        """Take a hint, but not from files that only lie in the same folder, such as a log."""
        hints = {path for path in paths if path in self._files or _may_matter(path)}
        if hints:
            self._hinted |= hints
            self._hint.set()

    async def _look(self) -> None:
        """Reload the sources whose files have changed, once the files rest."""
        hinted, self._hinted, self._hint = self._hinted, set(), anyio.Event()
        names, state = await anyio.to_thread.run_sync(self._changed, hinted)
        for _ in range(MAX_SETTLES):
            if not names:
                return
            await self._sleep(SETTLE)
            hinted |= self._hinted
            names, now = await anyio.to_thread.run_sync(self._changed, hinted)
            if now == state and not self._hint.is_set():
                break
            self._hinted, self._hint, state = set(), anyio.Event(), now
        await self.reload(names)

    def _changed(self, hinted: set[Path]) -> tuple[set[str], object]:
        """Return the sources with changed files, and the state that these are in."""
        changed = self._builder.changed()
        files = self._builder.files()
        # A hint for a very file counts though its stamp is the same: clocks of file systems are coarse.
        named = set().union(*(files.get(path, set()) for path in hinted))
        return {*changed, *named}, changed

    def _folders(self) -> tuple[frozenset[Path], frozenset[Path]]:
        """Return the folders to watch: each alone, and each with all below it."""
        deep = {
            Path(source.location).absolute()
            for source in self._sources.values()
            if not source.is_url and Path(source.location).is_dir()
        }
        flat: set[Path] = set()
        self._files = frozenset(self._builder.files())
        for path in self._files:
            for folder in {path.parent, path.resolve().parent}:
                found = next((one for one in (folder, *folder.parents) if one.is_dir()), None)
                if found is not None and not any(found.is_relative_to(root) for root in deep):
                    flat.add(found)
        return frozenset(flat), frozenset(deep)


def _may_matter(path: Path) -> bool:
    """Return whether it may be a document, or a way to one."""
    return path.suffix.lower() in DOCUMENT_ENDINGS or path.is_symlink() or path.is_dir() or not path.exists()
