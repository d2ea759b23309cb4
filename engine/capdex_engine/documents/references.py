"""Where a ``$ref`` leads: within a document, and into its sibling files through a callable."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote, urljoin

from capdex_engine.documents.duplicates import DUPLICATES
from capdex_engine.documents.parse import parse_document
from capdex_engine.documents.pointer import fragment_tokens, look_up, pointer_of, tokens_of
from capdex_engine.documents.shown import shown
from capdex_engine.documents.upgrade import MOVED, upgrade, upgrade_fragments
from capdex_engine.documents.upgrade_schemas import FROM_SWAGGER, ORIGINAL
from capdex_engine.errors import DocumentError

Retrieve = Callable[[str], bytes]
"""URI or absolute file path -> its bytes; raises DocumentError when it is refused."""

MAX_HOPS: Final = 100
"""References to references that are followed."""
MAX_DEPTH: Final = 100
"""Files that lead one to the next, each named by the one before."""
MAX_FILES: Final = 10_000
MAX_BYTES: Final = 256 * 1024 * 1024
"""Of all sibling files of one document together."""

_ANY_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_SHOWN: Final = 200
"""Characters of a reference in a message."""
_TEXT_KEYS: Final = frozenset({"$ref", "summary", "description"})


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a reference leads to."""

    value: Any
    base: str
    """Identity of the file the value stands in; references inside it resolve against this."""
    pointer: str
    """Canonical JSON pointer into that file, so that (base, pointer) identifies the value."""


class References:
    """Resolves references of one document and of the files it refers to.

    Args:
        tree: The root document, already upgraded.
        base: Its identity: URL or absolute path.
        retrieve: Reads other files; ``None`` allows no external reference.
    """

    def __init__(self, tree: dict[str, Any], base: str, retrieve: Retrieve | None) -> None:
        self._root = base
        self._retrieve = retrieve
        self._trees: dict[str, dict[str, Any] | DocumentError] = {base: tree}
        self._anchors: dict[str, dict[str, str]] = {}
        self._identified: dict[str, tuple[str, str]] = {}
        """Absolute URI of a schema with an ``$id`` -> file and pointer."""
        self._media = tree.get(FROM_SWAGGER)
        self._bytes = 0
        self._depths: dict[str, int] = {}

    def tree(self, base: str) -> dict[str, Any]:
        """Return the upgraded tree of one file, read at its first use.

        Raises:
            DocumentError: The file is refused, unreadable, or one too many.
        """
        known = self._trees.get(base)
        if known is None:
            known = self._trees[base] = self._read(base)
        if isinstance(known, DocumentError):
            raise DocumentError(known.message, **known.details)
        return known

    def duplicates(self) -> Iterator[tuple[str, Resolved]]:
        """Yield message and place of each duplicate key in the files that have been read."""
        for base, tree in self._trees.items():
            for message, pointer in tree.get(DUPLICATES, ()) if isinstance(tree, dict) else ():
                yield message, Resolved(None, base, pointer)

    def resolve(self, ref: str, base: str) -> Resolved:
        """Follow ``ref``, which stands in the file ``base``, to a value that is no plain reference.

        A value whose ``$ref`` has siblings (other than texts and extensions) is the end: what the
        siblings mean depends on where it stands.

        Raises:
            DocumentError: Dangling, cyclic or refused; ``pointer`` holds the reference.
        """
        seen: set[tuple[str, str]] = set()
        while True:
            found = self._hop(ref, base)
            identity = (found.base, found.pointer)
            if identity in seen or len(seen) >= MAX_HOPS:
                fault = (
                    "leads back to itself" if identity in seen else f"is one of more than {MAX_HOPS} in a row"
                )
                raise DocumentError(
                    f"The reference {_short(ref)} {fault}.", location=found.base or None, pointer=ref
                )
            seen.add(identity)
            if not _is_plain_reference(found.value):
                return found
            ref, base = found.value["$ref"], found.base

    def _hop(self, ref: str, base: str) -> Resolved:
        file, _, fragment = ref.partition("#")
        try:
            target, prefix = self._locate(file, base)
            if target not in self._trees:
                self._deepen(target, base)
            tree = self.tree(target)
        except DocumentError as error:
            raise DocumentError(
                f"The reference {_short(ref)} cannot be followed: {error.message}",
                location=base or None,
                pointer=ref,
            ) from error
        tokens = self._tokens(tree, target, fragment, prefix)
        if tokens is not None:
            for candidate in _spellings(tree, tokens):
                try:
                    return Resolved(look_up(tree, candidate), target, pointer_of(candidate))
                except LookupError:
                    continue
        raise DocumentError(
            f"The reference {_short(ref)} leads to nothing in {self._shown(target)}.",
            location=base or None,
            pointer=ref,
        )

    def _deepen(self, target: str, base: str) -> None:
        depth = self._depths[target] = self._depths.get(base, 0) + 1
        if depth > MAX_DEPTH:
            raise DocumentError(f"it is more than {MAX_DEPTH} files away from the document.")

    def _shown(self, base: str) -> str:
        return "this document" if base == self._root else shown(base, self._root)

    def _locate(self, file: str, base: str) -> tuple[str, list[str]]:
        """Return the file a reference names and, for a schema named by ``$id``, its place there."""
        target = join(base, file) if file else base
        if target in self._trees:
            return target, []
        for known in [key for key, tree in self._trees.items() if key not in self._anchors]:
            if isinstance(self._trees[known], dict):
                self._names(known)
        place = self._identified.get(target) or self._identified.get(file)
        return (target, []) if place is None else (place[0], tokens_of(place[1]))

    def _tokens(self, tree: dict[str, Any], base: str, fragment: str, prefix: list[str]) -> list[str] | None:
        if not fragment or fragment.startswith(("/", "%2F", "%2f")):
            return prefix + fragment_tokens(fragment)
        place = self._names(base).get("#" + unquote(fragment))
        return None if place is None else tokens_of(place)

    def _names(self, base: str) -> dict[str, str]:
        """Return what ``$id`` and ``$anchor`` name in a file: ``#anchor`` or absolute URI -> pointer."""
        if base not in self._anchors:
            names = self._anchors[base] = dict(_named_places(self.tree(base), base))
            for name, pointer in names.items():
                if not name.startswith("#"):
                    self._identified.setdefault(name, (base, pointer))
        return self._anchors[base]

    def _read(self, base: str) -> dict[str, Any] | DocumentError:
        try:
            if self._retrieve is None:
                raise DocumentError("references to other files are not allowed for this source.")
            if len(self._trees) >= MAX_FILES:
                raise DocumentError(f"the document refers to more than {MAX_FILES} files.")
            data = self._retrieve(base)
            self._bytes += len(data)
            if self._bytes > MAX_BYTES:
                raise DocumentError(f"the files it refers to hold more than {MAX_BYTES} bytes.")
            return self._upgraded(parse_document(data, location=base))
        except DocumentError as error:
            return error

    def _upgraded(self, tree: dict[str, Any]) -> dict[str, Any]:
        if "openapi" not in tree and "swagger" not in tree and isinstance(self._media, dict):
            return upgrade_fragments(tree, self._media)
        upgraded = upgrade(tree)
        if upgraded is not tree:
            upgraded.setdefault(ORIGINAL, tree)
        return upgraded


