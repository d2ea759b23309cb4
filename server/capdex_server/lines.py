"""Writes lines of JSON from the event loop: in a thread, all that wait at one time together."""

from __future__ import annotations

import json
import os
import select
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import anyio
import anyio.to_thread

Append = Callable[[Sequence[bytes]], None]
"""Writes whole lines; raises OSError when it cannot."""
SHOWN: Final = 100
"""Characters of a text that somebody else chose."""
STREAM_WAIT: Final = 5.0
"""Seconds to wait for a reader of standard output that lags behind."""


class LineWriter:
    """Appends lines in the order in which they are given.

    Args:
        append: Called in a thread, once at a time.
    """

    def __init__(self, append: Append) -> None:
        self._append = append
        self._batch = _Batch()
        self._turn = anyio.Lock()
        self._thread: anyio.CapacityLimiter | None = None

    async def write(self, row: Mapping[str, Any]) -> None:
        """Return once the row is written.

        Raises:
            OSError: It could not be.
        """
        batch = self._batch
        batch.lines.append(line_of(row))
        async with self._turn:
            if not batch.taken:
                await self._write(batch)
        if batch.error is not None:
            raise OSError(batch.error.strerror or str(batch.error)) from batch.error

    async def _write(self, batch: _Batch) -> None:
        self._batch = _Batch()
        batch.taken = True
        self._thread = self._thread or anyio.CapacityLimiter(1)
        # Whatever ends this wait, those who share the batch must not take it for written.
        batch.error = OSError("writing was interrupted")
        try:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._append, batch.lines, limiter=self._thread)
            batch.error = None
        except OSError as error:
            batch.error = error


class _Batch:
    """Lines that are written together."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.taken = False
        self.error: OSError | None = None


def line_of(row: Mapping[str, Any]) -> bytes:
    """Return one line of ASCII: no text can end it, or bring anything that a terminal obeys."""
    return json.dumps(row, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


def shown(text: object, limit: int = SHOWN) -> str:
    """Return a text that somebody else chose as it is written: short, what is unprintable escaped."""
    if not isinstance(text, str):
        return ""
    clean = "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode("ascii")
        for one in text[: limit + 1]
    )
    return clean if len(clean) <= limit else f"{clean[: limit - 1]}…"


def append_to_stream(descriptor: int, *, wait: float = STREAM_WAIT) -> Append:
    """Return what appends to an open descriptor, such as that of standard output.

    Lines up to ``PIPE_BUF`` bytes (4,096) stay whole among several processes that share a pipe.

    Args:
        descriptor: Open for writing.
        wait: Seconds for its reader to make room for a line.
    """

    def append(lines: Sequence[bytes]) -> None:
        ready = select.poll()
        ready.register(descriptor, select.POLLOUT)
        for line in lines:
            while line:
                if not ready.poll(wait * 1000):
                    raise TimeoutError("nobody reads the output")
                line = line[os.write(descriptor, line) :]

    return append
