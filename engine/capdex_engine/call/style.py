"""Parameter values -> text on the wire, by style and explode (RFC 6570 and its OpenAPI extensions).

Choices where the specifications leave room:

- A null member is undefined, as in RFC 6570: it is left out. So are an empty array and object.
- Nested objects and arrays that a style cannot express are sent as compact JSON text, save under
  deepObject, which nests brackets; arrays of scalars there repeat ``name[]``, arrays that hold objects
  are numbered ``name[0]``.
- A value that holds its own delimiter is refused for spaceDelimited, pipeDelimited and tab-delimited
  values: nothing could take it apart again.
- Header values are not percent-encoded; cookie values only where a cookie could not hold them.
- Query names keep ``$ @ : / !`` (OData's ``$filter``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import quote

from capdex_engine.operation import Parameter

_RESERVED_KEPT: Final = "/?:@!$'()*,;"
_TRIPLE: Final = re.compile(r"(%[0-9A-Fa-f]{2})")
_COOKIE_KEPT: Final = "!#$&'()*+-./:<=>?@[]^_`{|}~"
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_DELIMITERS: Final = {"spaceDelimited": " ", "pipeDelimited": "|"}


class StyleError(ValueError):
    """A value cannot be written in its place.

    Args:
        problem: Completes "this value ...".
        names: The parameters concerned, where the raiser knows them.
    """

    def __init__(self, problem: str, *names: str) -> None:
        super().__init__(problem)
        self.names = names


def encode(text: str, *, reserved: bool = False) -> str:
    """Percent-encode all but RFC 3986's unreserved characters.

    Args:
        text: Any text without lone surrogates.
        reserved: ``allowReserved``: reserved characters and percent triples stay, except those that
            would end the value (``& = + # [ ]``).
    """
    if not reserved:
        return quote(text, safe="")
    return "".join(
        piece if index % 2 else quote(piece, safe=_RESERVED_KEPT)
        for index, piece in enumerate(_TRIPLE.split(text))
    )


def scalar(value: Any) -> str:
    """Return a value as bare text; objects and arrays as compact JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return compact_json(value)


def compact_json(value: Any) -> str:
    """Return JSON text without blanks, non-ASCII characters as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def path_value(parameter: Parameter, value: Any, *, slashes: bool = False) -> str:
    """Return the expansion of one path parameter; never empty.

    Args:
        parameter: Style simple, label or matrix.
        value: A value that fits its schema.
        slashes: Whether ``/`` stays, as for RFC 6570's ``{+name}``.

    Raises:
        StyleError: The value is empty or holds a control character.
    """

    def write(item: Any) -> str:
        text = scalar(item)
        if _CONTROL.search(text):
            raise StyleError("must not hold control characters in a path")
        return "/".join(encode(piece) for piece in text.split("/")) if slashes else encode(text)

    value = _content(parameter, value)
    if value in ("", [], {}):
        raise StyleError("must not be empty in a path")
    text = _PATH_STYLES.get(parameter.style, _simple)(parameter, value, write)
    if not text:
        raise StyleError("must not be empty in a path")
    return text


def query_pairs(parameter: Parameter, value: Any) -> list[str]:
    """Return ``name=value`` texts, percent-encoded; none for an undefined value.

    Raises:
        StyleError: The value holds the delimiter of its style.
    """
    name = _query_name(parameter.name)

    def write(item: Any) -> str:
        text = encode(scalar(item), reserved=parameter.allow_reserved)
        return text.replace(",", "%2C") if joined else text

    value = _content(parameter, value)
    joined = isinstance(value, dict | list) and not parameter.explode
    if parameter.style == "deepObject":
        return [f"{encode(key)}={write(item)}" for key, item in _brackets(parameter.name, value)]
    if not isinstance(value, dict | list):
        return [f"{name}={write(value)}"]
    if parameter.explode and parameter.delimiter is None:
        return [f"{_query_name(key) if key else name}={write(item)}" for key, item in _members(value)]
    delimiter = parameter.delimiter or _DELIMITERS.get(parameter.style, ",")
    pieces = _flat(value)
    if delimiter != "," and any(delimiter in scalar(piece) for piece in pieces):
        raise StyleError(f"must not hold {delimiter!r}, which separates its items")
    separator = delimiter if delimiter == "," else encode(delimiter)
    return [f"{name}={separator.join(map(write, pieces))}"] if pieces else []


def header_value(parameter: Parameter, value: Any) -> str | None:
    """Return the value of one header field, or None when it is undefined.

    Raises:
        StyleError: The value holds a control character (CR, LF, NUL, ...).
    """
    value = _content(parameter, value)
    text = _simple(parameter, value, scalar) if isinstance(value, dict | list) else scalar(value)
    return None if value in ([], {}) else header_text(text)


def header_text(text: str) -> str:
    """Return ``text`` as it may stand in a header field.

    Raises:
        StyleError: It holds a control character.
    """
    if _CONTROL.search(text):
        raise StyleError("must not hold line breaks or other control characters in a header")
    return text.strip(" \t")


def cookie_pairs(parameter: Parameter, value: Any) -> list[str]:
    """Return ``name=value`` texts for the Cookie header; exploded ones are pairs of their own."""
    value = _content(parameter, value)
    if not isinstance(value, dict | list):
        return [f"{parameter.name}={cookie_text(scalar(value))}"]
    if parameter.explode:
        return [f"{key or parameter.name}={cookie_text(scalar(item))}" for key, item in _members(value)]
    pieces = [cookie_text(scalar(piece)) for piece in _flat(value)]
    return [f"{parameter.name}={','.join(pieces)}"] if pieces else []


def cookie_text(text: str) -> str:
    """Percent-encode what a cookie value cannot hold: blanks, controls, non-ASCII, quotes, ``% , ;``."""
    return quote(text, safe=_COOKIE_KEPT)


def _content(parameter: Parameter, value: Any) -> Any:
    if parameter.content_type is None:
        return value
    essence = parameter.content_type.partition(";")[0].strip().lower()
    is_json = essence.endswith(("/json", "+json")) or not isinstance(value, str)
    return compact_json(value) if is_json else value


_Write = Callable[[Any], str]


def _simple(parameter: Parameter, value: Any, write: _Write) -> str:
    return ",".join(_pieces(value, parameter.explode, write))


def _label(parameter: Parameter, value: Any, write: _Write) -> str:
    joint = "." if parameter.explode else ","
    return "." + joint.join(_pieces(value, parameter.explode, write))


def _matrix(parameter: Parameter, value: Any, write: _Write) -> str:
    name = encode(parameter.name)
    if parameter.explode and isinstance(value, dict | list):
        return "".join(f";{encode(key) if key else name}={write(item)}" for key, item in _members(value))
    return f";{name}={','.join(_pieces(value, parameter.explode, write))}"


_PATH_STYLES: Final = {"simple": _simple, "label": _label, "matrix": _matrix}


def _pieces(value: Any, explode: bool, write: _Write) -> list[str]:
    if isinstance(value, dict) and explode:
        return [f"{write(key)}={write(item)}" for key, item in _members(value)]
    return [write(piece) for piece in _flat(value)]


def _members(value: dict[str, Any] | list[Any]) -> list[tuple[str, Any]]:
    pairs = value.items() if isinstance(value, dict) else (("", item) for item in value)
    return [(key, item) for key, item in pairs if item is not None]


def _flat(value: Any) -> list[Any]:
    """Return the members one after the other, an object's as key, value, key, value."""
    if isinstance(value, dict):
        return [piece for pair in _members(value) for piece in pair]
    return [item for item in value if item is not None] if isinstance(value, list) else [value]


def _brackets(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in _members(value):
            yield from _brackets(f"{name}[{key}]", item)
    elif isinstance(value, list):
        numbered = any(isinstance(item, dict | list) for item in value)
        for index, item in enumerate(value):
            yield from _brackets(f"{name}[{index if numbered else ''}]", item)
    elif value is not None:
        yield name, value


def _query_name(name: str) -> str:
    return quote(name, safe="$@:/!")
