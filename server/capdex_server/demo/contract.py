"""The document as the app needs it: one :class:`Endpoint` per operation, with its compiled schemas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any, Final

import yaml
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

METHODS: Final = ("get", "put", "post", "patch", "delete")
BASE: Final = "urn:workforce"

FORMATS: Final = FormatChecker(formats=["email"])
"""Formats that requests are checked for; a ``date-time`` needs its offset, as in RFC 3339."""


@FORMATS.checks("date", raises=ValueError)
def _is_date(value: object) -> bool:
    # date.fromisoformat also takes 20260606 and 2026-W23-6.
    return not isinstance(value, str) or (len(value) == 10 and str(date.fromisoformat(value)) == value)


@FORMATS.checks("date-time", raises=(ValueError, OverflowError))
def _is_moment(value: object) -> bool:
    return not isinstance(value, str) or ("T" in value.upper() and bool(parse_moment(value)))


def parse_moment(text: str) -> datetime:
    """Read an RFC 3339 date-time into UTC; ``ValueError`` when it has no offset."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("a moment needs an offset, such as 2026-06-06T10:00:00Z")
    return moment.astimezone(UTC)


@dataclass(frozen=True, slots=True)
class Input:
    """A parameter or a body: its schema with the outermost reference followed, and its validator."""

    name: str
    location: str
    required: bool
    schema: Mapping[str, Any]
    validator: Draft202012Validator

    def property(self, name: str) -> Mapping[str, Any]:
        """Return the schema of a body's property; empty when there is none."""
        schema: Mapping[str, Any] = self.schema["properties"].get(name, {})
        return schema


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One operation of the document."""

    operation_id: str
    method: str
    path: str
    success: int
    """Status of the one answer that is no error."""
    has_location: bool
    """Whether that answer carries a ``Location`` header."""
    public: bool
    """Whether it needs no key."""
    parameters: tuple[Input, ...]
    bodies: Mapping[str, Input]
    """Media type -> body."""


@lru_cache(maxsize=1)
def load_contract(data: bytes) -> tuple[Endpoint, ...]:
    """Read the document, in its own order."""
    return _Reader(yaml.load(data, Loader=yaml.CSafeLoader)).endpoints()


class _Reader:
    def __init__(self, document: dict[str, Any]) -> None:
        self._document: Any = _without_read_only(document)
        resource = Resource.from_contents(self._document, default_specification=DRAFT202012)
        self._registry: Registry[Any] = Registry().with_resource(BASE, resource)

    def endpoints(self) -> tuple[Endpoint, ...]:
        return tuple(
            self._endpoint(path, method)
            for path, item in self._document["paths"].items()
            for method in METHODS
            if method in item
        )

    def _endpoint(self, path: str, method: str) -> Endpoint:
        item = self._document["paths"][path]
        operation = item[method]
        success = next(status for status in operation["responses"] if status.startswith("2"))
        return Endpoint(
            operation_id=operation["operationId"],
            method=method.upper(),
            path=path,
            success=int(success),
            has_location="Location" in operation["responses"][success].get("headers", {}),
            public=operation.get("security") == [],
            parameters=tuple(
                self._parameter(node)
                for node in (*item.get("parameters", ()), *operation.get("parameters", ()))
            ),
            bodies=self._bodies(path, method, operation.get("requestBody")),
        )

    def _parameter(self, node: dict[str, Any]) -> Input:
        found = self._follow(node)
        return self._input(found["name"], found["in"], found.get("required", False), found["schema"])

    def _bodies(self, path: str, method: str, body: dict[str, Any] | None) -> dict[str, Input]:
        if body is None:
            return {}
        required = body.get("required", False)
        return {
            media_type: self._input("body", "body", required, content["schema"])
            for media_type, content in body["content"].items()
        }

    def _input(self, name: str, location: str, required: bool, schema: dict[str, Any]) -> Input:
        found = dict(self._follow(schema))
        if "properties" in found:
            found["properties"] = {key: self._follow(node) for key, node in found["properties"].items()}
        if "items" in found:
            found["items"] = self._follow(found["items"])
        return Input(name, location, required, found, self._validator(schema))

    def _validator(self, schema: dict[str, Any]) -> Draft202012Validator:
        rebased = _map_references(schema, lambda ref: BASE + ref)
        return Draft202012Validator(rebased, registry=self._registry, format_checker=FORMATS)

    def _follow(self, node: dict[str, Any]) -> dict[str, Any]:
        """Return a node with its reference followed; what stands beside the reference wins."""
        if "$ref" not in node:
            return node
        found: Any = self._document
        for key in node["$ref"].removeprefix("#/").split("/"):
            found = found[key]
        return {**self._follow(found), **{key: value for key, value in node.items() if key != "$ref"}}


def _map_references(node: Any, change: Callable[[str], str]) -> Any:
    if isinstance(node, dict):
        return {
            key: change(value) if key == "$ref" else _map_references(value, change)
            for key, value in node.items()
        }
    return [_map_references(item, change) for item in node] if isinstance(node, list) else node


def _without_read_only(node: Any) -> Any:
    """Return schemas as requests see them: without the properties that only answers carry."""
    if isinstance(node, list):
        return [_without_read_only(item) for item in node]
    if not isinstance(node, dict):
        return node
    result = {key: _without_read_only(value) for key, value in node.items()}
    properties = result.get("properties")
    if isinstance(properties, dict) and isinstance(result.get("required"), list):
        hidden = {name for name, schema in properties.items() if schema.get("readOnly") is True}
        result["properties"] = {name: schema for name, schema in properties.items() if name not in hidden}
        result["required"] = [name for name in result["required"] if name not in hidden]
    return result
