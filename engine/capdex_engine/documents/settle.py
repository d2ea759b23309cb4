"""What several keywords of one schema decide together, once each of them is translated."""

from __future__ import annotations

from collections.abc import Set
from typing import Any, Final

from capdex_engine.documents.enums import settle_enum
from capdex_engine.documents.values import ANNOTATIONS

_NULL: Final[dict[str, Any]] = {"type": "null"}
_COMPOSITION: Final = frozenset({"$ref", "allOf", "anyOf", "oneOf", "not", "if"})
_BOUNDS: Final = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))
_SELECTORS: Final = frozenset({"required", "not", "title", "description"})
"""Branches of ``oneOf`` made of these alone mean "exactly one of these fields"."""


def settle(schema: dict[str, Any], result: dict[str, Any], optional: Set[str]) -> bool:
    """Finish ``result``, the translated keywords of ``schema``, in place.

    Args:
        schema: The schema before its translation.
        result: Its translated keywords.
        optional: Names of read-only properties, which are not required.

    Returns:
        Whether it accepts more than the letter of the schema does.
    """
    _settle_file(schema, result)
    _settle_bounds(schema, result)
    _settle_items(result)
    _settle_conditions(result)
    _settle_dynamic_ref(result)
    loosened = [
        settle_enum(result),
        _settle_patterns(schema, result),
        _settle_one_of(result),
        _settle_required(result, optional),
    ]
    return any(loosened)


def with_null(result: dict[str, Any]) -> dict[str, Any]:
    """Return the translated schema so that it accepts null too (``nullable`` of 3.0)."""
    if not _COMPOSITION.isdisjoint(result):
        return _null_beside(result)
    if "const" in result:
        result["enum"] = [result.pop("const")]
    if "enum" in result and not any(value is None for value in result["enum"]):
        result["enum"] = [*result["enum"], None]
    if "type" in result:
        types = result["type"] if isinstance(result["type"], list) else [result["type"]]
        result["type"] = list(dict.fromkeys([*types, "null"]))
    return result


def _null_beside(result: dict[str, Any]) -> dict[str, Any]:
    texts = {key: value for key, value in result.items() if key in ANNOTATIONS}
    rest = {key: value for key, value in result.items() if key not in ANNOTATIONS}
    branches = rest["anyOf"] if rest.keys() == {"anyOf"} else [rest]
    return {**texts, "anyOf": branches if _NULL in branches else [*branches, dict(_NULL)]}


def _settle_file(schema: dict[str, Any], result: dict[str, Any]) -> None:
    if schema.get("type") == "file":
        result.setdefault("format", "binary")


def _settle_bounds(schema: dict[str, Any], result: dict[str, Any]) -> None:
    for exclusive, bound in _BOUNDS:
        if schema.get(exclusive) is True and bound in result:
            result[exclusive] = result.pop(bound)


def _settle_items(result: dict[str, Any]) -> None:
    if isinstance(result.get("items"), list):
        result["prefixItems"] = result.pop("items")


def _settle_patterns(schema: dict[str, Any], result: dict[str, Any]) -> bool:
    """Open a closed object of which a pattern is lost: its properties would be refused."""
    patterns = schema.get("patternProperties")
    if not isinstance(patterns, dict) or len(result.get("patternProperties", ())) == len(patterns):
        return False
    result.pop("additionalProperties", None)
    result.pop("unevaluatedProperties", None)
    return True


def _settle_conditions(result: dict[str, Any]) -> None:
    if "if" not in result:
        result.pop("then", None)
        result.pop("else", None)


def _settle_one_of(result: dict[str, Any]) -> bool:
    if "oneOf" not in result or all(_is_selector(branch) for branch in result["oneOf"]):
        return False
    branches = result.pop("oneOf")
    if "anyOf" not in result:
        result["anyOf"] = branches
    else:
        result["allOf"] = [*result.get("allOf", ()), {"anyOf": branches}]
    return True


def _is_selector(branch: Any) -> bool:
    return (
        isinstance(branch, dict)
        and branch.keys() <= _SELECTORS
        and bool(branch.get("required") or branch.get("not"))
    )


def _settle_dynamic_ref(result: dict[str, Any]) -> None:
    if "$dynamicRef" in result:
        target = result.pop("$dynamicRef")
        result.setdefault("$ref", target)


def _settle_required(result: dict[str, Any], optional: Set[str]) -> bool:
    if "required" not in result:
        return False
    names = result.pop("required")
    kept = [name for name in names if name not in optional]
    if kept:
        result["required"] = kept
    return len(kept) < len(names)
