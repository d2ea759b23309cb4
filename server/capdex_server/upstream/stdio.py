"""A server as a process of its own group, and its standard streams as MCP's.

The client's own transport reads lines of any length and hands standard error on unread; this one bounds
both, keeps what is no message from ending the session, and leaves no process behind.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from capdex_engine.errors import UpstreamProtocolError
from capdex_server.upstream.faults import Ended

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

GRACE: Final = 2.0
"""Seconds that a process gets to end by itself once its input is closed, and again once it is told to."""
MAX_ERROR_LINE: Final = 2000
"""Bytes of one line of standard error."""
_POLL: Final = 0.02
_KEPT: Final = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
"""What any program needs to find its way; everything else is given by name."""
Say = Callable[[bytes], None]


class Pipes:
    """What the streams of one process have told so far."""

    def __init__(self) -> None:
        self.ended = anyio.Event()
        """Set once nothing more comes."""
        self.fault: Ended | UpstreamProtocolError | None = None
        """Why, where it is known."""
        self.garbage = 0
        """Lines that were no message."""


def environment(
    given: Mapping[str, str], inherited: Sequence[str], environ: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment of a process: the few variables that all need, and those that are named."""
    names = (*_KEPT, *inherited)
    return {name: environ[name] for name in names if name in environ} | dict(given)


@asynccontextmanager
async def stdio_transport(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None,
    pipes: Pipes,
    source: str,
    max_line: int,
    say: Say,
    complain: Say,
) -> AsyncIterator[TransportStreams]:
    """Run a server for as long as the context lasts; its whole process group ends with it.

    Args:
        command: Program and arguments; no shell is involved.
        env: Its whole environment.
        cwd: The folder that it runs in.
        pipes: Told how it goes.
        source: For messages.
        max_line: Bytes of one message; a longer one ends the connection.
        say: Gets each line of its standard error, cut.
        complain: Gets each line of its standard output that is no message, cut.

    Raises:
        OSError: It cannot be started.
    """
    process = await anyio.open_process(
        list(command),
        env=env,
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    running = _Running(process, pipes, source, max_line, complain)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(running.read, incoming)
        tasks.start_soon(running.write, outgoing)
        tasks.start_soon(running.listen, say)
        try:
            yield read, write
        finally:
            running.stopping = True
            with anyio.CancelScope(shield=True):
                read.close()
                write.close()
                await running.stop()
            tasks.cancel_scope.cancel()


class _Running:
    def __init__(self, process: Process, pipes: Pipes, source: str, max_line: int, complain: Say) -> None:
        self._process = process
        self._pipes = pipes
        self._source = source
        self._max_line = max_line
        self._complain = complain
        self.stopping = False
        """Whether its end is wanted."""

    async def read(self, incoming: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        """Hand on messages until the process closes its output, or a message is too long."""
        assert self._process.stdout is not None  # noqa: S101 - opened as a pipe
        async with incoming:
            try:
                async for line in lines(self._process.stdout, self._max_line):
                    message = self._message(line)
                    if message is not None:
                        await incoming.send(message)
            except UpstreamProtocolError as error:
                self._pipes.fault = error
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                pass  # the session has gone, or the process
            if self._pipes.fault is None and not self.stopping:
                await self._gone(1.0)
                self._pipes.fault = Ended(self._obituary(), retryable=True)
            self._pipes.ended.set()

    def _obituary(self) -> str:
        code = self._process.returncode
        how = "closed its output" if code is None else f"ended with code {code}"
        if code is not None and code < 0:
            with suppress(ValueError):
                how = f"was ended by {signal.Signals(-code).name}"
        return f"The MCP server of {self._source} {how}; the log has what it said."

    def _message(self, line: bytes) -> SessionMessage | None:
        if not line.strip():
            return None
        try:
            # Not by pydantic's own reader: it gives up at 200 levels, and a deep schema is one tool's fault.
            return SessionMessage(jsonrpc_message_adapter.validate_python(json.loads(line), by_name=False))
        except (ValueError, RecursionError):
            self._pipes.garbage += 1
            self._complain(line[:MAX_ERROR_LINE])
            return None

    async def write(self, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
        assert self._process.stdin is not None  # noqa: S101 - opened as a pipe
        async with outgoing:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                async for message in outgoing:
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await self._process.stdin.send(text.encode() + b"\n")

    async def listen(self, say: Say) -> None:
        assert self._process.stderr is not None  # noqa: S101 - opened as a pipe
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            async for line in cut_lines(self._process.stderr, MAX_ERROR_LINE):
                say(line)

    async def stop(self) -> None:
        """Close its input, then tell it to end, then end it; whatever it started ends too."""
        async with AsyncExitStack() as stack:
            stack.callback(self._let_go)
            for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
                if pipe is not None:
                    stack.push_async_callback(_closed, pipe)
            assert self._process.stdin is not None  # noqa: S101 - opened as a pipe
            await _closed(self._process.stdin)
            if not await self._gone(GRACE):
                self._signal(signal.SIGTERM)
                await self._gone(GRACE)
            self._signal(signal.SIGKILL)
            await self._gone(GRACE)

    def _let_go(self) -> None:
        """Close the event loop's own hold, which stays open while output is unread; it has no public name."""
        transport = getattr(getattr(self._process, "_process", None), "_transport", None)
        close = getattr(transport, "close", None)
        if callable(close):
            with suppress(PermissionError):
                close()

    async def _gone(self, seconds: float) -> bool:
        # Not wait(): it also waits for pipes that a child of the process may hold open.
        with anyio.move_on_after(seconds):
            while self._process.returncode is None:
                await anyio.sleep(_POLL)
        return self._process.returncode is not None

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


async def _closed(pipe: anyio.abc.AsyncResource) -> None:
    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.BusyResourceError):
        await pipe.aclose()


async def lines(stream: ByteReceiveStream, max_line: int) -> AsyncIterator[bytes]:
    """Yield lines; what stands after the last line end is none.

    Raises:
        UpstreamProtocolError: A line has more than ``max_line`` bytes.
    """
    parts: list[bytes] = []
    size = 0
    async for chunk in stream:
        *ended, rest = chunk.split(b"\n")
        for line in ended:
            yield b"".join([*parts, line])
            parts, size = [], 0
        parts.append(rest)
        size += len(rest)
        if size > max_line:
            raise UpstreamProtocolError(f"The MCP server sent a message of more than {max_line} bytes.")


async def cut_lines(stream: ByteReceiveStream, most: int) -> AsyncIterator[bytes]:
    """Yield lines, each cut to ``most`` bytes; the rest of a longer one is passed over."""
    held = b""
    async for chunk in stream:
        *ended, rest = (held + chunk).split(b"\n")
        for line in ended:
            if line.strip():
                yield line[:most]
        held = rest[:most]
    if held.strip():
        yield held
