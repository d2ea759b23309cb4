"""Keywords whose value is data: what JSON Schema 2020-12 accepts there."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from capdex_engine.documents.patterns import python_pattern

LOST: Final = object()
"""Stands for a constraint that cannot be kept."""
IGNORED: Final = object()
"""Stands for a value that constrains nothing and is left out."""

_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_SCALARS: Final = (str, int, float)
_LARGEST_DIVISOR: Final = 1e300


def _text(value: Any) -> Any:
    return value if isinstance(value, str) else IGNORED


def _flag(value: Any) -> Any:
    return value if isinstance(value, bool) else IGNORED


def _examples(value: Any) -> Any:
    return value if isinstance(value, list) else IGNORED


def _same(value: Any) -> Any:
    return value


def is_number(value: Any) -> bool:
    """Return whether the value is a finite number, and no boolean."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def text_of(value: Any) -> str:
    """Return a scalar as text, a number of YAML as it is written (``1.10``)."""
    if isinstance(value, bool | int | float):
        return str(getattr(value, "text", None) or json.dumps(value))
    return str(value)


def _number(value: Any) -> Any:
    return value if is_number(value) else LOST


def _exclusive(value: Any) -> Any:
    # OpenAPI 3.0's booleans are settled together with the bound they belong to.
    return IGNORED if isinstance(value, bool) else _number(value)


def _divisor(value: Any) -> Any:
    return value if is_number(value) and 0 < value <= _LARGEST_DIVISOR else LOST


def _count(value: Any) -> Any:
    return int(value) if is_number(value) and value >= 0 and value == int(value) else LOST


def _unique(value: Any) -> Any:
    return value if isinstance(value, bool) else LOST


def _pattern(value: Any) -> Any:
    found = python_pattern(value) if isinstance(value, str) else None
    return LOST if found is None else found


def _enum(value: Any) -> Any:
    return value if isinstance(value, list) and value else LOST


def _required(value: Any) -> Any:
    if isinstance(value, bool):
        return IGNORED  # draft 3 wrote it on the property itself
    if not isinstance(value, list):
        return LOST
    # Keys are text as they are written; so are the names of those that are demanded.
    return list(dict.fromkeys(text_of(name) for name in value if isinstance(name, _SCALARS)))


def _dependent(value: Any) -> Any:
    if not isinstance(value, dict):
        return LOST
    return {name: _required(names) for name, names in value.items() if isinstance(names, list)}


def _type(value: Any) -> Any:
    if isinstance(value, str):
        return "string" if value == "file" else value if value in _TYPES else LOST
    if not isinstance(value, list):
        return LOST
    words = list(dict.fromkeys(word for word in value if isinstance(word, str) and word in _TYPES))
    # An unknown word may have meant anything: the known ones alone would accept too little.
    return words if words and len(words) == len({str(word) for word in value}) else LOST


ANNOTATIONS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "title": _text,
    "description": _text,
    "format": _text,
    "default": _same,
    "examples": _examples,
    "deprecated": _flag,
    "readOnly": _flag,
    "writeOnly": _flag,
    "contentEncoding": _text,
    "contentMediaType": _text,
}
"""Keywords that constrain nothing; each function returns the value to write, or IGNORED."""

VALUES: Final[Mapping[str, Callable[[Any], Any]]] = {
    **ANNOTATIONS,
    "type": _type,
    "enum": _enum,
    "const": _same,
    "multipleOf": _divisor,
    "maximum": _number,
    "minimum": _number,
    "exclusiveMaximum": _exclusive,
    "exclusiveMinimum": _exclusive,
    **dict.fromkeys(
        (
            "maxLength",
            "minLength",
            "maxItems",
            "minItems",
            "maxProperties",
            "minProperties",
            "maxContains",
            "minContains",
        ),
        _count,
    ),
    "uniqueItems": _unique,
    "pattern": _pattern,
    "required": _required,
    "dependentRequired": _dependent,
}
"""Keyword -> function that returns the value to write, LOST or IGNORED."""
