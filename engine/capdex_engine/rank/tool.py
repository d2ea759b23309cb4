"""The input of ``search_capabilities`` (SPEC section 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

SEARCH_INPUT: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "minLength": 1,
            "maxLength": 2000,
            "description": "What you want to do, in plain words of any language: the action and the object. "
            "Several needs in one query are fine. An exact name or 'METHOD /path' finds that operation.",
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": 20,
            "default": 5,
            "description": "How many matches at most.",
        },
        "source": {"type": "string", "minLength": 1, "description": "Only operations of this source."},
        "readOnly": {
            "type": "boolean",
            "description": "true: only operations that cannot change anything.",
        },
    },
    "required": ["query"],
    "additionalProperties": False,
}
"""JSON Schema 2020-12 of the tool's input."""
