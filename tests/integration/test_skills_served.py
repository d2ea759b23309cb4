"""Skills from their index to their call, through the endpoint, with several tenants."""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from typer.testing import CliRunner

from capdex_engine.encode.testing import HashEncoder
from capdex_server.app import create_app
from capdex_server.cli import app as cli
from capdex_server.config import load_settings
from capdex_server.live import Live
from capdex_server.outbound import Outbound
from capdex_server.skills_client import SkillClient
from integration.skills_server import ENTRIES, INDEX, skills_server

pytestmark = pytest.mark.anyio
BASE = "http://127.0.0.1:8000"
OTHER = [{**ENTRIES[0], "description": "Another payroll."}]
TOKENS = {"SKILLS_A": "S3CRET-of-acme", "SKILLS_B": "S3CRET-of-bolt"}


def caller(name: str, tenant: str, rules: str = "allow = [{}]") -> str:
    digest = hashlib.sha256(f"{name}-token".encode()).hexdigest()
    return f'[[callers]]\nname = "{name}"\ntenant = "{tenant}"\ntoken_sha256 = "{digest}"\n{rules}\n'


def workspace(name: str, tenant: str, url: str, variable: str) -> str:
    table = f'[workspaces.{name}.skills]\nurl = "{url}"\ntoken = {{ env = "{variable}" }}\n'
    return f'[workspaces.{name}]\ntenant = "{tenant}"\n{table}'


class Served:
    """An application that runs, and its callers."""

    def __init__(self, http: httpx2.AsyncClient, live: Live) -> None:
        self.http, self.live = http, live

    async def get(self, path: str, name: str | None) -> Any:
        headers = {"Authorization": f"Bearer {name}-token"} if name else {}
        return (await self.http.get(path, headers=headers)).json()

    async def names(self, name: str | None = None) -> list[str]:
        return [skill["capability"] for skill in (await self.get("/skills", name))["skills"]]

    @asynccontextmanager
    async def agent(self, name: str | None = None):
        headers = {"Authorization": f"Bearer {name}-token"} if name else {}
        transport = httpx2.ASGITransport(app=self.http._transport.app)  # type: ignore[attr-defined]
        async with (
            httpx2.AsyncClient(transport=transport, base_url=BASE, headers=headers) as http,
            Client(streamable_http_client(f"{BASE}/mcp/agent", http_client=http)) as client,
        ):
            yield client


@asynccontextmanager
async def served(folder: Path, text: str, **environ: str):
    path = folder / "capdex.toml"
    path.write_text(f'cache = "{folder / "cache"}"\n' + text)
    settings = load_settings(path, environ)
    outbound = Outbound.from_settings(settings)
    live = Live.from_settings(settings, outbound=outbound, encoder=HashEncoder, environ={**TOKENS, **environ})
    await live.reload()
    app = create_app(live, settings)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=BASE) as http,
    ):
        yield Served(http, live)
    await outbound.aclose()


def own(url: str, more: str = "") -> str:
    return f'[skills]\nurl = "{url}"\n{more}'


async def test_a_skill_of_the_rendered_block_is_called_end_to_end(tmp_path):
    with skills_server() as server:
        async with served(tmp_path, own(server.url)) as capdex, capdex.agent() as agent:
            (resource,) = (await agent.list_resources()).resources
            index = json.loads((await agent.read_resource(resource.uri)).contents[0].text)
            capability = re.findall("<capability>(.*)</capability>", index["instruction"])[0]
            result = await agent.call_tool("execute_capability", {"name": capability, "body": {"month": 5}})
            assert len((await agent.list_tools()).tools) == 2
    assert str(resource.uri) == INDEX and not result.is_error
    assert result.structured_content == {"did": "execute_capability"}
    assert server.calls == [{"name": "skill:pay-run", "body": {"month": 5}}]
    assert result.meta["revision"] and "elapsedMs" in result.meta


