"""Digests over what a caller depends on; texts do not count (SPEC section 1).

A definition's digest covers everything that it reaches. Cycles are one unit: the digests of a strongly
connected set are computed from the set, so that nothing is inlined and each definition is read once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from hashlib import sha256
from typing import Any, Final

from capdex_engine.documents import keywords

DESCRIPTIVE: Final = frozenset(
    {"title", "description", "summary", "example", "examples", "externalDocs", "deprecated", "$comment"}
)
"""Keywords that help a reader and bind nobody."""
_ENCODER: Final = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, check_circular=False
)
_UNORDERED: Final = frozenset({"required", "type", "enum"})


def canonical(value: Any) -> bytes:
    """Return ``value`` as JSON text that does not depend on the order of keys."""
    return _ENCODER.encode(value).encode("utf-8", "surrogatepass")


def digest(value: Any) -> str:
    """Return the SHA-256 of the canonical JSON of ``value`` in hex."""
    return sha256(canonical(value)).hexdigest()


def skeleton(schema: Any, identify: Callable[[str], str]) -> Any:
    """Return ``schema`` without descriptive keywords, at schema positions only.

    Args:
        schema: A JSON Schema; a property *named* ``description`` stays.
        identify: ``$ref`` -> text that stands for its target wherever the documents lie.
    """
    if not isinstance(schema, Mapping):
        return schema
    kept = {key: _bone(key, value, identify) for key, value in schema.items() if _binds(key)}
    return {key: identify(value) if _is_ref(key, value) else value for key, value in kept.items()}


def map_subschemas(key: str, value: Any, change: Callable[[Any], Any]) -> Any:
    """Return the value of the keyword ``key`` with ``change`` applied to the schemas directly in it."""
    if key in keywords.SCHEMA:
        return change(value)
    if key in keywords.SCHEMA_LISTS or key == keywords.ITEMS:
        return [change(child) for child in value] if isinstance(value, list) else change(value)
    if key in keywords.SCHEMA_MAPS and isinstance(value, Mapping):
        return {name: change(child) for name, child in value.items()}
    return value


def reach_digests(own: Mapping[str, str], edges: Mapping[str, Collection[str]]) -> dict[str, str]:
    """Return for each node a digest over the own digests of all nodes that it reaches.

    Args:
        own: Node -> digest of the node alone.
        edges: Node -> nodes it refers to; all of them in ``own``.
    """
    whole: dict[str, str] = {}
    for members in components(edges, own):
        inside = set(members)
        beyond = {whole[target] for node in members for target in edges.get(node, ()) if target not in inside}
        shared = digest([sorted(own[node] for node in members), sorted(beyond)])
        whole.update({node: digest([own[node], shared]) for node in members})
    return whole


def components(edges: Mapping[str, Collection[str]], nodes: Iterable[str]) -> list[list[str]]:
    """Return the strongly connected sets, those that are referred to before those that refer."""
    finder = _Tarjan(edges)
    for node in nodes:
        if node not in finder.index:
            finder.visit(node)
    return finder.found


class _Tarjan:
    """Tarjan's algorithm without recursion: schema graphs are deeper than Python's stack."""

    def __init__(self, edges: Mapping[str, Collection[str]]) -> None:
        self.edges = edges
        self.index: dict[str, int] = {}
        self.low: dict[str, int] = {}
        self.stack: list[str] = []
        self.on_stack: set[str] = set()
        self.found: list[list[str]] = []

    def visit(self, root: str) -> None:
        work = [(root, iter(self._open(root)))]
        while work:
            node, targets = work[-1]
            following = next(targets, None)
            if following is None:
                work.pop()
                self._close(node)
                if work:
                    parent = work[-1][0]
                    self.low[parent] = min(self.low[parent], self.low[node])
            elif following not in self.index:
                work.append((following, iter(self._open(following))))
            elif following in self.on_stack:
                self.low[node] = min(self.low[node], self.index[following])

    def _open(self, node: str) -> Collection[str]:
        self.index[node] = self.low[node] = len(self.index)
        self.stack.append(node)
        self.on_stack.add(node)
        return self.edges.get(node, ())

    def _close(self, node: str) -> None:
        if self.low[node] != self.index[node]:
            return
        members: list[str] = []
        while not members or members[-1] != node:
            members.append(self.stack.pop())
        self.on_stack.difference_update(members)
        self.found.append(members)


def _binds(key: Any) -> bool:
    return key not in DESCRIPTIVE and not (isinstance(key, str) and key.startswith("x-"))


def _is_ref(key: str, value: Any) -> bool:
    return key == "$ref" and isinstance(value, str)


def _bone(key: str, value: Any, identify: Callable[[str], str]) -> Any:
    if key in _UNORDERED and isinstance(value, list):
        return sorted(value, key=canonical)
    return map_subschemas(key, value, lambda schema: skeleton(schema, identify))
