"""Rules, quotas, places, the trail and the query log over MCP tools and skills, through the endpoint."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from typer.testing import CliRunner

from capdex_engine.errors import UpstreamUnreachable
from capdex_server.cli import app as cli
from integration.governed_support import Notes, Served, caller, governed, workspace
from integration.skills_server import ENTRIES, HELLO, Skills, raw_server, skills_server

pytestmark = pytest.mark.anyio
PAY, TRIP = "skill:pay-run", "plugin:travel:trip"
OTHER = json.dumps([{**ENTRIES[0], "description": "Another payroll."}])
SAID = "the words of a tool"


@contextmanager
def two_servers() -> Iterator[tuple[Skills, Skills]]:
    """Two tenants' servers; both have a skill of one name."""
    with skills_server() as a, skills_server(index=OTHER) as b:
        yield a, b


def both(a: str, b: str) -> str:
    return workspace("alpha", "acme", a) + workspace("beta", "bolt", b)


PAIR = caller("ann", "acme") + caller("bob", "bolt")
RULES = {
    "everything": ("allow = [{}]", {PAY, TRIP, "read_note", "burn_note"}),
    "tools": ('allow = [{ method = "mcp" }]', {"read_note", "burn_note"}),
    "skills": ('allow = [{ method = "SKILL" }]', {PAY, TRIP}),
    "skills-by-source": ('allow = [{ source = "skills" }]', {PAY, TRIP}),
    "workspace": ('allow = [{ source = "skills.alpha" }]', {PAY, TRIP}),
    "neighbours": ('allow = [{ source = "skills.beta" }]', set()),
    "plugins": ('allow = [{ name = "plugin:*" }]', {TRIP}),
    "paths": ('allow = [{ path = "mcp://notes/read*" }, { path = "skill://pay-run/*" }]', {"read_note", PAY}),
    "readers": ("allow = [{ readOnly = true }]", {"read_note"}),
    "no-skills": ('allow = [{}]\ndeny = [{ method = "SKILL" }, { name = "burn_note" }]', {"read_note"}),
    "not-one": ('allow = [{}]\ndeny = [{ path = "skill://trip/*" }, { source = "notes" }]', {PAY}),
}


async def test_search_calls_lists_and_pages_agree_with_each_rule(tmp_path: Path) -> None:
    callers = "".join(caller(name, "acme", rules) for name, (rules, _) in RULES.items())
    with two_servers() as (a, b):
        text = both(a.url, b.url) + callers + caller("bob", "bolt")
        async with governed(tmp_path, text, Notes()) as capdex:
            for name, (_, allowed) in RULES.items():
                await _agrees(capdex, name, allowed)
    assert b.calls == []


async def _agrees(capdex: Served, name: str, allowed: set[str]) -> None:
    found = await capdex.search(name, "pay run trip, read note, burn note", limit=20)
    assert {match["name"] for match in found["matches"]} <= allowed
    ready = (await capdex.rest(name, "GET", "/readyz")).json()
    assert ready["operations"] == len(allowed) and ready["revision"] == found["revision"]
    listed = (await capdex.rest(name, "GET", "/skills")).json()
    assert {skill["capability"] for skill in listed["skills"]} == allowed & {PAY, TRIP}
    async with capdex.agent(name) as agent:
        description = (await agent.list_tools()).tools[0].description or ""
    assert ("notes" in description) == bool(allowed & {"read_note", "burn_note"})
    assert ("skills" in description) == bool(allowed & {PAY, TRIP})
    for capability in (PAY, TRIP, "read_note", "burn_note"):
        body = {"body": {"id": 1}}
        result = await capdex.execute(name, capability, **body)
        page = await capdex.rest(name, "GET", f"/capabilities/{capability}")
        if capability in allowed:
            assert not result.is_error and page.status_code == 200
            assert result.meta["revision"] == found["revision"] == page.json()["revision"]
        else:
            error = result.structured_content["error"]
            assert error["code"] == "unknown_capability" and set(error["suggestions"]) <= allowed
            assert page.json()["error"] == error


