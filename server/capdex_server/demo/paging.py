"""Order and pages of lists."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Any

from capdex_server.demo.problems import invalid_field
from capdex_server.demo.reading import Call
from capdex_server.demo.store import Row


def page(rows: Sequence[Row], call: Call) -> dict[str, Any]:
    """Return the page that ``limit`` and ``cursor`` ask for: ``{"items", "nextCursor"}``."""
    start = _offset(call["cursor"])
    end = start + int(call["limit"])
    return {"items": list(rows[start:end]), "nextCursor": _cursor(end) if end < len(rows) else None}


def in_order(rows: Sequence[Row], sort: str) -> list[Row]:
    """Sort by a property, backwards after a minus; alike rows stay in the order of their ids."""
    name = sort.removeprefix("-")
    by_id = sorted(rows, key=lambda row: str(row["id"]))
    return sorted(by_id, key=lambda row: row[name], reverse=sort.startswith("-"))


def _cursor(offset: int) -> str:
    return urlsafe_b64encode(f"o{offset}".encode()).decode().rstrip("=")


def _offset(cursor: str | None) -> int:
    if cursor is None:
        return 0
    try:
        text = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
    except ValueError:
        text = ""
    if not text.startswith("o") or not text[1:].isdigit() or len(text) > 10:
        raise invalid_field("/cursor", "the cursor is none that a list gave out", where="query")
    return int(text[1:])
