"""Collects a server's tools page by page, over any transport, under the limits of SPEC section 6."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import anyio
import anyio.lowlevel

from capdex_engine.errors import ToolCatalogError
from capdex_engine.tools.limits import Code, ToolLimits
from capdex_engine.tools.read import Quarantined, Refused, field_of, read_tool

ListPage = Callable[[str | None, Mapping[str, Any]], Awaitable[Any]]
"""``(cursor, options)`` -> a page: ``{"tools": [...], "nextCursor"?: "..."}``, or the SDK's object.

``options["timeout"]`` holds the seconds that the page may take; beyond them it is cancelled.
"""
Clock = Callable[[], float]
_DEFAULT_LIMITS: Final = ToolLimits()


@dataclass(frozen=True, slots=True)
class ToolCollection:
    """What a server lists."""

    tools: tuple[dict[str, Any], ...]
    """In the server's order, with the fields that are kept: ``name``, ``title``, ``description``,
    ``inputSchema``, ``outputSchema`` and, of ``annotations``, the hints."""
    quarantine: tuple[Quarantined, ...] = ()
    pages: int = 0
    size: int = 0
    """Bytes of all tools as compact JSON, of those in quarantine as far as they were looked at."""
    seconds: float = 0.0


async def collect_tools(
    list_page: ListPage,
    *,
    limits: ToolLimits = _DEFAULT_LIMITS,
    request_options: Mapping[str, Any] | None = None,
    strict: bool = False,
    clock: Clock = anyio.current_time,
) -> ToolCollection:
    """Return all tools of a server, faulty ones in quarantine.

    Args:
        list_page: Asks the server for a page; what it raises goes through, a TimeoutError as a fault of time.
        limits: The most that is taken.
        request_options: Handed to ``list_page`` with every page; a ``timeout`` in it (seconds) makes a
            page's time shorter.
        strict: Raise on the first faulty tool instead.
        clock: Seconds, for the time in all.

    Raises:
        ToolCatalogError: A limit on pages, tools, bytes, cursors or time is broken; or, under ``strict``,
            a tool is faulty.
    """
    return await _Collecting(list_page, limits, dict(request_options or {}), strict, clock).run()


class _Collecting:
    def __init__(
        self, list_page: ListPage, limits: ToolLimits, options: dict[str, Any], strict: bool, clock: Clock
    ) -> None:
        self._list_page = list_page
        self._limits = limits
        self._options = options
        self._strict = strict
        self._clock = clock
        self._started = clock()
        self._tools: list[dict[str, Any]] = []
        self._quarantine: list[Quarantined] = []
        self._names: set[str] = set()
        self._cursors: set[str] = set()
        self._size = self._seen = 0

    async def run(self) -> ToolCollection:
        cursor: str | None = None
        for number in range(1, self._limits.pages + 1):
            page = await self._page(cursor, number)
            await self._take(page, number)
            cursor = self._next(page)
            if cursor is None:
                return ToolCollection(
                    tuple(self._tools), tuple(self._quarantine), number, self._size, self._elapsed()
                )
        raise ToolCatalogError(
            Code.PAGE_LIMIT, f"The server lists its tools on more than {self._limits.pages} pages."
        )

    def _elapsed(self) -> float:
        return self._clock() - self._started

    async def _page(self, cursor: str | None, number: int) -> Any:
        left = self._limits.total_seconds - self._elapsed()
        most = min(
            float(self._options.get("timeout") or self._limits.page_seconds), self._limits.page_seconds
        )
        timeout = max(0.0, min(most, left))
        try:
            with anyio.fail_after(timeout):
                page = await self._list_page(cursor, {**self._options, "timeout": timeout})
        except TimeoutError:
            raise self._too_slow(number, timeout, whole=left < most) from None
        if self._elapsed() > self._limits.total_seconds:
            raise self._too_slow(number, timeout, whole=True)
        return page

    def _too_slow(self, number: int, timeout: float, *, whole: bool) -> ToolCatalogError:
        told = (
            f"The server did not list all its tools within {self._limits.total_seconds:g} seconds."
            if whole
            else f"The server did not give page {number} of its tools within {timeout:g} seconds."
        )
        return ToolCatalogError(Code.TIMEOUT, told)

    async def _take(self, page: Any, number: int) -> None:
        tools = field_of(page, "tools", "tools")
        if not isinstance(tools, list | tuple):
            raise ToolCatalogError(Code.INVALID_PAGE, f"Page {number} of the server's tools holds no list.")
        self._seen += len(tools)
        if self._seen > self._limits.tools:
            raise ToolCatalogError(Code.ITEM_LIMIT, f"The server lists more than {self._limits.tools} tools.")
        for tool in tools:
            # A tool may take tens of milliseconds, and there may be thousands.
            await anyio.lowlevel.checkpoint()
            self._take_one(tool)

    def _take_one(self, tool: Any) -> None:
        try:
            kept, size = read_tool(tool, self._names, self._limits)
        except Refused as refused:
            if self._strict:
                raise ToolCatalogError(refused.fault.code, refused.fault.message) from None
            self._quarantine.append(refused.fault)
            self._count(refused.size)
        else:
            self._count(size)
            self._tools.append(kept)

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > self._limits.total_bytes:
            raise ToolCatalogError(
                Code.BYTE_LIMIT, f"The server's tools have more than {self._limits.total_bytes} bytes."
            )

    def _next(self, page: Any) -> str | None:
        cursor = field_of(page, "nextCursor", "next_cursor")
        if cursor is None or cursor == "":  # servers write either for the end
            return None
        if not isinstance(cursor, str):
            raise ToolCatalogError(Code.INVALID_PAGE, "The server gave a cursor that is no text.")
        most = self._limits.cursor_bytes
        if len(cursor) > most or len(cursor.encode("utf-8", "surrogatepass")) > most:
            raise ToolCatalogError(Code.CURSOR_LIMIT, f"The server gave a cursor of more than {most} bytes.")
        if cursor in self._cursors:
            raise ToolCatalogError(Code.CURSOR_LOOP, "The server gave the same cursor twice.")
        self._cursors.add(cursor)
        return cursor