async def test_what_a_tenant_is_told_is_the_same_whatever_skills_another_has(tmp_path: Path) -> None:
    told = []
    with two_servers() as (a, b):
        for number, index in enumerate((OTHER, json.dumps({"skills": []}), None)):
            b.index = index
            folder = tmp_path / str(number)
            folder.mkdir()
            async with governed(folder, both(a.url, b.url) + PAIR, Notes()) as capdex:
                told.append(await _everything(capdex, "ann"))
        alone = tmp_path / "alone"
        alone.mkdir()
        async with governed(alone, workspace("alpha", "acme", a.url) + PAIR, Notes()) as capdex:
            told.append(await _everything(capdex, "ann"))
    assert told[0] == told[1] == told[2] == told[3]


async def test_what_is_left_out_of_a_source_is_in_no_revision(tmp_path: Path) -> None:
    """So who may call all there is is told the same as who may not call another tenant's skill."""
    left = "exclude = ['name:burn_note']\n"
    told = []
    with two_servers() as (a, b):
        for number, text in enumerate((workspace("alpha", "acme", a.url), both(a.url, b.url))):
            folder = tmp_path / str(number)
            folder.mkdir()
            # The table of the notes stands last in the file.
            async with governed(folder, text + PAIR, Notes(), more=left) as capdex:
                assert (await capdex.rest("ann", "GET", "/capabilities/burn_note")).status_code == 404
                told.append((await capdex.rest("ann", "GET", "/readyz")).json())
    assert told[0] == told[1] and told[0]["operations"] == 3


async def _everything(capdex: Served, who: str) -> list[Any]:
    async with capdex.agent(who) as agent:
        told: list[Any] = [one.description for one in (await agent.list_tools()).tools]
        for query in ("pay run", PAY, TRIP, "SKILL skill://pay-run/SKILL.md", "another payroll", "pai rnu"):
            for more in ({}, {"source": "skills"}, {"source": "skills.alpha"}, {"source": "skills.beta"}):
                found = await agent.call_tool("search_capabilities", {"query": query, **more})
                told.append(found.structured_content)
        for name in (PAY, "skill:pay-rum", "SKILL skill://pay-run/SKILL.md"):
            dry = await agent.call_tool("execute_capability", {"name": name, "dryRun": True})
            told.append(dry.structured_content)
    for path in ("/skills", f"/capabilities/{PAY}", "/capabilities/skill:pay-rum"):
        told.append((await capdex.rest(who, "GET", path)).json())
    ready = (await capdex.rest(who, "GET", "/readyz")).json()
    # That a source of another fails is told to everybody, as "degraded"; which and why is not.
    return [*told, {key: value for key, value in ready.items() if key != "status"}]


async def test_the_revision_of_a_tenant_changes_with_its_own_skill_of_a_common_name(tmp_path: Path) -> None:
    seen = []
    with two_servers() as (a, b):
        for number, text in enumerate(("Runs it.", "Runs it twice.")):
            a.index = json.dumps([{**ENTRIES[0], "description": text}])
            folder = tmp_path / str(number)
            folder.mkdir()
            async with governed(folder, both(a.url, b.url) + PAIR) as capdex:
                ready = [(await capdex.rest(who, "GET", "/readyz")).json() for who in ("ann", "bob")]
                seen.append([one["revision"] for one in ready])
    assert seen[0][0] != seen[1][0] and seen[0][1] == seen[1][1]


async def test_quotas_hold_for_tools_and_skills_and_each_tenant_has_its_own(tmp_path: Path) -> None:
    quotas = (
        '[quotas]\nexecute = "50/hour"\n'
        '[[quotas.capability]]\nmethod = "MCP"\nreadOnly = false\nlimit = "1/hour"\n'
        '[[quotas.capability]]\nname = "skill:*"\nlimit = "2/hour"\n'
    )
    notes = Notes()
    with two_servers() as (a, b):
        async with governed(tmp_path, quotas + both(a.url, b.url) + PAIR, notes) as capdex:
            for who in ("ann", "bob"):
                for _ in range(3):
                    dry = await capdex.execute(who, "burn_note", body={"id": 1}, dryRun=True)
                    bad = await capdex.execute(who, "burn_note", body={"id": "one"})
                    assert not dry.is_error and bad.is_error
                codes = [await _code(capdex, who, "burn_note", body={"id": 1}) for _ in range(2)]
                codes += [await _code(capdex, who, PAY) for _ in range(3)]
                codes += [await _code(capdex, who, "read_note") for _ in range(3)]
                assert codes == ["", "rate_limited", "", "", "rate_limited", "", "", ""]
            refused = (await capdex.rest("ann", "POST", "/execute", json={"name": PAY})).json()["error"]
            rows = capdex.trail
    assert (refused["scope"], refused["capability"]) == ("capability", PAY) and refused["retryAfter"] > 0
    assert len([one for one in notes.calls if one[0] == "burn_note"]) == 2
    assert (len(a.calls), len(b.calls)) == (2, 2)
    limited = [row for row in rows if row.get("outcome") == "rate_limited"]
    assert [row["event"] for row in limited] == ["refused"] * 5


