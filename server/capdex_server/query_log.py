"""The opt-in query log: searches, what they showed, and what was called then; a query set for the bench.

Rows are JSON: ``{"time", "id", "revision", "query", "matches"}`` for each search, and the same with
``"executed"`` for each capability that its caller then called with success, in the same revision. Queries
are the agents' own words; callers, tenants, arguments and results are not in it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final
from uuid import uuid4

from capdex_engine.call import ToolResult
from capdex_engine.errors import ConfigurationError
from capdex_server.audit import stamp, utc_now
from capdex_server.callers import Caller
from capdex_server.config_trails import QueryLogConfig
from capdex_server.lines import Append, LineWriter
from capdex_server.logs import get_logger

SEARCHES: Final = 20
"""Searches of one caller among which a call's is looked for."""
CALLERS: Final = 1000
"""Callers whose searches are remembered."""
_log = get_logger(__name__)


class QueryLog:
    """Writes the log; without ``append`` it does nothing. A line that cannot be written stops nobody.

    A call is joined to its search by this process: where a caller's search and call reach two
    processes, the label is lost, and no wrong one is written.

    Args:
        append: Where rows go.
        now: The time, with a zone.
    """

    def __init__(self, append: Append | None = None, *, now: Callable[[], datetime] = utc_now) -> None:
        self._writer = LineWriter(append) if append is not None else None
        self._now = now
        self._searches: OrderedDict[str, deque[dict[str, Any]]] = OrderedDict()
        self._failing = False

    @classmethod
    def from_settings(cls, config: QueryLogConfig) -> QueryLog:
        """Open the file that the settings name.

        Raises:
            ConfigurationError: It cannot be written.
        """
        if config.path is None:
            return cls()
        from capdex_server.journal import Journal

        journal = Journal(config.path, max_bytes=config.max_bytes, keep=config.keep)
        try:
            journal.append([])
        except OSError as error:
            raise ConfigurationError(
                f"query_log.path: {config.path} cannot be written ({error.strerror or error}). Name a file "
                "in a folder that capdex may write."
            ) from None
        return cls(journal.append)

    async def searched(self, caller: Caller, query: str, answer: Mapping[str, Any]) -> None:
        """Record a search and the names that it showed."""
        if self._writer is None:
            return
        row = {
            "id": uuid4().hex,
            "revision": answer["revision"],
            "query": query,
            "matches": [match["name"] for match in answer["matches"]],
        }
        mine = self._searches.setdefault(caller.name, deque(maxlen=SEARCHES))
        mine.append(row)
        self._searches.move_to_end(caller.name)
        if len(self._searches) > CALLERS:
            self._searches.popitem(last=False)
        await self._write(row)

    async def executed(self, caller: Caller, name: str, result: Mapping[str, Any]) -> None:
        """Record a capability that was called with success after a search that showed it."""
        if self._writer is None or not _succeeded(result):
            return
        told = result["_meta"] if isinstance(result, ToolResult) else result
        for row in reversed(self._searches.get(caller.name, ())):
            if name in row["matches"] and row["revision"] == told.get("revision"):
                return await self._write({**row, "executed": name})

    async def _write(self, row: Mapping[str, Any]) -> None:
        assert self._writer is not None  # noqa: S101 - asked by those who call
        try:
            await self._writer.write({"time": stamp(self._now()), **row})
            self._failing = False
        except OSError as error:
            if not self._failing:
                _log.warning("query_log.failed", reason=str(error))
            self._failing = True


def _succeeded(result: Mapping[str, Any]) -> bool:
    """Return whether a call was sent and went well."""
    if isinstance(result, ToolResult):
        return not result.failed
    return isinstance(result.get("status"), int) and result["status"] < 400
