"""Body values -> bytes, by media type.

Choices where the specifications leave room:

- A file is ``{"base64": ...}`` or ``{"text": ...}``, with ``filename`` and ``contentType`` if wanted; or
  bare text, which is the file's content, or a ``data:`` URL. Nothing is ever opened as a path, and bare text
  that looks like one is refused.
- Null members of forms are left out: a form has no null.
- In forms, objects (also as items of an array) are JSON text unless the Encoding Object gives a style.
  In multipart a style makes the same names and values as in a form, as parts and without percent-encoding.
- A file's own content type counts where the document leaves the type open, and is refused where it does not.
- XML is passed as text; YAML and newline-delimited JSON also take JSON values.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final
from urllib.parse import unquote, unquote_to_bytes

from capdex_engine.call.media import Choice, Kind, charset_of, essence, has_base64, is_file, kind_of
from capdex_engine.call.multipart import Part, write_multipart
from capdex_engine.call.schema import SchemaChecker
from capdex_engine.call.style import StyleError, compact_json, query_pairs, scalar
from capdex_engine.documents import DELIMITER
from capdex_engine.operation import Parameter, Schema

_PATH_LIKE: Final = re.compile(r"(?:/|~/|\.{1,2}/|file:|[A-Za-z]:\\)[^\n]*")
_DATA_URL: Final = re.compile(r"data:([^,;]*)(?:;[^,;]*)*?(;base64)?,(.*)", re.DOTALL)
_FILE_TYPE: Final = re.compile(r"[\w.+-]+/[\w.+-]+(?:; ?[\w-]+=[\w.-]+)*", re.ASCII)
MAX_FILENAME: Final = 255
"""Characters of a file's name."""
_STYLE_KEYS: Final = ("style", "explode", "allowReserved")


class BodyError(ValueError):
    """A body cannot be written; ``path`` says where in it, the text completes "this value ..."."""

    def __init__(self, problem: str, *path: str | int) -> None:
        super().__init__(problem)
        self.path = path


@dataclass(frozen=True, slots=True)
class Written:
    """A body on the wire."""

    content_type: str
    data: bytes


def write_body(choice: Choice, value: Any, checker: SchemaChecker, *, boundary: str | None = None) -> Written:
    """Write a body.

    Args:
        choice: Its media type.
        value: A value that fits the schema.
        checker: Knows the schemas of the value's properties.
        boundary: Of multipart bodies; without one, it is derived from the content.

    Raises:
        BodyError: The value has no form in this media type.
    """
    content_type = choice.content_type
    match choice.kind:
        case Kind.JSON:
            return Written(content_type, compact_json(value).encode())
        case Kind.FORM:
            return Written(content_type, _form(choice, value))
        case Kind.MULTIPART:
            data, made = write_multipart(_parts(choice, value, checker), boundary)
            return Written(f"{essence(content_type)}; boundary={made}", data)
        case Kind.LINES if isinstance(value, list):
            return Written(content_type, b"".join(compact_json(item).encode() + b"\n" for item in value))
        case Kind.BINARY:
            return Written(_type_of_file(value, _range(choice), content_type), file_bytes(value))
        case kind:
            return _text(choice, kind, value)


def file_bytes(value: Any) -> bytes:
    """Return the content of a file value.

    Raises:
        BodyError: It is no file, its base64 is broken, or it looks like a path.
    """
    if is_file(value):
        return value["text"].encode() if "text" in value else _from_base64(value["base64"])
    if not isinstance(value, str):
        raise BodyError('must be {"base64": "..."} or text')
    if data := _DATA_URL.fullmatch(value):
        return _from_base64(data[3]) if data[2] else unquote_to_bytes(data[3])
    if _PATH_LIKE.fullmatch(value):
        raise BodyError('must be the content, not a path: give {"base64": "..."} or {"text": "..."}')
    return value.encode()


def is_binary(schema: Schema) -> bool:
    """Tell whether a property's schema describes the bytes of a file."""
    if not isinstance(schema, Mapping):
        return False
    media_type = schema.get("contentMediaType")
    binary = schema.get("format") == "binary" or (media_type and "contentEncoding" not in schema)
    if binary and schema.get("type", "string") in ("string", ["string"], ["string", "null"]):
        return True
    return any(is_binary(branch) for key in ("anyOf", "oneOf") for branch in schema.get(key, ()))


def is_file_for(value: Any, schema: Schema) -> bool:
    """Tell whether a value is a file: its schema wants bytes, or it looks like one and nothing else does."""
    if is_binary(schema):
        return is_file(value)
    properties = schema.get("properties", {}) if isinstance(schema, Mapping) else {}
    return has_base64(value) and "base64" not in properties


def _range(choice: Choice) -> str:
    """Return what the document says of the type: a range where it has one."""
    return choice.media.content_type if "*" in choice.media.content_type else choice.content_type


def _text(choice: Choice, kind: Kind, value: Any) -> Written:
    content_type = choice.content_type
    if has_base64(value):
        return Written(_type_of_file(value, _range(choice), content_type), file_bytes(value))
    if kind is Kind.XML and not isinstance(value, str):
        raise BodyError("must be the XML document as text")
    text = value if isinstance(value, str) else compact_json(value)
    charset = charset_of(content_type)
    try:
        data = text.encode(charset or "utf-8")
    except UnicodeEncodeError:
        raise BodyError(f"holds characters that {charset} lacks") from None
    if charset is None and kind is Kind.TEXT and not text.isascii():
        content_type += "; charset=utf-8"
    return Written(content_type, data)