async def test_where_the_server_has_no_such_tool_the_skill_is_read(tmp_path):
    with skills_server(execute=False) as server:
        async with served(tmp_path, own(server.url)) as capdex, capdex.agent() as agent:
            result = await agent.call_tool("execute_capability", {"name": "plugin:travel:trip"})
    assert result.content[0].resource.text == "# About skill://trip/SKILL.md"


async def test_a_skill_is_found_by_search_and_called_by_what_is_found(tmp_path):
    with skills_server() as server:
        async with served(tmp_path, own(server.url)) as capdex, capdex.agent() as agent:
            found = await agent.call_tool("search_capabilities", {"query": "book a trip", "limit": 1})
            match = found.structured_content["matches"][0]
            call = {"name": match["name"], "schemaDigest": match["schemaDigest"]}
            result = await agent.call_tool("execute_capability", call)
    assert (match["name"], match["method"], match["path"]) == (
        "plugin:travel:trip",
        "SKILL",
        "skill://trip/SKILL.md",
    )
    assert match["executable"] and not match["readOnly"] and not result.is_error


async def test_a_dry_run_reaches_nobody_and_the_twins_say_the_same(tmp_path):
    with skills_server() as server:
        async with served(tmp_path, own(server.url)) as capdex:
            dry = await capdex.http.post("/execute", json={"name": "skill:pay-run", "dryRun": True})
            wet = await capdex.http.post("/execute", json={"name": "skill:pay-run"})
            about = await capdex.get("/capabilities/skill:pay-run", None)
    assert dry.json()["arguments"] == {"name": "skill:pay-run"} and len(server.calls) == 1
    assert wet.json()["structuredContent"] == {"did": "execute_capability"}
    assert about["name"] == "skill:pay-run" and about["operationId"] == "skill:pay-run"


async def test_what_a_callers_rules_forbid_is_neither_listed_nor_called(tmp_path):
    callers = (
        caller("all", "acme")
        + caller("trips", "acme", 'allow = [{ name = "plugin:*" }]')
        + caller("none", "acme", 'allow = [{}]\ndeny = [{ method = "SKILL" }]')
        + caller("reader", "acme", "allow = [{ readOnly = true }]")
        + caller("by-source", "acme", 'allow = [{ source = "skills" }]')
    )
    with skills_server() as server:
        async with served(tmp_path, own(server.url) + callers) as capdex:
            listed = {
                name: await capdex.names(name) for name in ("all", "trips", "none", "reader", "by-source")
            }
            async with capdex.agent("trips") as agent:
                refused = await agent.call_tool("execute_capability", {"name": "skill:pay-run"})
            text = (await capdex.get("/skills", "none"))["instruction"]
            nobody = await capdex.http.get("/skills")
    both = ["skill:pay-run", "plugin:travel:trip"]
    assert listed == {
        "all": both,
        "trips": both[1:],
        "none": [],
        "reader": [],
        "by-source": both,
    }
    assert refused.is_error and refused.structured_content["error"]["code"] == "unknown_capability"
    assert text == "" and nobody.status_code == 401 and server.calls == []


async def test_two_tenants_never_see_each_others(tmp_path):
    with skills_server(token=TOKENS["SKILLS_A"]) as a, skills_server(token=TOKENS["SKILLS_B"]) as b:
        b.index = json.dumps(OTHER)
        text = (
            workspace("alpha", "acme", a.url, "SKILLS_A")
            + workspace("beta", "bolt", b.url, "SKILLS_B")
            + caller("ann", "acme")
            + caller("bob", "bolt")
            + caller("cid", "else")
        )
        async with served(tmp_path, text, **TOKENS) as capdex:
            assert await capdex.names("ann") == ["skill:pay-run", "plugin:travel:trip"]
            assert (await capdex.get("/skills", "bob"))["skills"][0]["description"] == "Another payroll."
            assert await capdex.names("cid") == []
            for name, calls in (("ann", (1, 0)), ("bob", (1, 1))):
                async with capdex.agent(name) as agent:
                    result = await agent.call_tool("execute_capability", {"name": "skill:pay-run"})
                    assert not result.is_error, result
                assert (len(a.calls), len(b.calls)) == calls
            async with capdex.agent("bob") as agent:
                found = await agent.call_tool("search_capabilities", {"query": "plugin:travel:trip"})
                named = [match["name"] for match in found.structured_content["matches"]]
                other = await agent.call_tool("execute_capability", {"name": "plugin:travel:trip"})
            async with capdex.agent("cid") as agent:
                none = await agent.call_tool("execute_capability", {"name": "skill:pay-run"})
                listed = (await agent.list_tools()).tools[0].description
    assert "plugin:travel:trip" not in named
    for refused in (other, none):
        assert refused.structured_content["error"]["code"] == "unknown_capability"
    assert none.structured_content["error"]["suggestions"] == [] and "alpha" not in listed
    assert a.tokens == {f"Bearer {TOKENS['SKILLS_A']}"} and b.tokens == {f"Bearer {TOKENS['SKILLS_B']}"}


