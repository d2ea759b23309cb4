"""How much an upstream server may list, and the codes of what goes beyond."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB


class Code(StrEnum):
    """Stable codes; :mod:`capdex_engine.tools` says what each means."""

    PAGE_LIMIT = "MCP_CATALOG_PAGE_LIMIT"
    ITEM_LIMIT = "MCP_CATALOG_ITEM_LIMIT"
    BYTE_LIMIT = "MCP_CATALOG_BYTE_LIMIT"
    CURSOR_LIMIT = "MCP_CATALOG_CURSOR_LIMIT"
    CURSOR_LOOP = "MCP_CATALOG_CURSOR_LOOP"
    TIMEOUT = "MCP_CATALOG_TIMEOUT"
    INVALID_PAGE = "MCP_CATALOG_INVALID_PAGE"
    SCHEMA_TOO_LARGE = "MCP_CATALOG_SCHEMA_TOO_LARGE"
    SCHEMA_TOO_DEEP = "MCP_CATALOG_SCHEMA_TOO_DEEP"
    SCHEMA_CYCLE = "MCP_CATALOG_SCHEMA_CYCLE"
    INVALID_TOOL = "MCP_CATALOG_INVALID_TOOL"
    DUPLICATE_TOOL = "MCP_CATALOG_DUPLICATE_TOOL"


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """The most that one server may list; exactly this much passes. Sizes are bytes of UTF-8."""

    pages: int = 20
    tools: int = 2000
    """Those in quarantine count too."""
    total_bytes: int = 8 * MIB
    """Of all tools as compact JSON, as far as their fields are kept."""
    cursor_bytes: int = 16 * KIB
    page_seconds: float = 5.0
    total_seconds: float = 30.0
    schema_bytes: int = 512 * KIB
    """Of one schema as compact JSON."""
    schema_levels: int = 64
    """Objects and lists inside each other, the schema itself the first."""
    name_bytes: int = 512
    title_bytes: int = 4 * KIB
    description_bytes: int = 64 * KIB
