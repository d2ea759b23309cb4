"""The components that schemas refer to: each translated once, whoever refers to it.

A definition exists in two modes. In a request, ``required`` does not ask for read-only properties; in a
response it does.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from capdex_engine.catalog.digest import reach_digests, shape
from capdex_engine.catalog.texts import clean_schema
from capdex_engine.documents import ReadOnly, References, Resolved, translate_schema
from capdex_engine.errors import DocumentError
from capdex_engine.operation import Schema

Mode = Literal["request", "response"]
Dialect = Literal["3.0", "3.1"]

MAX_LOOSENED: Final = 2000
"""Definitions kept a second time, without the demand for names that are read-only where they are used."""

_PREFIX: Final = "#/$defs/"
_KEY = re.compile(r"[A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class Translated:
    """A JSON Schema 2020-12 and the definitions that it refers to directly."""

    schema: Schema
    keys: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Table:
    done: dict[str, Translated] = field(default_factory=dict)
    faults: dict[str, DocumentError] = field(default_factory=dict)
    pending: list[str] = field(default_factory=list)
    wanted: set[str] = field(default_factory=set)


class Definitions:
    """All definitions that one document's operations reach.

    Args:
        references: Where a ``$ref`` leads.
        root: Identity of the root document.
    """

    def __init__(self, references: References, root: str) -> None:
        self._references = references
        self._root = root
        self._keys: dict[tuple[str, str], str | DocumentError] = {}
        self._targets: dict[str, Resolved] = {}
        self._by_target: dict[tuple[str, str, frozenset[str]], str] = {}
        self._optional: dict[str, frozenset[str]] = {}
        self._demanded: dict[str, set[str]] = {}
        self._tables: dict[Mode, _Table] = {"request": _Table(), "response": _Table()}
        self._dialects: dict[str, Dialect] = {}
        self._read_only: dict[str, ReadOnly] = {}

    def translate(
        self, schema: Any, base: str, mode: Mode, optional: frozenset[str] = frozenset()
    ) -> Translated:
        """Translate a schema that stands in the file ``base``; it demands none of ``optional``.

        Raises:
            DocumentError: It cannot be translated, or refers directly to nothing.
        """
        keys: set[str] = set()

        def rewrite(ref: str, around: frozenset[str] = frozenset()) -> str:
            key = self._loosened(self._key(ref, base), around)
            keys.add(key)
            return _PREFIX + key

        read_only = self._read_only_in(base) if mode == "request" else None
        translated = translate_schema(
            schema,
            dialect=self._dialect(base),
            rewrite_ref=rewrite,
            is_read_only=read_only,
            read_only_names=None if read_only is None else read_only.names,
            loosened_ref=rewrite,
            optional=optional,
        )
        self._want(keys, mode)
        return Translated(clean_schema(translated), frozenset(keys))

    def complete(self, mode: Mode, keep: Callable[[str, Schema], None]) -> None:
        """Translate everything that is reached, handing each definition to ``keep`` once."""
        table = self._tables[mode]
        while table.pending:
            key = table.pending.pop()
            target = self._targets[key]
            try:
                translated = self.translate(
                    target.value, target.base, mode, self._optional.get(key, frozenset())
                )
            except DocumentError as error:
                table.faults[key] = error
                translated = Translated({})
            keep(key, translated.schema)
            table.done[key] = translated

    def digests(self) -> dict[str, str]:
        """Return definition -> digest over all that it reaches in requests."""
        done = self._tables["request"].done
        shapes = {key: own_shape(translated.schema) for key, translated in done.items()}
        own = {key: digest for key, (digest, _) in shapes.items()}
        return reach_digests(own, {key: targets for key, (_, targets) in shapes.items()})

    def faults(self, mode: Mode) -> dict[str, DocumentError]:
        """Return the definitions that are broken or reach a broken one, with the fault."""
        table = self._tables[mode]
        referrers: dict[str, list[str]] = {}
        for key, translated in table.done.items():
            for target in translated.keys:
                referrers.setdefault(target, []).append(key)
        found = dict(sorted(table.faults.items()))
        pending = list(found)
        while pending:
            broken = pending.pop()
            for key in referrers.get(broken, ()):
                if key not in found:
                    found[key] = found[broken]
                    pending.append(key)
        return found

    def _want(self, keys: Iterable[str], mode: Mode) -> None:
        table = self._tables[mode]
        for key in keys:
            if key not in table.wanted:
                table.wanted.add(key)
                table.pending.append(key)

    def _key(self, ref: str, base: str) -> str:
        place = (base, ref)
        if place not in self._keys:
            try:
                self._keys[place] = self._register(self._references.resolve(ref, base))
            except DocumentError as error:
                self._keys[place] = error
        key = self._keys[place]
        if isinstance(key, DocumentError):
            raise DocumentError(key.message, **key.details)
        return key

    def _loosened(self, key: str, around: frozenset[str]) -> str:
        """Return the definition that demands none of the names ``around``, which may be the same one."""
        if not around:
            return key
        target = self._targets[key]
        if key not in self._demanded:
            self._demanded[key] = self._read_only_in(target.base).demanded(target.value)
        needless = around & self._demanded[key]
        if not needless or len(self._optional) >= MAX_LOOSENED:
            return key
        return self._register(target, needless)

    def _register(self, target: Resolved, optional: frozenset[str] = frozenset()) -> str:
        place = (target.base, target.pointer, optional)
        if place not in self._by_target:
            identity = f"{_relative(target.base, self._root)}#{target.pointer}"
            if optional:
                identity += f" {sorted(optional)}"
            key = self._free_key(target, identity)
            self._by_target[place] = key
            self._targets[key] = target
            if optional:
                self._optional[key] = optional
        return self._by_target[place]

    def _free_key(self, target: Resolved, identity: str) -> str:
        last = target.pointer.rsplit("/", 1)[-1] or posixpath.splitext(posixpath.basename(target.base))[0]
        name = "_".join(_KEY.findall(last.replace("~1", "/").replace("~0", "~"))) or "schema"
        if name not in self._targets:
            return name
        return f"{name}_{sha256(identity.encode()).hexdigest()[:10]}"

    def _dialect(self, base: str) -> Dialect:
        if base not in self._dialects:
            own = self._references.tree(base).get("openapi")
            version = own if isinstance(own, str) else self._references.tree(self._root).get("openapi")
            self._dialects[base] = "3.0" if str(version).startswith("3.0") else "3.1"
        return self._dialects[base]

    def _read_only_in(self, base: str) -> ReadOnly:
        if base not in self._read_only:
            like = next(iter(self._read_only.values()), None)
            self._read_only[base] = ReadOnly(self._references, base, like)
        return self._read_only[base]


def own_shape(schema: Schema) -> tuple[str, tuple[str, ...]]:
    """Return the digest of a translated schema alone, and the definitions it refers to, in order."""
    own, refs = shape(schema)
    return own, tuple(ref.removeprefix(_PREFIX) for ref in refs)


def _relative(base: str, root: str) -> str:
    if base == root:
        return ""
    mine, theirs = urlsplit(base), urlsplit(root)
    if (mine.scheme, mine.netloc) != (theirs.scheme, theirs.netloc):
        return base
    return posixpath.relpath(mine.path or "/", posixpath.dirname(theirs.path) or "/")
