"""What a handler is, and what it may answer besides JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from capdex_server.demo.reading import Call
from capdex_server.demo.store import Tables

Handler = Callable[[Tables, Call], Any]
"""One operation: answers the JSON of its success, a :class:`File`, or ``None`` for no content."""


@dataclass(frozen=True, slots=True)
class File:
    """A file to download; ``name`` and ``content_type`` are safe to stand in a header."""

    content: bytes
    content_type: str
    name: str
