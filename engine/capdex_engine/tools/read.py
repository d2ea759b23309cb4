"""One tool of a listing -> the fields that are kept of it, or why it is put in quarantine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from capdex_engine.catalog.texts import INVISIBLE
from capdex_engine.tools.limits import Code, ToolLimits
from capdex_engine.tools.measure import Misfit, measure, text_size

SHOWN: Final = 80
"""Characters of a tool's name in a message."""
_HINTS: Final = {
    "readOnlyHint": "read_only_hint",
    "destructiveHint": "destructive_hint",
    "idempotentHint": "idempotent_hint",
    "openWorldHint": "open_world_hint",
}


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A tool that is not offered, and why."""

    name: str
    """Fit to be shown: escaped and shortened."""
    code: str
    message: str
    """Names the tool."""

    def to_json(self) -> dict[str, str]:
        """Return ``{"name", "code", "message"}``."""
        return {"name": self.name, "code": self.code, "message": self.message}


class Refused(Exception):
    """A tool is refused; ``fault`` says why, ``size`` how many bytes of it were looked at."""

    def __init__(self, fault: Quarantined, size: int) -> None:
        super().__init__(fault.message)
        self.fault = fault
        self.size = size


def field_of(holder: Any, name: str, attribute: str) -> Any:
    """Return a field of a mapping, or of an object of the SDK by its attribute; None if missing."""
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, attribute, None)


def shown_name(name: Any) -> str:
    """Return what a message calls a tool: escaped, at most :data:`SHOWN` characters."""
    if not isinstance(name, str):
        return f"<{type(name).__name__[:SHOWN]}>"
    cut = name if len(name) <= SHOWN else name[: SHOWN - 1] + "…"
    return "".join(char if _is_plain(char) else char.encode("unicode_escape").decode("ascii") for char in cut)


def _is_plain(char: str) -> bool:
    return char.isprintable() and INVISIBLE.match(char) is None


def read_tool(tool: Any, taken: set[str], limits: ToolLimits) -> tuple[dict[str, Any], int]:
    """Return the kept fields of a tool, as MCP names them, and their bytes as compact JSON.

    Args:
        tool: A mapping, or the SDK's object.
        taken: Names of the tools before it; its own is added.
        limits: The most that it may hold.

    Raises:
        Refused: A limit is broken, or it is no tool.
    """
    name = field_of(tool, "name", "name")
    size = 2
    try:
        size += _check_name(name, taken, limits)
        kept: dict[str, Any] = {"name": name}
        for text, most in (("title", limits.title_bytes), ("description", limits.description_bytes)):
            value = field_of(tool, text, text)
            if value is not None:
                size += _check_text(text, value, most)
                kept[text] = value
        for key, attribute in (("inputSchema", "input_schema"), ("outputSchema", "output_schema")):
            schema = field_of(tool, key, attribute)
            if schema is not None or key == "inputSchema":
                size += _check_schema(key, schema, limits)
                kept[key] = schema
        hints = _hints(tool)
        if hints:
            kept["annotations"] = hints
            size += _pair("annotations", len(json.dumps(hints, separators=(",", ":"))))
    except Misfit as misfit:
        shown = shown_name(name)
        fault = Quarantined(shown, misfit.code.value, f"The tool '{shown}' is left out: {misfit}.")
        raise Refused(fault, size + misfit.size) from None
    return kept, size - 1  # one comma less than there are fields


def _pair(name: str, size: int) -> int:
    return len(name) + 4 + size


def _utf8(text: str, most: int) -> int:
    """Return the bytes of a text; of one that is longer anyway its characters."""
    return len(text) if len(text) > most else len(text.encode("utf-8", "surrogatepass"))


def _check_name(name: Any, taken: set[str], limits: ToolLimits) -> int:
    if not isinstance(name, str):
        raise Misfit(Code.INVALID_TOOL, "its name is no text")
    if not name.strip():
        raise Misfit(Code.INVALID_TOOL, "its name is empty")
    if _utf8(name, limits.name_bytes) > limits.name_bytes:
        raise Misfit(Code.INVALID_TOOL, f"its name has more than {limits.name_bytes} bytes")
    if INVISIBLE.search(name) or not name.isprintable():
        raise Misfit(Code.INVALID_TOOL, "its name holds control, invisible or bidirectional characters")
    if name in taken:
        raise Misfit(Code.DUPLICATE_TOOL, "another tool has the same name, and the first counts")
    taken.add(name)
    return _pair("name", text_size(name))


def _check_text(field: str, value: Any, most: int) -> int:
    if not isinstance(value, str):
        raise Misfit(Code.INVALID_TOOL, f"its {field} is no text")
    if _utf8(value, most) > most:
        raise Misfit(Code.INVALID_TOOL, f"its {field} has more than {most} bytes", most)
    return _pair(field, text_size(value))


def _check_schema(key: str, schema: Any, limits: ToolLimits) -> int:
    if not isinstance(schema, Mapping):
        raise Misfit(Code.INVALID_TOOL, f"its {key} is no object")
    try:
        size = measure(schema, max_bytes=limits.schema_bytes, max_levels=limits.schema_levels)
    except Misfit as misfit:
        raise Misfit(misfit.code, f"its {key} {misfit}", misfit.size) from None
    if key == "inputSchema" and not _admits_object(schema.get("type", "object")):
        raise Misfit(Code.INVALID_TOOL, "its inputSchema admits no object, and arguments are one", size)
    return _pair(key, size)


def _admits_object(kind: Any) -> bool:
    return kind == "object" or (isinstance(kind, list | tuple) and "object" in kind)


def _hints(tool: Any) -> dict[str, bool]:
    annotations = field_of(tool, "annotations", "annotations")
    found = {name: field_of(annotations, name, attribute) for name, attribute in _HINTS.items()}
    return {name: value for name, value in found.items() if isinstance(value, bool)}
