"""Tables as TOML text, for entries of ``models.lock``; the standard library only reads TOML."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_INLINE: Final = 3
"""Entries up to which a table of plain values stands on one line."""


def to_toml(path: Sequence[str], table: Mapping[str, Any]) -> str:
    """Return ``table`` under the header ``[path]``, subtables after it; it ends with a line break.

    Args:
        path: Names of the table and those around it.
        table: Strings, finite numbers, truth values, lists and tables. TOML has no null: such an entry is
            left out.

    Raises:
        TypeError: A value is none of these.
    """
    entries = {name: value for name, value in table.items() if value is not None}
    headed = {name: value for name, value in entries.items() if _has_header(value)}
    lines = [f"{_key(name)} = {_value(value)}\n" for name, value in entries.items() if name not in headed]
    blocks = [f"\n{to_toml((*path, name), value)}" for name, value in headed.items()]
    return "".join([f"[{'.'.join(map(_key, path))}]\n", *lines, *blocks])


def _has_header(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    return len(value) > _INLINE or any(isinstance(one, Mapping | list | tuple) for one in value.values())


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _string(name)


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, Mapping):
        entries = ", ".join(f"{_key(name)} = {_value(one)}" for name, one in value.items() if one is not None)
        return f"{{ {entries} }}" if entries else "{}"
    raise TypeError(f"{type(value).__name__} cannot be written as TOML")


def _string(text: str) -> str:
    # A JSON string is a TOML string, but for the one control character that JSON lets stand.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
