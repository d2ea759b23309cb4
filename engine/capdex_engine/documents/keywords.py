"""Which schema keywords hold schemas; everything else in a schema is a value or a name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

SCHEMA: Final = frozenset(
    {
        "additionalProperties",
        "propertyNames",
        "contains",
        "not",
        "if",
        "then",
        "else",
        "unevaluatedItems",
        "unevaluatedProperties",
        "contentSchema",
    }
)
"""Keywords whose value is one schema."""
SCHEMA_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
"""Keywords whose value is a list of schemas."""
SCHEMA_MAPS: Final = frozenset(
    {"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}
)
"""Keywords whose value maps names to schemas."""
ITEMS: Final = "items"
"""One schema, or a list of them before 2020-12."""


def subschemas(schema: Any) -> Iterator[Any]:
    """Yield the values at the schema positions directly below ``schema``, whatever they are."""
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        if keyword in SCHEMA:
            yield value
        elif keyword in SCHEMA_LISTS or keyword == ITEMS:
            yield from value if isinstance(value, list) else (value,)
        elif keyword in SCHEMA_MAPS and isinstance(value, dict):
            yield from value.values()


def depth_of(schema: Any) -> int:
    """Return how many levels of schemas stand below ``schema``; 0 where there is none."""
    depth = -1
    level = [schema]
    while level:
        depth += 1
        level = [child for node in level for child in subschemas(node)]
    return depth


def refs_in(schema: Any) -> set[str]:
    """Return the ``$ref`` strings at schema positions; a property named ``$ref`` is a name, no reference.

    ``$dynamicRef`` counts as ``$ref``, as :func:`~capdex_engine.documents.translate_schema` reads it.
    """
    found: set[str] = set()
    pending = [schema]
    while pending:
        node = pending.pop()
        if not isinstance(node, dict):
            continue
        found.update(ref for key in ("$ref", "$dynamicRef") if isinstance(ref := node.get(key), str))
        pending.extend(subschemas(node))
    return found
