"""Which properties a server fills in itself, through references and ``allOf``."""

from __future__ import annotations

from typing import Any, Final

from capdex_engine.documents.references import References
from capdex_engine.documents.values import text_of
from capdex_engine.errors import DocumentError

_MAX_STEPS: Final = 200


class ReadOnly:
    """Tells read-only schemas; give it to ``translate_schema`` for the schemas of one file.

    Args:
        references: Of the document.
        base: Identity of the file that the asked schemas stand in.
    """

    def __init__(self, references: References, base: str) -> None:
        self._references = references
        self._base = base

    def __call__(self, schema: Any) -> bool:
        """Return whether a property with this schema is read-only."""
        return any(node.get("readOnly") is True for node, _ in self._layers(schema, self._base))

    def names(self, schema: Any) -> set[str]:
        """Return the names of the read-only properties that ``schema`` has, however it has them."""
        found: set[str] = set()
        for node, base in self._layers(schema, self._base):
            properties = node.get("properties")
            if isinstance(properties, dict):
                ask = self if base == self._base else ReadOnly(self._references, base)
                found.update(name for name, child in properties.items() if ask(child))
        return found

    def demanded(self, schema: Any) -> set[str]:
        """Return the names that ``schema`` requires, however it does, but for its own read-only ones."""
        found: set[str] = set()
        for node, _ in self._layers(schema, self._base):
            names = node.get("required")
            found.update(map(text_of, names if isinstance(names, list) else ()))
        return found - self.names(schema) if found else found

    def _layers(self, schema: Any, base: str) -> list[tuple[dict[str, Any], str]]:
        """Return the schema and all that it is made of by ``$ref`` and ``allOf``, each with its file."""
        layers: list[tuple[dict[str, Any], str]] = []
        pending = [(schema, base)]
        seen: set[int] = set()
        while pending and len(layers) < _MAX_STEPS:
            node, place = pending.pop()
            if not isinstance(node, dict) or id(node) in seen:
                continue
            seen.add(id(node))
            layers.append((node, place))
            branches = node.get("allOf")
            pending.extend((branch, place) for branch in (branches if isinstance(branches, list) else ()))
            if isinstance(ref := node.get("$ref"), str):
                pending.extend(self._target(ref, place))
        return layers

    def _target(self, ref: str, base: str) -> list[tuple[Any, str]]:
        try:
            found = self._references.resolve(ref, base)
        except DocumentError:
            return []
        return [(found.value, found.base)]
