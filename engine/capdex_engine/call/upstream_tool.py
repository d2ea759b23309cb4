"""Calls of tools of upstream MCP servers: who calls them, and how their results are passed on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final, Protocol

from capdex_engine.call.budget import cut, cut_text, size
from capdex_engine.call.issues import Issue, issue
from capdex_engine.call.tool import MISSING, Call
from capdex_engine.operation import SLOTS, Operation

_NO_NUMBERS: Final = ("NaN", "Infinity")
"""As ``json`` writes them."""
_MARK_ROOM: Final = 160
"""Bytes that what is said of a cut block may take."""


class CallTool(Protocol):
    """Calls one tool; owns the connection to its server."""

    async def __call__(
        self, tool: str, arguments: dict[str, Any], *, source: str, timeout: float
    ) -> dict[str, Any]:
        """Return the tool's own result as MCP writes it: ``{"content", "structuredContent"?, "isError"?}``.

        When it is cancelled, the server is told.

        Args:
            tool: Its name at the server.
            arguments: Checked against its schema.
            source: Whose tool it is.
            timeout: Seconds.

        Raises:
            UpstreamUnreachable: The server is down, or went down during the call.
            UpstreamTimeout: No result in time.
            UpstreamProtocolError: What came is no result.
            AddressRefused: The server's address is not allowed.
        """
        ...


class ToolResult(dict[str, Any]):
    """A tool's own result, to be passed on as it is.

    Args:
        result: As it is passed on.
        bytes: Of the whole as JSON, before anything was cut.
    """

    def __init__(self, result: Mapping[str, Any], *, bytes: int) -> None:
        super().__init__(result)
        self.bytes = bytes

    @property
    def failed(self) -> bool:
        """Whether the tool says so."""
        return self.get("isError") is True


@dataclass(frozen=True, slots=True)
class ToolDraft:
    """A call of a tool, ready to be sent."""

    source: str
    tool: str
    arguments: dict[str, Any]

    def show(self) -> dict[str, Any]:
        """Return what a dry run says: ``{tool, source, arguments}``."""
        return {"tool": self.tool, "source": self.source, "arguments": self.arguments}


def draft_tool(operation: Operation, body: Any) -> tuple[ToolDraft, list[Issue]]:
    """Return the call with a checked body as its arguments; a body that is missing stands for none.

    The list holds an issue where the schema admits a body that no tool can be called with.
    """
    arguments = {} if body is MISSING or body is None else body
    if isinstance(arguments, dict):
        return ToolDraft(operation.source, operation.operation_id or "", arguments), []
    wrong = issue("body", (), "type", "must be an object, a tool's arguments")
    return ToolDraft(operation.source, operation.operation_id or "", {}), [wrong]


def draft_skill(operation: Operation, call: Call) -> ToolDraft:
    """Return the call of a skill, whose arguments are the input of its server's ``execute_capability``.

    They go on as they are: a skill says in words what it needs. What is between the caller and capdex
    stays here: the digest, and the dry run.
    """
    given = {SLOTS[location]: dict(values) for location, values in call.values.items() if values}
    if call.body is not MISSING:
        given["body"] = call.body
    further = {"contentType": call.content_type, "maxBytes": call.max_bytes}
    arguments = {**given, **{key: value for key, value in further.items() if value is not None}}
    return ToolDraft(operation.source, operation.name, {"name": operation.name, **arguments})


def tool_result(answer: Mapping[str, Any], meta: Mapping[str, Any], max_bytes: int) -> ToolResult:
    """Return a tool's result with what capdex adds in ``_meta``, cut where it is over its budget.

    What is cut is said in its place and in ``_meta``: ``truncated``, ``bytes`` of the whole, ``hint``, and
    ``omitted`` for items of arrays.

    Args:
        answer: As the server gave it.
        meta: ``elapsedMs``, ``revision``, ``drift``.
        max_bytes: Budget of the result as JSON; no block of content is dropped without a word.
    """
    own = answer.get("_meta")
    whole = {**_speakable(answer), "_meta": {**(own if isinstance(own, dict) else {}), **meta}}
    total = size(whole)
    return ToolResult(whole if total <= max_bytes else _fitted(whole, total, max_bytes), bytes=total)


def _speakable(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer fit for JSON in UTF-8.

    Halves of surrogate pairs become "?", and what is no number of JSON (NaN, Infinity) becomes null.
    """
    text = json.dumps(answer, ensure_ascii=False)
    sound = text.encode("utf-8", "replace").decode()
    if sound == text and not any(word in text for word in _NO_NUMBERS):
        return dict(answer)
    spoken: dict[str, Any] = json.loads(sound, parse_constant=lambda _: None)
    return spoken


def _fitted(whole: dict[str, Any], total: int, max_bytes: int) -> dict[str, Any]:
    hint = "Only part of the result is shown. Ask the tool for less, or raise maxBytes."
    meta = {**whole["_meta"], "truncated": True, "bytes": total, "hint": hint}
    blocks = [dict(block) for block in whole.get("content") or () if isinstance(block, dict)]
    result = {**whole, "content": [], "_meta": meta}
    structured = result.pop("structuredContent", None)
    room = max(0, max_bytes - size(result) - 2)
    if structured is not None:
        # Most servers say the same in both, so that each gets a half.
        fitted = cut(deepcopy(structured), room // 2)
        if not fitted.truncated:
            result["structuredContent"] = fitted.body
            room -= size(fitted.body) + len('"structuredContent":,')
            if fitted.omitted:
                meta["omitted"] = list(fitted.omitted)
                room -= size(meta["omitted"]) + len('"omitted":,')
    result["content"] = _fitted_blocks(blocks, room)
    return result


def _fitted_blocks(blocks: list[dict[str, Any]], room: int) -> list[dict[str, Any]]:
    """Return the blocks in ``room`` bytes, small ones whole; the rest of them is said to be left out."""
    kept: list[dict[str, Any]] = []
    for number, block in enumerate(blocks):
        left = len(blocks) - number - 1
        own = size(block) + 1
        spare = room - (_MARK_ROOM if left else 0)
        if own > spare:
            block = _cut_block(block, own, spare)
            own = size(block) + 1
        if own > spare and left:
            kept.append(_mark(f"{left + 1} further blocks of content are left out"))
            break
        kept.append(block)
        room -= own
    return kept


def _cut_block(block: dict[str, Any], own: int, room: int) -> dict[str, Any]:
    if isinstance(block.get("text"), str) and room > 2 * _MARK_ROOM:
        length = len(block["text"])
        kept = cut_text(block["text"], max(2, room - size({**block, "text": ""}) - _MARK_ROOM))
        return {**block, "text": f"{kept}\n[cut: {len(kept)} of {length} characters are shown]"}
    kind = block.get("mimeType") or block.get("type") or "block"
    return _mark(f"a block ({str(kind)[:60]}) of {own} bytes is left out")


def _mark(text: str) -> dict[str, Any]:
    return {"type": "text", "text": f"[{text}; raise maxBytes to see it]"}
