"""One upstream server for as long as capdex runs: connected, listed, listed again, and connected again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, Final, Literal

import anyio

from capdex_engine.call.masking import Masker
from capdex_engine.errors import CapdexError, ToolCatalogError, UpstreamTimeout, UpstreamUnreachable
from capdex_engine.tools import Code, ToolCollection, collect_tools
from capdex_engine.tools.document import tool_document
from capdex_server.logs import get_logger
from capdex_server.upstream.faults import Ended, fault_of
from capdex_server.upstream.session import Connect, Connection

FIRST_RETRY: Final = 1.0
"""Seconds until a server that failed is tried again; doubled each time."""
LAST_RETRY: Final = 60.0
"""The most that becomes."""
STEADY: Final = 30.0
"""Seconds that a connection has to last before its end counts as a first failure again."""
REST: Final = 2.0
"""Seconds between two listings at least, however often a server says that its tools have changed."""
_log = get_logger(__name__)


async def _why_ended(connection: Connection) -> CapdexError | None:
    """Return what a connection that has ended knows about it."""
    try:
        with anyio.move_on_after(0.1):
            await connection.ended()
    except CapdexError as fault:
        return copy(fault)  # it is told with each call that it has ended
    return None


@dataclass(frozen=True, slots=True)
class Listing:
    """What is known of a server's tools at present."""

    data: bytes | None = None
    """The last good tools as :func:`~capdex_engine.tools.document.tool_document` writes them."""
    down: str | None = None
    """Why they cannot be called at present."""
    problem: str | None = None
    """Why the last listing gave nothing new though they can."""


