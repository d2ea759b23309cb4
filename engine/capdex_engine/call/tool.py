"""The input of the tool ``execute_capability``: its schema, and reading it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from capdex_engine.call.explain import explain
from capdex_engine.call.issues import Issue, bounded, issue
from capdex_engine.call.lenient import decoded_object
from capdex_engine.call.schema import MAX_DEPTH, SchemaChecker, depth
from capdex_engine.errors import InvalidRequest
from capdex_engine.operation import SLOTS, Location

MAX_BYTES: Final = 32 * 1024 * 1024
"""The most that ``maxBytes`` may ask for, in bytes."""


def _slot(what: str) -> dict[str, Any]:
    return {"type": "object", "description": f"{what}, by name. Take them from the match's argumentsSchema."}


EXECUTE_INPUT: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "name": {
            "type": "string",
            "minLength": 1,
            "maxLength": 2048,
            "description": "The capability's name, exactly as search_capabilities gave it.",
        },
        "pathParams": _slot("Path parameters"),
        "queryParams": _slot("Query parameters"),
        "headerParams": _slot("Header parameters"),
        "cookieParams": _slot("Cookie parameters"),
        "body": {
            "description": "The request body, by the match's bodySchema: any JSON value. Files are"
            ' {"base64": "...", "filename"?, "contentType"?} or text.'
        },
        "contentType": {
            "type": "string",
            "minLength": 1,
            "maxLength": 256,
            "description": "Media type of the body, where the capability offers several.",
        },
        "schemaDigest": {
            "type": "string",
            "minLength": 1,
            "maxLength": 128,
            "description": "The match's schemaDigest: tells you when the capability has changed since.",
        },
        "dryRun": {
            "type": "boolean",
            "description": "True: show the prepared request with credentials masked, and send nothing.",
        },
        "maxBytes": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_BYTES,
            "description": "Most bytes of answer wanted. Larger JSON answers lose whole array items.",
        },
    },
    "required": ["name"],
    "additionalProperties": False,
}
"""JSON Schema of execute_capability's input."""

MISSING: Final[Any] = type("Missing", (), {"__repr__": lambda _: "MISSING"})()
"""Stands for a body that is not given, which ``None`` (JSON null) is not."""

_CHECKER: Final = SchemaChecker({})


@dataclass(frozen=True, slots=True)
class Call:
    """The tool's input, read."""

    name: str
    values: Mapping[Location, Mapping[str, Any]] = field(default_factory=dict)
    """Every location has an entry."""
    body: Any = MISSING
    content_type: str | None = None
    schema_digest: str | None = None
    dry_run: bool = False
    max_bytes: int | None = None


def read_call(given: Mapping[str, Any]) -> Call:
    """Read the tool's input.

    ``null`` counts as not given, save for ``body``, where it is a JSON value. The four parameter
    objects may also be sent as JSON text.

    Raises:
        InvalidRequest: The input does not fit :data:`EXECUTE_INPUT`, or its own fields hold a lone surrogate.
    """
    if not isinstance(given, Mapping):
        raise InvalidRequest("The input of execute_capability must be an object with a name.")
    own = [*given, *(given.get(key) for key in ("name", "contentType", "schemaDigest"))]
    if not all(_is_unicode(text) for text in own if isinstance(text, str)):
        raise InvalidRequest("The input of execute_capability holds text that is no valid Unicode.")
    known = {key: value for key, value in given.items() if value is not None or key == "body"}
    slots = {key: decoded_object(known[key]) for key in SLOTS.values() if key in known}
    call = {**known, **slots}
    found = bounded(explain(_CHECKER.errors(EXECUTE_INPUT, call), "input"))
    if found:
        raise InvalidRequest(
            "The input does not fit execute_capability: " + "; ".join(each["message"] for each in found[:3]),
            issues=found,
        )
    return Call(
        name=call["name"],
        values={location: call.get(slot, {}) for location, slot in SLOTS.items()},
        body=call.get("body", MISSING),
        content_type=call.get("contentType"),
        schema_digest=call.get("schemaDigest"),
        dry_run=call.get("dryRun", False),
        max_bytes=call.get("maxBytes"),
    )


def unsendable(call: Call) -> list[Issue]:
    """Return an issue for every value that cannot be sent at all, whatever the schema says.

    That is text with a lone surrogate, a number that is not finite, or more than :data:`MAX_DEPTH`
    levels.
    """
    slots: list[tuple[str, Any]] = [(location, values) for location, values in call.values.items()]
    if call.body is not MISSING:
        slots.append(("body", call.body))
    return [found for where, value in slots for found in _unsendable(where, value)]


def _unsendable(where: str, value: Any) -> list[Issue]:
    if depth(value) > MAX_DEPTH:
        return [issue(where, (), "maxDepth", f"is nested deeper than {MAX_DEPTH} levels")]
    return _scan(where, value, ())


def _scan(where: str, value: Any, path: tuple[str | int, ...]) -> list[Issue]:
    if isinstance(value, str):
        return (
            [] if _is_unicode(value) else [issue(where, path, "type", "holds text that is no valid Unicode")]
        )
    if isinstance(value, float) and value - value != 0:
        return [issue(where, path, "type", "must be a finite number")]
    if isinstance(value, dict):
        bad = [
            issue(where, path, "type", "has a name that is no valid Unicode")
            for key in value
            if not _is_unicode(key)
        ]
        members = [(key, member) for key, member in value.items() if _is_unicode(key)]
        return bad + [found for key, member in members for found in _scan(where, member, (*path, key))]
    if isinstance(value, list):
        return [found for index, item in enumerate(value) for found in _scan(where, item, (*path, index))]
    return []


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
