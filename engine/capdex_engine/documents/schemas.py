"""Schemas of OpenAPI 3.0 and 3.1, as they really are, to JSON Schema 2020-12.

What validation cannot use (an unknown keyword, a wrong value, a pattern that Python cannot read) is
left out, so that every result passes the meta-schema. Leaving something out accepts more values;
where it would accept fewer (below ``not`` and ``if``) the whole keyword goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal

from capdex_engine.documents.keywords import ITEMS, SCHEMA, SCHEMA_LISTS, SCHEMA_MAPS, depth_of
from capdex_engine.documents.patterns import python_pattern
from capdex_engine.documents.settle import settle, with_null
from capdex_engine.documents.values import ANNOTATIONS, IGNORED, LOST, VALUES
from capdex_engine.errors import DocumentError

Dialect = Literal["3.0", "3.1"]
RewriteRef = Callable[[str], str]
LoosenedRef = Callable[[str, frozenset[str]], str]
IsReadOnly = Callable[[Any], bool]
ReadOnlyNames = Callable[[Any], Iterable[str]]

MAX_SCHEMA_DEPTH: Final = 48
"""Levels of schemas in schemas; jsonschema's own recursion gives up at about 90."""

_MOST_LEVELS_MADE: Final = 4
"""Levels that one schema may become, when ``nullable`` and ``oneOf`` are written out beside others."""

_HOLD_PROPERTIES: Final = frozenset({"properties", "allOf", "$ref"})

_Names = frozenset[str]
_NONE: Final[_Names] = frozenset()


def translate_schema(
    schema: Any,
    *,
    dialect: Dialect,
    rewrite_ref: RewriteRef,
    is_read_only: IsReadOnly | None = None,
    read_only_names: ReadOnlyNames | None = None,
    loosened_ref: LoosenedRef | None = None,
    optional: frozenset[str] = frozenset(),
) -> dict[str, Any] | bool:
    """Return the schema as JSON Schema 2020-12; the input is not changed, data values are shared.

    ``oneOf`` becomes ``anyOf``, since branches that overlap are everywhere and a discriminator is no
    validation keyword, except where each branch only demands or forbids fields.

    Args:
        schema: A schema object, or what stands in its place (``None`` accepts everything).
        dialect: ``3.0`` reads ``nullable`` and ignores what stands beside ``$ref``.
        rewrite_ref: Gets each reference at a schema position, returns the one to write.
        is_read_only: Tells whether a property's schema is read-only, so that it is not required;
            ``None`` leaves ``required`` as it is (for responses).
        read_only_names: Names of the read-only properties of a schema that stands in ``allOf`` by
            reference; see :class:`~capdex_engine.documents.ReadOnly`.
        loosened_ref: In place of ``rewrite_ref`` where properties around the reference are read-only:
            gets their names too, which its target must not demand.
        optional: Names of read-only properties around the schema itself.

    Raises:
        DocumentError: Schemas nested deeper than 48 levels; or from ``rewrite_ref``.
    """
    translator = _Translator(dialect, rewrite_ref, is_read_only, read_only_names, loosened_ref)
    result = translator.schema(schema, 0, optional)
    if translator.deepest * _MOST_LEVELS_MADE > MAX_SCHEMA_DEPTH and depth_of(result) > MAX_SCHEMA_DEPTH:
        raise too_deep()
    return result


def too_deep() -> DocumentError:
    """Return the error for a schema beyond the bound."""
    return DocumentError(f"A schema is nested deeper than {MAX_SCHEMA_DEPTH} levels.")


def _is_nullable(schema: dict[str, Any]) -> bool:
    # The extension is Swagger 2.0's; files of fragments carry it, which no upgrade has seen.
    return schema.get("nullable") is True or schema.get("x-nullable") is True


