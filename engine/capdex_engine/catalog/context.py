"""What the readers of one document share: references, definitions, remarks."""

from __future__ import annotations

from typing import Any, Final

from capdex_engine.catalog.definitions import Definitions
from capdex_engine.catalog.report import Remark
from capdex_engine.documents import References, Resolved, shown
from capdex_engine.errors import DocumentError

MAX_WARNINGS: Final = 500
"""Remarks that are kept of one document."""


class Reading:
    """One document being read.

    Args:
        tree: The root document, upgraded.
        references: Its references.
        base: Its identity.
    """

    def __init__(self, tree: dict[str, Any], references: References, base: str) -> None:
        self.tree = tree
        self.references = references
        self.base = base
        self.definitions = Definitions(references, base)
        self.warnings: list[Remark] = []

    def root(self, key: str) -> Resolved:
        """Return a top-level field of the root document, ``None`` where it is missing."""
        return Resolved(self.tree.get(key), self.base, f"/{key}")

    def child(self, parent: Resolved, key: str | int) -> Resolved:
        """Return a field or an item of ``parent``, with a reference in its place followed.

        Raises:
            DocumentError: The reference is dangling, cyclic or refused.
        """
        return self.follow(plain_child(parent, key))

    def follow(self, found: Resolved) -> Resolved:
        """Return what ``found`` refers to, or itself where it is no reference.

        A description beside the reference takes the place of the target's.
        """
        reference = found.value
        if not isinstance(reference, dict) or not isinstance(reference.get("$ref"), str):
            return found
        target = self.references.resolve(reference["$ref"], found.base)
        description = reference.get("description")
        if isinstance(description, str) and isinstance(target.value, dict):
            return Resolved({**target.value, "description": description}, target.base, target.pointer)
        return target

    def warn(self, message: str, at: Resolved) -> None:
        """Remember a remark about the place ``at``."""
        if len(self.warnings) < MAX_WARNINGS:
            self.warnings.append(Remark(message, self.place(at)))
        elif len(self.warnings) == MAX_WARNINGS:
            self.warnings.append(Remark(f"There are more than {MAX_WARNINGS} remarks; the rest is left out."))

    def place(self, found: Resolved) -> str:
        """Return the JSON pointer of ``found``, with its file where that is not the root document."""
        return found.pointer if found.base == self.base else f"{shown(found.base, self.base)}#{found.pointer}"


def plain_child(parent: Resolved, key: str | int) -> Resolved:
    """Return a field or an item of ``parent`` as it stands; ``None`` as value where it is missing."""
    value = parent.value
    token = key
    if isinstance(key, str) and ("/" in key or "~" in key):
        token = key.replace("~", "~0").replace("/", "~1")
    found: Any = None
    if isinstance(value, dict):
        found = value.get(key)
    elif isinstance(value, list) and isinstance(key, int):
        found = value[key]
    return Resolved(found, parent.base, f"{parent.pointer}/{token}")


def flaw(message: str, at: Resolved) -> DocumentError:
    """Return the error for a fault of an operation's description at ``at``."""
    return DocumentError(message, location=at.base or None, pointer=at.pointer)
