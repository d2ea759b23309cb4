"""Keys that a mapping has more than once: nothing of them vanishes without a word.

Two path items of one path, and two ``paths``, are put together; of everything else the last one counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from capdex_engine.documents.pointer import pointer_of

DUPLICATES: Final = "x-capdex-duplicates"
"""On the root of a document with such keys: ``[[message, pointer], ...]``."""

_METHODS: Final = frozenset(
    {"get", "put", "post", "delete", "options", "head", "patch", "trace", "query", "additionalOperations"}
)
_LAST: Final = "The key {} stands here more than once; only the last one counts."
_BOTH: Final = "The key {} stands here more than once; what stands below each of them is put together."
_SHOWN: Final = 60


@dataclass(slots=True)
class _Held:
    """A mapping with such keys; it is kept so that its ``id`` stays its own."""

    node: dict[str, Any]
    keys: dict[str, str] = field(default_factory=dict)
    """Key -> what became of it."""


class Duplicates:
    """Remembers duplicate keys while a tree is built from its leaves upwards."""

    def __init__(self) -> None:
        self._held: dict[int, _Held] = {}
        self._made: dict[int, dict[str, Any]] = {}

    def mapping(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Return the mapping of these pairs; the ``object_pairs_hook`` of :mod:`json`."""
        node = dict(pairs)
        if len(node) == len(pairs):
            return node
        node.clear()
        for key, value in pairs:
            self.put(node, key, value)
        return node

    def put(self, node: dict[str, Any], key: str, value: Any) -> None:
        """Set a key of a mapping that is being built."""
        if key not in node:
            node[key] = value
            return
        together = _belong_together(key, node[key], value)
        self._note(node).keys[key] = _BOTH if together else _LAST
        node[key] = self._merged(node[key], value) if together else value

    def rows(self, tree: Any) -> list[list[str]]:
        """Return message and pointer of each such key in ``tree``, in no order.

        Keys inside a value that is lost have no place of their own.
        """
        found: list[list[str]] = []
        seen: set[int] = set()
        pending: list[tuple[Any, Any]] = [(tree, None)] if self._held else []
        while pending:
            node, link = pending.pop()
            if id(node) in seen or not isinstance(node, dict | list):
                continue
            seen.add(id(node))
            if id(node) in self._held:
                found += _rows(self._held[id(node)], link)
            children = node.items() if isinstance(node, dict) else enumerate(node)
            pending.extend((child, (link, key)) for key, child in children)
        return found

    def _note(self, node: dict[str, Any]) -> _Held:
        return self._held.setdefault(id(node), _Held(node))

    def _merged(self, first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
        # A new mapping, since YAML's aliases may share the first one with other places.
        merged = self._made.get(id(first))
        if merged is None:
            merged = dict(first)
            self._made[id(merged)] = merged
            self._move(first, merged)
        for key, value in second.items():
            self.put(merged, key, value)
        self._move(second, merged)
        return merged

    def _move(self, old: dict[str, Any], new: dict[str, Any]) -> None:
        if (held := self._held.get(id(old))) is not None:
            self._note(new).keys.update(held.keys)


def _belong_together(key: str, first: Any, second: Any) -> bool:
    if not isinstance(first, dict) or not isinstance(second, dict):
        return False
    if key.startswith("/"):
        return not _METHODS.isdisjoint(first) and not _METHODS.isdisjoint(second)
    return key == "paths" and all(name.startswith(("/", "x-")) for each in (first, second) for name in each)


def _rows(held: _Held, link: Any) -> list[list[str]]:
    tokens: list[str] = []
    while link is not None:
        link, token = link
        tokens.append(str(token))
    tokens.reverse()
    return [[text.format(_shown(key)), pointer_of([*tokens, key])] for key, text in held.keys.items()]


def _shown(key: str) -> str:
    return repr(key if len(key) <= _SHOWN else key[:_SHOWN] + "…")
