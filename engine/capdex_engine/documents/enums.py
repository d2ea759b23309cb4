"""Enums whose values are not of the type that stands beside them.

YAML reads ``enum: [1.10, 2.0]`` as numbers, and generators write ``"1"`` below ``type: integer``. To
the letter nothing would be valid there; what is meant is clear.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from capdex_engine.documents.values import is_number, text_of

_WORDS: Final[Mapping[str, bool]] = {"true": True, "false": False}


def settle_enum(result: dict[str, Any]) -> bool:
    """Write the values of ``enum`` and ``const`` in the schema's one type, in place.

    Values that cannot be written so stay as they are; an enum of such alone is dropped. With several
    types, or none, nothing changes. Returns whether something has changed.
    """
    kind = _single_type(result.get("type"))
    if kind is None:
        return False
    before = (result.get("const"), result.get("enum"))
    if "const" in result:
        result["const"] = _fitted(result["const"], kind)
    if "enum" in result:
        values = [_fitted(value, kind) for value in result["enum"]]
        if any(value is None or _FITS[kind](value) for value in values):
            result["enum"] = values
        else:
            del result["enum"]
    return before != (result.get("const"), result.get("enum"))


def _single_type(value: Any) -> str | None:
    words = [word for word in (value if isinstance(value, list) else [value]) if word != "null"]
    return words[0] if len(words) == 1 and words[0] in _FITS else None


def _fitted(value: Any, kind: str) -> Any:
    if value is None or _FITS[kind](value):
        return value
    made = _MAKERS[kind](value)
    return made if _FITS[kind](made) else value


def _text(value: Any) -> Any:
    return text_of(value) if isinstance(value, bool | int | float) else value


def _number(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value, parse_constant=str)
    except (ValueError, RecursionError):
        return value


def _boolean(value: Any) -> Any:
    return _WORDS.get(value.lower(), value) if isinstance(value, str) else value


_FITS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: is_number(value) and value == value // 1,
    "number": is_number,
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_MAKERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "string": _text,
    "integer": _number,
    "number": _number,
    "boolean": _boolean,
    "array": lambda value: value,
    "object": lambda value: value,
}