async def test_a_failing_server_is_an_empty_list_and_its_reason_is_told_to_whom_it_concerns(tmp_path, caplog):
    with skills_server(token="another") as a, skills_server() as b:
        text = (
            workspace("alpha", "acme", a.url, "SKILLS_A")
            + workspace("beta", "bolt", b.url, "SKILLS_B")
            + caller("ann", "acme")
            + caller("bob", "bolt")
        )
        async with served(tmp_path, text, **TOKENS) as capdex:
            assert await capdex.get("/skills", "ann") == {"skills": [], "instruction": ""}
            ready = {name: await capdex.get("/readyz", name) for name in ("ann", "bob", None)}
    assert all(one["status"] == "degraded" for one in ready.values())
    assert "token" in ready["ann"]["reasons"]["skills.alpha"]
    assert "reasons" not in ready["bob"] and ready[None] == {"status": "degraded"}
    shown = f"{ready}{caplog.text}"
    assert "skills.failed" in caplog.text and not any(secret in shown for secret in TOKENS.values())


async def test_the_next_configuration_takes_over_and_the_catalog_follows(tmp_path):
    with skills_server(index=None) as first, skills_server() as second:
        text = own(first.url) + workspace("alpha", "acme", second.url, "SKILLS_A") + caller("ann", "acme")
        async with served(tmp_path, text, **TOKENS) as capdex:
            assert await capdex.names("ann") == ["skill:pay-run", "plugin:travel:trip"]
            async with capdex.agent("ann") as agent:
                result = await agent.call_tool("execute_capability", {"name": "skill:pay-run"})
    assert not result.is_error and len(second.calls) == 1
    assert first.tokens == {""}


async def test_an_index_that_changes_is_called_as_soon_as_it_is_listed(tmp_path):
    with skills_server() as server:
        async with served(tmp_path, own(server.url)) as capdex:
            inventory = capdex.live.build.skills.inventory
            reads = len(server.methods)
            assert await capdex.names() == ["skill:pay-run", "plugin:travel:trip"]
            assert len(server.methods) == reads
            new = {**ENTRIES[0], "name": "new", "capability": "skill:new", "url": "skill://new"}
            server.index = json.dumps([new])
            inventory._clock = lambda: 10.0**9
            assert await capdex.names() == ["skill:new"]
            async with capdex.agent() as agent:
                result = await agent.call_tool("execute_capability", {"name": "skill:new"})
                gone = await agent.call_tool("execute_capability", {"name": "plugin:travel:trip"})
    assert not result.is_error and gone.is_error


async def test_what_search_had_stays_while_the_index_cannot_be_read(tmp_path):
    with skills_server() as server:
        async with served(tmp_path, own(server.url)) as capdex:
            server.index = None
            capdex.live.build.skills.inventory._clock = lambda: 10.0**9
            assert await capdex.names() == []
            await capdex.live.reload()
            async with capdex.agent() as agent:
                found = await agent.call_tool("search_capabilities", {"query": "skill:pay-run"})
                ready = await capdex.get("/readyz", None)
    assert found.structured_content["matches"][0]["name"] == "skill:pay-run"
    assert ready["status"] == "degraded" and "skills" in ready["reasons"]