class _Translator:
    def __init__(
        self,
        dialect: Dialect,
        rewrite_ref: RewriteRef,
        is_read_only: IsReadOnly | None,
        read_only_names: ReadOnlyNames | None,
        loosened_ref: LoosenedRef | None,
    ) -> None:
        self._is_30 = dialect == "3.0"
        self._rewrite = rewrite_ref
        self._is_read_only = is_read_only
        self._read_only_names = read_only_names
        self._loosened = loosened_ref
        self.deepest = 0
        """Levels of the deepest schema so far."""
        self._losses = 0
        """Constraints left out so far."""

    def schema(self, schema: Any, depth: int, optional: _Names) -> dict[str, Any] | bool:
        """Translate one schema; ``optional`` names the read-only properties known from around it."""
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            self._losses += 1
            return {}
        if depth > MAX_SCHEMA_DEPTH:
            raise too_deep()
        self.deepest = max(self.deepest, depth)
        if self._is_30 and isinstance(schema.get("$ref"), str):
            return self._reference(schema, optional)
        optional |= self._read_only(schema)
        result: dict[str, Any] = {}
        for keyword, value in schema.items():
            translated = self._keyword(keyword, value, depth, optional)
            if translated is LOST:
                self._losses += 1
            elif translated is not IGNORED:
                result[keyword] = translated
        self._losses += settle(schema, result, optional)
        return with_null(result) if self._is_30 and _is_nullable(schema) else result

    def _reference(self, schema: dict[str, Any], optional: _Names) -> dict[str, Any]:
        """Translate a reference of 3.0: its siblings have no meaning but for texts and ``nullable``."""
        result: dict[str, Any] = {"$ref": self._written(schema["$ref"], optional)}
        for keyword, value in schema.items():
            if keyword in ANNOTATIONS and (kept := ANNOTATIONS[keyword](value)) is not IGNORED:
                result[keyword] = kept
        return with_null(result) if _is_nullable(schema) else result

    def _written(self, ref: str, optional: _Names) -> str:
        if optional and self._loosened is not None:
            return self._loosened(ref, optional)
        return self._rewrite(ref)

    def _keyword(self, keyword: str, value: Any, depth: int, optional: _Names) -> Any:
        if keyword in VALUES:
            return VALUES[keyword](value)
        if keyword in {"$ref", "$dynamicRef"}:
            return self._written(value, optional) if isinstance(value, str) else LOST
        if keyword in SCHEMA or keyword == ITEMS:
            return self._single(keyword, value, depth)
        if keyword in SCHEMA_LISTS:
            return self._list(value, depth, optional if keyword in {"allOf", "anyOf"} else _NONE)
        if keyword in SCHEMA_MAPS:
            return self._map(keyword, value, depth)
        return IGNORED

    def _single(self, keyword: str, value: Any, depth: int) -> Any:
        if keyword == ITEMS and isinstance(value, list):
            return self._list(value, depth, _NONE)
        if not isinstance(value, dict | bool):
            return LOST
        before = self._losses
        translated = self.schema(value, depth + 1, _NONE)
        return LOST if keyword in {"not", "if"} and self._losses > before else translated

    def _list(self, value: Any, depth: int, optional: _Names) -> Any:
        branches = [value] if isinstance(value, dict) else value
        if not isinstance(branches, list) or not branches:
            return LOST
        return [self.schema(branch, depth + 1, optional) for branch in branches]

    def _map(self, keyword: str, value: Any, depth: int) -> Any:
        if not isinstance(value, dict):
            return LOST
        result: dict[str, Any] = {}
        for name, child in value.items():
            key = python_pattern(name) if keyword == "patternProperties" else name
            if key is None:
                self._losses += 1
            else:
                result[key] = self.schema(child, depth + 1, _NONE)
        return result

    def _read_only(self, schema: dict[str, Any]) -> _Names:
        """Return the names of read-only properties of the schema and of its ``allOf`` branches."""
        if self._is_read_only is None or _HOLD_PROPERTIES.isdisjoint(schema):
            return _NONE
        names: set[str] = set()
        pending: list[Any] = [schema]
        while pending:
            node = pending.pop()
            if not isinstance(node, dict):
                continue
            if "$ref" in node and self._read_only_names is not None:
                names.update(self._read_only_names(node))
            properties = node.get("properties")
            if isinstance(properties, dict):
                names.update(name for name, child in properties.items() if self._is_read_only(child))
            branches = node.get("allOf")
            pending.extend(branches if isinstance(branches, list) else ())
        return frozenset(names)