async def _code(capdex: Served, who: str, name: str, **fields: Any) -> str:
    result = await capdex.execute(who, name, **fields)
    return result.structured_content["error"]["code"] if result.is_error else ""


async def test_the_request_quota_counts_calls_of_tools_and_skills_valid_or_not(tmp_path: Path) -> None:
    notes = Notes()
    with skills_server() as server:
        text = '[quotas]\nexecute = "3/hour"\n' + workspace("alpha", "acme", server.url) + PAIR
        async with governed(tmp_path, text, notes) as capdex:
            calls = [(PAY, {}), ("burn_note", {"body": {}}), ("none", {}), ("read_note", {}), (PAY, {})]
            codes = [await _code(capdex, "ann", name, **more) for name, more in calls]
            assert await _code(capdex, "bob", "read_note") == ""
    wrong = ["invalid_capability_arguments", "unknown_capability"]
    assert codes == ["", *wrong, "rate_limited", "rate_limited"]
    assert len(notes.calls) == len(server.calls) == 1


async def test_the_trail_says_how_tools_and_skills_ended_and_nothing_of_what_they_said(
    tmp_path: Path,
) -> None:
    notes = Notes()
    failed = types.CallToolResult(content=[types.TextContent(text=SAID)], is_error=True)
    with skills_server() as server:
        async with governed(tmp_path, workspace("alpha", "acme", server.url) + PAIR, notes) as capdex:
            await capdex.execute("ann", "read_note")
            notes.answer = {"content": [{"type": "text", "text": SAID}], "isError": True}
            await capdex.execute("ann", "read_note")
            # What only looks like an answer of HTTP is the tool's word, and stays out.
            notes.answer = {"content": [], "status": 500, "bytes": {SAID: "\n{}\n"}}
            await capdex.execute("ann", "read_note")
            notes.answer = UpstreamUnreachable("It went away.")
            await capdex.execute("ann", "read_note")
            await capdex.execute("ann", PAY, body={"month": SAID})
            server.result = failed
            await capdex.execute("ann", PAY)
            await capdex.execute("ann", PAY, dryRun=True)
            await capdex.execute("bob", PAY)
            rows, text = capdex.trail, json.dumps(capdex.trail)
    last = [row for row in rows if row["event"] != "started"]
    assert [row["outcome"] for row in last] == [
        *("ok", "error_result", "ok", "upstream_unreachable", "ok", "error_result", "dry_run", "forbidden")
    ]
    assert SAID not in text and not any("status" in row for row in rows)
    assert all(isinstance(row["bytes"], int) and row["bytes"] > 0 for row in last if "bytes" in row)
    assert [("bytes" in row) for row in last] == [True, True, True, False, True, True, False, False]
    started = [row["id"] for row in rows if row["event"] == "started"]
    assert started == [row["id"] for row in last[:6]]


async def test_the_trail_has_the_callers_own_skill_where_two_tenants_have_its_name(tmp_path: Path) -> None:
    """A folder of names: which of the two is first there depends on neither caller."""
    with two_servers() as (a, b):
        a.index = json.dumps([ENTRIES[0]])
        b.index = json.dumps([{**ENTRIES[0], "url": "skill://other/SKILL.md"}])
        async with governed(tmp_path, both(a.url, b.url) + PAIR) as capdex:
            digests = {}
            for who in ("ann", "bob"):
                page = (await capdex.rest(who, "GET", f"/capabilities/{PAY}")).json()
                digests[who] = page["schemaDigest"]
                await capdex.rest(who, "POST", "/execute", json={"name": PAY, "maxBytes": 0})
            rows = capdex.trail
    assert digests["ann"] != digests["bob"]
    assert [(row["caller"], row["digest"]) for row in rows] == list(digests.items())


