"""Swagger 2.0 to the shapes of OpenAPI 3.0.

Nothing is copied that does not change, and the input is left as it is. What 3.0 cannot express is
kept under extension keys:

``x-capdex-delimiter``
    On a parameter or an encoding object: the text between the items of an array, where no style
    of 3.0 has it (``tsv``; ``ssv`` and ``pipes`` outside the query).
``x-capdex-swagger``
    On the document: the original tree, only where a reference leads to a place in it that has
    moved (bundlers write ``#/paths/~1a/get/responses/200/schema``).
``x-capdex-from-swagger``
    On the document: its ``consumes`` and ``produces``, which hold in sibling files too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from capdex_engine.documents.pointer import fragment_tokens, look_up
from capdex_engine.documents.upgrade_parts import (
    METHODS,
    body_of,
    is_body_part,
    plain_parameter,
    response_of,
    security_scheme,
    servers,
    words,
)
from capdex_engine.documents.upgrade_schemas import (
    FROM_SWAGGER,
    ORIGINAL,
    RefKeeper,
    RefRewriter,
    upgrade_schema,
)
from capdex_engine.documents.values import text_of

MOVED: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "definitions": (("components", "schemas"),),
    "parameters": (("components", "parameters"),),
    "responses": (("components", "responses"),),
    "securityDefinitions": (("components", "securitySchemes"),),
}
"""First token of a pointer into a Swagger 2.0 document -> where the upgrade has put it."""

_MAX_HOPS: Final = 50
_FRAGMENT_LEVELS: Final = 4
"""How deep a file of fragments is searched: ``{parameters: {groups: {...}}}`` and the like."""
_DROPPED: Final = frozenset(
    {
        "swagger",
        "host",
        "basePath",
        "schemes",
        "consumes",
        "produces",
        "paths",
        "definitions",
        "parameters",
        "responses",
        "securityDefinitions",
    }
)


_WITH_CONTENT: Final = frozenset({"200", "201", "202", "203", "206"})


def upgrade(tree: dict[str, Any]) -> dict[str, Any]:
    """Return a Swagger 2.0 document in the shapes of OpenAPI 3.0; any other tree as it is.

    Faults in single operations are left in place for whoever reads the operation.
    """
    if "openapi" in tree or not str(tree.get("swagger", "")).startswith("2"):
        return tree
    media = {key: words(tree.get(key)) for key in ("consumes", "produces")}
    return _Upgrade(tree, media, RefRewriter(tree)).document()


def upgrade_fragments(tree: dict[str, Any], media: Mapping[str, Any]) -> dict[str, Any]:
    """Return a file of path items, parameters, responses or schemas in the shapes of 3.0.

    Such files belong to a multi-file Swagger 2.0 document and carry no version of their own; what
    each mapping is, is told by its keys. Everything keeps its place.

    Args:
        tree: The file.
        media: The document's ``consumes`` and ``produces``.
    """
    found = _Upgrade(tree, media, RefKeeper()).fragment(tree)
    return found if isinstance(found, dict) else tree


class _Upgrade:
    """One document on its way."""

    def __init__(self, tree: dict[str, Any], media: Mapping[str, Any], refs: RefKeeper) -> None:
        self._tree = tree
        self._refs = refs
        self._consumes = words(media.get("consumes"))
        self._produces = words(media.get("produces"))

    def document(self) -> dict[str, Any]:
        tree = self._tree
        result: dict[str, Any] = {
            "openapi": "3.0.4",
            "info": tree.get("info"),
            "servers": servers(tree, tree),
            "paths": {
                path: self._path_item(item) if not path.startswith("x-") else item
                for path, item in _items(tree.get("paths"))
            },
            "components": self._components(),
            **{key: value for key, value in tree.items() if key not in _DROPPED and key != "info"},
        }
        result[FROM_SWAGGER] = {"consumes": self._consumes, "produces": self._produces}
        if self._refs.needs_original:
            result[ORIGINAL] = tree
        return result

    def fragment(self, node: Any, depth: int = 0) -> Any:
        """Upgrade whatever ``node`` is, by its keys; a mapping of names is searched for more."""
        if not isinstance(node, dict) or depth > _FRAGMENT_LEVELS:
            return node
        if any(isinstance(node.get(method), dict) for method in METHODS):
            return self._path_item(node)
        if isinstance(node.get("in"), str) and isinstance(node.get("name"), str):
            return self._parameter(node)
        if isinstance(node.get("responses"), dict) and "operationId" in node:
            return self._operation(node, [])
        if isinstance(node.get("schema"), dict) and "description" in node:
            return self._response(node, self._produces)
        return self._schema(node) if _is_schema(node) else self._nested(node, depth)

    def _nested(self, node: dict[str, Any], depth: int) -> dict[str, Any]:
        return {key: self.fragment(value, depth + 1) for key, value in node.items()}

    def _components(self) -> dict[str, Any]:
        tree = self._tree
        return {
            "schemas": {name: self._schema(value) for name, value in _items(tree.get("definitions"))},
            "parameters": {name: self._parameter(value) for name, value in _items(tree.get("parameters"))},
            "responses": {
                name: self._response(value, self._produces) for name, value in _items(tree.get("responses"))
            },
            "securitySchemes": {
                name: security_scheme(value) for name, value in _items(tree.get("securityDefinitions"))
            },
        }

    def _path_item(self, item: Any) -> Any:
        target = self._follow(item)
        if not isinstance(item, dict) or not isinstance(target, dict):
            return item
        if target is not item:
            item = {**target, **{key: value for key, value in item.items() if key != "$ref"}}
        shared = self._parameters(item.get("parameters"))
        result: dict[str, Any] = {}
        for key, value in item.items():
            if key in METHODS:
                result[key] = self._operation(value, shared) if isinstance(value, dict) else value
            elif key != "parameters":
                result[key] = value
        if plain := [self._parameter(parameter) for parameter in shared if not is_body_part(parameter)]:
            result["parameters"] = plain
        return result

    def _operation(self, operation: dict[str, Any], shared: list[Any]) -> dict[str, Any]:
        own = self._parameters(operation.get("parameters"))
        consumes = words(operation["consumes"]) if "consumes" in operation else self._consumes
        produces = words(operation["produces"]) if "produces" in operation else self._produces
        result = {
            key: value
            for key, value in operation.items()
            if key not in {"consumes", "produces", "schemes", "parameters", "responses"}
        }
        result["parameters"] = [self._parameter(value) for value in own if not is_body_part(value)]
        body = body_of(_effective_body(shared, own), consumes, self._schema)
        if body is not None:
            result["requestBody"] = body
        result["responses"] = {
            status: self._response(
                value, produces, says_type="produces" in operation and str(status) in _WITH_CONTENT
            )
            for status, value in _items(operation.get("responses"))
        }
        if words(operation.get("schemes")):
            result["servers"] = servers(self._tree, operation)
        return result

    def _parameters(self, values: Any) -> list[Any]:
        """Return the parameters with local references to body parts, or to moved places, replaced."""
        return [self._followed_parameter(value) for value in values] if isinstance(values, list) else []

    def _followed_parameter(self, value: Any) -> Any:
        target = self._follow(value)
        shared = isinstance(value, dict) and str(value.get("$ref", "")).startswith("#/parameters/")
        return value if shared and not is_body_part(target) else target

    def _parameter(self, parameter: Any) -> Any:
        if not isinstance(parameter, dict):
            return parameter
        if isinstance(parameter.get("$ref"), str):
            return {"$ref": self._refs.rewrite(parameter["$ref"])}
        return parameter if is_body_part(parameter) else plain_parameter(parameter, self._schema)

    def _response(self, response: Any, produces: list[str], *, says_type: bool = False) -> Any:
        if not isinstance(response, dict):
            return response
        if isinstance(ref := response.get("$ref"), str):
            if not ref.startswith("#") or ref.startswith("#/responses/"):
                return {"$ref": self._refs.rewrite(ref)}
            response = self._follow(response)
        if not isinstance(response, dict):
            return response
        upgraded = response_of(response, produces, self._schema)
        # An operation's own `produces` says what to ask for, also where the answer has no schema.
        return {"content": {name: {} for name in produces}, **upgraded} if says_type else upgraded

    def _schema(self, schema: Any) -> Any:
        return upgrade_schema(schema, self._refs)

    def _follow(self, value: Any) -> Any:
        """Return what local references from ``value`` lead to in the original; ``value`` if nothing."""
        found = value
        for _ in range(_MAX_HOPS):
            ref = found.get("$ref") if isinstance(found, dict) else None
            if not isinstance(ref, str):
                return found
            if not ref.startswith("#/"):
                return found
            try:
                found = look_up(self._tree, fragment_tokens(ref[1:]))
            except LookupError:
                return value
        return value


def _effective_body(shared: list[Any], own: list[Any]) -> list[dict[str, Any]]:
    """Return the body and form parameters of an operation; its own replace the path item's by name."""
    parts = [value for value in own if is_body_part(value)]
    names = {_identity(value) for value in parts}
    has_body = any(value.get("in") == "body" for value in parts)
    inherited = [
        value
        for value in shared
        if is_body_part(value)
        and _identity(value) not in names
        and not (has_body and value.get("in") == "body")
    ]
    return inherited + parts


def _identity(parameter: dict[str, Any]) -> tuple[Any, str]:
    return parameter.get("in"), text_of(parameter.get("name"))


def _is_schema(node: dict[str, Any]) -> bool:
    return isinstance(node.get("type"), str) or any(
        isinstance(node.get(key), kind)
        for key, kind in (("properties", dict), ("allOf", list), ("enum", list), ("$ref", str))
    )


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    yield from value.items() if isinstance(value, dict) else ()
