"""Calls of tools: the order of checks, results passed through, budgets, errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from capdex_engine.call import Executor, Request, Response, ToolResult
from capdex_engine.errors import (
    CapdexError,
    InvalidArguments,
    NotExecutable,
    RateLimited,
    UnknownCapability,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from tools_support import READ, TREE, catalog_of, document_source, tools_source

pytestmark = pytest.mark.anyio
ANSWER: dict[str, Any] = {
    "content": [{"type": "text", "text": "hello", "annotations": {"priority": 1}}],
    "structuredContent": {"content": "hello"},
    "isError": False,
    "_meta": {"server": 1},
}


async def no_http(_: Request, *, source: str, timeout: float, max_bytes: int) -> Response:
    raise AssertionError("nothing is sent over HTTP")


class Server:
    """Keeps calls, answers what it is told to."""

    def __init__(self, answer: dict[str, Any] | Callable[[], Any] = ANSWER) -> None:
        self.calls: list[tuple[str, str, dict[str, Any], float]] = []
        self.answer = answer

    async def __call__(
        self, tool: str, arguments: dict[str, Any], *, source: str, timeout: float
    ) -> dict[str, Any]:
        self.calls.append((source, tool, arguments, timeout))
        return await self.answer() if callable(self.answer) else self.answer


def executor(server: Server | None, *tools: dict[str, Any], **options: Any) -> Executor:
    ticks = iter(range(100))
    settings = options.pop("settings", {})
    catalog = catalog_of(tools_source(*(tools or (READ, TREE)), **settings), document_source())
    return Executor(catalog, transport=no_http, call_tool=server, clock=lambda: next(ticks) * 0.25, **options)


READ_CALL = {"name": "files.read_file", "body": {"path": "a.txt"}}


async def test_a_tools_own_result_passes_through_with_what_capdex_adds_in_meta() -> None:
    server = Server()
    served = executor(server, timeout=7.0)
    result = await served.execute(READ_CALL)
    assert isinstance(result, ToolResult)
    assert {key: result[key] for key in ("content", "structuredContent", "isError")} == {
        key: ANSWER[key] for key in ("content", "structuredContent", "isError")
    }
    assert result["_meta"].keys() == {"server", "elapsedMs", "revision"}
    assert result["_meta"]["elapsedMs"] == 250
    assert server.calls == [("files", "read_file", {"path": "a.txt"}, 7.0)]
    assert ANSWER["_meta"] == {"server": 1}


async def test_an_error_of_the_tool_is_its_result() -> None:
    failed = {"content": [{"type": "text", "text": "no such file"}], "isError": True}
    result = await executor(Server(failed)).execute(READ_CALL)
    assert (result["isError"], result["content"]) == (True, failed["content"])


@pytest.mark.parametrize("body", [{}, None, "missing"])
async def test_a_tool_without_required_arguments_is_called_with_none(body: Any) -> None:
    server = Server()
    call = {"name": "tree"} if body == "missing" else {"name": "tree", "body": body}
    await executor(server).execute(call)
    assert server.calls[0][2] == {}


async def test_arguments_sent_as_json_text_are_read() -> None:
    server = Server()
    await executor(server).execute({"name": "files.read_file", "body": '{"path": "a"}'})
    assert server.calls[0][2] == {"path": "a"}


@pytest.mark.parametrize(
    ("call", "issues"),
    [
        ({}, {("/path", "required")}),
        ({"body": {"path": 1, "head": 0}}, {("/path", "type"), ("/head", "exclusiveMinimum")}),
        ({"body": {"path": "a", "hed": 1}}, {("/hed", "additionalProperties")}),
        ({"body": ["a"]}, {("", "type")}),
        ({"body": {"path": "a"}, "pathParams": {"path": "a"}}, {("/path", "additionalProperties")}),
        ({"body": {"path": "a"}, "contentType": "text/csv"}, {("", "enum")}),
        ({"body": {"path": "\ud800"}}, {("/path", "type")}),
    ],
)
async def test_arguments_that_do_not_fit_are_told_all_at_once_and_nothing_is_sent(
    call: dict[str, Any], issues: set[tuple[str, str]]
) -> None:
    server = Server()
    with pytest.raises(InvalidArguments) as caught:
        await executor(server).execute({"name": "files.read_file", **call})
    assert {(one["pointer"], one["keyword"]) for one in caught.value.details["issues"]} == issues
    whole = caught.value.details["argumentsSchema"]
    assert whole["required"] == ["body"]
    assert whole["$defs"][whole["properties"]["body"]["$ref"].removeprefix("#/$defs/")]["required"] == [
        "path"
    ]
    assert server.calls == []


async def test_drift_with_arguments_that_still_fit_is_said_and_with_others_is_an_error() -> None:
    server = Server()
    result = await executor(server).execute({**READ_CALL, "schemaDigest": "sha256:old"})
    assert result["_meta"]["drift"] is True
    assert result["_meta"]["schemaDigest"].startswith("sha256:")
    with pytest.raises(InvalidArguments) as caught:
        await executor(server).execute({"name": "files.read_file", "body": {}, "schemaDigest": "sha256:old"})
    assert caught.value.details["drift"] is True


async def test_a_dry_run_shows_the_call_and_sends_nothing() -> None:
    server = Server()

    async def refuse(_: Any) -> None:
        raise AssertionError("a dry run takes no quota")

    served = executor(server)
    shown = await served.execute({**READ_CALL, "dryRun": True}, before_send=refuse)
    assert shown == {"tool": "read_file", "source": "files", "arguments": {"path": "a.txt"}}
    assert served.prepare({**READ_CALL, "schemaDigest": "x"}).keys() == {*shown, "drift", "schemaDigest"}
    assert server.calls == []


async def test_permission_comes_before_everything_and_quota_last() -> None:
    server = Server()
    with pytest.raises(UnknownCapability):
        await executor(server).execute({"name": "files.read_file"}, allows=lambda one: one.source != "files")
    seen: list[str] = []

    async def quota(operation: Any) -> None:
        seen.append(operation.name)
        raise RateLimited("no", retry_after=1, scope="capability")

    with pytest.raises(InvalidArguments):
        await executor(server).execute({"name": "files.read_file"}, before_send=quota)
    assert seen == []
    with pytest.raises(RateLimited):
        await executor(server).execute(READ_CALL, before_send=quota)
    assert (seen, server.calls) == (["files.read_file"], [])


async def test_tools_of_a_server_that_is_down_cannot_be_called_and_the_reason_is_told() -> None:
    with pytest.raises(NotExecutable) as caught:
        await executor(Server(), settings={"unavailable": "its server ended"}).execute(READ_CALL)
    assert caught.value.details["reason"] == "its server ended"


async def test_without_a_caller_of_tools_they_are_not_callable() -> None:
    with pytest.raises(NotExecutable):
        await executor(None).execute(READ_CALL)


@pytest.mark.parametrize(
    ("trusted", "call", "retryable"),
    [(True, READ_CALL, True), (False, READ_CALL, False), (True, {"name": "tree"}, False)],
)
@pytest.mark.parametrize("kind", [UpstreamUnreachable, UpstreamTimeout])
async def test_a_failure_is_repeatable_only_for_a_tool_that_is_known_to_change_nothing(
    trusted: bool, call: dict[str, Any], retryable: bool, kind: type[CapdexError]
) -> None:
    async def fail() -> Any:
        raise kind("It is down.", retryable=True)

    with pytest.raises(kind) as caught:
        await executor(Server(fail), settings={"trusted": trusted}).execute(call)
    assert (caught.value.retryable, caught.value.capability) == (
        retryable,
        "files.read_file" if "body" in call else "tree",
    )


async def test_a_caller_that_goes_away_cancels_the_call() -> None:
    events: list[str] = []

    async def slow() -> Any:
        try:
            events.append("called")
            await anyio.sleep_forever()
        finally:
            events.append("cancelled")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(executor(Server(slow)).execute, READ_CALL)
        while not events:
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert events == ["called", "cancelled"]


def size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


LINES = "\n".join(f"line {number}" for number in range(5000))
ITEMS = {"items": [{"number": number, "text": "x" * 20} for number in range(1000)]}


@pytest.mark.parametrize(
    "answer",
    [
        {"content": [{"type": "text", "text": LINES}]},
        {"content": [{"type": "text", "text": json.dumps(ITEMS)}], "structuredContent": ITEMS},
        {"content": [], "structuredContent": {"text": LINES}},
        {
            "content": [
                {"type": "text", "text": "short"},
                {"type": "image", "data": "A" * 50_000, "mimeType": "image/png"},
            ]
        },
        {"content": [{"type": "text", "text": f"block {number}"} for number in range(2000)]},
        {"content": [{"type": "resource", "resource": {"uri": "a://b", "blob": "A" * 50_000}}]},
        {"content": [{"type": "text", "text": "é€𝄞\u0000" * 5000}]},
    ],
    ids=["text", "both", "structured", "image", "blocks", "resource", "unicode"],
)
async def test_a_result_over_its_budget_is_cut_and_says_so(answer: dict[str, Any]) -> None:
    result = await executor(Server(answer)).execute({**READ_CALL, "maxBytes": 4096})
    assert size(result) <= 4096
    assert (result["_meta"]["truncated"], result["_meta"]["bytes"] > 4096) == (True, True)
    shown = json.dumps(result)
    assert any(word in shown for word in ("[cut: ", "left out", '"omitted"', "truncated"))


async def test_cut_structured_content_stays_an_object_and_says_what_was_omitted() -> None:
    answer = {"content": [{"type": "text", "text": "see"}], "structuredContent": ITEMS}
    result = await executor(Server(answer)).execute({**READ_CALL, "maxBytes": 8192})
    [omitted] = result["_meta"]["omitted"]
    assert (omitted["pointer"], omitted["total"]) == ("/items", 1000)
    assert len(result["structuredContent"]["items"]) == omitted["kept"]
    assert result["content"] == answer["content"]
    assert len(ITEMS["items"]) == 1000


async def test_small_blocks_stay_whole_beside_one_that_is_cut() -> None:
    answer = {"content": [{"type": "text", "text": "first"}, {"type": "text", "text": LINES}]}
    result = await executor(Server(answer)).execute({**READ_CALL, "maxBytes": 4096})
    assert result["content"][0] == {"type": "text", "text": "first"}
    assert result["content"][1]["text"].startswith("line 0\nline 1\n")


async def test_halves_of_surrogate_pairs_become_question_marks() -> None:
    result = await executor(Server({"content": [{"type": "text", "text": "a\ud800b"}]})).execute(READ_CALL)
    assert result["content"] == [{"type": "text", "text": "a?b"}]
