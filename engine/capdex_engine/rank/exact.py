"""Names in a query: exact names, operationIds and ``METHOD /path`` are found, not ranked."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from capdex_engine.operation import Operation
from capdex_engine.text import STOP_WORDS, identifier_key

_ENDPOINT: Final = re.compile(r"\b([A-Z]+)\s+((?:\w+:/)?/\S*)", re.IGNORECASE)
"""Any word before a path may be a method: documents hold more than HTTP's own."""
_CHUNK: Final = re.compile(r"[^\s,;:!?\"'`()\[\]<>]+")
_IDENTIFIER: Final = re.compile(r"[a-z0-9][A-Z]|\w[_./:-]+\w")
"""What marks a word as somebody's identifier: an inner capital or separator."""
_BETWEEN: Final = STOP_WORDS | {"call", "use", "run", "then"}
"""Words that may stand between names without making the query a sentence."""


@dataclass(frozen=True, slots=True)
class Named:
    """Operations that a query names; positions, each once."""

    whole: tuple[int, ...] = ()
    """The query is their name and nothing else."""
    among: tuple[int, ...] = ()
    """Their names stand among other words, in this order."""


class ExactNames:
    """Looks names up under :func:`~capdex_engine.text.identifier_key`, any casing and separators.

    Where several fit so, those that are written just like it count, and the others are ``among``.
    """

    def __init__(self, operations: Sequence[Operation]) -> None:
        self._operations = operations
        self._literal: dict[str, list[int]] = defaultdict(list)
        self._names: dict[str, list[int]] = defaultdict(list)
        self._paths: dict[tuple[str, int], list[tuple[tuple[str | None, ...], int]]] = defaultdict(list)
        for row, operation in enumerate(operations):
            names = {name for name in (operation.name, operation.operation_id) if name}
            for name in names:
                self._literal[name].append(row)
            for key in {identifier_key(name) for name in names}:
                self._names[key].append(row)
            if operation.method and operation.path:
                parts = _template(operation.path)
                for method in (operation.method, ""):
                    self._paths[method, len(parts)].append((parts, row))

    def find(self, query: str, may: NDArray[np.bool_] | None = None) -> Named:
        """Return what ``query`` names: by the whole of it, and by words that look like identifiers.

        Args:
            query: The request.
            may: Which operations there are for who asks, shape (operations,); all when ``None``.
        """
        whole = self._whole(query.strip().strip("\"'`"), may)
        among = dict.fromkeys(row for row in self._among(query, may) if row not in whole)
        return Named(tuple(whole), tuple(among))

    def _whole(self, query: str, may: NDArray[np.bool_] | None) -> Sequence[int]:
        if endpoint := _ENDPOINT.fullmatch(query):
            return self._endpoint(endpoint[1].upper(), endpoint[2], may)
        if query.startswith("/") and " " not in query:
            return self._endpoint("", query, may)
        return _those(self._literal.get(query, ()), may) or self._called(query, may)

    def _called(self, name: str, may: NDArray[np.bool_] | None) -> Sequence[int]:
        key = identifier_key(name)
        return _those(self._names.get(key, ()), may) if key else ()

    def _among(self, query: str, may: NDArray[np.bool_] | None) -> Iterable[int]:
        for endpoint in _ENDPOINT.finditer(query):
            yield from self._endpoint(endpoint[1].upper(), endpoint[2].rstrip(".,;:!?\"'`)"), may)
        chunks = [c.strip(".") for c in _CHUNK.findall(query)]
        only_names = all(self._called(c, may) or c.casefold() in _BETWEEN for c in chunks)
        for chunk in chunks:
            if only_names or _IDENTIFIER.search(chunk):
                yield from self._called(chunk, may)

    def _endpoint(self, method: str, path: str, may: NDArray[np.bool_] | None) -> list[int]:
        """Return an endpoint's operations: by its path to the letter, its template, or a concrete path."""
        wanted = _template(path)
        known = self._paths.get((method, len(wanted)), ())
        rows = [(parts, row) for parts, row in known if may is None or may[row]]
        literal = [row for _, row in rows if self._operations[row].path == path]
        if literal:
            return literal
        same = [row for parts, row in rows if parts == wanted]
        if same:
            return same
        fitting = [(parts.count(None), row) for parts, row in rows if _fits(wanted, parts)]
        return [row for holes, row in fitting if holes == min(fitting)[0]]


def _those(rows: Sequence[int], may: NDArray[np.bool_] | None) -> Sequence[int]:
    return rows if may is None else [row for row in rows if may[row]]


def _template(path: str) -> tuple[str | None, ...]:
    """Return the segments, case folded; ``None`` for one that holds a placeholder, whatever its name."""
    bare = path if "{" in path.partition("?")[2] else path.partition("?")[0]
    return tuple(None if "{" in s else s.casefold() for s in bare.strip("/").split("/"))


def _fits(concrete: tuple[str | None, ...], template: tuple[str | None, ...]) -> bool:
    return all(t is None or t == c for c, t in zip(concrete, template, strict=True))
