"""Parameter values -> text on the wire, by style and explode (RFC 6570 and its OpenAPI extensions).

Choices where the specifications leave room:

- A null member is undefined, as in RFC 6570: it is left out. So is an array or object without members.
- Nested objects and arrays that a style cannot express are sent as compact JSON text, save under
  deepObject, which nests brackets; arrays of scalars there repeat ``name[]``, arrays that hold objects
  are numbered ``name[0]``.
- A value that holds its own delimiter is refused for spaceDelimited, pipeDelimited and tab-delimited
  values, a member's name that holds brackets for deepObject: nothing could take it apart again.
- Header values are not percent-encoded; JSON in one is ASCII. Cookie values are encoded only where a cookie
  could not hold them, and refused there under 3.2's style ``cookie``, which has no encoding.
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
_COOKIE_NAME_KEPT: Final = "!#$&'*+-.^_`|~"
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
    if value == "" or _is_undefined(value):
        raise StyleError("must not be empty in a path")
    text = _PATH_STYLES.get(parameter.style, _simple)(parameter, value, write)
    if not text:
        raise StyleError("must not be empty in a path")
    return text


def query_pairs(parameter: Parameter, value: Any) -> list[str]:
    """Return ``name=value`` texts, percent-encoded; none for an undefined value.

    Raises:
        StyleError: The value holds the delimiter of its style, or a name the brackets of deepObject.
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
        return [f"{name if key is None else _query_name(key)}={write(item)}" for key, item in _members(value)]
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
    value = _content(parameter, value, ascii_only=True)
    if _is_undefined(value):
        return None
    text = _simple(parameter, value, scalar) if isinstance(value, dict | list) else scalar(value)
    return header_text(text)


def header_text(text: str) -> str:
    """Return ``text`` as it may stand in a header field.

    Raises:
        StyleError: It holds a control character.
    """
    if _CONTROL.search(text):
        raise StyleError("must not hold line breaks or other control characters in a header")
    return text.strip(" \t")


def cookie_pairs(parameter: Parameter, value: Any) -> list[str]:
    """Return ``name=value`` texts for the Cookie header; exploded ones are pairs of their own.

    Raises:
        StyleError: Under style ``cookie``, the value holds what a cookie cannot; a member has no name.
    """
    write = _bare_cookie_text if parameter.style == "cookie" else cookie_text
    value = _content(parameter, value)
    if not isinstance(value, dict | list):
        return [f"{parameter.name}={write(scalar(value))}"]
    if parameter.explode:
        return [
            f"{parameter.name if key is None else _cookie_name(key)}={write(scalar(item))}"
            for key, item in _members(value)
        ]
    pieces = [write(scalar(piece)) for piece in _flat(value)]
    return [f"{parameter.name}={','.join(pieces)}"] if pieces else []


def cookie_text(text: str) -> str:
    """Percent-encode what a cookie value cannot hold: blanks, controls, non-ASCII, quotes, ``% , ;``."""
    return quote(text, safe=_COOKIE_KEPT)


def _bare_cookie_text(text: str) -> str:
    if cookie_text(text) != text.replace("%", "%25"):
        raise StyleError("must not hold what a cookie cannot: blanks, quotes, commas, semicolons, non-ASCII")
    return text


def _cookie_name(text: str) -> str:
    """Return a member's name as that of a cookie, which ends at the first ``=``."""
    if not text:
        raise StyleError("must not have a member without a name in a cookie")
    return quote(text, safe=_COOKIE_NAME_KEPT)


def _content(parameter: Parameter, value: Any, *, ascii_only: bool = False) -> Any:
    if parameter.content_type is None:
        return value
    essence = parameter.content_type.partition(";")[0].strip().lower()
    if isinstance(value, str) and not essence.endswith(("/json", "+json")):
        return value
    return _ascii_json(value) if ascii_only else compact_json(value)


def _ascii_json(value: Any) -> str:
    """Return JSON text that any header can hold."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("\x7f", "\\u007f")


_Write = Callable[[Any], str]


def _simple(parameter: Parameter, value: Any, write: _Write) -> str:
    return ",".join(_pieces(value, parameter.explode, write))


def _label(parameter: Parameter, value: Any, write: _Write) -> str:
    joint = "." if parameter.explode else ","
    return "." + joint.join(_pieces(value, parameter.explode, write))


def _matrix(parameter: Parameter, value: Any, write: _Write) -> str:
    name = encode(parameter.name)
    if not (parameter.explode and isinstance(value, dict | list)):
        return _named(name, ",".join(_pieces(value, parameter.explode, write)))
    return "".join(_named(name if key is None else encode(key), write(item)) for key, item in _members(value))


def _named(name: str, text: str) -> str:
    """Return RFC 6570's ``;name=text``, which has no ``=`` where the text is empty."""
    return f";{name}={text}" if text else f";{name}"


_PATH_STYLES: Final = {"simple": _simple, "label": _label, "matrix": _matrix}


def _pieces(value: Any, explode: bool, write: _Write) -> list[str]:
    if isinstance(value, dict) and explode:
        return [f"{write(key)}={write(item)}" for key, item in _members(value)]
    return [write(piece) for piece in _flat(value)]


def _members(value: Any) -> list[tuple[Any, Any]]:
    """Return the (name, value) pairs that are defined; the name is None in an array."""
    pairs = value.items() if isinstance(value, dict) else ((None, item) for item in value)
    return [(key, item) for key, item in pairs if item is not None]


def _is_undefined(value: Any) -> bool:
    return isinstance(value, dict | list) and not _members(value)


def _flat(value: Any) -> list[Any]:
    """Return the members one after the other, an object's as key, value, key, value."""
    if isinstance(value, dict):
        return [piece for pair in _members(value) for piece in pair]
    return [item for item in value if item is not None] if isinstance(value, list) else [value]


def _brackets(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in _members(value):
            if "[" in key or "]" in key:
                raise StyleError("must not have members with [ or ] in their name")
            yield from _brackets(f"{name}[{key}]", item)
    elif isinstance(value, list):
        numbered = any(isinstance(item, dict | list) for item in value)
        for index, item in enumerate(value):
            yield from _brackets(f"{name}[{index if numbered else ''}]", item)
    elif value is not None:
        yield name, value


def _query_name(name: str) -> str:
    return quote(name, safe="$@:/!")
