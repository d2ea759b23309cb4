"""What changed between two schemas for someone who writes values for them, in plain words.

A change is *breaking* when a value that was right may be wrong now.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from capdex_engine.catalog.digest import DESCRIPTIVE, canonical, digest
from capdex_engine.operation import Schema

MAX_PAIRS: Final = 2000
"""Pairs of schemas that are looked at for one comparison."""
MAX_DEPTH: Final = 12
"""Levels of properties and items that are told one by one; below, a difference is told as one."""
MAX_SHOWN: Final = 8
"""Values of an enum that are named."""
_PREFIX: Final = "#/$defs/"


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that changed for a caller."""

    kind: str
    """``renamed``, ``moved``, ``parameter``, ``body``, ``media type``, ``security``, ``server``,
    ``availability``, ``deprecated``, ``summary``, ``description`` or ``tags``."""
    text: str
    """A sentence without its full stop."""
    breaking: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return ``{"kind", "text", "breaking"}``."""
        return {"kind": self.kind, "text": self.text, "breaking": self.breaking}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a schema stands, for people."""

    kind: str
    what: str
    """Such as ``query parameter status`` or ``body``."""
    path: tuple[str, ...] = ()
    """Properties below; ``[]`` for the items of an array, ``{}`` for the values of a map."""

    def below(self, step: str) -> Place:
        """Return the place of a property, or of items."""
        return Place(self.kind, self.what, (*self.path, step))

    def change(self, said: str, *, breaking: bool) -> Change:
        """Return a change of what stands here."""
        where = f"{self.what} property {'.'.join(self.path).replace('.[]', '[]')}" if self.path else self.what
        return Change(self.kind, f"{where} {said}", breaking)


def schema_changes(
    old: Schema,
    new: Schema,
    place: Place,
    *,
    old_definitions: Mapping[str, Schema],
    new_definitions: Mapping[str, Schema],
) -> list[Change]:
    """Return what changed from one schema to the other; nothing for a change of texts alone.

    Args:
        old: A JSON Schema whose references are ``#/$defs/KEY`` into ``old_definitions``.
        new: The same, into ``new_definitions``.
        place: Where both stand.
        old_definitions: By key.
        new_definitions: By key.
    """
    comparison = _Comparison(old_definitions, new_definitions)
    return list(dict.fromkeys(comparison.compare(old, new, place)))


class _Comparison:
    def __init__(self, old: Mapping[str, Schema], new: Mapping[str, Schema]) -> None:
        self._old = old
        self._new = new
        self._seen: set[tuple[str, str]] = set()

    def compare(self, old: Schema, new: Schema, place: Place) -> Iterator[Change]:
        pair = (digest(old), digest(new))
        if pair in self._seen or len(self._seen) > MAX_PAIRS:
            return
        self._seen.add(pair)
        before, after = flattened(old, self._old), flattened(new, self._new)
        if len(place.path) >= MAX_DEPTH:
            if canonical(before) != canonical(after):
                yield place.change("changed", breaking=True)
            return
        for keywords, compare in _RULES:
            if any(before.get(key) != after.get(key) for key in keywords):
                yield from compare(before, after, place)
        yield from self._below(before, after, place)
        yield from _others(before, after, place)

    def _below(self, before: _Flat, after: _Flat, place: Place) -> Iterator[Change]:
        old, new = before.get("properties", {}), after.get("properties", {})
        for name in old:
            if name in new:
                yield from self.compare(old[name], new[name], place.below(name))
        for key, step in (("items", "[]"), ("additionalProperties", "{}")):
            if isinstance(before.get(key), Mapping) and isinstance(after.get(key), Mapping):
                yield from self.compare(before[key], after[key], place.below(step))
        for key in ("anyOf", "oneOf"):
            yield from self._alternatives(before.get(key), after.get(key), place)

    def _alternatives(self, old: Any, new: Any, place: Place) -> Iterator[Change]:
        """Compare two lists of alternatives: those that stand in both do not count."""
        if not isinstance(old, list) or not isinstance(new, list):
            if old != new:
                breaking = isinstance(new, list)
                yield place.change("has other alternatives" if breaking else "is freer", breaking=breaking)
            return
        before = {_reach(each, self._old): each for each in old}
        after = {_reach(each, self._new): each for each in new}
        gone = [each for mark, each in before.items() if mark not in after]
        come = [each for mark, each in after.items() if mark not in before]
        if len(gone) == len(come) and len(old) == len(new):
            for one, other in zip(gone, come, strict=True):
                yield from self.compare(one, other, place)
            return
        if gone:
            yield place.change(f"lost {_several(len(gone), 'alternative')}", breaking=True)
        if come:
            yield place.change(f"has {_several(len(come), 'alternative')} more", breaking=False)


