"""Swagger 2.0 schemas to those of OpenAPI 3.0, sharing whatever does not change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from capdex_engine.documents.keywords import ITEMS, SCHEMA, SCHEMA_LISTS, SCHEMA_MAPS
from capdex_engine.documents.pointer import fragment_tokens, look_up

ORIGINAL: Final = "x-capdex-swagger"
"""Where an upgraded document keeps its original tree, if a reference needs it."""
MAX_DEPTH: Final = 60
"""Levels of schemas that are upgraded; deeper ones are left, for translate_schema refuses them."""

_HOMES: Final = (
    ("#/definitions/", "#/components/schemas/"),
    ("#/parameters/", "#/components/parameters/"),
    ("#/responses/", "#/components/responses/"),
    ("#/securityDefinitions/", "#/components/securitySchemes/"),
)


FROM_SWAGGER: Final = "x-capdex-from-swagger"
"""On an upgraded document: the ``consumes`` and ``produces`` that hold for all of it."""


class RefKeeper:
    """Leaves references as they are: for a file of fragments, where nothing moves."""

    needs_original = False

    def rewrite(self, ref: str) -> str:
        """Return the reference."""
        return ref


class RefRewriter(RefKeeper):
    """Rewrites references within one document to where the upgrade puts their targets."""

    def __init__(self, tree: dict[str, Any]) -> None:
        self._tree = tree
        self.needs_original = False
        """Whether some reference leads into the original tree."""

    def rewrite(self, ref: str) -> str:
        """Return the reference for the upgraded document; references to other files as they are."""
        for old, new in _HOMES:
            if ref.startswith(old) and (old == "#/definitions/" or ref.count("/") == old.count("/")):
                return new + ref[len(old) :]
        if not ref.startswith("#/") or not self._stands(ref):
            return ref
        self.needs_original = True
        return f"#/{ORIGINAL}{ref[1:]}"

    def _stands(self, ref: str) -> bool:
        try:
            look_up(self._tree, fragment_tokens(ref[1:]))
        except LookupError:
            return False
        return True


def upgrade_schema(schema: Any, refs: RefKeeper, depth: int = 0) -> Any:
    """Return the schema in 3.0's terms; the same object where nothing changes."""
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return schema
    changes: dict[str, Any] = _own_changes(schema, refs)
    for keyword, value in schema.items():
        changed = _below(keyword, value, lambda child: upgrade_schema(child, refs, depth + 1))
        if changed is not value:
            changes[keyword] = changed
    return {**schema, **changes} if changes else schema


def _own_changes(schema: dict[str, Any], refs: RefKeeper) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if isinstance(ref := schema.get("$ref"), str) and (rewritten := refs.rewrite(ref)) != ref:
        changes["$ref"] = rewritten
    if isinstance(name := schema.get("discriminator"), str):
        changes["discriminator"] = {"propertyName": name}
    if schema.get("x-nullable") is True and "nullable" not in schema:
        changes["nullable"] = True
    if schema.get("type") == "file":
        changes.update(type="string", format="binary")
    return changes


def _below(keyword: str, value: Any, change: Callable[[Any], Any]) -> Any:
    """Return the keyword's value with the schemas in it changed; the same object if none is."""
    if keyword in SCHEMA or (keyword == ITEMS and not isinstance(value, list)):
        return change(value)
    if keyword in SCHEMA_LISTS or keyword == ITEMS:
        return _changed_list(value, change)
    if keyword in SCHEMA_MAPS and isinstance(value, dict):
        changed = {name: new for name, old in value.items() if (new := change(old)) is not old}
        return {**value, **changed} if changed else value
    return value


def _changed_list(value: Any, change: Callable[[Any], Any]) -> Any:
    if not isinstance(value, list):
        return value
    changed = [change(child) for child in value]
    return changed if any(new is not old for new, old in zip(changed, value, strict=True)) else value
