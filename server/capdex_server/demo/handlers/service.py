"""The state of the service."""

from __future__ import annotations

from typing import Any, Final

from capdex_server.demo.reading import Call
from capdex_server.demo.store import Tables

VERSION: Final = "1.4.0"
"""As ``info.version`` of the document."""


def get_service_status(tables: Tables, call: Call) -> dict[str, Any]:
    """Answer getServiceStatus."""
    return {"status": "ok", "version": VERSION, "time": tables.now}