def join(base: str, ref: str) -> str:
    """Return the absolute identity of ``ref`` (no fragment), which stands in the file ``base``.

    URLs join by RFC 3986; a base that is a file path joins as a path, with ``ref`` percent-decoded.
    """
    if _ANY_URL.match(base) and not ref.startswith("file:"):
        return urljoin(base, ref)
    if _ANY_URL.match(ref) or ref.startswith("//"):
        return ref
    return posixpath.normpath(posixpath.join(posixpath.dirname(base), unquote(ref)))


def _short(ref: str) -> str:
    return ref if len(ref) <= _SHOWN else ref[:_SHOWN] + "…"


def _is_plain_reference(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("$ref"), str)
        and all(key in _TEXT_KEYS or key.startswith("x-") for key in value)
    )


def _spellings(tree: dict[str, Any], tokens: list[str]) -> Iterator[list[str]]:
    """Yield the tokens, and those of the place an upgraded Swagger 2.0 document has moved it to."""
    yield tokens
    for home in MOVED.get(tokens[0], ()) if tokens and "openapi" in tree else ():
        yield [*home, *tokens[1:]]
    if tokens and ORIGINAL in tree:
        yield [ORIGINAL, *tokens]


def _named_places(tree: dict[str, Any], base: str) -> Iterator[tuple[str, str]]:
    pending: list[tuple[Any, tuple[str, ...]]] = [(tree, ())]
    while pending:
        node, tokens = pending.pop()
        if isinstance(node, dict):
            for key in ("$anchor", "$dynamicAnchor"):
                if isinstance(name := node.get(key), str):
                    yield "#" + name, pointer_of(tokens)
            for key in ("$id", "$self"):
                if isinstance(name := node.get(key), str):
                    yield join(base, name.partition("#")[0]), pointer_of(tokens)
            pending.extend((child, (*tokens, key)) for key, child in node.items())
        elif isinstance(node, list):
            pending.extend((child, (*tokens, str(index))) for index, child in enumerate(node))
