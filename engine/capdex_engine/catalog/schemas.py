"""Details of an operation -> the JSON Schemas that are handed out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from capdex_engine.catalog.document import reached, self_contained
from capdex_engine.catalog.texts import clip
from capdex_engine.operation import SLOTS, OperationDetails, Parameter, Schema

MAX_PARAMETER_DESCRIPTION: Final = 120
"""Characters, in ``argumentsSchema`` (SPEC section 2)."""


def size(value: Any) -> int:
    """Return the bytes of ``value`` as compact UTF-8 JSON."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))


def body_schema(details: OperationDetails) -> dict[str, Any] | None:
    """Return the self-contained schema of the preferred media type; ``None`` without a body."""
    if details.body is None:
        return None
    schema = details.body.media_types[0].schema
    return self_contained(True if schema is None else schema, details.definitions)


def arguments_schema(details: OperationDetails, *, with_body: bool) -> dict[str, Any]:
    """Return one JSON Schema for execute_capability's argument object."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    for location, slot in SLOTS.items():
        held = [parameter for parameter in details.parameters if parameter.location == location]
        if held:
            properties[slot] = _slot(held)
            required += [slot] if "required" in properties[slot] else []
    if with_body and details.body is not None:
        schema = details.body.media_types[0].schema
        properties["body"] = True if schema is None else schema
        required += ["body"] if details.body.required else []
    return _closed(properties, required, reached(list(properties.values()), details.definitions))


def _slot(parameters: Sequence[Parameter]) -> dict[str, Any]:
    required_first = sorted(parameters, key=lambda parameter: not parameter.required)
    properties = {parameter.name: _described(parameter) for parameter in required_first}
    return _closed(properties, [parameter.name for parameter in required_first if parameter.required], {})


def _closed(
    properties: dict[str, Any], required: list[str], definitions: Mapping[str, Schema]
) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    return {**schema, "$defs": dict(definitions)} if definitions else schema


def _described(parameter: Parameter) -> Schema:
    schema = parameter.schema if isinstance(parameter.schema, Mapping) else {}
    if parameter.schema is False:
        return False
    text = parameter.description or schema.get("description")
    if not isinstance(text, str) or not text:
        return dict(schema)
    return {**schema, "description": clip(" ".join(text.split()), MAX_PARAMETER_DESCRIPTION)}
