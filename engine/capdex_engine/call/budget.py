"""Cuts an answer to its byte budget: whole items of its largest arrays first, then text."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from capdex_engine.call.issues import pointer_of

_ROUNDS: Final = 16
"""Levels of arrays inside arrays that are cut."""
_WORTH: Final = 64
"""Bytes of an array below which saying what was omitted costs more than is freed."""
_Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """A body that fits its budget."""

    body: Any
    omitted: tuple[dict[str, Any], ...] = ()
    """``{"pointer", "kept", "total"}`` for every array that lost items."""
    truncated: bool = False
    """Whether it was cut as text."""


def size(value: Any) -> int:
    """Return the bytes of a value as compact JSON in UTF-8."""
    return _bytes(_json(value))


def cut(body: Any, limit: int) -> Cut:
    """Cut a body to ``limit`` bytes of JSON, what is said about omitted items included.

    Arrays keep at least one item; the heaviest array is cut first, then what is heaviest inside.

    Args:
        body: A JSON value; its arrays may be shortened in place.
        limit: Bytes; what is no array item can be cut to nothing, but not below.
    """
    text = _json(body)
    excess = _bytes(text) - limit
    if excess <= 0:
        return Cut(body)
    if isinstance(body, dict) and body.keys() == {"base64"} and isinstance(body["base64"], str):
        kept = max(0, limit - size({"base64": ""})) // 4 * 4
        return Cut({"base64": body["base64"][:kept]}, truncated=True)
    if isinstance(body, dict | list):
        omitted = _cut_arrays(body, excess)
        if omitted is not None:
            return Cut(body, omitted)
    return Cut(cut_text(body if isinstance(body, str) else text, limit), truncated=True)


def cut_text(text: str, limit: int) -> str:
    """Return the longest beginning of ``text`` whose JSON string has at most ``limit`` bytes."""
    return text[: _longest(min(len(text), limit), lambda length: size(text[:length]) <= limit)]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _longest(most: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number from 0 to ``most`` that fits (0 if none does)."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _cut_arrays(body: Any, excess: int) -> tuple[dict[str, Any], ...] | None:
    """Free ``excess`` bytes; return what was omitted, or None when arrays cannot free as much."""
    omitted: list[dict[str, Any]] = []
    left_whole: set[int] = set()
    for _ in range(_ROUNDS):
        arrays = _cuttable(body, left_whole)
        for weight, path, items in arrays:
            if excess <= 0:
                break
            entry, freed = _shortened(path, items, weight, excess)
            if entry is None:
                left_whole.add(id(items))
            else:
                omitted.append(entry)
                excess -= freed
        if excess <= 0 or not arrays:
            break
    return tuple(omitted) if excess <= 0 else None


def _shortened(path: _Path, items: list[Any], weight: int, excess: int) -> tuple[dict[str, Any] | None, int]:
    """Shorten an array if that is worth saying; return what to say, and the bytes freed by both."""
    entry: dict[str, Any] = {"pointer": pointer_of(path), "kept": len(items), "total": len(items)}
    cost = size(entry) + 1
    kept, freed = _kept(items, weight, excess + cost)
    if freed <= cost:
        return None, 0
    del items[kept:]
    return {**entry, "kept": kept}, freed - cost


def _kept(items: list[Any], weight: int, excess: int) -> tuple[int, int]:
    """Return how many items may stay, at least one, for ``excess`` bytes to go, and the bytes that go."""
    left = size(items[0]) + 2
    for kept in range(1, len(items)):
        more = size(items[kept]) + 1
        if weight - left - more < excess:
            return kept, weight - left
        left += more
    return len(items), 0


def _cuttable(value: Any, left_whole: set[int]) -> list[tuple[int, _Path, list[Any]]]:
    """Return weight, path and items of the arrays to shorten, heaviest first, none inside another.

    Args:
        value: The JSON value they are in.
        left_whole: ``id`` of the arrays that are not worth it; their items are looked into.
    """
    found: list[tuple[int, _Path, list[Any]]] = []
    waiting: list[tuple[_Path, Any]] = [((), value)]
    while waiting:
        path, here = waiting.pop()
        if isinstance(here, dict):
            waiting += [((*path, key), member) for key, member in here.items()]
        elif isinstance(here, list) and (len(here) < 2 or id(here) in left_whole):
            waiting += [((*path, index), item) for index, item in enumerate(here)]
        elif isinstance(here, list) and (weight := size(here)) > _WORTH:
            found.append((weight, path, here))
    return sorted(found, key=lambda each: -each[0])
