"""Skills in a catalog: named by their capability strings, called with the input as it came."""

from __future__ import annotations

import json
from typing import Any

import pytest

from call_support import Clock, Upstream
from capdex_engine.call import Executor
from capdex_engine.catalog import Catalog, Source, build_catalog
from capdex_engine.encode.testing import HashEncoder
from capdex_engine.errors import NotExecutable, RateLimited, UnknownCapability, UpstreamTimeout
from capdex_engine.operation import Operation
from capdex_engine.rank import Searcher
from capdex_engine.skills import read_index
from catalog_support import document, source

pytestmark = pytest.mark.anyio
PAY = {
    "name": "pay-run",
    "title": "Pay run",
    "description": "Runs the payroll of a month.",
    "capability": "skill:pay-run",
    "url": "skill://pay-run/SKILL.md",
}
TRIP = {**PAY, "name": "trip", "title": "Trip", "description": "Books a trip.", "capability": "plugin:a:trip"}
TRIP["url"] = "skill://trip/SKILL.md"


def skills(*entries: Any, name: str = "skills") -> Source:
    data = read_index(json.dumps(list(entries)).encode()).document()
    return Source(name, name, data, kind="skills")


def only(catalog: Catalog) -> Operation:
    (operation,) = catalog.operations
    return operation


def test_a_skill_is_an_operation_named_by_its_capability_string():
    catalog = build_catalog([skills(PAY)])
    found = only(catalog)
    assert (found.name, found.method, found.path) == ("skill:pay-run", "SKILL", "skill://pay-run/SKILL.md")
    assert found.is_skill and found.executable and not found.read_only
    assert found.summary == "Pay run: Runs the payroll of a month." and found.has_body
    assert catalog.get("skill:pay-run") is catalog.get("SKILL skill://pay-run/SKILL.md") is found


def test_the_digest_is_of_what_a_caller_depends_on():
    digest = only(build_catalog([skills(PAY)])).schema_digest
    assert only(build_catalog([skills({**PAY, "description": "Else."})])).schema_digest == digest
    assert only(build_catalog([skills({**PAY, "url": "skill://other"})])).schema_digest != digest


def test_names_of_operations_and_of_skills_leave_each_other_alone():
    paths = {"/a": {"post": {"operationId": "skill:pay-run", "responses": {}}}}
    catalog = build_catalog([source(document(paths)), skills(PAY)])
    assert {operation.name for operation in catalog.operations} == {"skill_pay-run", "skill:pay-run"}


def test_two_sources_may_have_a_skill_of_one_name_and_each_caller_gets_its_own():
    catalog = build_catalog([skills(PAY, name="skills.a"), skills(PAY, name="skills.b")])
    assert [operation.name for operation in catalog.operations] == ["skill:pay-run"] * 2
    for mine in ("skills.a", "skills.b"):
        found = catalog.get("skill:pay-run", allowed=lambda one, mine=mine: one.source == mine)
        assert found is not None and found.source == mine
        assert catalog.near("skill:pay-rum", allowed=lambda one, mine=mine: one.source == mine) == [
            "skill:pay-run"
        ]


def test_a_method_of_that_name_in_a_document_makes_no_skill():
    paths = {"/skill": {"additionalOperations": {"SKILL": {"operationId": "skill:x", "responses": {}}}}}
    found = only(build_catalog([source({**document(paths), "openapi": "3.2.0"})]))
    assert found.method == "SKILL" and not found.is_skill and found.name == "skill_x"


def test_bytes_that_are_no_index_fail_their_source_alone():
    catalog = build_catalog([Source("skills", "skills", b"no", kind="skills"), skills(PAY, name="b")])
    assert [report.source for report in catalog.report.failed] == ["skills"]
    assert len(catalog.operations) == 1


def test_an_index_in_the_cache_is_the_same_as_a_fresh_one(tmp_path):
    fresh, kept = (build_catalog([skills(PAY, TRIP)], cache=tmp_path) for _ in range(2))
    assert kept.report.sources[0].cached and kept.operations == fresh.operations


