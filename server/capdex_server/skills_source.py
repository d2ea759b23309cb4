"""Skills as one source of the catalog: a document per configuration, each visible to its tenants alone."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import anyio.to_thread

from capdex_engine.call.upstream_tool import CallTool
from capdex_engine.catalog import Source, SourceReport
from capdex_engine.catalog.digest import canonical
from capdex_engine.errors import CapdexError, DocumentError, UpstreamUnreachable
from capdex_engine.operation import Operation
from capdex_engine.skills import Skill, SkillIndex, render_skill_instruction
from capdex_server.callers import LOCAL, Caller
from capdex_server.config import Settings
from capdex_server.config_skills import skill_servers
from capdex_server.logs import get_logger
from capdex_server.pieces import Piece
from capdex_server.policy import Policy
from capdex_server.skills import SERVER_LEVEL, SkillInventory, SkillServer
from capdex_server.snapshot import Snapshot
from capdex_server.sources import Doc, Reading

if TYPE_CHECKING:
    from capdex_server.skills_client import SkillClient

_FOLDER: Final = "workspaces/"
_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SkillList:
    """The skills that one caller may use, and the text about them for a prompt."""

    skills: tuple[Skill, ...] = ()
    instruction: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as ``GET /skills`` does; an index of skills, with the text beside."""
        return {"skills": [skill.to_json() for skill in self.skills], "instruction": self.instruction}


class Skills:
    """Everything about remote skills that outlives a snapshot. One per event loop.

    Args:
        settings: Servers, tenants, and the name of the tool.
        environ: Where tokens are looked up.
        client: Speaks to the servers.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        settings: Settings,
        environ: Mapping[str, str],
        *,
        client: SkillClient | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._given = client
        self._limits = settings.limits
        self._execute_tool = settings.skills.execute_tool
        self._dev_mode = settings.dev_mode
        servers = skill_servers(settings, environ) if SERVER_LEVEL in settings.sources else []
        self._servers = {server.name: server for server in servers}
        self.inventory = SkillInventory(servers, read=self._index, clock=clock)
        self._tenants = sorted({LOCAL.tenant, *(caller.tenant for caller in settings.callers)})
        self._winners: dict[str, str] = {}

    @property
    def client(self) -> SkillClient:
        """What speaks to the servers; made, and mcp imported, when it is first needed."""
        if self._given is None:
            from capdex_server.skills_client import SkillClient

            self._given = SkillClient()
        return self._given

    @property
    def names(self) -> frozenset[str]:
        """The configurations' names: ``skills``, ``skills.NAME``."""
        return frozenset(self._servers)

    async def page(self) -> Piece:
        """Return what every tenant has, for :func:`read_skills`; reads no index that was just read."""
        indexes: dict[str, bytes] = {}
        visible: dict[str, set[str]] = {name: set() for name in self._servers}
        for tenant in self._tenants:
            found = await self.inventory.read_skill_catalog(tenant)
            if found.server is not None:
                self._winners[tenant] = found.server
                faults = tuple(self.inventory.faults.get(found.server, ()))
                indexes[found.server] = SkillIndex(found.skills, faults).document()
            if tenant in self._winners:
                # Where nobody answers, the catalog keeps what it last had.
                visible[self._winners[tenant]].add(tenant)
        whole = {
            "indexes": {name: data.decode() for name, data in indexes.items()},
            "visible": {name: sorted(tenants) for name, tenants in visible.items()},
            "failures": dict(self.inventory.problems),
        }
        return Piece(canonical(whole))

    async def for_caller(
        self, caller: Caller, snapshot: Snapshot, policy: Policy, reload: Callable[[], Any] | None = None
    ) -> SkillList:
        """Return what a caller has.

        Args:
            caller: Who asks.
            snapshot: Says what each skill is called by, and to whom it is visible.
            policy: Says what the caller may use.
            reload: Awaited where the snapshot does not have the skills there are; returns the next one.
        """
        found = await self.inventory.read_skill_catalog(caller.tenant)
        if found.server is None:
            return SkillList()
        if reload is not None and _known(snapshot, caller) != {skill.capability for skill in found.skills}:
            snapshot = await reload()
        allows = snapshot.allows(caller, policy)
        shown = tuple(
            skill
            for skill in found.skills
            if (operation := snapshot.catalog.get(skill.capability, allowed=allows)) and allows(operation)
        )
        text = render_skill_instruction(shown, self._execute_tool)
        if self._dev_mode:
            _log.info("skills.rendered", caller=caller.name, instruction=text)
        return SkillList(shown, text)

    def caller(self, docs: Mapping[str, Doc], otherwise: CallTool | None = None) -> CallTool:
        """Return what calls the skills of one catalog, and leaves other tools to another.

        Args:
            docs: Engine source -> its document.
            otherwise: Calls what is of no skills' source.
        """
        urls = {
            source: (_server_name(doc.location), _urls(doc.data))
            for source, doc in docs.items()
            if _server_name(doc.location) in self._servers and doc.long_name in self._servers
        }
        return _Caller(self, urls, otherwise)

    async def _index(self, server: SkillServer) -> SkillIndex:
        token = await anyio.to_thread.run_sync(server.token)
        return await self.client.index(server.name, server.url, token)

    async def call(
        self, name: str, arguments: dict[str, Any], resource: str, timeout: float
    ) -> dict[str, Any]:
        """Call a skill of a configuration's server; see :meth:`SkillClient.call`."""
        server = self._servers[name]
        return await self.client.call(
            name,
            server.url,
            await anyio.to_thread.run_sync(server.token),
            arguments=arguments,
            resource=resource,
            timeout=timeout,
            max_bytes=self._limits.max_response_bytes,
        )

    async def check(self) -> list[Source | SourceReport]:
        """Read every index, whoever would win, and return it for a report, or why there is none."""
        found: list[Source | SourceReport] = []
        for server in self._servers.values():
            if server.enabled:
                location = _location(server.name)
                try:
                    data = (await self._index(server)).document()
                    found.append(Source(server.name, location, data, kind="skills"))
                except CapdexError as error:
                    reason = DocumentError(error.message, location=location)
                    found.append(SourceReport(server.name, location, error=reason))
        return found