async def test_nothing_but_the_index_can_be_read(tmp_path):
    with skills_server() as server:
        async with served(tmp_path, own(server.url)) as capdex, capdex.agent() as agent:
            with pytest.raises(MCPError):
                await agent.read_resource("skill://pay-run/SKILL.md")


async def test_without_skills_the_list_is_empty(tmp_path):
    async with served(tmp_path, "") as capdex, capdex.agent() as agent:
        read = (await agent.read_resource(INDEX)).contents[0].text
    assert json.loads(read) == {"skills": [], "instruction": ""}


async def test_capdex_reads_the_index_of_a_capdex(tmp_path):
    with skills_server() as server:
        async with served(tmp_path, own(server.url)) as capdex, capdex.agent() as agent:
            text = (await agent.read_resource(INDEX)).contents[0].text
        server.index = text
        assert len((await SkillClient().index("skills", server.url, None)).skills) == 2


async def test_development_mode_logs_what_was_rendered(tmp_path, caplog):
    caplog.set_level("INFO")
    tool = 'execute_tool = "mcp__capdex__execute_capability"\n'
    with skills_server() as server:
        async with served(tmp_path, own(server.url, tool), CAPDEX_DEV_MODE="1") as capdex:
            text = (await capdex.get("/skills", None))["instruction"]
    assert "the tool mcp__capdex__execute_capability with" in text
    assert "skills.rendered" in caplog.text and "available_skills" in caplog.text


def test_the_command_lists_what_a_caller_has(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, value in TOKENS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CAPDEX_CACHE", str(tmp_path / "cache"))
    entries = [*ENTRIES, {"name": "Bad!"}]
    with skills_server(index=json.dumps(entries)) as server:
        text = workspace("alpha", "acme", server.url, "SKILLS_A") + caller("ann", "acme")
        (tmp_path / "capdex.toml").write_text(text)
        mine = CliRunner().invoke(cli, ["skills", "--json"])
        anns = CliRunner().invoke(cli, ["skills", "--json", "--caller", "ann"])
        table = CliRunner().invoke(cli, ["skills", "--caller", "ann"])
        wrong = CliRunner().invoke(cli, ["skills", "--caller", "bob"])
    assert mine.exit_code == 0 and json.loads(mine.stdout)["skills"] == []
    said = json.loads(anns.stdout)
    assert [skill["name"] for skill in said["skills"]] == ["pay-run", "trip"]
    assert said["dropped"][0]["index"] == 2 and said["problems"] == {}
    assert "plugin:travel:trip" in table.stdout and wrong.exit_code == 2


def test_the_command_says_what_is_wrong(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CAPDEX_CACHE", str(tmp_path / "cache"))
    none = CliRunner().invoke(cli, ["skills"])
    (tmp_path / "capdex.toml").write_text('[skills]\nurl = "no url"\n')
    bad = CliRunner().invoke(cli, ["skills", "--json"])
    assert none.exit_code == 2 and bad.exit_code == 1
    assert "no http(s) URL" in json.loads(bad.stdout)["problems"]["skills"]


def test_the_check_of_a_catalog_reads_every_index(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CAPDEX_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SKILLS_A", TOKENS["SKILLS_A"])
    entries = [*ENTRIES, {"name": "Bad!"}]
    with skills_server(index=json.dumps(entries)) as server:
        text = own("no url") + workspace("alpha", "acme", server.url, "SKILLS_A") + caller("ann", "acme")
        (tmp_path / "capdex.toml").write_text(text)
        done = CliRunner().invoke(cli, ["catalog", "check", "--json"])
    reports = {one["source"]: one for one in json.loads(done.stdout)["sources"]}
    assert done.exit_code == 1 and reports["skills"]["error"]
    assert reports["skills.alpha"]["operations"] == 2
    assert reports["skills.alpha"]["keptOut"][0]["kind"] == "skill"
