"""Servers that go wrong: during a listing, during a call, or never saying a word."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from capdex_engine.encode.testing import HashEncoder
from capdex_engine.errors import (
    CapdexError,
    NotExecutable,
    UpstreamProtocolError,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from capdex_server.app import create_app
from capdex_server.config import Settings, load_settings
from capdex_server.live import Live
from capdex_server.outbound import Outbound
from capdex_server.upstream.upstreams import Upstreams

pytestmark = pytest.mark.anyio
SERVER = Path(__file__).with_name("faulty_mcp.py")
SECRET = "planted-secret-2718"


def settings_of(folder: Path, modes: dict[str, str], extra: str = "", **limits: Any) -> Settings:
    """Sources by name, each a server that goes wrong in its mode."""
    text = f'cache = "cache"\n{extra}\n'
    for name, mode in modes.items():
        work = folder / name
        work.mkdir()
        command = json.dumps([sys.executable, str(SERVER), mode, str(work)])
        text += f'[sources.{name}]\nkind = "mcp"\ncommand = {command}\nstart_timeout = 2\n'
        text += 'env = { KEY = { env = "PLANTED" } }\n'
    config = folder / "capdex.toml"
    config.write_text(text)
    settings = load_settings(config, {})
    return settings.model_copy(update={"limits": settings.limits.model_copy(update=limits)})


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[tuple[httpx2.AsyncClient, Live, Upstreams]]:
    environ = {**os.environ, "PLANTED": SECRET}
    upstreams = Upstreams(settings, environ)
    outbound = Outbound.from_settings(settings)
    live = Live.from_settings(
        settings, outbound=outbound, encoder=HashEncoder, environ=environ, upstreams=upstreams
    )
    app = create_app(live, settings)
    base = "http://127.0.0.1:8000"
    transport = httpx2.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url=base, timeout=60) as http,
    ):
        yield http, live, upstreams
    await outbound.aclose()


async def until(true: Callable[[], Any]) -> None:
    with anyio.fail_after(30):
        while not true():
            await anyio.sleep(0.02)


async def execute(http: httpx2.AsyncClient, name: str, **fields: Any) -> dict[str, Any]:
    return (await http.post("/execute", json={"name": name, **fields})).json()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A dead one that nobody has waited for is no process any more.
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"


def pids(folder: Path) -> list[int]:
    return [int(line) for line in (folder / "pids").read_text().split()]


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ("dies", "ended with code 5"),
        ("dies-listing", "ended with code 3"),
        ("silent", "not ready within 2 seconds"),
        ("only-garbage", "not ready within 2 seconds"),
        ("too-many", "MCP_CATALOG_ITEM_LIMIT"),
    ],
)
async def test_a_server_without_good_tools_is_told_with_the_reason_and_no_process_is_left(
    tmp_path: Path, mode: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with serving(settings_of(tmp_path, {"odd": mode})) as (http, live, _):
        await until(lambda: live.failure)
        answer = await http.get("/readyz")
        assert answer.status_code == 503
        assert told in answer.json()["reasons"]["odd"]
    assert not any(alive(pid) for pid in pids(tmp_path / "odd"))
    assert SECRET not in caplog.text


async def test_a_program_that_is_not_there_is_told(tmp_path: Path) -> None:
    config = tmp_path / "capdex.toml"
    config.write_text('cache = "cache"\n[sources.odd]\nkind = "mcp"\ncommand = "/no/such/program"\n')
    async with serving(load_settings(config, {})) as (_, live, upstreams):
        await until(lambda: live.failure)
        assert "is not there" in str(upstreams.servers["odd"].listing.down)


async def test_garbage_on_standard_output_ends_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with serving(settings_of(tmp_path, {"odd": "garbage"})) as (http, live, _):
        await until(lambda: live.ready)
        result = await execute(http, "garbage", body={})
        assert result["content"] == [{"type": "text", "text": "done"}]
    assert sum("upstream.no_message" in record.getMessage() for record in caplog.records) == 4


async def test_one_malformed_tool_costs_the_others_nothing(tmp_path: Path) -> None:
    async with serving(settings_of(tmp_path, {"odd": "mixed"})) as (_, live, _):
        await until(lambda: live.ready)
        assert [one.name for one in live.current.catalog.operations] == ["good"]
        [report] = live.current.catalog.report.sources
        codes = [one.reason.rpartition("(")[2].rstrip(")") for one in report.kept_out]
    assert sorted(codes) == ["MCP_CATALOG_INVALID_TOOL"] * 3 + ["MCP_CATALOG_SCHEMA_TOO_DEEP"]


@pytest.mark.parametrize(
    ("mode", "code"),
    [
        ("dies-calling", UpstreamUnreachable.code),
        ("never-answers", UpstreamTimeout.code),
        ("garbage-answer", UpstreamProtocolError.code),
        ("odd-block", UpstreamProtocolError.code),
        ("odd-flag", UpstreamProtocolError.code),
        ("huge", UpstreamProtocolError.code),
        ("error", UpstreamProtocolError.code),
    ],
)
async def test_a_call_that_goes_wrong_says_how_and_is_not_called_repeatable(
    tmp_path: Path, mode: str, code: str
) -> None:
    async with serving(settings_of(tmp_path, {"odd": mode}, timeout=1.0)) as (http, live, _):
        await until(lambda: live.ready)
        error = (await execute(http, mode, body={}))["error"]
    assert (error["code"], error["retryable"], error["capability"]) == (code, False, mode)
    assert "\u202e" not in error["message"]
    assert "no budget left" in error["message"] or mode != "error"


async def test_what_is_no_number_of_json_is_null(tmp_path: Path) -> None:
    async with serving(settings_of(tmp_path, {"odd": "not-finite"})) as (http, live, _):
        await until(lambda: live.ready)
        result = await execute(http, "not-finite", body={})
    assert result["structuredContent"] == {"none": None, "most": None, "some": [1.5]}


async def test_a_call_that_is_given_up_is_cancelled_at_the_server(tmp_path: Path) -> None:
    async with serving(settings_of(tmp_path, {"odd": "never-answers"}, timeout=60.0)) as (http, live, _):
        await until(lambda: live.ready)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(execute, http, "never-answers")
            await until((tmp_path / "odd" / "calls").exists)
            tasks.cancel_scope.cancel()
        await until((tmp_path / "odd" / "cancelled").exists)
        calls, cancelled = ((tmp_path / "odd" / name).read_text() for name in ("calls", "cancelled"))
    assert calls == cancelled


async def test_a_server_that_died_stays_in_search_with_the_reason_and_is_started_again(
    tmp_path: Path,
) -> None:
    async with serving(settings_of(tmp_path, {"odd": "dies-calling"})) as (http, live, upstreams):
        await until(lambda: live.ready and upstreams.servers["odd"].state == "up")
        await until(lambda: live.current.catalog.operations[0].executable)
        digest = live.current.catalog.operations[0].schema_digest
        await execute(http, "dies-calling", body={})
        await until(lambda: not live.current.catalog.operations[0].executable)
        found = (await http.post("/search", json={"query": "dies calling"})).json()["matches"][0]
        assert (found["executable"], found["schemaDigest"]) == (False, digest)
        assert "ended with code 4" in found["reason"]
        refused = (await execute(http, "dies-calling", body={}))["error"]
        assert (refused["code"], "ended with code 4" in refused["reason"]) == (NotExecutable.code, True)
        ready = (await http.get("/readyz")).json()
        assert (ready["status"], "cannot be called" in ready["reasons"]["odd"]) == ("degraded", True)
        await until(lambda: live.current.catalog.operations[0].executable)
        assert (await http.get("/readyz")).json()["status"] == "ok"
    assert len(pids(tmp_path / "odd")) == 2


async def test_tools_of_an_earlier_run_are_there_while_the_server_is_down_at_the_start(
    tmp_path: Path,
) -> None:
    settings = settings_of(tmp_path, {"odd": "good"})
    async with serving(settings) as (_, live, _):
        await until(lambda: live.ready)
        digest = live.current.catalog.operations[0].schema_digest
    down = Upstreams(settings, {}, connect=lambda *_: _refusing)
    live = Live.from_settings(
        settings, outbound=Outbound.from_settings(settings), encoder=HashEncoder, environ={}, upstreams=down
    )
    async with down:
        await live.reload()
    [operation] = live.current.catalog.operations
    assert (operation.name, operation.schema_digest, operation.executable) == ("good", digest, False)
    assert "refused" in str(operation.reason)


@asynccontextmanager
async def _refusing(_: Any) -> AsyncIterator[Any]:
    raise UpstreamUnreachable("It is refused.")
    yield


async def test_a_thousand_notices_of_change_a_second_cause_one_listing_in_an_interval(tmp_path: Path) -> None:
    async with serving(settings_of(tmp_path, {"odd": "flood"})) as (http, live, _):
        await until(lambda: live.ready)
        await until(lambda: len((tmp_path / "odd" / "listings").read_text().split()) >= 3)
        assert (await execute(http, "flood", body={}))["content"][0]["text"] == "done"
        times = [float(line) for line in (tmp_path / "odd" / "listings").read_text().split()]
        revision = live.current.revision
    assert all(later - earlier >= 1.9 for earlier, later in pairwise(times))
    assert live.current.revision == revision


async def test_a_process_that_ignores_every_sign_is_ended_with_its_children(tmp_path: Path) -> None:
    async with serving(settings_of(tmp_path, {"odd": "stubborn"})) as (_, live, _):
        await until(lambda: live.ready)
        mine = pids(tmp_path / "odd")
        assert len(mine) == 2 and all(alive(pid) for pid in mine)
    assert not any(alive(pid) for pid in mine)


async def test_standard_error_is_logged_with_its_source_bounded_and_masked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with serving(settings_of(tmp_path, {"odd": "chatty", "bad": "dies"})) as (_, live, upstreams):
        await until(lambda: live.ready and upstreams.servers["bad"].state == "down")
        await until(lambda: sum("upstream.stderr" in one.getMessage() for one in caplog.records) >= 61)
    texts = [record.getMessage() for record in caplog.records if "upstream.stderr" in record.getMessage()]
    assert any("bad" in text and "I cannot go on, my key is ***" in text for text in texts)
    assert 50 <= sum("'odd'" in text for text in texts) <= 60
    assert max(map(len, texts)) < 3000


async def test_sixteen_servers_of_which_five_are_dead_search_is_unaffected_and_readyz_says_which_and_why(
    tmp_path: Path,
) -> None:
    dead = {"a": "dies", "b": "dies-listing", "c": "silent", "d": "only-garbage", "e": "too-many"}
    good = {f"s{number}": f"good{number}" for number in range(11)}
    async with serving(settings_of(tmp_path, {**dead, **good})) as (http, live, upstreams):
        await until(lambda: live.ready)
        await until(lambda: all(server.tried.is_set() for server in upstreams))
        await until(lambda: len(live.problems) == 5 and len(live.current.catalog.operations) == 11)
        found = (await http.post("/search", json={"query": "good7"})).json()["matches"]
        assert (found[0]["name"], found[0]["executable"]) == ("good7", True)
        assert (await execute(http, "good7", body={}))["content"][0]["text"] == "done"
        ready = await http.get("/readyz")
        assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
        reasons = ready.json()["reasons"]
    assert reasons.keys() == dead.keys()
    assert "code 5" in reasons["a"] and "code 3" in reasons["b"] and "not ready" in reasons["c"]
    assert "MCP_CATALOG_ITEM_LIMIT" in reasons["e"]
    left = [pid for name in (*dead, *good) for pid in pids(tmp_path / name) if alive(pid)]
    assert left == []


async def test_errors_of_ours_are_capdex_errors_with_no_frames(tmp_path: Path) -> None:
    upstreams = Upstreams(settings_of(tmp_path, {"odd": "dies"}), {"PLANTED": SECRET})
    with pytest.raises(CapdexError):
        await upstreams("odd", {}, source="odd", timeout=1.0)
    with pytest.raises(UpstreamUnreachable):
        await upstreams("x", {}, source="other", timeout=1.0)
