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


REFERENCE_STEPS: Final = 1000
"""What following one reference costs of the steps of a validation (see ``patterns``)."""


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


def _ref(validator: Any, ref: Any, value: Any, schema: Any) -> _Errors:
    # Whatever can multiply without bound goes through references.
    if not spend(REFERENCE_STEPS):
        raise _TooCostly
    yield from Draft202012Validator.VALIDATORS["$ref"](validator, ref, value, schema)


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


_Validator: Final[Any] = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {
        "$ref": _ref,
        "anyOf": _any_of,
        "multipleOf": _multiple_of,
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
    },
)
