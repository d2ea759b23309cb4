"""A real ``capdex serve`` against a faulty upstream: what callers are told, and whether others notice.

The server runs as its own process, the faulty upstream and a sound one as two more; calls go through
``/mcp/agent``. The server's process is told to trust the authority of the bench, so that an expired
certificate fails for its date and not for its issuer; nothing else about it differs.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
import numpy as np

from capdex_engine.errors import CapdexError

from .faults_calls import NICE, Watch, call
from .faults_cases import FAULTS, HEALTHY, Fault, name_of, said, serialised
from .faults_secrets import SECRET

START: Final = 120.0
"""Seconds that the server may take for its first catalog."""
RATIO: Final = 2.0
"""How many times its p99 beside sound calls the p99 of healthy calls may reach beside faults."""
SLACK: Final = 1.0
"""Seconds that a call may take beyond its source's time limit on a busy machine."""
_SERVE: Final = """
import ssl, sys, httpcore2
real = httpcore2.default_ssl_context
def trusting(**options):
    context = real(**options)
    context.load_verify_locations({authority!r})
    return context
httpcore2.default_ssl_context = trusting
from capdex_server.cli import main
sys.argv[0] = "capdex"
main()
"""


class FaultsFailed(CapdexError):
    """The server or an upstream did not start."""

    code = "faults_failed"


@dataclass(slots=True)
class House:
    """Everything that runs."""

    server: subprocess.Popen[bytes]
    url: str
    log: Path
    timeout: float

    def rss(self, field: str = "VmRSS") -> float | None:
        """Return the server's memory in MiB; None where the system does not tell."""
        try:
            status = Path(f"/proc/{self.server.pid}/status").read_text(encoding="ascii")
        except OSError:
            return None
        found = re.search(rf"{field}:\s+(\d+) kB", status)
        return round(int(found[1]) / 1024, 1) if found else None


def measure_faults(
    *, seconds: float, rounds: int, rate: float, timeout: float, say: Callable[[str], None]
) -> dict[str, Any]:
    """Call every fault, then time healthy calls with and without all of them; return the figures.

    Args:
        seconds: Of each stretch of healthy calls; a round has one alone, one beside as many other calls that
            are sound, and one beside faults.
        rounds: How often.
        rate: Healthy calls a second.
        timeout: Of the server for one upstream call, in seconds.
        say: Told how far it is.

    Raises:
        FaultsFailed: The server did not start.
    """
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        house = stack.enter_context(_house(Path(folder), timeout))
        return asyncio.run(_measured(house, seconds, rounds, rate, say))


async def _measured(
    house: House, seconds: float, rounds: int, rate: float, say: Callable[[str], None]
) -> dict[str, Any]:
    watch = Watch()
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=200)
    async with httpx2.AsyncClient(
        base_url=house.url, timeout=house.timeout + 30, trust_env=False, limits=limits
    ) as client:
        await _ready(client)
        await _healthy(client, 2.0, rate, watch)  # connections and caches
        before = house.rss()
        say(f"{len(FAULTS)} faults, one after another")
        rows = [await _row(client, fault, house, watch) for fault in FAULTS]
        alone: list[float] = []
        calm: list[float] = []
        faulty: list[float] = []
        sound_calls = calls = 0
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            alone += await _healthy(client, seconds, rate, watch)
            more, count = await _beside("sound", client, house, seconds, rate, watch)
            calm, sound_calls = calm + more, sound_calls + count
            more, count = await _beside("faults", client, house, seconds, rate, watch)
            faulty, calls = faulty + more, calls + count
            await asyncio.sleep(house.timeout)  # what is still under way belongs to no calm stretch
        alive = house.server.poll() is None and (await client.get("/healthz")).status_code == 200
    watch.look("log", house.log.read_text(encoding="utf-8", errors="replace"))
    return {
        "rows": rows,
        "timeout": house.timeout,
        "rate": rate,
        "alone": _figures(alone),
        "calm": _figures(calm),
        "faulty": _figures(faulty),
        "ratio": round(_p99(faulty) / _p99(calm), 2),
        "sound_calls": sound_calls,
        "fault_calls": calls,
        "rss_before": before,
        "rss_after": house.rss(),
        "rss_peak": house.rss("VmHWM"),
        "alive": alive,
        "leaks": watch.leaks,
        "internal": watch.internal,
        "wrong": watch.wrong,
        "log_lines": house.log.read_text(encoding="utf-8", errors="replace").count("\n"),
    }


def failures(figures: Mapping[str, Any]) -> list[str]:
    """Return what a run must not show; empty when it is well."""
    found = [] if figures["alive"] else ["the server died"]
    found += [f"a planted secret in {one}" for one in figures["leaks"]]
    found += [f"internal_error: {one}" for one in figures["internal"]]
    found += list(figures["wrong"])
    late = figures["timeout"] + SLACK
    found += [
        f"{row['fault']}: {row[method]['seconds']} s, more than {late:g}"
        for row in figures["rows"]
        for method in ("GET", "POST")
        if row[method]["seconds"] > late
    ]
    if figures["ratio"] > RATIO:
        found.append(f"p99 of healthy calls is {figures['ratio']} times that beside sound calls")
    return found


