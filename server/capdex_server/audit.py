"""The audit trail: what every execute was, who asked for it and what became of it; never what was sent.

A call that is sent has two lines, ``started`` (written before anything is sent) and ``ended``, joined by
``id``; a call that is refused has one, ``refused``; a dry run one, ``dry_run``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from uuid import uuid4

import anyio

from capdex_engine.call import ToolResult
from capdex_engine.errors import (
    CapdexError,
    ConfigurationError,
    DocumentError,
    InternalError,
    InvalidArguments,
    ModelError,
    UnknownCapability,
)
from capdex_engine.operation import Operation
from capdex_server.callers import Caller
from capdex_server.config_trails import STDOUT, AuditConfig
from capdex_server.lines import Append, LineWriter, append_to_stream, shown
from capdex_server.logs import get_logger

OK: Final = "ok"
ERROR_STATUS: Final = "error_status"
"""The upstream answered, with a status of 400 or more."""
ERROR_RESULT: Final = "error_result"
"""A tool of an MCP server, or a skill, answered that it failed (``isError``)."""
CANCELLED: Final = "cancelled"
"""The client went away, or the server was stopped."""
FORBIDDEN: Final = "forbidden"
"""The caller, who was told ``unknown_capability``, may not call what there is."""
DRIFT: Final = "drift"
"""The arguments fitted an older schema; the caller was told ``invalid_capability_arguments``."""
DRY_RUN: Final = "dry_run"
PROBLEM: Final = "audit lines cannot be written, so no call is sent; see the log"
_log = get_logger(__name__)


class AuditUnavailable(InternalError):
    """The line that must come before a call cannot be written, so nothing is sent."""

    def __init__(self, reference_id: str) -> None:
        CapdexError.__init__(
            self,
            "Nothing was sent: capdex cannot write its audit trail at the moment. Try again later; if it "
            f"lasts, report the reference {reference_id} to its operator.",
            retryable=True,
            referenceId=reference_id,
        )


def utc_now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """Return a time as logs have it: ``2026-01-31T12:00:00.000Z``."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Audit:
    """Writes the trail; without ``append`` it writes nothing and everything is sent.

    Args:
        append: Where lines go.
        now: The time, with a zone.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        append: Append | None = None,
        *,
        now: Callable[[], datetime] = utc_now,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._writer = LineWriter(append) if append is not None else None
        self._now = now
        self.clock = clock
        self.problem: str | None = None
        """Why lines cannot be written, since they last could; for ``/readyz``."""

    @classmethod
    def from_settings(cls, config: AuditConfig) -> Audit:
        """Open what the settings name.

        Raises:
            ConfigurationError: It cannot be written.
        """
        return cls(_append_of(config))

    def entry(self, caller: Caller, arguments: object) -> Entry:
        """Return what records one execute."""
        name = arguments.get("name") if isinstance(arguments, Mapping) else None
        return Entry(self, caller, name)

    async def refused(self, caller: Caller, outcome: str) -> None:
        """Record an execute whose input was not even read."""
        await Entry(self, caller, None).close(outcome)

    async def write(self, row: dict[str, Any]) -> None:
        """Write one line under the present time.

        Raises:
            OSError: It could not be written.
        """
        if self._writer is None:
            return
        try:
            await self._writer.write({"time": stamp(self._now()), **row})
        except OSError as error:
            if self.problem is None:
                _log.error("audit.failed", reason=str(error))
            self.problem = PROBLEM
            raise
        if self.problem is not None:
            _log.info("audit.recovered")
            self.problem = None


class Entry:
    """One execute from its request to its end."""

    def __init__(self, audit: Audit, caller: Caller, name: object) -> None:
        self.name = name
        """As the agent sends it."""
        self.operation: Operation | None = None
        """What the live catalog has under that name, whether the caller may call it or not."""
        self._audit = audit
        self._caller = caller
        self._id = uuid4().hex
        self._sent = False
        self._since = audit.clock()

    def look_up(self, get: Callable[[str], Operation | None]) -> None:
        """Find what the name stands for."""
        if isinstance(self.name, str):
            self.operation = get(self.name)

    async def started(self, operation: Operation) -> None:
        """Write the line that must come before anything is sent.

        Raises:
            AuditUnavailable: It cannot be written: the call must not be sent.
        """
        self.operation = operation
        try:
            await self._audit.write(self._row("started"))
        except OSError as error:
            raise self._unavailable(error) from None
        self._sent, self._since = True, self._audit.clock()

    async def around(self, work: Awaitable[dict[str, Any]]) -> dict[str, Any]:
        """Await an execute and write how it ended, however it ends; raise what it raises."""
        try:
            result = await work
        except BaseException as error:
            await self.close(self._outcome(error))
            raise
        outcome, facts = _ending(result)
        await self.close(outcome if self._sent else DRY_RUN, **facts)
        return result

    async def close(self, outcome: str, *, status: int | None = None, bytes: int | None = None) -> None:
        """Write the last line; where it cannot be, the answer to the caller stays what it is."""
        event = "ended" if self._sent else DRY_RUN if outcome == DRY_RUN else "refused"
        spent = round((self._audit.clock() - self._since) * 1000)
        row = self._row(event) | {"outcome": outcome, "status": status, "ms": spent, "bytes": bytes}
        try:
            # A client that has gone away is no reason to leave the trail without its end.
            with anyio.CancelScope(shield=True):
                await self._audit.write({key: value for key, value in row.items() if value is not None})
        except OSError as error:
            _log.error("audit.lost", entry=self._id, audit_event=event, outcome=outcome, reason=str(error))

    def _row(self, event: str) -> dict[str, Any]:
        operation = self.operation
        return {
            "event": event,
            "id": self._id,
            "tenant": shown(self._caller.tenant),
            "caller": shown(self._caller.name),
            "capability": shown(operation.name if operation else self.name),
            "digest": operation.schema_digest if operation else None,
        }

    def _outcome(self, error: BaseException) -> str:
        if isinstance(error, UnknownCapability) and self.operation is not None:
            return FORBIDDEN
        if isinstance(error, InvalidArguments) and error.details.get("drift"):
            return DRIFT
        if isinstance(error, CapdexError) and not isinstance(
            error, DocumentError | ModelError | ConfigurationError
        ):
            return error.code
        return InternalError.code if isinstance(error, Exception) else CANCELLED

    def _unavailable(self, error: OSError) -> AuditUnavailable:
        _log.error("audit.refused", reference_id=self._id, reason=str(error))
        return AuditUnavailable(self._id)


def _ending(result: dict[str, Any]) -> tuple[str, dict[str, int | None]]:
    """Return the outcome of a result, and the numbers that stand beside it.

    A tool's own result has no status, and whatever else stands in it is the upstream's word.
    """
    if isinstance(result, ToolResult):
        return ERROR_RESULT if result.failed else OK, {"bytes": result.bytes}
    status = result.get("status")
    outcome = ERROR_STATUS if isinstance(status, int) and status >= 400 else OK
    return outcome, {"status": status, "bytes": result.get("bytes")}


def _append_of(config: AuditConfig) -> Append | None:
    if config.file is None:
        out = sys.__stdout__ if config.to == STDOUT else None
        return append_to_stream(out.fileno()) if out is not None else None
    from capdex_server.journal import Journal

    journal = Journal(config.file, max_bytes=config.max_bytes, keep=config.keep, fsync=config.fsync)
    try:
        journal.append([])
    except OSError as error:
        raise ConfigurationError(
            f"audit.to: {config.file} cannot be written ({error.strerror or error}). Name a file in a folder "
            'that capdex may write, "stdout" or "off".'
        ) from None
    return journal.append