class _Caller:
    """A ``CallTool``; each server is sent its own token, and no other's."""

    def __init__(
        self, skills: Skills, urls: Mapping[str, tuple[str, Mapping[str, str]]], otherwise: CallTool | None
    ) -> None:
        self._skills, self._urls, self._otherwise = skills, urls, otherwise

    async def __call__(
        self, tool: str, arguments: dict[str, Any], *, source: str, timeout: float
    ) -> dict[str, Any]:
        """Forward a skill's call."""
        if source in self._urls:
            name, urls = self._urls[source]
            return await self._skills.call(name, arguments, urls[tool], timeout)
        if self._otherwise is None:
            raise UpstreamUnreachable(f"No MCP server of {source} is connected here.")
        return await self._otherwise(tool, arguments, source=source, timeout=timeout)


def read_skills(name: str, page: Piece | DocumentError) -> Reading:
    """Return what :meth:`Skills.page` wrote as the documents of the skills' source."""
    reading = Reading()
    if isinstance(page, DocumentError):
        reading.error = page
        return reading
    whole = json.loads(page.data)
    for server, text in sorted(whole["indexes"].items()):
        reading.docs.append(Doc(server, _location(server), text.encode()))
    for server, reason in whole["failures"].items():
        if server not in whole["indexes"]:
            reading.unreadable[_location(server)] = DocumentError(reason)
    reading.visible = {_location(server): frozenset(tenants) for server, tenants in whole["visible"].items()}
    return reading


def _location(server: str) -> str:
    """Return where a configuration's index is said to lie; its last part is the workspace's name."""
    return server if server == SERVER_LEVEL else _FOLDER + server.removeprefix(f"{SERVER_LEVEL}.")


def _server_name(location: str) -> str:
    workspace = location.removeprefix(_FOLDER)
    return location if workspace == location else f"{SERVER_LEVEL}.{workspace}"


def _urls(data: bytes) -> dict[str, str]:
    return {entry["capability"]: entry["url"] for entry in json.loads(data)["skills"]}


def _known(snapshot: Snapshot, caller: Caller) -> set[str]:
    def seen(operation: Operation) -> bool:
        return operation.is_skill and snapshot.sees(caller, operation)

    return {operation.name for operation in snapshot.catalog.operations if seen(operation)}