async def _row(client: httpx2.AsyncClient, fault: Fault, house: House, watch: Watch) -> dict[str, Any]:
    row: dict[str, Any] = {"fault": fault.name, "text": fault.text}
    for method in ("GET", "POST"):
        started = time.monotonic()
        answer = await call(client, name_of(fault, method), watch)
        error = answer.get("error", {})
        row[method] = {
            "said": said(answer),
            "retryable": error.get("retryable"),
            "seconds": round(time.monotonic() - started, 2),
            "masked": answer.get("masked", False),
        }
        if said(answer) != fault.expected(method):
            watch.wrong.append(f"{method} {fault.name}: {said(answer)} instead of {fault.expected(method)}")
    if (await call(client, "fine", watch)).get("body") != {"ok": True}:
        watch.wrong.append(f"a sound call after {fault.name} failed")
    return row


async def _healthy(client: httpx2.AsyncClient, seconds: float, rate: float, watch: Watch) -> list[float]:
    """Call the sound upstream at a steady rate whatever the answers take; return how long each took."""
    took: list[float] = []
    start = time.monotonic()

    async def one(due: float) -> None:
        answer = await call(client, HEALTHY.name, watch)
        took.append(time.monotonic() - due)
        if answer.get("body") != {"ok": True}:
            watch.wrong.append(f"a healthy call failed: {json.dumps(answer)[:200]}")

    async with asyncio.TaskGroup() as group:
        for number in range(int(seconds * rate)):
            due = start + number / rate
            await asyncio.sleep(max(due - time.monotonic(), 0))
            group.create_task(one(time.monotonic()))
    return took


async def _beside(
    kind: str, client: httpx2.AsyncClient, house: House, seconds: float, rate: float, watch: Watch
) -> tuple[list[float], int]:
    """Time healthy calls while another process calls all faults, or as often something sound.

    Return their times, and the number of the other process's calls.
    """
    command = [sys.executable, "-m", "capdex_bench.faults_calls", house.url, str(house.timeout), kind]
    pipe = asyncio.subprocess.PIPE
    other = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    assert other.stdout is not None  # noqa: S101 - a pipe
    await other.stdout.readline()  # every fault has been called
    took = await _healthy(client, seconds, rate, watch)
    said, _ = await other.communicate(b"")
    told = json.loads(said)
    watch.leaks += told["leaks"]
    watch.internal += told["internal"]
    watch.wrong += told["wrong"]
    return took, told["calls"]


def _p99(took: list[float]) -> float:
    return float(np.percentile(took, 99))


def _figures(took: list[float]) -> dict[str, Any]:
    p50, p99 = (float(value) * 1000 for value in np.percentile(took, [50, 99]))
    return {"calls": len(took), "p50_ms": round(p50, 1), "p99_ms": round(p99, 1)}


@contextmanager
def _house(folder: Path, timeout: float) -> Iterator[House]:
    # A faulty upstream would be another machine, whose work costs the server nothing.
    with _upstream(folder, niceness=NICE) as faulty, _upstream(folder, niceness=0) as sound:
        urls = {place: url for place, url in faulty.items() if place != "authority"}
        urls["healthy"] = sound["plain"]
        config = [f"cache = {json.dumps(str(folder / 'cache'))}", f"[limits]\ntimeout = {timeout}"]
        for place, url in urls.items():
            path = folder / f"{place}.json"
            path.write_bytes(serialised(place, url))
            source = f"[sources.{place}]\nlocation = {json.dumps(str(path))}\nserver = {json.dumps(url)}"
            config.append(f'{source}\ncredentials.key.env = "PLANTED"')
        (folder / "capdex.toml").write_text("\n".join(config), encoding="utf-8")
        with _served(folder, faulty["authority"], timeout) as house:
            yield house


@contextmanager
def _upstream(folder: Path, *, niceness: int) -> Iterator[dict[str, str]]:
    command = [sys.executable, "-m", "capdex_bench.faults_upstream", str(folder), str(niceness)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:  # noqa: S603 - ours
        assert process.stdout is not None and process.stdin is not None  # noqa: S101 - pipes
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()


@contextmanager
def _served(folder: Path, authority: str, timeout: float) -> Iterator[House]:
    code = _SERVE.format(authority=authority)
    command = [sys.executable, "-c", code, "serve", "--port", "0", "--config", str(folder / "capdex.toml")]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("CAPDEX_")}
    log = folder / "log"
    with (
        log.open("wb") as out,
        subprocess.Popen(  # noqa: S603 - ours
            command, stderr=out, stdout=out, cwd=folder, env={**environ, "PLANTED": SECRET}
        ) as server,
    ):
        try:
            yield House(server, _url_in(log, server), log, timeout)
        finally:
            server.terminate()


def _url_in(log: Path, server: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + START
    while time.monotonic() < deadline and server.poll() is None:
        found = re.search(r"(http://\S+?)/mcp/agent", log.read_text(encoding="utf-8"))
        if found:
            return found[1]
        time.sleep(0.1)
    raise FaultsFailed(f"The server did not start: {log.read_text(encoding='utf-8')[-500:]}")


async def _ready(client: httpx2.AsyncClient) -> None:
    deadline = time.monotonic() + START
    while time.monotonic() < deadline:
        if (await client.get("/readyz")).status_code == 200:
            return
        await asyncio.sleep(0.2)
    raise FaultsFailed("The server has no catalog.")
