"""The documented leniency, and no more.

- Path, query, header and cookie values: text that is a JSON number, ``true`` or ``false`` is taken
  where the schema wants a number or boolean, and a number or boolean where it wants text.
- Everywhere: an object or array sent as JSON text, where the schema does not admit that text.

Whatever fits its schema as it stands is never touched.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from jsonschema import ValidationError

from capdex_engine.call.explain import leaves

_ROUNDS: Final = 4
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d{0,400})(?:\.\d{1,400})?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_NOTHING: Final = object()


def repair(
    value: Any, check: Callable[[Any], list[ValidationError]], *, scalars: bool
) -> tuple[Any, list[ValidationError]]:
    """Return the value with what leniency allows repaired, and the errors that remain.

    Args:
        value: Any JSON value; it is not altered.
        check: Returns the errors of a value.
        scalars: Whether numbers and booleans may stand as text and the other way round.
    """
    errors = check(value)
    for _ in range(_ROUNDS):
        repairs = _repairs(errors, scalars)
        if not repairs:
            break
        value = _replaced(value, repairs)
        errors = check(value)
    return value, errors


def scalar_text(value: bool | int | float | str) -> str:
    """Return a scalar as text: ``true``, ``3``, ``0.5``."""
    return value if isinstance(value, str) else json.dumps(value)


def _repairs(errors: Iterable[ValidationError], scalars: bool) -> dict[tuple[str | int, ...], Any]:
    found: dict[tuple[str | int, ...], Any] = {}
    for leaf in leaves(errors):
        path = tuple(leaf.absolute_path)
        better = _NOTHING if path in found else _better(leaf, scalars)
        if better is not _NOTHING:
            found[path] = better
    return found


def _better(error: ValidationError, scalars: bool) -> Any:
    value: Any = error.instance
    wanted: Any = error.validator_value
    if error.validator == "type":
        types = {wanted} if isinstance(wanted, str) else set(wanted)
        return _of_type(value, types, scalars)
    if scalars and error.validator in {"enum", "const"} and isinstance(value, bool | int | float | str):
        options = wanted if error.validator == "enum" else [wanted]
        return next((each for each in options if _same_text(each, value)), _NOTHING)
    return _NOTHING


def _of_type(value: Any, types: set[str], scalars: bool) -> Any:
    if isinstance(value, str) and "string" not in types:
        better = from_json_text(value, types) if types & {"object", "array"} else _NOTHING
        return _from_text(value, types) if better is _NOTHING and scalars else better
    if scalars and "string" in types and isinstance(value, bool | int | float):
        return scalar_text(value)
    return _NOTHING


def from_json_text(text: str, types: set[str]) -> Any:
    """Return the object or array that ``text`` is, if it is one and of these types; else a marker."""
    if text.lstrip()[:1] not in {"{", "["}:
        return _NOTHING
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return _NOTHING
    return value if ("object" if isinstance(value, dict) else "array") in types else _NOTHING


def decoded_object(value: Any) -> Any:
    """Return the object that ``value`` is as JSON text; anything else as it is."""
    if not isinstance(value, str):
        return value
    found = from_json_text(value, {"object"})
    return value if found is _NOTHING else found


def _from_text(text: str, types: set[str]) -> Any:
    if "boolean" in types and text in {"true", "false"}:
        return text == "true"
    if types & {"integer", "number"} and _NUMBER.fullmatch(text):
        number = json.loads(text)
        return number if abs(number) != math.inf else _NOTHING
    return _NOTHING


def _same_text(option: Any, value: bool | int | float | str) -> bool:
    return (
        isinstance(option, bool | int | float | str)
        and isinstance(option, str) != isinstance(value, str)
        and scalar_text(option) == scalar_text(value)
    )


def _replaced(value: Any, repairs: Mapping[tuple[str | int, ...], Any]) -> Any:
    """Return the value with what stands at these paths replaced; each collection is copied once at most."""
    holder = [value]
    copies: dict[tuple[str | int, ...], Any] = {}
    for path, better in sorted(repairs.items(), key=lambda item: len(item[0])):
        node: Any = holder
        for depth in range(len(path) + 1):
            step: Any = path[depth - 1] if depth else 0
            if depth == len(path):
                node[step] = better
            else:
                if path[:depth] not in copies:
                    found = node[step]
                    node[step] = copies[path[:depth]] = (
                        list(found) if isinstance(found, list) else dict(found)
                    )
                node = copies[path[:depth]]
    return holder[0]