async def test_a_tool_that_holds_its_places_holds_up_itself_alone(tmp_path: Path) -> None:
    notes = Notes()
    notes.hold = anyio.Event()
    limits = "[limits]\nmax_concurrent = 1\nmax_wait = 0.1\n"
    with skills_server() as server:
        text = limits + workspace("alpha", "acme", server.url) + PAIR
        async with governed(tmp_path, text, notes) as capdex, anyio.create_task_group() as tasks:
            tasks.start_soon(capdex.execute, "ann", "read_note")
            while not notes.calls:
                await anyio.sleep(0.01)
            refused = await capdex.execute("bob", "read_note")
            skill = await capdex.execute("ann", PAY)
            notes.hold.set()
        after = [row for row in capdex.trail if row["caller"] == "bob"]
    assert refused.structured_content["error"]["scope"] == "source:notes" and not skill.is_error
    assert [(row["event"], row["outcome"]) for row in after] == [("refused", "rate_limited")]


async def test_a_slow_server_of_one_tenants_skills_takes_no_place_of_anothers(tmp_path: Path) -> None:
    calls: list[str] = []

    def slow(method: str, _: Any) -> Any:
        calls.append(method)
        if method == "resources/read":
            return {"contents": [{"uri": "skill://index.json", "text": json.dumps(ENTRIES)}]}
        if method == "tools/call":
            time.sleep(1.5)
        tools = [{"name": "execute_capability", "inputSchema": {"type": "object"}}]
        return {"initialize": HELLO, "tools/list": {"tools": tools}}.get(method, {"content": []})

    limits = "[limits]\nmax_concurrent = 1\nmax_wait = 0.1\n"
    with raw_server(slow) as url, skills_server(index=OTHER) as quick:
        async with (
            governed(tmp_path, limits + both(url, quick.url) + PAIR) as capdex,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(capdex.execute, "ann", PAY)
            while "tools/call" not in calls:
                await anyio.sleep(0.01)
            mine = await capdex.execute("ann", TRIP)
            others = await capdex.execute("bob", PAY)
    assert mine.structured_content["error"]["scope"] == "source:skills.alpha"
    assert not others.is_error


async def test_the_query_log_joins_calls_of_tools_and_skills_to_their_search(tmp_path: Path) -> None:
    notes = Notes()
    with skills_server() as server:
        async with governed(tmp_path, workspace("alpha", "acme", server.url) + PAIR, notes) as capdex:
            await capdex.search("ann", "read note pay run", limit=20)
            for name in ("read_note", PAY):
                await capdex.execute("ann", name)
            await capdex.execute("ann", "burn_note", body={"id": 1}, dryRun=True)
            notes.answer = {"content": [], "isError": True}
            await capdex.execute("ann", "burn_note", body={"id": 1})
            rows = capdex.queries
    assert [row.get("executed") for row in rows] == [None, "read_note", PAY]


async def test_explain_agrees_with_the_server_on_skills_of_other_tenants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPDEX_CACHE", str(tmp_path / "cache"))
    config = str(tmp_path / "capdex.toml")

    def explained(who: str, name: str) -> dict[str, Any]:
        done = CliRunner().invoke(cli, ["policy", "explain", who, name, "--config", config, "--json"])
        said: dict[str, Any] = json.loads(done.stdout)
        return said

    with two_servers() as (a, b):
        (tmp_path / "capdex.toml").write_text(both(a.url, b.url) + PAIR)
        run = anyio.to_thread.run_sync
        own = [await run(explained, who, PAY) for who in ("ann", "bob")]
        mine, others = [await run(explained, who, TRIP) for who in ("ann", "bob")]
    assert [(one["allowed"], one["capability"]["source"]) for one in own] == [
        (True, "skills.alpha"),
        (True, "skills.beta"),
    ]
    assert mine["allowed"] and (others["allowed"], others["reason"]) == (False, "other_tenant")
