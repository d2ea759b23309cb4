"""The responses of one operation: what it answers, for the full description of a capability."""

from __future__ import annotations

from typing import Any, Final

from capdex_engine.catalog.bodies import preference
from capdex_engine.catalog.context import Reading, plain_child
from capdex_engine.catalog.texts import clean_text
from capdex_engine.documents import Resolved
from capdex_engine.errors import DocumentError

MAX_RESPONSE_TEXT: Final = 500


def read_responses(reading: Reading, operation: Resolved) -> dict[str, dict[str, Any]]:
    """Return status -> ``{"description", "contentType"?, "schema"?}``.

    A response that cannot be read costs its schema and a remark, never the operation.
    """
    declared = plain_child(operation, "responses")
    if not isinstance(declared.value, dict):
        return {}
    found: dict[str, dict[str, Any]] = {}
    for status in declared.value:
        if not str(status).startswith("x-"):
            try:
                found[str(status)] = _response(reading, reading.child(declared, status))
            except DocumentError as error:
                reading.warn(f"A response is left out: {error.message}", declared)
    return found


def _response(reading: Reading, response: Resolved) -> dict[str, Any]:
    if not isinstance(response.value, dict):
        return {"description": ""}
    row: dict[str, Any] = {"description": clean_text(response.value.get("description"), MAX_RESPONSE_TEXT)}
    content = plain_child(response, "content")
    if not isinstance(content.value, dict) or not content.value:
        return row
    content_type = min(content.value, key=preference)
    row["contentType"] = content_type
    schema = plain_child(reading.child(content, content_type), "schema")
    if schema.value is not None:
        try:
            row["schema"] = reading.definitions.translate(schema.value, schema.base, "response").schema
        except DocumentError as error:
            reading.warn(f"The schema of a response is left out: {error.message}", schema)
    return row