def _form(choice: Choice, value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if not isinstance(value, dict):
        raise BodyError("must be an object of form fields")
    pairs: list[str] = []
    for name, member in value.items():
        if member is not None:
            encoding = choice.media.encoding.get(name, {})
            pairs += _field_pairs(name, member, encoding)
    return "&".join(pairs).encode()


def _field_pairs(name: str, member: Any, encoding: Mapping[str, Any]) -> list[str]:
    try:
        return query_pairs(_field(name, encoding), _field_value(member, encoding))
    except (StyleError, BodyError) as error:
        raise BodyError(str(error), name) from None


def _field(name: str, encoding: Mapping[str, Any]) -> Parameter:
    style = encoding.get("style", "form")
    return Parameter(
        name=name,
        location="query",
        required=False,
        schema=True,
        style=style,
        explode=encoding.get("explode", style == "form"),
        allow_reserved=bool(encoding.get("allowReserved", False)),
        delimiter=encoding.get(DELIMITER),
    )


def _field_value(member: Any, encoding: Mapping[str, Any]) -> Any:
    if any(key in encoding for key in _STYLE_KEYS):
        return member
    if has_base64(member):
        return _file_text(member)
    return compact_json(member) if isinstance(member, dict) or _says_json(encoding) else member


def _says_json(encoding: Mapping[str, Any]) -> bool:
    documented = encoding.get("contentType")
    return isinstance(documented, str) and kind_of(documented) is Kind.JSON


def _file_text(member: Any) -> str:
    try:
        return file_bytes(member).decode()
    except UnicodeDecodeError:
        raise BodyError("holds bytes that are no text, which a form cannot carry") from None


def _parts(choice: Choice, value: Any, checker: SchemaChecker) -> list[Part]:
    if essence(choice.content_type) != "multipart/form-data":
        raise BodyError(f"cannot be written as {essence(choice.content_type)}")
    if not isinstance(value, dict):
        raise BodyError("must be an object of form fields")
    parts: list[Part] = []
    for name, member in value.items():
        schema = checker.property_schema(choice.media.schema, name)
        parts += _field_parts(name, member, schema, choice.media.encoding.get(name, {}), checker)
    return parts


def _field_parts(
    name: str, member: Any, schema: Schema, encoding: Mapping[str, Any], checker: SchemaChecker
) -> list[Part]:
    merged = checker.merged(schema)
    if member is None:
        return []
    if isinstance(member, dict | list) and any(key in encoding for key in _STYLE_KEYS):
        pairs = [pair.partition("=") for pair in _field_pairs(name, member, encoding)]
        return [Part(unquote(field), unquote_to_bytes(text)) for field, _, text in pairs]
    if not isinstance(member, list) or _says_json(encoding):
        return [_part(name, member, merged, encoding)]
    items = checker.merged(merged.get("items", True))
    return [_part(name, item, items, encoding) for item in member if item is not None]


def _part(name: str, member: Any, schema: Mapping[str, Any], encoding: Mapping[str, Any]) -> Part:
    documented = _first_concrete(encoding.get("contentType"))
    if is_binary(schema) or is_file_for(member, schema):
        return _file_part(name, member, encoding.get("contentType"))
    if isinstance(member, dict | list):
        if documented is not None and kind_of(documented) is Kind.XML:
            raise BodyError("must be the XML document as text", name)
        return Part(name, compact_json(member).encode(), documented or "application/json")
    text = compact_json(member) if _says_json(encoding) else scalar(member)
    return Part(name, text.encode(), documented)


def _file_part(name: str, member: Any, documented: Any) -> Part:
    filename = member.get("filename", name) if is_file(member) else name
    try:
        if len(filename) > MAX_FILENAME:
            raise BodyError(f"must not be longer than {MAX_FILENAME} characters", "filename")
        fallback = _first_concrete(documented) or "application/octet-stream"
        return Part(name, file_bytes(member), _type_of_file(member, documented, fallback), filename)
    except BodyError as error:
        raise BodyError(str(error), name, *error.path) from None


def _first_concrete(content_types: Any) -> str | None:
    if not isinstance(content_types, str):
        return None
    names = [name.strip() for name in content_types.split(",")]
    return next((name for name in names if "*" not in name and name), None)


def _type_of_file(value: Any, documented: Any, fallback: str) -> str:
    """Return the content type that a file goes by: its own where the documented one leaves that open.

    Args:
        value: A file.
        documented: Media types and ranges, separated by commas; anything else says nothing.
        fallback: Where the file says nothing.

    Raises:
        BodyError: Its own is none of the documented ones.
    """
    if is_file(value) and "contentType" in value:
        given = str(value["contentType"])
        if not _FILE_TYPE.fullmatch(given):
            raise BodyError("must be a media type", "contentType")
        if not _leaves_open(documented, given):
            raise BodyError(f"must be {documented}, as documented", "contentType")
        return given
    found = _DATA_URL.fullmatch(value) if isinstance(value, str) else None
    own = found[1] if found and _FILE_TYPE.fullmatch(found[1]) else None
    return own if own and _leaves_open(documented, own) else fallback


def _leaves_open(documented: Any, given: str) -> bool:
    """Tell whether a file of type ``given`` is one of the documented kind.

    octet-stream stands for any file; but what a server would read as something else than a file (JSON, a
    form, ...) is not smuggled in under it.
    """
    if not isinstance(documented, str):
        return True
    ranges = [essence(each) for each in documented.split(",")]
    own = essence(given)
    if "application/octet-stream" in ranges and kind_of(own) is Kind.BINARY:
        return True
    return any(fnmatchcase(own, each) for each in ranges)


def _from_base64(text: str) -> bytes:
    plain = "".join(text.split()).replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise BodyError("is no valid base64", "base64") from None
