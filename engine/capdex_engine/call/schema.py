"""One operation's schemas, compiled once."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any, Final

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend
from referencing.exceptions import Unresolvable

from capdex_engine.call.formats import FORMATS
from capdex_engine.call.patterns import StepBudget, matches, spend
from capdex_engine.operation import Schema

MAX_ERRORS: Final = 1000
"""Errors looked at per value."""

MAX_DEPTH: Final = 64
"""Levels of objects and arrays in any argument."""


KEYWORD_STEPS: Final = 200
"""What looking at one keyword costs of the steps of a call (see ``patterns``), a few microseconds."""

MEMBER_STEPS: Final = 4
"""What looking at one member of what a keyword lists costs."""

REFERENCE_STEPS: Final = 1000
"""What following one reference costs."""


class TooDeep(ValueError):
    """A value is nested too deeply to be checked."""


class UnusableSchema(ValueError):
    """A schema refers to something that does not exist."""


class _TooCostly(Exception):
    """The steps of a validation are used up."""


class SchemaChecker:
    """Checks values against the schemas of one operation; safe to share between threads.

    Args:
        definitions: What ``#/$defs/KEY`` references in those schemas mean.
    """

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self.definitions = definitions
        self._root = _Validator({"$defs": dict(definitions)}, format_checker=FORMATS)

    def errors(self, schema: Schema, value: Any) -> list[ValidationError]:
        """Return why ``value`` does not fit ``schema``, at most :data:`MAX_ERRORS` errors.

        What cannot be checked at reasonable cost passes, and the upstream decides: a schema that leads
        nowhere but to itself, alternatives that multiply beyond all bounds, a pattern that cannot be
        compiled.

        Raises:
            TooDeep: The value is nested too deeply.
            UnusableSchema: A reference leads nowhere.
        """
        errors: list[ValidationError] = []
        try:
            with StepBudget():
                found = self._root.evolve(schema=schema).iter_errors(value)
                errors.extend(itertools.islice(found, MAX_ERRORS))
        except RecursionError:
            if depth(value) > MAX_DEPTH // 4:
                raise TooDeep("is nested too deeply") from None
        except (re.error, _TooCostly):
            pass
        except Unresolvable as error:
            raise UnusableSchema(f"its schema refers to {error.ref!r}, which does not exist") from None
        return errors

    def property_schema(self, schema: Schema | None, name: str) -> Schema:
        """Return the schema of one property, looked up through references and ``allOf``; True if unknown."""
        for part in self.parts(schema):
            found = part.get("properties", {}).get(name)
            if found is not None:
                return found  # type: ignore[no-any-return]
        return True

    def merged(self, schema: Schema | None) -> dict[str, Any]:
        """Return the keywords of a schema and of what it is made of, its own first."""
        keywords: dict[str, Any] = {}
        for part in reversed(self.parts(schema)):
            keywords.update(part)
        return keywords

    def parts(self, schema: Schema | None) -> list[Mapping[str, Any]]:
        """Return the object schemas that ``schema`` is made of: itself, its references, its ``allOf``."""
        found: list[Mapping[str, Any]] = []
        waiting: list[Any] = [schema]
        while waiting and len(found) < 100:
            part = waiting.pop(0)
            if not isinstance(part, Mapping) or any(part is seen for seen in found):
                continue
            found.append(part)
            waiting += part.get("allOf", [])
            if isinstance(part.get("$ref"), str):
                waiting.append(self.definitions.get(_key(part["$ref"])))
        return found


def depth(value: Any) -> int:
    """Return how many levels of objects and arrays ``value`` has; 0 for a scalar."""
    level, items = 0, [value]
    while items := [item for item in items if isinstance(item, dict | list)]:
        level += 1
        items = [child for item in items for child in (item.values() if isinstance(item, dict) else item)]
    return level


def _key(ref: str) -> str:
    return ref.rpartition("/")[2].replace("~1", "/").replace("~0", "~")


_Errors = Iterator[ValidationError]
_Keyword = Callable[[Any, Any, Any, Any], _Errors]


def _pattern(validator: Any, pattern: Any, value: Any, _: Any) -> _Errors:
    if isinstance(value, str) and isinstance(pattern, str) and not matches(pattern, value):
        yield ValidationError("does not match")


def _pattern_properties(validator: Any, patterns: Any, value: Any, _: Any) -> _Errors:
    if isinstance(value, dict):
        for pattern, schema in patterns.items():
            for name, member in value.items():
                if matches(pattern, name):
                    yield from validator.descend(member, schema, path=name, schema_path=pattern)


def unknown_members(value: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    """Return the members that neither ``properties`` nor ``patternProperties`` names."""
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    return [name for name in value if name not in known and not any(matches(each, name) for each in patterns)]


def _additional_properties(validator: Any, allowed: Any, value: Any, schema: Any) -> _Errors:
    if not isinstance(value, dict):
        return
    extra = unknown_members(value, schema)
    if isinstance(allowed, Mapping):
        for name in extra:
            yield from validator.descend(value[name], allowed, path=name)
    elif allowed is False and extra:
        yield ValidationError("has unknown members")


def _required(_: Any, names: Any, value: Any, __: Any) -> _Errors:
    """Find all that is missing in one error: each would be explained by all of them."""
    if isinstance(value, dict) and any(name not in value for name in names):
        yield ValidationError("lacks members")


def _unique_items(_: Any, wanted: Any, value: Any, __: Any) -> _Errors:
    if wanted and isinstance(value, list) and len({_frozen(item) for item in value}) < len(value):
        yield ValidationError("repeats an item")


def _frozen(value: Any) -> Any:
    """Return what two values have in common exactly when they are equal JSON: 1 and 1.0, not 1 and true."""
    if isinstance(value, dict):
        return frozenset((name, _frozen(member)) for name, member in value.items())
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    return (bool, value) if isinstance(value, bool) else value


def _any_of(validator: Any, branches: Any, value: Any, schema: Any) -> _Errors:
    """Look for a branch that fits, each up to its first error, before any error is collected."""
    if not any(validator.evolve(schema=branch).is_valid(value) for branch in branches):
        yield from Draft202012Validator.VALIDATORS["anyOf"](validator, branches, value, schema)


def _multiple_of(_: Any, step: Any, value: Any, __: Any) -> _Errors:
    """Compare as decimals: 19.99 is a multiple of 0.01, which no binary fraction of it is."""
    if isinstance(value, int | float) and not isinstance(value, bool) and _decimal(value) % _decimal(step):
        yield ValidationError(f"must be a multiple of {step}")


def _decimal(number: int | float) -> Fraction:
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


def _paid(keyword: str, check: _Keyword) -> _Keyword:
    """Return the keyword's function so that it takes what it costs from the steps of the call."""
    fixed = REFERENCE_STEPS if keyword in {"$ref", "$dynamicRef"} else KEYWORD_STEPS

    def paid(validator: Any, wanted: Any, value: Any, schema: Any) -> _Errors:
        members = len(wanted) if isinstance(wanted, list | dict) else 0
        members += len(value) if isinstance(value, list | dict) else 0
        if not spend(fixed + MEMBER_STEPS * members):
            raise _TooCostly
        return check(validator, wanted, value, schema)

    return paid


_KEYWORDS: Final[Mapping[str, _Keyword]] = {
    **Draft202012Validator.VALIDATORS,
    "anyOf": _any_of,
    "multipleOf": _multiple_of,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "required": _required,
    "uniqueItems": _unique_items,
}
_Validator: Final[Any] = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator, {keyword: _paid(keyword, check) for keyword, check in _KEYWORDS.items()}
)
