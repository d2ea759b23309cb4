"""Bytes to a JSON tree: JSON at the speed of :mod:`json`, else YAML 1.2."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, Final

from capdex_engine.documents.duplicates import DUPLICATES, Duplicates
from capdex_engine.documents.yaml_tree import MAX_DEPTH, MAX_INT_DIGITS, YamlFault, read_yaml
from capdex_engine.errors import DocumentError

_BYTE_ORDER_MARKS: Final = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_NULL_PATTERNS: Final[dict[tuple[bool, ...], str]] = {
    (False, True, False, True): "utf-16-le",
    (True, False, True, False): "utf-16-be",
    (False, True, True, True): "utf-32-le",
    (True, True, True, False): "utf-32-be",
}


def parse_document(data: bytes, *, location: str = "") -> dict[str, Any]:
    """Return the document as a tree of JSON values.

    YAML follows the core schema of YAML 1.2: ``on`` and ``no`` are text, dates stay text character
    for character, every key is text as it is written. A number that JSON cannot write (``.inf``,
    ``1e999``, an integer of thousands of digits) stays the text that stands in the document.
    Of duplicate keys the last one wins, but for path items, which are put together; each is told
    in the root's ``x-capdex-duplicates`` (see :mod:`~capdex_engine.documents.duplicates`). Aliased
    YAML nodes are shared objects: never change the tree in place.

    Args:
        data: UTF-8, or UTF-16/UTF-32 with a byte order mark (or recognisable without one).
        location: File or URL for error messages.

    Raises:
        DocumentError: The bytes are no text, no JSON or YAML, no mapping, nested deeper than 500
            levels, or aliases expand beyond bounds.
    """
    tree, duplicates = _parse(data, location)
    if not isinstance(tree, dict):
        raise DocumentError(
            f"The document's root is {_kind(tree)}, not a mapping: an API description starts with "
            "keys such as 'openapi' and 'paths'.",
            location=location or None,
        )
    tree.pop(DUPLICATES, None)
    if rows := duplicates.rows(tree):
        tree[DUPLICATES] = rows
    return tree


def parse_tree(data: bytes, *, location: str = "") -> Any:
    """Return any JSON or YAML value; as :func:`parse_document`, but the root may be anything."""
    return _parse(data, location)[0]


def _parse(data: bytes, location: str) -> tuple[Any, Duplicates]:
    text = decode(data, location=location)
    if not text.strip():
        raise DocumentError("The document is empty.", location=location or None)
    json_fault = ""
    if text.lstrip()[:1] in {"{", "["}:
        try:
            return _read_json(text, location)
        except json.JSONDecodeError as error:
            json_fault = f"{error.msg} (line {error.lineno}, column {error.colno})"
    duplicates = Duplicates()
    try:
        return read_yaml(text, duplicates), duplicates
    except YamlFault as error:
        what = f"no JSON: {json_fault}; nor YAML" if json_fault else "no YAML"
        raise DocumentError(f"The document is {what}: {error}.", location=location or None) from error


def decode(data: bytes, *, location: str = "") -> str:
    """Return the bytes as text, without a byte order mark.

    Raises:
        DocumentError: Names the offset of the first byte that is not valid.
    """
    mark, encoding = next(
        ((mark, name) for mark, name in _BYTE_ORDER_MARKS if data.startswith(mark)),
        (b"", _NULL_PATTERNS.get(_nulls(data), "utf-8")),
    )
    try:
        return data[len(mark) :].decode(encoding) if mark else data.decode(encoding)
    except UnicodeDecodeError as error:
        raise DocumentError(
            f"The document is not valid {encoding.upper()}: byte {len(mark) + error.start} cannot be read. "
            "Save it as UTF-8.",
            location=location or None,
        ) from error


def _nulls(data: bytes) -> tuple[bool, ...]:
    return tuple(byte == 0 for byte in data[:4])


def _read_json(text: str, location: str) -> tuple[Any, Duplicates]:
    try:
        tree, duplicates = _loads(text)
    except RecursionError as error:
        raise _too_deep(location) from error
    if text.count("{") + text.count("[") > MAX_DEPTH and _deeper_than(tree, MAX_DEPTH):
        raise _too_deep(location)
    if "\\ud" in text or "\\uD" in text:
        tree = _mend_surrogates(tree)
    return tree, duplicates


def _loads(text: str) -> tuple[Any, Duplicates]:
    try:
        return _loads_with(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        # Python refuses integers of thousands of digits. The hook that lets them through costs
        # time for every integer, so it is for such documents only.
        return _loads_with(text, parse_int=_int)


def _loads_with(text: str, parse_int: Callable[[str], Any] | None = None) -> tuple[Any, Duplicates]:
    found = Duplicates()
    tree = json.loads(
        text,
        strict=False,
        parse_float=_float,
        parse_constant=str,
        object_pairs_hook=found.mapping,
        parse_int=parse_int,
    )
    return tree, found


def _float(text: str) -> float | str:
    value = float(text)
    return value if math.isfinite(value) else text


def _int(text: str) -> int | str:
    return int(text) if len(text) <= MAX_INT_DIGITS else text


def _deeper_than(tree: Any, levels: int) -> bool:
    level = [tree]
    for _ in range(levels):
        level = [
            child
            for node in level
            for child in (node.values() if type(node) is dict else node)
            if type(child) is dict or type(child) is list
        ]
        if not level:
            return False
    return True


def _mend_surrogates(tree: Any) -> Any:
    """Replace halves of surrogate pairs, in place: JSON can spell them, but no encoding can write them."""
    holder = [tree]
    pending: list[Any] = [holder]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            mended = {_whole(key): value for key, value in node.items()}
            node.clear()
            node.update(mended)
        for key, value in list(node.items() if isinstance(node, dict) else enumerate(node)):
            if isinstance(value, str):
                node[key] = _whole(value)
            elif isinstance(value, dict | list):
                pending.append(value)
    return holder[0]


def _whole(text: str) -> str:
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _too_deep(location: str) -> DocumentError:
    return DocumentError(f"The document is nested deeper than {MAX_DEPTH} levels.", location=location or None)


def _kind(value: Any) -> str:
    if isinstance(value, list):
        return "a list"
    # The value itself is not shown: a reference may lead to a file that holds a secret.
    return "null" if value is None else "a single value"
