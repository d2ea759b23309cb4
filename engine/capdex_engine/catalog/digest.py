"""Digests over what a caller depends on; texts do not count (SPEC section 1).

A definition's digest covers everything that it reaches, and depends on structure alone: a reference
counts as what it leads to, never by its name. Within a cycle the digests are refined in rounds, each
from those that the references lead to in the round before; nothing is inlined.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from capdex_engine.documents import keywords

DESCRIPTIVE: Final = frozenset(
    {"title", "description", "summary", "example", "examples", "externalDocs", "deprecated", "$comment"}
)
"""Keywords that help a reader and bind nobody."""
MAX_ROUNDS: Final = 200
"""Steps along references by which members of one cycle are told apart."""
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
    """Return ``schema`` without descriptive keywords, at schema positions only, keys sorted.

    Args:
        schema: A JSON Schema; a property *named* ``description`` stays.
        identify: ``$ref`` -> text to put in its place; asked in the order of the sorted schema.
    """
    if not isinstance(schema, Mapping):
        return schema
    kept = {key: _bone(key, value, identify) for key, value in sorted(schema.items()) if _binds(key)}
    return {key: identify(value) if _is_ref(key, value) else value for key, value in kept.items()}


def shape(schema: Any) -> tuple[str, tuple[str, ...]]:
    """Return the digest of ``schema`` with its references blanked, and those in canonical order.

    Both together are what a caller depends on, but for what the references lead to.
    """
    refs: list[str] = []

    def blank(ref: str) -> str:
        refs.append(ref)
        return ""

    own = digest(skeleton(schema, blank))
    return own, tuple(refs)


def map_subschemas(key: str, value: Any, change: Callable[[Any], Any]) -> Any:
    """Return the value of the keyword ``key`` with ``change`` applied to the schemas directly in it."""
    if key in keywords.SCHEMA:
        return change(value)
    if key in keywords.SCHEMA_LISTS or key == keywords.ITEMS:
        return [change(child) for child in value] if isinstance(value, list) else change(value)
    if key in keywords.SCHEMA_MAPS and isinstance(value, Mapping):
        return {name: change(child) for name, child in value.items()}
    return value


def reach_digests(own: Mapping[str, str], edges: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return for each node a digest over all that it reaches, free of the nodes' names.

    Args:
        own: Node -> digest of the node alone.
        edges: Node -> nodes it refers to, in an order that says which reference is which; all in ``own``.
    """
    whole: dict[str, str] = {}
    for members in components(edges, own):
        if len(members) == 1 and members[0] not in edges.get(members[0], ()):
            node = members[0]
            whole[node] = digest([own[node], [whole[target] for target in edges.get(node, ())]])
        else:
            whole.update(_refined(members, own, edges, whole))
    return whole


def _refined(
    members: Sequence[str],
    own: Mapping[str, str],
    edges: Mapping[str, Sequence[str]],
    whole: Mapping[str, str],
) -> dict[str, str]:
    """Return the digests of a strongly connected set; those of all that it refers to are in ``whole``.

    The rounds end when one more tells no further members apart. From then on a digest that covers all
    members' says everything about the set.
    """
    colours = dict.fromkeys(members, "")
    kinds = 0
    for _ in range(min(len(members), MAX_ROUNDS)):
        colours = {
            node: digest([own[node], [_told(target, colours, whole) for target in edges[node]]])
            for node in members
        }
        if len(set(colours.values())) == kinds:
            break
        kinds = len(set(colours.values()))
    shared = digest(sorted(colours.values()))
    return {node: digest([colours[node], shared]) for node in members}


def _told(target: str, colours: Mapping[str, str], whole: Mapping[str, str]) -> list[str]:
    return ["inside", colours[target]] if target in colours else ["outside", whole[target]]


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
    if key in keywords.SCHEMA_MAPS and isinstance(value, Mapping):
        value = dict(sorted(value.items()))
    return map_subschemas(key, value, lambda schema: skeleton(schema, identify))
