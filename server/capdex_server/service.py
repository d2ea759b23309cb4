"""What a caller can do: search, execute, and read one capability in full.

Both front ends (``agent.py`` and ``rest.py``) call this and translate nothing but the envelope.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Final, TypeVar
from uuid import uuid4

import anyio
import anyio.to_thread

from capdex_engine.call import ToolResult, read_call
from capdex_engine.errors import (
    CapdexError,
    ConfigurationError,
    DocumentError,
    InternalError,
    ModelError,
    NotExecutable,
    RateLimited,
    UnknownCapability,
)
from capdex_engine.operation import Availability, Operation
from capdex_engine.rank import SearchResult
from capdex_engine.rank.answer import EXACT_BYTES, build_answer
from capdex_engine.rank.searcher import HINT_NOTHING, WHOLE
from capdex_server.audit import Entry
from capdex_server.build import Builder
from capdex_server.callers import EXECUTE_SCOPE, SEARCH_SCOPE, Caller
from capdex_server.config import Settings
from capdex_server.live import Live, NotReady, Snapshot, SourceSummary
from capdex_server.logs import get_logger
from capdex_server.policy import Policy
from capdex_server.quotas import Quotas
from capdex_server.skills import SERVER_LEVEL
from capdex_server.skills_source import SkillList, Skills
from capdex_server.slots import Slots
from capdex_server.trails import Trails
from capdex_server.validation import Search, read_search

FIRST_CATALOG_WAIT: Final = 20.0
"""Seconds that a request waits for the first catalog before it is told to come back."""
T = TypeVar("T")
_log = get_logger(__name__)


class Service:
    """Serves all callers over whatever snapshot is current when a request starts."""

    def __init__(
        self, live: Live, settings: Settings, *, trails: Trails | None = None, quotas: Quotas | None = None
    ) -> None:
        self.live = live
        self.policy = Policy(read_only=settings.read_only)
        self.trails = trails or Trails()
        self.quotas = quotas or Quotas()
        self._slots = Slots(settings.limits, settings.sources)
        self._limits = settings.limits
        self._limiter: anyio.CapacityLimiter | None = None

    async def search(self, caller: Caller, arguments: object, *, explain: bool = False) -> dict[str, Any]:
        """Return SPEC section 2's result for search_capabilities' input.

        Args:
            caller: Who asks.
            arguments: The tool's input.
            explain: Add to each match ``parts``: what each feature adds to its score; and ``readAs``: the
                query in correct English, where it was not.

        Raises:
            CapdexError: As an error object of SPEC section 4.
        """
        return await safely(self._search(caller, arguments, explain))

    async def execute(self, caller: Caller, arguments: object) -> dict[str, Any]:
        """Return SPEC section 3's result for execute_capability's input.

        Raises:
            CapdexError: As an error object of SPEC section 4.
        """
        entry = self.trails.audit.entry(caller, arguments)
        return await safely(entry.around(self._execute(caller, arguments, entry)))

    async def capability(self, caller: Caller, name: str) -> dict[str, Any]:
        """Return everything about one capability, the response schemas included.

        Raises:
            UnknownCapability: It does not exist or is not permitted; the two look the same.
            NotExecutable: It is kept out of the catalog; the reason says why.
        """
        return await safely(self._capability(caller, name))

    async def skills(self, caller: Caller) -> dict[str, Any]:
        """Return ``{"skills": [...], "instruction": "..."}``: the remote skills that the caller may use.

        The list is one of ``{name, title, description, capability, url}``; the text is for a prompt, and
        empty where there is no skill.
        """
        return (await safely(self._skills(caller))).to_json()

    def problems(self, caller: Caller | None = None) -> dict[str, str]:
        """Return source -> what is amiss with it now; with a caller, of the sources it may know of."""
        known = self._remote.names if self._remote else frozenset()
        failed = self._remote.inventory.problems if self._remote else {}
        reasons = {name: why for name, why in self.live.problems.items() if name not in known}
        every = {**reasons, **failed}
        return {name: why for name, why in every.items() if caller is None or self._may_know(caller, name)}

    def _may_know(self, caller: Caller, source: str) -> bool:
        names = self.live.aliases.of_source(source)
        if self._remote is not None and source in self._remote.names:
            names = (*names, SERVER_LEVEL)
            if not self._remote.inventory.may_know(source, caller.tenant):
                return False
        if self.policy.may_know_source(caller, names):
            return True
        return self.live.ready and self.live.current.permissions(caller, self.policy).reaches(source)

    async def sources(self, caller: Caller) -> list[SourceSummary]:
        """Return the sources the caller may use; empty before the first catalog."""
        await self.live.wait(FIRST_CATALOG_WAIT)
        return self.live.current.sources_for(caller, self.policy) if self.live.ready else []

    @property
    def _remote(self) -> Skills | None:
        return self.live.build.skills if isinstance(self.live.build, Builder) else None

    async def _skills(self, caller: Caller) -> SkillList:
        snapshot = await self._snapshot()
        if self._remote is None:
            return SkillList()
        return await self._remote.for_caller(caller, snapshot, self.policy, self._with_skills)

    async def _with_skills(self) -> Snapshot:
        await self.live.reload({SERVER_LEVEL})
        return self.live.current

    async def _snapshot(self) -> Snapshot:
        await self.live.wait(FIRST_CATALOG_WAIT)
        return self.live.current

    async def _search(self, caller: Caller, arguments: object, explain: bool) -> dict[str, Any]:
        wanted = await self.quotas.counted(caller.tenant, SEARCH_SCOPE, read_search, arguments)
        snapshot = await self._snapshot()
        # The limiter belongs to the event loop that first searches.
        self._limiter = self._limiter or anyio.CapacityLimiter(self._limits.search_threads)
        if self._limiter.statistics().tasks_waiting >= self._limits.max_waiting_searches:
            raise RateLimited(
                "Too many searches wait. Search again in 1 second.", retry_after=1, scope="search"
            )
        answer = await anyio.to_thread.run_sync(
            self._ranked, snapshot, caller, wanted, explain, limiter=self._limiter, abandon_on_cancel=True
        )
        await self.trails.queries.searched(caller, wanted.query, answer)
        _log.info("search", caller=caller.name, matches=len(answer["matches"]), revision=snapshot.revision)
        return answer

    def _ranked(self, snapshot: Snapshot, caller: Caller, wanted: Search, explain: bool) -> dict[str, Any]:
        """Rank in the calling thread."""
        permitted = snapshot.permissions(caller, self.policy)
        if permitted.searcher is None:
            raise NotReady
        mask = snapshot.narrowed(permitted.mask, source=wanted.source, read_only=wanted.read_only)
        if wanted.source is not None and not mask.any():
            return self._nothing_there(snapshot, caller, wanted)
        result = permitted.searcher.search(wanted.query, limit=wanted.limit, allowed=mask)
        exact = wanted.limit == 1 and any(hit.score >= WHOLE for hit in result.hits)
        budget = max(self._limits.max_search_bytes, EXACT_BYTES if exact else 0)
        answer = build_answer(result, snapshot.catalog, max_bytes=budget)
        answer["revision"] = permitted.revision
        if result.hint == HINT_NOTHING and wanted.filters:
            answer["hint"] = f"{HINT_NOTHING} Or search without {' and '.join(wanted.filters)}."
        return _explained(answer, result) if explain else answer

    def _nothing_there(self, snapshot: Snapshot, caller: Caller, wanted: Search) -> dict[str, Any]:
        names = ", ".join(one.name for one in snapshot.sources_for(caller, self.policy)[:20]) or "none"
        hint = f"Nothing fits this {' and '.join(wanted.filters)}. Sources you may use: {names}."
        return {"matches": [], "hint": hint, "revision": snapshot.permissions(caller, self.policy).revision}

    async def _execute(self, caller: Caller, arguments: object, entry: Entry) -> dict[str, Any]:
        if self.live.ready:  # what is refused before its name is looked up stands in the trail under it too
            self._look_up(entry, caller, self.live.current)
        call = await self.quotas.counted(caller.tenant, EXECUTE_SCOPE, read_call, arguments)
        snapshot = await self._snapshot()
        self._look_up(entry, caller, snapshot)
        permitted = snapshot.permissions(caller, self.policy)
        with self._slots.one() as slot:

            async def before_send(operation: Operation) -> None:
                # A place first: a call that finds none is not sent, and takes nothing of a quota. The trail
                # last: what it says was started is sent.
                await slot.take(_holder(snapshot, operation), operation.name)
                await self.quotas.call(caller.tenant, operation, snapshot.aliases)
                await entry.started(operation)

            result = await snapshot.executor.execute(
                call,
                allows=permitted,
                before_send=before_send,
                credentials=snapshot.credentials_of(caller),
            )
        told = result["_meta"] if isinstance(result, ToolResult) else result
        if "revision" in told:
            told["revision"] = permitted.revision
        if entry.operation is not None:
            await self.trails.queries.executed(caller, entry.operation.name, result)
        _log.info(
            "execute",
            caller=caller.name,
            capability=call.name,
            status=None if isinstance(result, ToolResult) else result.get("status"),
            dry_run=call.dry_run,
            elapsed_ms=told.get("elapsedMs"),
        )
        return result

    def _look_up(self, entry: Entry, caller: Caller, snapshot: Snapshot) -> None:
        """Find what a name stands for; of skills of several tenants with one name, the caller's own."""

        def find(name: str) -> Operation | None:
            found = snapshot.catalog.get(name)
            if found is None or not found.is_skill:
                return found
            return snapshot.permissions(caller, self.policy).find(name) or found

        entry.look_up(find)

    async def _capability(self, caller: Caller, name: str) -> dict[str, Any]:
        snapshot = await self._snapshot()
        permitted = snapshot.permissions(caller, self.policy)
        operation = permitted.find(name)
        if operation is None:
            raise UnknownCapability(name, suggestions=permitted.near(name))
        if operation.availability is Availability.KEPT_OUT:
            raise NotExecutable(operation.name, operation.reason or "it is kept out of the catalog")
        described = await anyio.to_thread.run_sync(_described, snapshot, operation)
        return {**described, "revision": permitted.revision}