def test_a_search_finds_a_skill_by_what_it_does_and_by_its_capability():
    catalog = build_catalog([skills(PAY, TRIP)])
    searcher = Searcher.build(catalog.operations, HashEncoder())
    assert searcher.search("run the payroll").hits[0].operation.name == "skill:pay-run"
    assert searcher.search("plugin:a:trip").hits[0].operation.name == "plugin:a:trip"


class Server:
    """A caller of tools that keeps what it is given."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = answer or {"content": [{"type": "text", "text": "done"}], "isError": False}
        self.calls: list[tuple[str, str, dict[str, Any]]] = []

    async def __call__(self, tool, arguments, *, source, timeout):
        self.calls.append((source, tool, arguments))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def executor(server: Server | None, *sources: Source) -> Executor:
    catalog = build_catalog(sources or [skills(PAY)])
    return Executor(catalog, transport=Upstream(), clock=Clock(), call_tool=server)


async def test_a_call_goes_on_as_it_came_and_its_result_passes_through():
    server = Server({"content": [], "structuredContent": {"a": 1}, "isError": True, "_meta": {"k": 1}})
    given = {"queryParams": {"q": 1}, "body": {"month": "May"}, "contentType": "x/y", "maxBytes": 4000}
    result = await executor(server).execute({"name": "skill:pay-run", **given})
    assert server.calls == [("skills", "skill:pay-run", {"name": "skill:pay-run", **given})]
    assert result["structuredContent"] == {"a": 1} and result["isError"] is True
    assert result["_meta"]["k"] == 1 and result["_meta"].keys() >= {"elapsedMs", "revision"}


@pytest.mark.parametrize("body", [None, [1], "text", 7])
async def test_any_json_value_is_a_body(body):
    server = Server()
    await executor(server).execute({"name": "skill:pay-run", "body": body})
    assert server.calls[0][2] == {"name": "skill:pay-run", "body": body}


async def test_the_digest_and_the_dry_run_stay_here():
    server = Server()
    answer = await executor(server).execute({"name": "skill:pay-run", "schemaDigest": "sha256:old"})
    assert server.calls[0][2] == {"name": "skill:pay-run"}
    assert answer["_meta"]["drift"] is True
    shown = await executor(server).execute({"name": "skill:pay-run", "dryRun": True, "body": 1})
    assert len(server.calls) == 1 and shown["arguments"] == {"name": "skill:pay-run", "body": 1}


async def test_what_may_not_be_called_is_unknown():
    server = Server()
    with pytest.raises(UnknownCapability) as error:
        await executor(server).execute({"name": "skill:pay-run"}, allows=lambda _: False)
    assert error.value.details["suggestions"] == [] and server.calls == []


async def test_of_one_name_the_callers_own_is_called():
    server = Server()
    both = executor(server, skills(PAY, name="skills.a"), skills(PAY, name="skills.b"))
    await both.execute({"name": "skill:pay-run"}, allows=lambda one: one.source == "skills.b")
    assert server.calls[0][0] == "skills.b"


async def test_a_quota_is_asked_before_anything_is_sent():
    server = Server()

    async def refuse(operation: Operation) -> None:
        raise RateLimited("Wait.", retry_after=1, scope=operation.name)

    with pytest.raises(RateLimited) as error:
        await executor(server).execute({"name": "skill:pay-run"}, before_send=refuse)
    assert error.value.details["scope"] == "skill:pay-run" and server.calls == []


async def test_a_failure_names_the_skill_and_is_not_to_be_repeated():
    with pytest.raises(UpstreamTimeout) as error:
        await executor(Server(UpstreamTimeout("Late.", retryable=True))).execute({"name": "skill:pay-run"})
    assert error.value.capability == "skill:pay-run" and not error.value.retryable


async def test_without_a_way_to_its_server_it_cannot_be_called():
    with pytest.raises(NotExecutable):
        await executor(None).execute({"name": "skill:pay-run"})