_Flat = dict[str, Any]


def flattened(schema: Schema, definitions: Mapping[str, Schema]) -> _Flat:
    """Return a schema with its reference followed and its ``allOf`` merged, as far as that can be.

    What two branches say differently stays together under ``allOf``.
    """
    merged: _Flat = {}
    _merge(merged, schema, definitions, frozenset())
    return merged


def _merge(merged: _Flat, schema: Schema, definitions: Mapping[str, Schema], inside: frozenset[str]) -> None:
    if not isinstance(schema, Mapping):
        if not schema:
            merged["not"] = {}
        return
    for key, value in schema.items():
        if key == "$ref" and isinstance(value, str):
            name = value.removeprefix(_PREFIX)
            if name not in inside:
                _merge(merged, definitions.get(name, True), definitions, inside | {name})
        elif key == "allOf" and isinstance(value, list):
            for branch in value:
                _merge(merged, branch, definitions, inside)
        elif key not in DESCRIPTIVE and not key.startswith("x-") and key != "$defs":
            _put(merged, key, value)


def _put(merged: _Flat, key: str, value: Any) -> None:
    known = merged.get(key)
    if key not in merged:
        merged[key] = dict(value) if key == "properties" and isinstance(value, Mapping) else value
    elif key == "required" and isinstance(known, list) and isinstance(value, list):
        merged[key] = list(dict.fromkeys([*known, *value]))
    elif key == "properties" and isinstance(known, dict) and isinstance(value, Mapping):
        for name, schema in value.items():
            both = known.get(name, schema) != schema
            known[name] = {"allOf": [known[name], schema]} if both else schema
    elif known != value:
        merged.setdefault("allOf", []).append({key: value})


def _reach(schema: Schema, definitions: Mapping[str, Schema]) -> bytes:
    """Return a mark that equal alternatives share, however their definitions are called."""
    flat = flattened(schema, definitions)
    properties = flat.get("properties")
    names = sorted(properties) if isinstance(properties, Mapping) else None
    return canonical([{key: value for key, value in flat.items() if key != "properties"}, names])


def _types(before: _Flat, after: _Flat, place: Place) -> Iterator[Change]:
    old, new = _type_set(before), _type_set(after)
    narrower = bool(old - new) and not (old - new <= {"integer"} and "number" in new)
    if old != new:
        yield place.change(f"is {_one_of(new)}; it was {_one_of(old)}", breaking=narrower)


def _type_set(schema: _Flat) -> set[str]:
    declared = schema.get("type")
    types = [declared] if isinstance(declared, str) else declared
    return {str(each) for each in types} if isinstance(types, list) else set(_ANY)


_ANY: Final = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})


def _one_of(types: set[str]) -> str:
    return (
        "of any type"
        if types == _ANY
        else " or ".join(sorted(types, key=lambda each: (each == "null", each)))
    )


def _enums(before: _Flat, after: _Flat, place: Place) -> Iterator[Change]:
    old, new = _values(before), _values(after)
    if old is None or new is None:
        if new is not None:
            yield place.change(f"must be one of {_shown(new)} now", breaking=True)
        elif old is not None:
            yield place.change("takes other values than the listed ones now", breaking=False)
        return
    gone, come = [each for each in old if each not in new], [each for each in new if each not in old]
    if gone:
        yield place.change(f"no longer takes {_shown(gone)}", breaking=True)
    if come:
        yield place.change(f"takes {_shown(come)} too", breaking=False)


def _values(schema: _Flat) -> list[str] | None:
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    return [json.dumps(each, ensure_ascii=False) for each in values] if isinstance(values, list) else None


def _shown(values: list[str]) -> str:
    more = f" and {len(values) - MAX_SHOWN} more" if len(values) > MAX_SHOWN else ""
    return ", ".join(values[:MAX_SHOWN]) + more


def _properties(before: _Flat, after: _Flat, place: Place) -> Iterator[Change]:
    old, new = before.get("properties", {}), after.get("properties", {})
    needed, needs = _required(before), _required(after)
    for name in old:
        if name not in new:
            yield place.below(name).change("is gone", breaking=True)
    for name in new:
        if name not in old:
            must = name in needs
            yield place.below(name).change("is new, and required" if must else "is new", breaking=must)
    for name in sorted(needs - needed):
        if name in old or name not in new:
            yield place.below(name).change("became required", breaking=True)
    for name in sorted(needed - needs):
        if name in new or name not in old:
            yield place.below(name).change("is no longer required", breaking=False)


