"""What else a source or an operation is called, so that rules keep their meaning while catalogs change.

A folder's documents become the engine's sources ``team.odd`` and ``team.petstore``, and ``team`` when
there is one; an operation gets its source's name in front as soon as another source has its name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from capdex_engine.catalog.names import Nameable, assign_names, built_name, clean_name, lone_name
from capdex_engine.operation import Operation


class Aliases:
    """The names of one catalog's sources and operations.

    Args:
        sources: Engine source -> every name that it goes by; one that is absent has its own alone.
        operations: All of the catalog, those that are kept out too.
    """

    def __init__(
        self, sources: Mapping[str, Sequence[str]] | None = None, operations: Iterable[Operation] = ()
    ) -> None:
        self._sources = sources or {}
        self._operations = operations

    def of_source(self, source: str) -> Sequence[str]:
        """Return the source's names: the engine's, the configured one, and that with the file's name."""
        return self._sources.get(source) or (source,)

    def of_operation(self, operation: Operation) -> Sequence[str]:
        """Return the operation's names: its own, its operationId, and those with and without a prefix."""
        given = (operation.operation_id,) if operation.operation_id else ()
        return (operation.name, *given, *self._former.get(operation.name, ()))

    @cached_property
    def _former(self) -> dict[str, tuple[str, ...]]:
        """Name -> those that it would have were there other sources, or no other operations."""
        by_source: defaultdict[str, list[Operation]] = defaultdict(list)
        for operation in self._operations:
            by_source[operation.source].append(operation)
        former: dict[str, tuple[str, ...]] = {}
        for source, operations in by_source.items():
            items = [_nameable(operation) for operation in operations]
            columns = [assign_names(items), *(_prefixed(items, name) for name in self.of_source(source))]
            for operation, item, *names in zip(operations, items, *columns, strict=True):
                former[operation.name] = tuple({*names, lone_name(item)} - {operation.name})
        return former


def _prefixed(items: Sequence[Nameable], source: str) -> list[str]:
    """Return the names in a catalog where another source has all the same."""
    own = [replace(item, source=source) for item in items]
    twins = [replace(item, source=f"not {source}") for item in items]
    return assign_names([*own, *twins])[: len(items)]


def _nameable(operation: Operation) -> Nameable:
    """Return what names are made from, with what is slow done: to clean an id, or to build one."""
    identity = clean_name(operation.operation_id or "") or built_name(operation.method, operation.path)
    return Nameable(operation.source, operation.key, identity, operation.method, operation.path)
