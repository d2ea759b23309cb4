"""One catalog of five MCP servers that others wrote, over both transports, and two documents of our own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from integration.recorder import Recorder, recording_upstream
from integration.upstreams import Served, capdex_serve, npm_program, python_program, started

pytestmark = pytest.mark.anyio
SECRET = "planted-secret-2718"
ERAS = ("legacy", "2026-07-28")
CONFIG = """
cache = "cache"
[sources.files]
kind = "mcp"
command = [{files}, {root}]
trusted = true
[sources.memory]
kind = "mcp"
command = {memory}
env = {{ MEMORY_FILE_PATH = {graph} }}
[sources.everything]
kind = "mcp"
command = [{everything}, "stdio"]
env = {{ PLANTED = {{ env = "PLANTED_SECRET" }} }}
[sources.remote]
kind = "mcp"
url = {url}
[sources.git]
kind = "mcp"
command = {git}
[sources.clock]
kind = "mcp"
command = {time}
[sources.invoices]
location = "invoices.json"
server = {api}
[sources.pallets]
location = "pallets.json"
server = {api}
"""


def document(
    title: str, path: str, method: str, name: str, summary: str, fields: dict[str, str]
) -> dict[str, Any]:
    properties = {field: {"type": kind} for field, kind in fields.items()}
    operation: dict[str, Any] = {
        "operationId": name,
        "summary": summary,
        "responses": {"200": {"description": "ok"}},
    }
    if method == "post":
        schema = {"type": "object", "properties": properties, "required": list(properties)}
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    else:
        operation["parameters"] = [
            {"name": field, "in": "query", "schema": schema} for field, schema in properties.items()
        ]
    info = {"title": title, "version": "1"}
    return {"openapi": "3.1.0", "info": info, "paths": {path: {method: operation}}}


INVOICES = document(
    "Billing", "/invoices", "post", "createInvoice", "Bill a customer", {"customer": "string"}
)
PALLETS = document(
    "Warehouse", "/pallets", "get", "listPallets", "List the pallets that stand in a bay", {"bay": "string"}
)


@dataclass
class World:
    served: Served
    root: Path
    repository: Path
    api: Recorder


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def remote() -> Iterator[str]:
    """The same server over Streamable HTTP."""
    port = free_port()
    command = [npm_program("mcp-server-everything"), "streamableHttp"]
    with started(command, {"PORT": str(port)}, stderr=subprocess.DEVNULL):
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.05)
        else:
            pytest.fail("the server did not start")
        yield f"http://127.0.0.1:{port}/mcp"


def git(folder: Path, *arguments: str) -> None:
    names = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    subprocess.run(
        ["git", "-C", str(folder), *arguments], check=True, capture_output=True, env={**os.environ, **names}
    )


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, cache: Path, remote: str) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("world")
    root, repository = folder / "root", folder / "repository"
    root.mkdir()
    repository.mkdir()
    (root / "menu.txt").write_text("Tuesday: lentil soup\n")
    git(repository, "init", "-q")
    git(repository, "commit", "-q", "--allow-empty", "-m", "Soup is salted")
    (folder / "invoices.json").write_text(json.dumps(INVOICES))
    (folder / "pallets.json").write_text(json.dumps(PALLETS))
    with recording_upstream() as api:
        texts = {
            "files": npm_program("mcp-server-filesystem"),
            "memory": npm_program("mcp-server-memory"),
            "everything": npm_program("mcp-server-everything"),
            "git": python_program("mcp_server_git", "mcp-server-git"),
            "time": python_program("mcp_server_time", "mcp-server-time"),
            "root": str(root),
            "graph": str(folder / "graph.json"),
            "url": remote,
            "api": api.url,
        }
        config = folder / "capdex.toml"
        config.write_text(CONFIG.format(**{name: json.dumps(text) for name, text in texts.items()}))
        with capdex_serve(config, {"PLANTED_SECRET": SECRET}) as served:
            for _ in range(400):
                ready = httpx2.get(f"{served.url}/readyz").json()
                if ready["status"] == "ok":
                    break
                time.sleep(0.1)
            assert ready["status"] == "ok", (ready, served.log[-20:])
            yield World(served, root, repository, api)


@asynccontextmanager
async def agent(world: World, era: str = "2026-07-28") -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(timeout=60) as http,
        Client(streamable_http_client(f"{world.served.url}/mcp/agent", http_client=http), mode=era) as client,
    ):
        yield client


async def found(client: Client, query: str, **options: Any) -> dict[str, Any]:
    answer = await client.call_tool("search_capabilities", {"query": query, **options})
    assert not answer.is_error and answer.structured_content["matches"], answer
    return answer.structured_content["matches"][0]


async def called(client: Client, match: dict[str, Any], body: Any) -> Any:
    arguments = {"name": match["name"], "schemaDigest": match["schemaDigest"], "body": body}
    return await client.call_tool("execute_capability", arguments)


def said(result: Any) -> str:
    return "".join(block.text for block in result.content if block.type == "text")


@pytest.mark.parametrize("era", ERAS)
async def test_a_file_is_found_and_read(world: World, era: str) -> None:
    async with agent(world, era) as client:
        match = await found(client, "read the text in a file on disk")
        assert (match["source"], match["method"], match["name"]) == ("files", "MCP", "read_text_file")
        assert match["readOnly"] is True
        result = await called(client, match, {"path": str(world.root / "menu.txt")})
    assert not result.is_error
    assert said(result) == "Tuesday: lentil soup\n"
    assert result.structured_content == {"content": "Tuesday: lentil soup\n"}
    assert result.meta.keys() >= {"elapsedMs", "revision"}


@pytest.mark.parametrize("era", ERAS)
async def test_a_commit_is_found_and_listed(world: World, era: str) -> None:
    async with agent(world, era) as client:
        match = await found(client, "show the commit logs of a repository")
        assert (match["source"], match["name"]) == ("git", "git_log")
        result = await called(client, match, {"repo_path": str(world.repository), "max_count": 3})
    assert "Soup is salted" in said(result)


async def test_a_fact_is_remembered_and_found_again(world: World) -> None:
    entity = {"name": "Ada", "entityType": "person", "observations": ["likes soup"]}
    async with agent(world) as client:
        match = await found(client, "create entities in the knowledge graph")
        assert match["name"] == "create_entities"
        assert not (await called(client, match, {"entities": [entity]})).is_error
        match = await found(client, "read the entire knowledge graph")
        assert "likes soup" in said(await called(client, match, {}))


async def test_the_time_somewhere_is_found_and_told(world: World) -> None:
    async with agent(world) as client:
        match = await found(client, "what time is it in Tokyo right now")
        assert (match["source"], match["name"]) == ("clock", "get_current_time")
        result = await called(client, match, {"timezone": "Asia/Tokyo"})
    assert "Asia/Tokyo" in said(result)


@pytest.mark.parametrize("source", ["everything", "remote"])
async def test_both_transports_find_and_do_the_same(world: World, source: str) -> None:
    async with agent(world) as client:
        match = await found(client, "sum of two numbers", source=source)
        assert match["name"] == f"{source}.get-sum"
        assert "12" in said(await called(client, match, {"a": 5, "b": 7}))
        match = await found(client, "structured weather data", source=source)
        result = await called(client, match, {"location": "Chicago"})
        assert result.structured_content["temperature"]
        match = await found(client, "tiny image", source=source)
        kinds = [block.type for block in (await called(client, match, {})).content]
    assert "image" in kinds


async def test_operations_of_documents_stand_beside_the_tools(world: World) -> None:
    async with agent(world) as client:
        match = await found(client, "bill a customer with a new invoice")
        assert match["name"] == "createInvoice"
        result = await called(client, match, {"customer": "c1"})
        assert result.structured_content["status"] == 200
        match = await found(client, "which pallets stand in this bay")
        assert match["name"] == "listPallets"
    assert (world.api.requests[-1].method, world.api.requests[-1].body) == ("POST", b'{"customer":"c1"}')


async def test_arguments_are_checked_here_and_the_tools_own_errors_are_its_results(world: World) -> None:
    async with agent(world) as client:
        match = await found(client, "read_text_file", limit=1)
        wrong = await called(client, match, {"pth": "x"})
        assert wrong.is_error and wrong.structured_content["error"]["code"] == "invalid_capability_arguments"
        missing = await called(client, match, {"path": str(world.root / "nothing.txt")})
        assert missing.is_error and "ENOENT" in said(missing)
        outside = await called(client, match, {"path": "/etc/hostname"})
        assert outside.is_error and "denied" in said(outside)


async def test_a_program_gets_no_variable_but_those_that_it_is_given_and_no_answer_shows_a_secret(
    world: World,
) -> None:
    async with agent(world) as client:
        result = await client.call_tool("execute_capability", {"name": "everything.get-env"})
    shown = json.loads(said(result))
    assert shown["PLANTED"] == "***"
    assert set(shown) <= {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "PLANTED"}
    assert result.meta["masked"] is True
    assert SECRET not in "".join(world.served.log)


async def test_the_rest_twin_answers_the_same_as_json(world: World) -> None:
    path = str(world.root / "menu.txt")
    async with httpx2.AsyncClient(base_url=world.served.url) as http:
        call = {"name": "MCP mcp://files/read_text_file", "body": {"path": path}}
        answer = (await http.post("/execute", json=call)).json()
        assert answer["content"] == [{"type": "text", "text": "Tuesday: lentil soup\n"}]
        dry = (await http.post("/execute", json={**call, "dryRun": True})).json()
        assert dry == {"tool": "read_text_file", "source": "files", "arguments": {"path": path}}
        whole = (await http.get("/capabilities/read_text_file")).json()
        assert (whole["readOnly"], whole["baseUrl"]) == (True, "mcp://files")
        assert whole["responses"]["result"]["schema"]["properties"]["content"]