def _required(schema: _Flat) -> set[str]:
    required = schema.get("required")
    return {str(each) for each in required} if isinstance(required, list) else set()


def _closing(before: _Flat, after: _Flat, place: Place) -> Iterator[Change]:
    old, new = (schema.get("additionalProperties", True) is not False for schema in (before, after))
    if old and not new:
        yield place.change("takes no other properties now", breaking=True)
    elif new and not old:
        yield place.change("takes other properties too", breaking=False)
    elif isinstance(before.get("additionalProperties"), Mapping) != isinstance(
        after.get("additionalProperties"), Mapping
    ):
        tighter = isinstance(after.get("additionalProperties"), Mapping)
        said = "are restricted now" if tighter else "are free now"
        yield place.change(f"has other properties that {said}", breaking=tighter)


def _items(before: _Flat, after: _Flat, place: Place) -> Iterator[Change]:
    old, new = (isinstance(schema.get("items"), Mapping) for schema in (before, after))
    if old != new:
        said = "has items that are restricted now" if new else "has items that are free now"
        yield place.change(said, breaking=new)


def _bound(keyword: str, words: str, *, lower: bool) -> Callable[[_Flat, _Flat, Place], Iterator[Change]]:
    def compare(before: _Flat, after: _Flat, place: Place) -> Iterator[Change]:
        old, new = before.get(keyword), after.get(keyword)
        if new is None:
            yield place.change(f"has no {words} any more (it was {old})", breaking=False)
        elif old is None:
            yield place.change(f"has a {words} of {new} now", breaking=True)
        else:
            both = isinstance(old, (int, float)) and isinstance(new, (int, float))
            tighter = not both or (new > old if lower else new < old)
            yield place.change(f"has a {words} of {new} instead of {old}", breaking=tighter)

    return compare


def _exact(keyword: str, words: str) -> Callable[[_Flat, _Flat, Place], Iterator[Change]]:
    def compare(before: _Flat, after: _Flat, place: Place) -> Iterator[Change]:
        old, new = before.get(keyword), after.get(keyword)
        if new is None:
            yield place.change(f"has no {words} any more (it was {_value(old)})", breaking=False)
        elif old is None:
            yield place.change(f"has a {words} now: {_value(new)}", breaking=True)
        else:
            yield place.change(f"has the {words} {_value(new)} instead of {_value(old)}", breaking=True)

    return compare


def _default(before: _Flat, after: _Flat, place: Place) -> Iterator[Change]:
    old, new = (_value(schema["default"]) if "default" in schema else "none" for schema in (before, after))
    yield place.change(f"has the default {new} instead of {old}", breaking=False)


def _value(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else f"{text[:79]}…"


_Rule = Callable[[_Flat, _Flat, Place], Iterator[Change]]
_RULES: Final[tuple[tuple[tuple[str, ...], _Rule], ...]] = (
    (("type",), _types),
    (("enum", "const"), _enums),
    (("properties", "required"), _properties),
    (("additionalProperties",), _closing),
    (("items",), _items),
    (("minimum",), _bound("minimum", "minimum", lower=True)),
    (("maximum",), _bound("maximum", "maximum", lower=False)),
    (("exclusiveMinimum",), _bound("exclusiveMinimum", "exclusive minimum", lower=True)),
    (("exclusiveMaximum",), _bound("exclusiveMaximum", "exclusive maximum", lower=False)),
    (("minLength",), _bound("minLength", "minimum length", lower=True)),
    (("maxLength",), _bound("maxLength", "maximum length", lower=False)),
    (("minItems",), _bound("minItems", "minimum number of items", lower=True)),
    (("maxItems",), _bound("maxItems", "maximum number of items", lower=False)),
    (("minProperties",), _bound("minProperties", "minimum number of properties", lower=True)),
    (("maxProperties",), _bound("maxProperties", "maximum number of properties", lower=False)),
    (("pattern",), _exact("pattern", "pattern")),
    (("format",), _exact("format", "format")),
    (("multipleOf",), _exact("multipleOf", "step")),
    (("default",), _default),
)
_TOLD: Final = frozenset({key for keys, _ in _RULES for key in keys} | {"anyOf", "oneOf"})


def _others(before: _Flat, after: _Flat, place: Place) -> Iterator[Change]:
    """Tell of keywords that have no words of their own; restrictions, mostly."""
    for key in sorted((before.keys() | after.keys()) - _TOLD):
        if canonical(before.get(key)) != canonical(after.get(key)):
            yield place.change(f"changed in {key}", breaking=key in after)


def _several(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