def _holder(snapshot: Snapshot, operation: Operation) -> str:
    """Return whose places a call takes: its source's; of skills each configuration's, a tenant's own."""
    if operation.is_skill:
        return operation.source
    return snapshot.owners.get(operation.source, operation.source)


def _explained(answer: dict[str, Any], result: SearchResult) -> dict[str, Any]:
    """Add how the query was read, and the parts of each match's score; matches stand in the hits' order."""
    matches = [
        {**match, "parts": {name: round(part, 3) for name, part in hit.parts.items()}}
        for match, hit in zip(answer["matches"], result.hits, strict=False)
    ]
    return {**answer, "matches": matches, **({"readAs": result.read_as} if result.read_as else {})}


async def safely(work: Awaitable[T]) -> T:
    """Await work; whatever it raises that no caller should see is logged and becomes internal_error."""
    try:
        return await work
    except (DocumentError, ModelError, ConfigurationError) as error:
        raise _internal(error) from None
    except CapdexError:
        raise
    except Exception as error:
        raise _internal(error) from None


def _internal(error: Exception) -> InternalError:
    reference = uuid4().hex
    _log.error("internal_error", reference_id=reference, exc_info=error)
    return InternalError(reference)


def _described(snapshot: Snapshot, operation: Operation) -> dict[str, Any]:
    catalog = snapshot.catalog
    details = catalog.details(operation)
    return {
        **catalog.describe(operation),
        "operationId": operation.operation_id,
        "description": operation.description,
        "tags": list(operation.tags),
        "deprecated": operation.deprecated,
        "readOnly": operation.read_only,
        "argumentsSchema": catalog.arguments_schema(operation, with_body=True),
        "contentTypes": [one.content_type for one in details.body.media_types] if details.body else [],
        "baseUrl": details.base_url,
        "security": [{name: list(scopes) for name, scopes in one.items()} for one in details.security],
        "responses": dict(details.responses),
    }
