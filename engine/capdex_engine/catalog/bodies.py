"""The request body of one operation, its media types in order of preference."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from capdex_engine.catalog.context import Reading, flaw, plain_child
from capdex_engine.catalog.definitions import Translated
from capdex_engine.catalog.parameters import INNER_FORMAT_REMARK
from capdex_engine.catalog.texts import clean_text
from capdex_engine.documents import DELIMITER, INNER_FORMAT, Resolved
from capdex_engine.errors import DocumentError
from capdex_engine.operation import Body, MediaType

MAX_BODY_PROPERTIES: Final = 40
MAX_BODY_TEXT: Final = 1000
_MAX_PLACES: Final = 2000
"""Schemas that are looked at for the names of one body."""

_ENCODING_KEYS: Final[dict[str, type]] = {
    "contentType": str,
    "style": str,
    "explode": bool,
    "allowReserved": bool,
    DELIMITER: str,
}
_PREFERENCE: Final = (
    r"application/json$",
    r"[^*]+\+json$",
    r"(application|text)/(x-)?json$",
    r"application/x-www-form-urlencoded$",
    r"multipart/",
    r"text/(?!xml$)[^*]+$",
    r"application/octet-stream$",
    r"[^*]+[/+]xml$",
    r"[^*]+$",
    r"",
)
"""Patterns over the bare media type, the preferred first; all match at the start."""
_PATTERNS = [re.compile(pattern) for pattern in _PREFERENCE]


@dataclass(frozen=True, slots=True)
class ReadBody:
    """A body, and the definitions that the schema of each of its media types refers to."""

    body: Body
    keys: tuple[frozenset[str], ...]
    """In the order of ``body.media_types``."""
    properties: tuple[str, ...]
    """Names of the top-level properties of the preferred media type, at most 40."""


def preference(content_type: str) -> int:
    """Return the rank of a media type as request body; smaller is better."""
    bare = content_type.split(";", 1)[0].strip().lower()
    return next(rank for rank, pattern in enumerate(_PATTERNS) if pattern.match(bare))


def read_body(reading: Reading, operation: Resolved) -> ReadBody | None:
    """Return the request body, ``None`` without one.

    A media type whose schema cannot be read is left out, with a remark, while another is left.

    Raises:
        DocumentError: The body cannot be read, or no media type of it.
    """
    declared = reading.child(operation, "requestBody")
    if declared.value is None:
        return None
    if not isinstance(declared.value, dict):
        raise flaw("The request body is not an object.", declared)
    content = plain_child(declared, "content")
    if not isinstance(content.value, dict) or not content.value:
        _without_content(reading, declared)
        return None
    return _body(reading, declared, content)


def _without_content(reading: Reading, declared: Resolved) -> None:
    if declared.value.get("required") is True:
        raise flaw("The request body is required, but names no media type.", declared)
    reading.warn("The request body names no media type; it is left out.", declared)


def _body(reading: Reading, declared: Resolved, content: Resolved) -> ReadBody:
    read: list[tuple[MediaType, Translated, Resolved]] = []
    faults: list[DocumentError] = []
    for content_type in sorted(content.value, key=preference):
        try:
            read.append(_media_type(reading, content, content_type))
        except DocumentError as error:
            faults.append(error)
    if not read:
        raise faults[0]
    for fault in faults:
        reading.warn(f"A media type is left out: {fault.message}", content)
    body = Body(
        required=declared.value.get("required") is True,
        media_types=tuple(media for media, _, _ in read),
        description=clean_text(declared.value.get("description"), MAX_BODY_TEXT),
    )
    found = _property_names(reading, plain_child(read[0][2], "schema"), 0, {})
    names = dict.fromkeys(found)
    keys = tuple(translated.keys for _, translated, _ in read)
    return ReadBody(body, keys, tuple(names)[:MAX_BODY_PROPERTIES])


def _media_type(
    reading: Reading, content: Resolved, content_type: str
) -> tuple[MediaType, Translated, Resolved]:
    media = reading.child(content, content_type)
    schema = plain_child(media, "schema")
    if schema.value is None:
        translated = Translated(True)
        return MediaType(content_type, None, _encoding(reading, media)), translated, media
    translated = reading.definitions.translate(schema.value, schema.base, "request")
    return MediaType(content_type, translated.schema, _encoding(reading, media)), translated, media


def _encoding(reading: Reading, media: Resolved) -> dict[str, dict[str, Any]]:
    declared = plain_child(media, "encoding")
    if not isinstance(declared.value, dict):
        return {}
    found: dict[str, dict[str, Any]] = {}
    for name in declared.value:
        value = reading.child(declared, name).value
        if isinstance(value, dict):
            if INNER_FORMAT in value:
                reading.warn(INNER_FORMAT_REMARK, plain_child(declared, name))
            found[name] = {
                key: value[key] for key, kind in _ENCODING_KEYS.items() if isinstance(value.get(key), kind)
            }
            _remark_on_wrong(reading, plain_child(declared, name), value)
    return found


def _remark_on_wrong(reading: Reading, place: Resolved, encoding: dict[str, Any]) -> None:
    for key, kind in _ENCODING_KEYS.items():
        if not isinstance(encoding.get(key), kind | None):
            reading.warn(f"The {key} of an encoding is of no use as it stands; it is left out.", place)


def _property_names(
    reading: Reading, schema: Resolved, depth: int, seen: dict[tuple[str, str], int]
) -> Iterator[str]:
    """Yield the names that an agent may send, through references, compositions and array items.

    Args:
        reading: The document.
        schema: Where to look.
        depth: Compositions around it; beyond six nothing is looked for.
        seen: Places -> least depth at which they were looked at; some are reached in ever so many ways.
    """
    if depth > 6 or len(seen) >= _MAX_PLACES:
        return
    try:
        found = reading.follow(schema)
    except DocumentError:
        return
    place = (found.base, found.pointer)
    if not isinstance(found.value, dict) or seen.get(place, depth + 1) <= depth:
        return
    seen[place] = depth
    properties = plain_child(found, "properties")
    if isinstance(properties.value, dict):
        yield from (name for name, value in properties.value.items() if not _is_read_only(value))
    for keyword in ("allOf", "oneOf", "anyOf"):
        branches = plain_child(found, keyword)
        if isinstance(branches.value, list):
            for index in range(len(branches.value)):
                yield from _property_names(reading, plain_child(branches, index), depth + 1, seen)
    yield from _property_names(reading, plain_child(found, "items"), depth + 1, seen)


def _is_read_only(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("readOnly") is True
