"""Every limit of SPEC section 6: exactly this much passes, one more gives the code."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import anyio
import pytest

from capdex_engine.errors import ToolCatalogError
from capdex_engine.tools import Code, ToolCollection, ToolLimits, collect_tools

pytestmark = pytest.mark.anyio
Tool = dict[str, Any]


def tool(name: str = "read", **fields: Any) -> Tool:
    return {"name": name, "inputSchema": {"type": "object"}, **fields}


def tools(count: int) -> list[Tool]:
    return [tool(f"tool{number}") for number in range(count)]


def server(*pages: Sequence[Any], cursors: Sequence[Any] | None = None) -> Callable[..., Any]:
    """A server that lists these pages; cursors are page numbers unless others are given."""
    given = list(cursors) if cursors is not None else [str(number) for number in range(1, len(pages))]
    asked: list[str | None] = []

    async def list_page(cursor: str | None, options: Mapping[str, Any]) -> dict[str, Any]:
        number = len(asked)
        asked.append(cursor)
        page: dict[str, Any] = {"tools": list(pages[number % len(pages)])}
        if number < len(given):
            page["nextCursor"] = given[number]
        return page

    return list_page


def written(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def padded(schema: dict[str, Any], size: int) -> dict[str, Any]:
    """The schema with a description that brings it to so many bytes."""
    bare = {**schema, "description": ""}
    return {**schema, "description": "x" * (size - written(bare))}


def nested(levels: int) -> dict[str, Any]:
    """A schema of so many levels of objects."""
    schema: dict[str, Any] = {}
    for _ in range(levels - 1):
        schema = {"not": schema}
    return schema


async def collected(*pages: Sequence[Any], **options: Any) -> ToolCollection:
    cursors = options.pop("cursors", None)
    return await collect_tools(server(*pages, cursors=cursors), **options)


async def code_of(*pages: Sequence[Any], **options: Any) -> str:
    with pytest.raises(ToolCatalogError) as caught:
        await collected(*pages, **options)
    return caught.value.code


def of_pages(count: int) -> list[list[Tool]]:
    return [[tool(f"tool{number}")] for number in range(count)]


def of_bytes(size: int) -> list[list[Tool]]:
    """One page of tools whose compact JSON has so many bytes together."""
    many = [tool(f"tool{number}", description="d" * 60_000) for number in range(139)]
    rest = size - sum(map(written, many)) - written(tool("last", description=""))
    return [[*many, tool("last", description="e" * rest)]]


@pytest.mark.parametrize(
    ("passes", "one_more", "code"),
    [
        ({"pages": of_pages(20)}, {"pages": of_pages(21)}, Code.PAGE_LIMIT),
        ({"pages": [tools(2000)]}, {"pages": [tools(2001)]}, Code.ITEM_LIMIT),
        (
            {"pages": [tools(2000)[:1500], tools(2000)[1500:]]},
            {"pages": [tools(2001)[:1500], tools(2001)[1500:]]},
            Code.ITEM_LIMIT,
        ),
        ({"pages": of_bytes(8 * 1024**2)}, {"pages": of_bytes(8 * 1024**2 + 1)}, Code.BYTE_LIMIT),
        (
            {"pages": of_pages(2), "cursors": ["c" * 16384]},
            {"pages": of_pages(2), "cursors": ["c" * 16385]},
            Code.CURSOR_LIMIT,
        ),
        (
            {"pages": of_pages(2), "cursors": ["é" * 8192]},
            {"pages": of_pages(2), "cursors": ["é" * 8192 + "x"]},
            Code.CURSOR_LIMIT,
        ),
        (
            {"pages": of_pages(3), "cursors": ["a", "b"]},
            {"pages": of_pages(3), "cursors": ["a", "a"]},
            Code.CURSOR_LOOP,
        ),
    ],
    ids=["pages", "tools", "tools over pages", "bytes", "cursor", "cursor in UTF-8", "cursor again"],
)
async def test_exactly_a_limit_of_the_server_passes_and_one_more_gives_its_code(
    passes: dict[str, Any], one_more: dict[str, Any], code: Code
) -> None:
    assert (await collected(*passes.pop("pages"), **passes)).quarantine == ()
    assert await code_of(*one_more.pop("pages"), **one_more) == code


def of_schema(schema: Any) -> Tool:
    return {"name": "read", "inputSchema": schema}


def of_output(schema: Any) -> Tool:
    return tool(outputSchema=schema)


@pytest.mark.parametrize(
    ("passes", "one_more", "code"),
    [
        (of_schema(padded({}, 524_288)), of_schema(padded({}, 524_289)), Code.SCHEMA_TOO_LARGE),
        (of_output(padded({}, 524_288)), of_output(padded({}, 524_289)), Code.SCHEMA_TOO_LARGE),
        (of_schema(nested(64)), of_schema(nested(65)), Code.SCHEMA_TOO_DEEP),
        (of_output(nested(64)), of_output(nested(65)), Code.SCHEMA_TOO_DEEP),
        (tool("n" * 512), tool("n" * 513), Code.INVALID_TOOL),
        (tool("ñ" * 256), tool("ñ" * 256 + "n"), Code.INVALID_TOOL),
        (tool(title="t" * 4096), tool(title="t" * 4097), Code.INVALID_TOOL),
        (tool(description="d" * 65_536), tool(description="d" * 65_537), Code.INVALID_TOOL),
        (tool(title=None), tool(title=7), Code.INVALID_TOOL),
        (tool(description=""), tool(description=["d"]), Code.INVALID_TOOL),
        (tool("a/b c"), tool(""), Code.INVALID_TOOL),
        (tool("a"), tool(" "), Code.INVALID_TOOL),
        (tool("naïve"), tool("na\x07ive"), Code.INVALID_TOOL),
        (tool("read-2"), tool("read\u202egpj"), Code.INVALID_TOOL),
        (tool("read.2"), tool("read\u200b2"), Code.INVALID_TOOL),
        (tool("read_2"), tool("read\n2"), Code.INVALID_TOOL),
        (tool("2"), tool(2), Code.INVALID_TOOL),  # type: ignore[arg-type]
        (tool("a"), tool("\ud800"), Code.INVALID_TOOL),
        (tool("a"), {"inputSchema": {}}, Code.INVALID_TOOL),
        (tool("a"), {"name": "a"}, Code.INVALID_TOOL),
        (tool("a"), "a", Code.INVALID_TOOL),
        (tool("a"), None, Code.INVALID_TOOL),
        (of_schema({}), of_schema(True), Code.INVALID_TOOL),
        (of_schema({"type": ["object", "null"]}), of_schema({"type": "string"}), Code.INVALID_TOOL),
        (of_schema({"const": 1.5}), of_schema({"const": float("nan")}), Code.INVALID_TOOL),
        (of_schema({"const": 10**300}), of_schema({"const": 10**5000}), Code.INVALID_TOOL),
        (of_schema({"const": ["x"]}), of_schema({"const": {"x"}}), Code.INVALID_TOOL),
        (of_schema({"properties": {"1": {}}}), of_schema({"properties": {1: {}}}), Code.INVALID_TOOL),
        (of_output({"type": "string"}), of_output([]), Code.INVALID_TOOL),
    ],
)
async def test_exactly_a_limit_of_a_tool_passes_and_one_more_puts_it_in_quarantine(
    passes: Any, one_more: Any, code: Code
) -> None:
    other = tool("other")
    good = await collected([passes, other])
    assert (len(good.tools), good.quarantine) == (2, ())
    bad = await collected([one_more, other])
    assert [one["name"] for one in bad.tools] == ["other"]
    assert [fault.code for fault in bad.quarantine] == [code]
    assert await code_of([one_more, other], strict=True) == code


async def test_of_duplicates_the_first_is_kept_across_pages() -> None:
    found = await collected([tool(description="first")], [tool(description="second"), tool("other")])
    assert [one.get("description") for one in found.tools] == ["first", None]
    assert [(fault.name, fault.code) for fault in found.quarantine] == [("read", Code.DUPLICATE_TOOL)]
    assert await code_of([tool()], [tool()], strict=True) == Code.DUPLICATE_TOOL


async def test_a_recursive_reference_is_kept_and_a_schema_that_holds_itself_is_not() -> None:
    recursive = {"type": "object", "properties": {"child": {"$ref": "#"}}}
    cyclic: dict[str, Any] = {"type": "object"}
    cyclic["properties"] = {"child": cyclic}
    found = await collected([of_schema(recursive), {"name": "bad", "inputSchema": cyclic}])
    assert [one["inputSchema"] for one in found.tools] == [recursive]
    assert [fault.code for fault in found.quarantine] == [Code.SCHEMA_CYCLE]


async def test_what_a_schema_shares_with_itself_is_no_cycle() -> None:
    text = {"type": "string"}
    found = await collected([of_schema({"properties": {"a": text, "b": text}, "allOf": [text, text]})])
    assert found.quarantine == ()


async def test_sharing_that_multiplies_counts_as_json_would_write_it_and_ends_at_the_limit() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(40):
        schema = {"anyOf": [schema, schema]}
    found = await collected([of_schema(schema)])
    # Forty doublings of two levels each: the depth is met on the way down.
    assert [fault.code for fault in found.quarantine] == [Code.SCHEMA_TOO_DEEP]
    flat: dict[str, Any] = {"type": "string"}
    for _ in range(30):
        flat = {"anyOf": [flat] * 50}
    found = await collected([of_schema(flat)])
    assert [fault.code for fault in found.quarantine] == [Code.SCHEMA_TOO_LARGE]


async def test_a_million_levels_and_a_million_members_end_at_the_limit() -> None:
    deep: Any = {}
    for _ in range(1_000_000):
        deep = {"a": deep}
    wide = {"enum": Lazy()}
    found = await collected([of_schema(deep), {"name": "wide", "inputSchema": wide}])
    assert [fault.code for fault in found.quarantine] == [Code.SCHEMA_TOO_DEEP, Code.SCHEMA_TOO_LARGE]
    while deep:  # Python itself would recurse
        deep = deep.pop("a")


class Lazy(list[int]):
    """A list without end that tells how far it has been read."""

    read = 0

    def __len__(self) -> int:
        return 2

    def __iter__(self) -> Any:
        while True:
            Lazy.read += 1
            yield 123456


async def test_reading_a_schema_stops_at_the_limit() -> None:
    Lazy.read = 0
    await collected([of_schema({"enum": Lazy()})])
    assert Lazy.read <= 524_288 // 6


@pytest.mark.parametrize("text", ['"', "\\", "\x00\x1f", "é", "€", "𝄞", "\u2028", "a\nb", "\x7f", "/"])
async def test_bytes_are_those_of_compact_json(text: str) -> None:
    schema = {"type": "object", "enum": [text, 1, -1.5, 1e300, True, False, None, [], {}, {text: [text, {}]}]}
    whole = tool("naïve", title=text or "t", description=text, outputSchema=schema, inputSchema=schema)
    found = await collected([whole, tool("b")])
    assert found.size == written(whole) + written(tool("b"))


async def test_a_page_that_never_comes_is_a_fault_of_time() -> None:
    async def never(_: str | None, __: Mapping[str, Any]) -> Any:
        await anyio.sleep_forever()

    with pytest.raises(ToolCatalogError) as caught:
        await collect_tools(never, limits=ToolLimits(page_seconds=0.01))
    assert caught.value.code == Code.TIMEOUT
    with pytest.raises(ToolCatalogError) as caught:
        await collect_tools(never, request_options={"timeout": 0.01})
    assert caught.value.code == Code.TIMEOUT


@pytest.mark.parametrize(("seconds", "code"), [([10, 10, 10], None), ([10, 10, 10.5], Code.TIMEOUT)])
async def test_thirty_seconds_in_all_pass_and_more_do_not(seconds: list[float], code: Code | None) -> None:
    now = [0.0]
    pages = server(*of_pages(3))

    async def slow(cursor: str | None, options: Mapping[str, Any]) -> Any:
        now[0] += seconds.pop(0)
        return await pages(cursor, options)

    if code is None:
        found = await collect_tools(slow, clock=lambda: now[0])
        assert found.seconds == 30.0
        return
    with pytest.raises(ToolCatalogError) as caught:
        await collect_tools(slow, clock=lambda: now[0])
    assert caught.value.code == code


async def test_each_page_gets_the_callers_options_and_five_seconds_or_what_is_left() -> None:
    now, seen = [0.0], []
    pages = server(*of_pages(3))

    async def list_page(cursor: str | None, options: Mapping[str, Any]) -> Any:
        seen.append((cursor, dict(options)))
        now[0] += 14.0
        return await pages(cursor, options)

    limits = ToolLimits(total_seconds=42.0)
    await collect_tools(list_page, limits=limits, request_options={"trace": "t"}, clock=lambda: now[0])
    assert seen == [
        (None, {"trace": "t", "timeout": 5.0}),
        ("1", {"trace": "t", "timeout": 5.0}),
        ("2", {"trace": "t", "timeout": 5.0}),
    ]
    now[0], seen[:] = 0.0, []
    pages = server(*of_pages(2))
    with pytest.raises(ToolCatalogError):
        await collect_tools(list_page, limits=ToolLimits(total_seconds=16.0), clock=lambda: now[0])
    assert [options["timeout"] for _, options in seen] == [5.0, 2.0]


@pytest.mark.parametrize("page", [None, [], {}, {"tools": None}, {"tools": "ab"}, {"tools": {"a": 1}}])
async def test_what_is_no_page_has_a_code_of_its_own(page: Any) -> None:
    async def list_page(_: str | None, __: Mapping[str, Any]) -> Any:
        return page

    with pytest.raises(ToolCatalogError) as caught:
        await collect_tools(list_page)
    assert caught.value.code == Code.INVALID_PAGE


async def test_a_cursor_that_is_no_text_is_no_page_and_an_empty_one_is_the_end() -> None:
    assert await code_of(*of_pages(2), cursors=[7]) == Code.INVALID_PAGE
    assert len((await collected(*of_pages(2), cursors=[""])).tools) == 1


async def test_messages_name_the_tool_escaped_and_shortened() -> None:
    found = await collected([tool("bad\u202e\n" + "x" * 600)])
    [fault] = found.quarantine
    assert fault.name.startswith("bad\\u202e\\nxxx") and len(fault.name) < 100
    assert fault.name in fault.message and "\u202e" not in fault.message and "\n" not in fault.message


async def test_what_the_server_raises_goes_through() -> None:
    async def dies(cursor: str | None, _: Mapping[str, Any]) -> Any:
        if cursor is None:
            return {"tools": tools(1), "nextCursor": "1"}
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await collect_tools(dies)


async def test_objects_of_an_sdk_are_read_like_mappings_and_only_known_fields_are_kept() -> None:
    class Hints:
        read_only_hint = True
        destructive_hint = None

    class Made:
        name, title, description = "made", "Made", None
        input_schema: ClassVar[dict[str, Any]] = {"type": "object"}
        output_schema = None
        annotations = Hints()
        meta = object()

    class Page:
        tools: ClassVar[list[Any]] = [Made()]
        next_cursor = None

    async def list_page(_: str | None, __: Mapping[str, Any]) -> Any:
        return Page()

    found = await collect_tools(list_page)
    assert found.tools == (
        {
            "name": "made",
            "title": "Made",
            "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": True},
        },
    )
    assert found.size == sum(map(written, found.tools))
