"""A faulty upstream through the endpoint: what the caller is told, and that no more is sent than is meant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import pytest

from capdex_bench.faults_cases import FAULTS, NO_RETRY, Fault, name_of, said
from capdex_bench.faults_upstream import FaultUpstream, fault_upstream
from capdex_server.demo import run_in_thread
from integration.fault_support import KEY, agent, fault_app
from planted import forms

pytestmark = pytest.mark.anyio
SHORT = {"timeout": 0.4}
"""For faults that last until the limit."""
PATIENT = {"timeout": 30.0, "max_response_bytes": 256 * 1024}
NAMED = {fault.name: fault for fault in FAULTS}
ATTEMPTS = 3


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with fault_upstream(tmp_path_factory.mktemp("upstream")) as running:
        yield running


def limits(fault: Fault) -> dict[str, Any]:
    return SHORT if fault.slow else PATIENT


def sent(upstream: FaultUpstream, fault: Fault, method: str) -> int:
    return upstream.requests[f"{method} {fault.name}"]


@pytest.mark.parametrize("name", NAMED)
async def test_each_fault_has_its_answer_and_is_not_repeated_without_end(
    name: str, upstream: FaultUpstream, tmp_path: Path
):
    fault = NAMED[name]
    answers = {}
    async with agent(upstream, tmp_path, **limits(fault)) as execute:
        for method in ("GET", "POST"):
            before = sent(upstream, fault, method)
            answers[method] = answer = await execute(name_of(fault, method))
            assert said(answer) == fault.expected(method), answer
            allowed = ATTEMPTS if method == "GET" else 1
            looped = 4 if fault.name == "redirectLoop" and method == "GET" else allowed
            assert sent(upstream, fault, method) - before <= looped
        # Whatever was left on a connection is no answer to another call.
        if fault.place == "plain" and not fault.slow:
            assert (await execute("fine"))["body"] == {"ok": True}
    for method, answer in answers.items():
        if "error" in answer and fault.place not in NO_RETRY:
            assert answer["error"]["retryable"] is (method == "GET"), answer
        text = json.dumps(answer)
        assert not [form for form in forms(KEY) if form in text]


async def test_a_post_that_broke_off_is_its_real_status_and_no_error(upstream: FaultUpstream, tmp_path: Path):
    async with agent(upstream, tmp_path, **PATIENT) as execute:
        answer = await execute("resetInBodyPost")
    assert (answer["status"], answer["truncated"], answer["body"]) == (200, True, '{"half": ')


async def test_what_is_no_json_is_text(upstream: FaultUpstream, tmp_path: Path):
    async with agent(upstream, tmp_path, **PATIENT) as execute:
        bodies = {
            name: (await execute(name))["body"]
            for name in ("brokenJson", "invalidUtf8", "wrongCharset", "withBom", "notANumber", "htmlAsJson")
        }
    assert bodies == {
        "brokenJson": '{"a": [1, 2',
        "invalidUtf8": '{"a": "ÿþÃ"}',
        "wrongCharset": "é",
        "withBom": {"ok": True},
        "notANumber": "[NaN, 1e999]",
        "htmlAsJson": "<html>sorry</html>",
    }


async def test_codings_that_were_not_undone_leave_bytes(upstream: FaultUpstream, tmp_path: Path):
    async with agent(upstream, tmp_path, **PATIENT) as execute:
        assert (await execute("unknownCoding"))["body"] == {"base64": "AQI="}
        assert set((await execute("nestedGzip"))["body"]) == {"base64"}


async def test_statuses_keep_what_they_say_about_time_and_place(upstream: FaultUpstream, tmp_path: Path):
    async with agent(upstream, tmp_path, **PATIENT) as execute:
        assert (await execute("tooMany"))["headers"]["retry-after"] == "7"
        assert "2099" in (await execute("unavailable"))["headers"]["retry-after"]
        assert (await execute("redirectPrivate"))["headers"]["location"].startswith("http://169.254.")


async def test_an_endless_answer_is_read_up_to_the_limit(upstream: FaultUpstream, tmp_path: Path):
    async with agent(upstream, tmp_path, **PATIENT) as execute:
        for name in ("endlessBody", "bigJson", "gzipBomb"):
            answer = await execute(name)
            assert (answer["bytes"], answer["truncated"]) == (PATIENT["max_response_bytes"], True)


async def test_an_echoed_credential_is_masked_in_headers_and_body(upstream: FaultUpstream, tmp_path: Path):
    async with agent(upstream, tmp_path, **PATIENT) as execute:
        answer = await execute("echo")
    assert answer["masked"] is True
    assert (answer["headers"]["x-echo"], answer["headers"]["x-coded"]) == ("***", "***")
    assert answer["body"]["***"] == ["***", "x***y"]


async def test_a_handshake_that_is_given_up_closes_its_connection(upstream: FaultUpstream, tmp_path: Path):
    async with agent(upstream, tmp_path, **SHORT) as execute:
        upstream.gone.clear()
        await execute("tlsHang")
        assert await anyio.to_thread.run_sync(upstream.wait_for, upstream.gone, "TLS")


def rest(name: str) -> tuple[str, dict[str, Any]]:
    return "/execute", {"name": name}


def mcp(name: str) -> tuple[str, dict[str, Any]]:
    params = {"name": "execute_capability", "arguments": {"name": name}}
    return "/mcp/agent", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


@pytest.mark.parametrize("way", [rest, mcp])
@pytest.mark.parametrize("name", ["hang", "stallInBody", "dripBodyPost", "dripHead"])
async def test_a_client_that_goes_away_closes_the_upstreams_connection(
    way: Any, name: str, upstream: FaultUpstream, tmp_path: Path
):
    app = fault_app(upstream, tmp_path, timeout=600)
    key = f"POST {name.removesuffix('Post')}" if name.endswith("Post") else f"GET {name}"
    upstream.requests.clear()
    upstream.gone.clear()
    path, body = way(name)
    accept = {"Accept": "application/json, text/event-stream"}
    with run_in_thread(app) as url:
        async with httpx2.AsyncClient(base_url=url, timeout=60, trust_env=False) as client:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: client.post(path, json=body, headers=accept))
                assert await anyio.to_thread.run_sync(upstream.wait_for, upstream.requests, key)
                assert upstream.gone[key] == 0
                tasks.cancel_scope.cancel()
            assert await anyio.to_thread.run_sync(upstream.wait_for, upstream.gone, key)
            # And the server goes on.
            assert (await client.post("/execute", json={"name": "fine"})).json()["body"] == {"ok": True}
