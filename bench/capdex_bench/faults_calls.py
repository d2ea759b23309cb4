"""Calls of faults through ``/mcp/agent``, and a look at what is answered.

``python -m capdex_bench.faults_calls URL TIMEOUT faults`` calls all faults, each again and again, until its
standard input ends (``sound``: as many callers of a sound operation); then it prints what it has seen as
JSON. It is a process of its own, so that reading its answers delays nobody whose calls are timed.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import httpx2

from .faults_cases import FAULTS, FINE, Fault, name_of, said
from .faults_secrets import leaks

PAUSE: Final = 4.0
"""Seconds between the answer of a fault and its next call."""
NICE: Final = 10
"""Of what stands for other machines."""
_ENVELOPE: Final = {"Accept": "application/json, text/event-stream"}


@dataclass(slots=True)
class Watch:
    """What no answer may hold."""

    leaks: list[str] = field(default_factory=list)
    internal: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    calls: int = 0

    def look(self, where: str, text: str) -> None:
        """Look for planted secrets, and for errors of the server's own."""
        self.leaks += [f"{where}: {form}" for form in leaks(text)]
        if '"internal_error"' in text.replace("\\", ""):
            self.internal.append(where)


async def call(client: httpx2.AsyncClient, name: str, watch: Watch) -> dict[str, Any]:
    """Call a capability; return its result or error."""
    params = {"name": "execute_capability", "arguments": {"name": name}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer = await client.post("/mcp/agent", json=message, headers=_ENVELOPE)
    watch.look(name, answer.text)
    content: dict[str, Any] = answer.json()["result"]["structuredContent"]
    return content


async def _again(client: httpx2.AsyncClient, fault: Fault, first: float, watch: Watch) -> None:
    await asyncio.sleep(first)
    while True:
        for method in ("GET", "POST"):
            answer = await call(client, name_of(fault, method), watch)
            watch.calls += 1
            if said(answer) != fault.expected(method):
                watch.wrong.append(f"{method} {fault.name} under load: {said(answer)}")
            await asyncio.sleep(PAUSE)


async def _all(url: str, timeout: float, *, sound: bool) -> Watch:
    watch = Watch()
    limits = httpx2.Limits(max_connections=None)
    async with httpx2.AsyncClient(
        base_url=url, timeout=timeout + 30, trust_env=False, limits=limits
    ) as client:
        callers = [
            asyncio.create_task(_again(client, FINE if sound else fault, PAUSE * place / len(FAULTS), watch))
            for place, fault in enumerate(FAULTS)
        ]
        await asyncio.sleep(PAUSE)
        sys.stdout.write("\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)
        watch.wrong += [
            f"a call under faults failed: {caller.exception()!r}" for caller in callers if caller.done()
        ]
        for caller in callers:
            caller.cancel()
        await asyncio.gather(*callers, return_exceptions=True)
    return watch


def main() -> None:
    """Call until standard input ends."""
    os.nice(NICE)
    watch = asyncio.run(_all(sys.argv[1], float(sys.argv[2]), sound=sys.argv[3] == "sound"))
    sys.stdout.write(json.dumps(asdict(watch)))


if __name__ == "__main__":
    main()
