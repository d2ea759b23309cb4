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

from capdex_engine.catalog.digest import digest, reach_digests, skeleton
from capdex_engine.catalog.texts import clean_schema
from capdex_engine.documents import ReadOnly, References, Resolved, translate_schema
from capdex_engine.errors import DocumentError
from capdex_engine.operation import Schema

Mode = Literal["request", "response"]
Dialect = Literal["3.0", "3.1"]

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
        self._by_target: dict[tuple[str, str], str] = {}
        self._identities: dict[str, str] = {}
        self._tables: dict[Mode, _Table] = {"request": _Table(), "response": _Table()}
        self._dialects: dict[str, Dialect] = {}
        self._read_only: dict[str, ReadOnly] = {}

    def translate(self, schema: Any, base: str, mode: Mode) -> Translated:
        """Translate a schema that stands in the file ``base``.

        Raises:
            DocumentError: It cannot be translated, or refers directly to nothing.
        """
        keys: set[str] = set()

        def rewrite(ref: str) -> str:
            key = self._key(ref, base)
            keys.add(key)
            return _PREFIX + key

        read_only = self._read_only_in(base) if mode == "request" else None
        translated = translate_schema(
            schema,
            dialect=self._dialect(base),
            rewrite_ref=rewrite,
            is_read_only=read_only,
            read_only_names=None if read_only is None else read_only.names,
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
                translated = self.translate(target.value, target.base, mode)
            except DocumentError as error:
                table.faults[key] = error
                translated = Translated({})
            keep(key, translated.schema)
            table.done[key] = translated

    def digests(self) -> dict[str, str]:
        """Return definition -> digest over all that it reaches in requests."""
        done = self._tables["request"].done
        own = {key: self.own_digest(translated.schema) for key, translated in done.items()}
        own = {key: digest([self._identities[key], value]) for key, value in own.items()}
        return reach_digests(own, {key: translated.keys for key, translated in done.items()})

    def own_digest(self, schema: Schema) -> str:
        """Return the digest of a translated schema alone, without what it refers to."""
        return digest(skeleton(schema, self._identify))

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

    def _register(self, target: Resolved) -> str:
        place = (target.base, target.pointer)
        if place not in self._by_target:
            identity = f"{_relative(target.base, self._root)}#{target.pointer}"
            key = self._free_key(target, identity)
            self._by_target[place] = key
            self._targets[key] = target
            self._identities[key] = identity
        return self._by_target[place]

    def _free_key(self, target: Resolved, identity: str) -> str:
        last = target.pointer.rsplit("/", 1)[-1] or posixpath.splitext(posixpath.basename(target.base))[0]
        name = "_".join(_KEY.findall(last.replace("~1", "/").replace("~0", "~"))) or "schema"
        if name not in self._targets:
            return name
        return f"{name}_{sha256(identity.encode()).hexdigest()[:10]}"

    def _identify(self, ref: str) -> str:
        return self._identities.get(ref.removeprefix(_PREFIX), ref)

    def _dialect(self, base: str) -> Dialect:
        if base not in self._dialects:
            own = self._references.tree(base).get("openapi")
            version = own if isinstance(own, str) else self._references.tree(self._root).get("openapi")
            self._dialects[base] = "3.0" if str(version).startswith("3.0") else "3.1"
        return self._dialects[base]

    def _read_only_in(self, base: str) -> ReadOnly:
        if base not in self._read_only:
            self._read_only[base] = ReadOnly(self._references, base)
        return self._read_only[base]


def _relative(base: str, root: str) -> str:
    if base == root:
        return ""
    mine, theirs = urlsplit(base), urlsplit(root)
    if (mine.scheme, mine.netloc) != (theirs.scheme, theirs.netloc):
        return base
    return posixpath.relpath(mine.path or "/", posixpath.dirname(theirs.path) or "/")
