"""Validation errors -> issues that a caller can act on. Values are never repeated in messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, zip_longest
from typing import Any, Final

from jsonschema import ValidationError

from capdex_engine.call.issues import MAX_ISSUES, MAX_TEXT, Issue, issue, nearest, shorten
from capdex_engine.call.schema import unknown_members

MAX_EXPLAINED: Final = 1000
"""Issues that are made of one argument; :data:`MAX_ISSUES` of them are shown."""

_Path = tuple[str | int, ...]


def explain(errors: Iterable[ValidationError], where: str, prefix: _Path = ()) -> list[Issue]:
    """Return the issues of ``errors``; of alternatives that all fail, those of the nearest one."""
    found = (each for error in errors for each in _explain(error, where, prefix))
    return list(islice(found, MAX_EXPLAINED))


def leaves(errors: Iterable[ValidationError]) -> Iterator[ValidationError]:
    """Yield the errors that stand for themselves, those inside alternatives included."""
    for error in errors:
        if error.context:
            yield from leaves(error.context)
        else:
            yield error


def _explain(error: ValidationError, where: str, prefix: _Path) -> list[Issue]:
    path = (*prefix, *error.absolute_path)
    if error.context:
        branch = _nearest_branch(error)
        if branch:
            return explain(branch, where, prefix)
        return [issue(where, path, str(error.validator), _alternatives(error))]
    if error.validator == "required":
        wanted, instance = _given(error)
        missing = islice((name for name in wanted if name not in instance), MAX_EXPLAINED)
        return [issue(where, (*path, name), "required", "is required") for name in missing]
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        return _unknown_members(error, where, path)
    return [issue(where, path, str(error.validator or "false"), _problem(error))]


def _nearest_branch(error: ValidationError) -> list[ValidationError]:
    """Return the errors of the alternative that was probably meant; none when it cannot be told."""
    branches: dict[Any, list[ValidationError]] = {}
    for each in error.context:
        branches.setdefault(each.relative_schema_path[0], []).append(each)
    rated = sorted(branches.values(), key=_distance)
    return rated[0] if rated and not _distance(rated[0])[0] else []


def _distance(errors: list[ValidationError]) -> tuple[bool, int, int]:
    wrong_kind = any(not each.relative_path and each.validator in _KINDS for each in errors)
    wrong_tag = sum(len(each.relative_path) == 1 and each.validator in _TAGS for each in errors)
    return wrong_kind, wrong_tag, len(errors)


_KINDS: Final = {"type", "enum", "const", None}
_TAGS: Final = {"enum", "const"}


def _alternatives(error: ValidationError) -> str:
    kinds = [each for each in leaves(error.context or ()) if each.validator == "type"]
    if kinds and len(kinds) == len(error.context or ()):
        names = dict.fromkeys(name for each in kinds for name in _type_names(each.validator_value))
        return f"must be {' or '.join(names)}, not {kind_of(error.instance)}"
    return f"fits none of the {len(_given(error)[0])} alternatives of its schema"


def _unknown_members(error: ValidationError, where: str, path: _Path) -> list[Issue]:
    schema: Any = error.schema
    known = list(schema.get("properties", {}))
    unknown = unknown_members(_given(error)[1], schema)[:MAX_EXPLAINED]
    # Looking for near names takes long; no more are shown than so many.
    hints = [did_you_mean(name, known) for name in unknown[:MAX_ISSUES]]
    return [
        issue(where, (*path, name), "additionalProperties", "is not known" + hint)
        for name, hint in zip_longest(unknown, hints, fillvalue="")
    ]


def _given(error: ValidationError) -> tuple[Any, Any]:
    """Return the keyword's value and the value checked; both are set once an error is raised."""
    return error.validator_value, error.instance


def did_you_mean(name: str, known: list[str]) -> str:
    """Return a half sentence that names the nearest known name, or those that there are."""
    near = nearest(name, known)
    if near is not None:
        return f"; did you mean {shorten(near)}?"
    if not known:
        return "; none is expected here"
    return f"; known are {shorten(', '.join(known))}"


def kind_of(value: Any) -> str:
    """Return the JSON type of a value, in JSON Schema's words."""
    for kind, name in _KIND_NAMES:
        if isinstance(value, kind):
            return name
    return "null"


_KIND_NAMES: Final[tuple[tuple[type, str], ...]] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (dict, "object"),
    (list, "array"),
)


def _type_names(types: Any) -> list[str]:
    return [types] if isinstance(types, str) else [str(each) for each in types]


def _problem(error: ValidationError) -> str:
    tell = _PROBLEMS.get(str(error.validator))
    if tell is None:
        return f"does not fit the keyword {error.validator}" if error.validator else "is not allowed"
    return tell(error.validator_value, error.instance)


def _listed(values: Any) -> str:
    return shorten(", ".join(shorten(json.dumps(value, ensure_ascii=False)) for value in values[:MAX_TEXT]))


_PROBLEMS: Final[dict[str, Callable[[Any, Any], str]]] = {
    "type": lambda want, value: f"must be {' or '.join(_type_names(want))}, not {kind_of(value)}",
    "enum": lambda want, _: f"must be one of {_listed(want)}",
    "const": lambda want, _: f"must be {_listed([want])}",
    "pattern": lambda want, _: f"must match the pattern {shorten(str(want))}",
    "format": lambda want, _: f"must be a valid {shorten(str(want))}",
    "minimum": lambda want, _: f"must be at least {want}",
    "maximum": lambda want, _: f"must be at most {want}",
    "exclusiveMinimum": lambda want, _: f"must be greater than {want}",
    "exclusiveMaximum": lambda want, _: f"must be less than {want}",
    "multipleOf": lambda want, _: f"must be a multiple of {want}",
    "minLength": lambda want, _: f"must have at least {want} characters",
    "maxLength": lambda want, _: f"must have at most {want} characters",
    "minItems": lambda want, _: f"must have at least {want} items",
    "maxItems": lambda want, _: f"must have at most {want} items",
    "uniqueItems": lambda *_: "must not repeat an item",
    "minProperties": lambda want, _: f"must have at least {want} members",
    "maxProperties": lambda want, _: f"must have at most {want} members",
    "dependentRequired": lambda *_: "lacks a member that another one requires",
    "oneOf": lambda *_: "fits more than one of the alternatives of its schema",
    "not": lambda *_: "fits a schema that it must not fit",
}
