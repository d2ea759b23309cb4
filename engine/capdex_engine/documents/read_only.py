"""Which properties a server fills in itself, through references and ``allOf``.

What is found out about a schema is remembered: a large document asks the same of the same schemas many
thousand times, and a hostile one is made so that each answer costs a walk through all the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from capdex_engine.documents.references import References
from capdex_engine.documents.values import text_of
from capdex_engine.errors import DocumentError

_MAX_STEPS: Final = 64
"""Schemas that one is made of, as far as their names are collected."""

_HOLD_NAMES: Final = frozenset({"properties", "allOf"})

_Place = tuple[Any, str]
"""A schema, and the file that it stands in."""
_Key = tuple[int, str]


@dataclass(slots=True)
class _Known:
    """Facts by the identity of schemas, which are kept so that an identity stays their own."""

    kept: list[Any] = field(default_factory=list)
    read_only: dict[_Key, bool] = field(default_factory=dict)
    own_names: dict[_Key, frozenset[str]] = field(default_factory=dict)
    names: dict[_Key, frozenset[str]] = field(default_factory=dict)
    targets: dict[tuple[str, str], _Place | None] = field(default_factory=dict)


class ReadOnly:
    """Tells read-only schemas; give it to ``translate_schema`` for the schemas of one file.

    Args:
        references: Of the document.
        base: Identity of the file that the asked schemas stand in.
        like: Another of the same references, with which it shares what is known.
    """

    def __init__(self, references: References, base: str, like: ReadOnly | None = None) -> None:
        self._references = references
        self._base = base
        self._known: _Known = _Known() if like is None else like._known

    def __call__(self, schema: Any) -> bool:
        """Return whether a property with this schema is read-only."""
        return isinstance(schema, dict) and self._is_read_only(schema, self._base)

    def names(self, schema: Any) -> set[str]:
        """Return the names of the read-only properties that ``schema`` has, however it has them."""
        return set(self._names_of(schema, self._base))

    def demanded(self, schema: Any) -> set[str]:
        """Return the names that ``schema`` requires, however it does, but for its own read-only ones."""
        found: set[str] = set()
        for node, _ in self._layers(schema, self._base):
            names = node.get("required")
            found.update(map(text_of, names if isinstance(names, list) else ()))
        return found - self.names(schema) if found else found

    def _is_read_only(self, schema: Any, base: str) -> bool:
        known = self._known.read_only
        self._known.kept.append(schema)
        came_from: dict[_Key, _Key | None] = {(id(schema), base): None}
        pending: list[_Place] = [(schema, base)]
        while pending:
            node, place = pending.pop()
            key = (id(node), place)
            if known.get(key, node.get("readOnly") is True):
                self._mark(came_from, key)
                return True
            for part in () if key in known else self._parts(node, place):
                inner = (id(part[0]), part[1])
                if isinstance(part[0], dict) and inner not in came_from:
                    came_from[inner] = key
                    self._known.kept.append(part[0])
                    pending.append(part)
        # Nothing that it is made of is read-only; so is nothing of what that is made of.
        known.update(dict.fromkeys(came_from, False))
        return False

    def _mark(self, came_from: dict[_Key, _Key | None], found: _Key | None) -> None:
        while found is not None:
            self._known.read_only[found] = True
            found = came_from[found]

    def _names_of(self, schema: Any, base: str) -> frozenset[str]:
        if isinstance(schema, dict) and _HOLD_NAMES.isdisjoint(schema):
            target = self._target(schema["$ref"], base) if isinstance(schema.get("$ref"), str) else None
            if target is None:
                return frozenset()
            schema, base = target
        key = (id(schema), base)
        if key not in self._known.names:
            layers = self._layers(schema, base)
            self._known.kept.append(schema)
            self._known.names[key] = frozenset(
                name for node, place in layers for name in self._own_names(node, place)
            )
        return self._known.names[key]

    def _own_names(self, node: dict[str, Any], base: str) -> frozenset[str]:
        key = (id(node), base)
        if key not in self._known.own_names:
            properties = node.get("properties")
            members = properties.items() if isinstance(properties, dict) else ()
            self._known.kept.append(node)
            self._known.own_names[key] = frozenset(
                name for name, child in members if isinstance(child, dict) and self._is_read_only(child, base)
            )
        return self._known.own_names[key]

    def _layers(self, schema: Any, base: str) -> list[tuple[dict[str, Any], str]]:
        """Return the schema and all that it is made of by ``$ref`` and ``allOf``, each with its file."""
        layers: list[tuple[dict[str, Any], str]] = []
        pending: list[_Place] = [(schema, base)]
        seen: set[int] = set()
        while pending and len(layers) < _MAX_STEPS:
            node, place = pending.pop()
            if isinstance(node, dict) and id(node) not in seen:
                seen.add(id(node))
                layers.append((node, place))
                pending.extend(part for part in self._parts(node, place) if id(part[0]) not in seen)
        return layers

    def _parts(self, node: dict[str, Any], base: str) -> list[_Place]:
        branches = node.get("allOf")
        parts: list[_Place] = [(branch, base) for branch in (branches if isinstance(branches, list) else ())]
        if isinstance(ref := node.get("$ref"), str) and (target := self._target(ref, base)) is not None:
            parts.append(target)
        return parts

    def _target(self, ref: str, base: str) -> _Place | None:
        place = (base, ref)
        if place not in self._known.targets:
            try:
                found = self._references.resolve(ref, base)
            except DocumentError:
                self._known.targets[place] = None
            else:
                self._known.targets[place] = (found.value, found.base)
        return self._known.targets[place]
