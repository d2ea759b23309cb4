"""Operations of a document counted by other means than the engine's: a plain parser and two loops."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import yaml

METHODS: Final = frozenset({"get", "put", "post", "delete", "options", "head", "patch", "trace", "query"})
"""Keys of a path item that hold an operation."""


class NotCounted(Exception):
    """The plain parser cannot read the document; the text says why."""


def load_tree(path: Path) -> Any:
    """Return a document as plain values; every scalar of YAML is text.

    Raises:
        NotCounted: It cannot be read or parsed.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        return json.loads(text) if path.suffix == ".json" else yaml.load(text, Loader=yaml.CBaseLoader)  # noqa: S506 - CBaseLoader builds only text, lists and mappings
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise NotCounted(f"{type(error).__name__}: {error}") from error


def is_description(tree: Any) -> bool:
    """Whether a tree is an API description and not a part of one."""
    return isinstance(tree, dict) and ("openapi" in tree or "swagger" in tree)


def version_of(tree: Any) -> str:
    """Return such as ``OpenAPI 3.0`` or ``Swagger 2.0``."""
    for key, name in (("openapi", "OpenAPI"), ("swagger", "Swagger")):
        if key in tree:
            return f"{name} {'.'.join(str(tree[key]).split('.')[:2])}"
    return "neither"


def count_operations(tree: Any, path: Path) -> int:
    """Return how many operations stand under ``paths``; webhooks and callbacks are none.

    Args:
        tree: The document.
        path: Its file; path items may be references into files beside it.
    """
    paths = tree.get("paths") or {}
    items = [_followed(item, tree, path) for name, item in paths.items() if not str(name).startswith("x-")]
    found = 0
    for item in items:
        if isinstance(item, dict):
            found += sum(str(key).lower() in METHODS for key, value in item.items() if value)
            found += len(item.get("additionalOperations") or {})
    return found


def _followed(item: Any, tree: Any, path: Path) -> Any:
    while isinstance(item, dict) and isinstance(item.get("$ref"), str):
        file, _, pointer = item["$ref"].partition("#")
        if file:
            path = path.parent / unquote(file)
            tree = load_tree(path)
        item = tree
        for token in unquote(pointer).split("/")[1:]:
            key = token.replace("~1", "/").replace("~0", "~")
            item = item[int(key)] if isinstance(item, list) else item[key]
    return item
