"""The inventory of remote skills: which configuration answers whom, and what it has said of late.

A cascade: what has been promoted, the server's own configuration, then each workspace's of the caller's
tenant, in the order of the file. The first that answers wins, with an empty index too. A workspace that
wins is promoted: for its tenant, it is asked first from then on, as long as the process lives. Its
credential stays its own, and so does what it shows.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

import anyio

from capdex_engine.catalog.digest import canonical
from capdex_engine.errors import CapdexError
from capdex_engine.skills import Fault, Skill, SkillIndex
from capdex_server.logs import get_logger

SERVER_LEVEL: Final = "skills"
"""Name of the server's own configuration; a workspace's has its name after a dot."""
KEPT: Final = 30.0
"""Seconds that an answer counts, and a failure."""
MAX_ANSWERS: Final = 256
"""Kept at once; those that were asked for longest ago go first."""
SHOWN_FAULTS: Final = 20
"""Dropped entries that one line of the log names."""
_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SkillServer:
    """One configuration: ``[skills]``, or ``[workspaces.NAME.skills]``."""

    name: str
    """``skills``, or ``skills.NAME``; safe to show."""
    url: str
    """Of an MCP endpoint; not to be shown, since it may hold a secret."""
    tenant: str | None = None
    """Whose it is; None is everybody's."""
    enabled: bool = True
    token: Callable[[], str | None] = field(default=lambda: None, repr=False, compare=False)
    """Returns the bearer token as it is now; raises ConfigurationError where there should be one."""
    held: str = ""
    """Where the token lies, never the token."""

    @property
    def key(self) -> str:
        """A hash of the configuration, without the secret itself."""
        parts = [self.name, self.url, self.tenant, self.enabled, self.held]
        return sha256(canonical(parts)).hexdigest()


@dataclass(frozen=True, slots=True)
class SkillCatalog:
    """What one tenant has."""

    skills: tuple[Skill, ...] = ()
    server: str | None = None
    """The name of the configuration that answered; None where none did."""


@dataclass(frozen=True, slots=True)
class _Answer:
    index: SkillIndex
    failure: str | None
    since: float


@dataclass(slots=True)
class _Entry:
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    answer: _Answer | None = None


Read = Callable[[SkillServer], Awaitable[SkillIndex]]


class SkillInventory:
    """Reads the skills of tenants; bounded, and one read at a time per configuration. One per event loop.

    Args:
        servers: The server's own configuration first, then the workspaces' in the order of the file.
        read: Reads one index; raises CapdexError where it cannot be had.
        clock: Monotonic seconds.
        max_answers: Kept at once.
    """

    def __init__(
        self,
        servers: Sequence[SkillServer],
        *,
        read: Read,
        clock: Callable[[], float],
        max_answers: int = MAX_ANSWERS,
    ) -> None:
        self.servers = tuple(servers)
        self._read = read
        self._clock = clock
        self._max_answers = max_answers
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._promoted: dict[str | None, SkillServer] = {}
        self._failures: dict[str, str] = {}
        self._faults: dict[str, tuple[Fault, ...]] = {}

    @property
    def problems(self) -> Mapping[str, str]:
        """Configuration -> why it gave nothing when it was last read."""
        return self._failures

    @property
    def faults(self) -> Mapping[str, Sequence[Fault]]:
        """Configuration -> the entries that were dropped when it was last read."""
        return self._faults

    async def read_skill_catalog(self, tenant: str) -> SkillCatalog:
        """Return a tenant's skills; none where no configuration answers. Raises nothing."""
        for server in self._cascade(tenant):
            answer = await self._answer(server)
            if answer.failure is None:
                self._promote(server)
                return SkillCatalog(answer.index.skills, server.name)
        return SkillCatalog()

    def may_know(self, name: str, tenant: str) -> bool:
        """Return whether a tenant may hear of a configuration; of one that there is not, too."""
        return all(_serves(server, tenant) for server in self.servers if server.name == name)

    def _cascade(self, tenant: str) -> Iterator[SkillServer]:
        promoted = (self._promoted.get(tenant), self._promoted.get(None))
        order = [one for one in promoted if one is not None] + list(self.servers)
        for server in dict.fromkeys(order):
            if server.enabled and _serves(server, tenant):
                yield server

    def _promote(self, server: SkillServer) -> None:
        """Let a workspace's configuration be the first one for those whom it serves."""
        if server.name == SERVER_LEVEL or self._promoted.get(server.tenant) is server:
            return
        self._promoted[server.tenant] = server
        _log.info("skills.promoted", source=server.name, tenant=server.tenant)

    async def _answer(self, server: SkillServer) -> _Answer:
        """Return what a configuration has said in the last 30 s, or ask.

        While one asks anew, the others are given what it said before; those who have nothing yet wait.
        """
        entry = self._entry(server.key)
        if (known := self._fresh(entry)) is not None:
            return known
        if entry.answer is not None and entry.lock.locked():
            return entry.answer
        async with entry.lock:
            known = self._fresh(entry)
            if known is None:
                known = entry.answer = await self._asked(server)
        return known

    def _fresh(self, entry: _Entry) -> _Answer | None:
        known = entry.answer
        return known if known is not None and self._clock() - known.since < KEPT else None

    def _entry(self, key: str) -> _Entry:
        entry = self._entries.setdefault(key, _Entry())
        self._entries.move_to_end(key)
        if len(self._entries) > self._max_answers:
            idle = (old for old, each in self._entries.items() if old != key and not each.lock.locked())
            self._entries.pop(next(idle, ""), None)
        return entry

    async def _asked(self, server: SkillServer) -> _Answer:
        failure: str | None = None
        index = SkillIndex()
        try:
            index = await self._read(server)
        except CapdexError as error:
            failure = error.message
        except Exception as error:  # whatever it is, an inventory fails to an empty list
            failure = "an internal error; see the log"
            _log.error("skills.internal_error", source=server.name, kind=type(error).__name__)
        self._note(server.name, index, failure)
        return _Answer(index, failure, self._clock())

    def _note(self, name: str, index: SkillIndex, failure: str | None) -> None:
        """Remember, and log what is new."""
        before = self._failures.pop(name, None)
        if failure is not None:
            self._failures[name] = failure
            if failure != before:
                _log.warning("skills.failed", source=name, reason=failure)
        elif before is not None:
            _log.info("skills.recovered", source=name)
        if failure is None and self._faults.get(name, ()) != index.faults:
            self._faults[name] = index.faults
            if index.faults:
                shown = [f"{fault.index}: {fault.reason}" for fault in index.faults[:SHOWN_FAULTS]]
                _log.warning("skills.entries_dropped", source=name, count=len(index.faults), entries=shown)


def _serves(server: SkillServer, tenant: str) -> bool:
    return server.tenant is None or server.tenant == tenant