class Upstream:
    """Keeps one server.

    Args:
        name: The source.
        connect: Connects to it.
        refresh: Seconds between two listings when nothing happens; None for never.
        kept: The last good tools of an earlier run.
        keep: Gets tools that are new.
        told: Called whenever :attr:`listing` is another than before.
        masker: Masks the server's secrets.
        clock, sleep, chance: The outside world.
    """

    def __init__(
        self,
        name: str,
        connect: Connect,
        *,
        refresh: float | None,
        kept: bytes | None,
        keep: Callable[[bytes], None],
        told: Callable[[], None],
        masker: Callable[[], Masker],
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[Any]],
        chance: Callable[[], float],
    ) -> None:
        self.name = name
        self._connect, self._refresh = connect, refresh
        self._keep, self._told, self._masker = keep, told, masker
        self._clock, self._sleep, self._chance = clock, sleep, chance
        self.listing = Listing(kept, down=f"The MCP server of {name} is still being connected to.")
        self.state: Literal["starting", "up", "down"] = "starting"
        self.found: ToolCollection | None = None
        """What the last good listing of this run was made of."""
        self.tried = anyio.Event()
        """Set once the first attempt has ended, well or not."""
        self.failures = 0
        """Attempts that failed in a row."""
        self._connection: Connection | None = None
        self._wake = anyio.Event()
        self._under_way = 0

    async def run(self) -> None:
        """Keep the server until cancelled."""
        while True:
            began = self._clock()
            try:
                async with self._connect(self._stir) as connection:
                    await self._serve(connection)
            except Exception as error:
                fault = fault_of(error, self.name)
            else:
                fault = Ended(f"The connection to the MCP server of {self.name} ended.")
            lasted = self._clock() - began if self._connection is not None else 0.0
            self._connection = None
            self.failures = 1 if lasted >= STEADY else self.failures + 1
            wait = self._backoff()
            self._go_down(fault, wait)
            await self._sleep(wait)

    async def call(self, tool: str, arguments: dict[str, Any], timeout: float) -> dict[str, Any]:
        """Return a tool's result with the server's secrets masked.

        Raises:
            UpstreamUnreachable, UpstreamTimeout, UpstreamProtocolError, AddressRefused.
        """
        connection = self._connection
        if connection is None:
            raise UpstreamUnreachable(
                f"The MCP server of {self.name} is not connected, so nothing was sent. Try again later.",
                retryable=True,
            )
        self._under_way += 1
        try:
            # The client's own limit comes first; this one holds for a transport that takes nothing.
            with anyio.fail_after(timeout + 1.0):
                result = await connection.call(tool, arguments, timeout)
        except Exception as error:
            fault = fault_of(error, self.name)
            if isinstance(fault, Ended):
                fault = await _why_ended(connection) or fault
            elif isinstance(fault, UpstreamTimeout):
                fault.message += " The call may have taken effect."
            fault = self._masked(fault)
            _log.info("upstream.call_failed", source=self.name, tool=tool, reason=fault.message)
            self._stir()  # it may be down: look
            raise fault from None
        finally:
            self._under_way -= 1
        masker = self._masker()
        shown: dict[str, Any] = masker.json(result)
        if masker.hit:
            shown = {**shown, "_meta": {**(shown.get("_meta") or {}), "masked": True}}
        return shown

    def _stir(self) -> None:
        self._wake.set()

    def _backoff(self) -> float:
        wait = min(FIRST_RETRY * 2.0 ** min(self.failures - 1, 20), LAST_RETRY)
        return wait * (0.75 + 0.5 * self._chance())

    async def _serve(self, connection: Connection) -> None:
        """List whenever there is reason to; return or raise when the connection is of no more use."""
        async with anyio.create_task_group() as tasks:

            async def until_ended() -> None:
                await connection.ended()
                tasks.cancel_scope.cancel()

            tasks.start_soon(until_ended)
            while True:
                self._wake = anyio.Event()
                await self._list(connection)
                await self._sleep(REST)
                await self._first_of_wake_and_age()

    async def _first_of_wake_and_age(self) -> None:
        async with anyio.create_task_group() as either:

            async def wake() -> None:
                await self._wake.wait()
                either.cancel_scope.cancel()

            async def age(seconds: float) -> None:
                await self._sleep(seconds)
                either.cancel_scope.cancel()

            either.start_soon(wake)
            if self._refresh is not None:
                either.start_soon(age, self._refresh * (0.9 + 0.2 * self._chance()))

    async def _list(self, connection: Connection) -> None:
        try:
            found = await collect_tools(connection.list_page)
        except ToolCatalogError as error:
            # A server that is at work may have no time to list; it is left to finish.
            if error.code == Code.TIMEOUT and not self._under_way:
                raise UpstreamUnreachable(error.message, retryable=True) from None
            self._go_on(connection, f"{error.message} ({error.code})")
            return
        data = tool_document(found, connection.server)
        if data != self.listing.data:
            self._keep(data)
        self.found = found
        self._go_up(connection, data)

    def _go_up(self, connection: Connection, data: bytes) -> None:
        new = data != self.listing.data
        if self.state != "up" or new:
            assert self.found is not None  # noqa: S101 - set by the only caller
            _log.info(
                "upstream.listed",
                source=self.name,
                tools=len(self.found.tools),
                quarantine=len(self.found.quarantine),
                seconds=round(self.found.seconds, 3),
            )
        self._connection, self.state = connection, "up"
        self._set(Listing(data))

    def _go_on(self, connection: Connection, problem: str) -> None:
        """Keep the last good tools of a server that is up but lists too much."""
        self._connection, self.state = connection, "up"
        if self.listing.data is None:
            self._set(Listing(down=problem))
        else:
            self._set(Listing(self.listing.data, problem=problem))

    def _go_down(self, fault: CapdexError, wait: float) -> None:
        fault = self._masked(fault)
        if self.state != "down" or self.listing.down != fault.message:
            _log.warning("upstream.down", source=self.name, reason=fault.message, retry_in=round(wait, 1))
        self.state = "down"
        self._set(Listing(self.listing.data, down=fault.message))

    def _set(self, listing: Listing) -> None:
        before, self.listing = self.listing, listing
        self.tried.set()
        if listing != before:
            self._told()

    def _masked(self, fault: CapdexError) -> CapdexError:
        fault.message = self._masker().text(fault.message)
        fault.args = (fault.message,)
        fault.__cause__ = fault.__context__ = None
        return fault.with_traceback(None)
