"""ECMA 262 patterns, which JSON Schema names, to those of Python's :mod:`re`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

MAX_LENGTH: Final = 5000
"""Characters; a longer pattern costs more to compile than it could ever tell."""

_LITERAL: Final = re.compile(r"/(\^.*\$)/[a-z]*", re.DOTALL)
"""A pattern written as a JavaScript literal; the slashes would keep it from ever matching."""
_TOKEN: Final = re.compile(
    r"""
    (?P<codepoint>\\u\{[0-9a-fA-F]{1,6}\})
    | (?P<control>\\c[A-Za-z])
    | (?P<end>\\z)
    | (?P<backreference>\\k<(?P<back>\w+)>)
    | (?P<escape>\\.)
    | (?P<group>\(\?<(?=\w))
    | (?P<empty>\[\^?\])
    | (?P<class>\[\^?)
    | (?P<plain>[^\\(\[]+|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ATOM: Final = re.compile(r"\\u\{[0-9a-fA-F]{1,6}\}|\\c[A-Za-z]|\\.|.", re.DOTALL)
_SET_CHARACTERS: Final = frozenset("-[&~|")
"""Doubled in a class, Python warns that they may mean set operations one day."""


@lru_cache(maxsize=4096)
def python_pattern(pattern: str) -> str | None:
    r"""Return the pattern as Python understands it; ``None`` if it has none (``\p{L}``) or is too long."""
    if len(pattern) > MAX_LENGTH:
        return None
    literal = _LITERAL.fullmatch(pattern)
    try:
        translated = _translate(literal.group(1) if literal else pattern)
        re.compile(translated)
    except (re.error, OverflowError, RecursionError, ValueError):
        return None
    return translated


def _translate(pattern: str) -> str:
    parts: list[str] = []
    position = 0
    while position < len(pattern):
        token = _TOKEN.match(pattern, position)
        if token is None:
            raise ValueError(pattern)
        position = token.end()
        if token.lastgroup == "class":
            inner, position = _character_class(pattern, position)
            parts.append(token.group() + inner)
        else:
            parts.append(_outside(token))
    return "".join(parts)


def _outside(token: re.Match[str]) -> str:
    text = token.group()
    if token.group("codepoint") or token.group("control"):
        return _character(text)
    if token.group("backreference"):
        return f"(?P={token.group('back')})"
    if token.group("empty"):
        return "(?!)" if text == "[]" else r"[\s\S]"
    return {"end": r"\Z", "group": "(?P<"}.get(token.lastgroup or "", text)


def _character_class(pattern: str, position: int) -> tuple[str, int]:
    """Return what stands between ``[`` and ``]``, the ``]`` included, and the position behind it."""
    parts: list[str] = []
    while position < len(pattern):
        if pattern[position] == "]":
            return "".join(parts) + "]", position + 1
        if pattern.startswith("-]", position) or (
            not parts and re.match(r"-[^-\]]", pattern[position : position + 2])
        ):
            parts.append("-")
            position += 1
            continue
        atom, position = _atom(pattern, position)
        if pattern[position : position + 1] == "-" and pattern[position + 1 : position + 2] not in {"", "]"}:
            last, position = _atom(pattern, position + 1)
            atom = f"{atom}-{last}"
        parts.append(atom)
    raise ValueError(pattern)


def _atom(pattern: str, position: int) -> tuple[str, int]:
    found = _ATOM.match(pattern, position)
    if found is None:
        raise ValueError(pattern)
    text = found.group()
    return "\\" + text if text in _SET_CHARACTERS else _character(text), found.end()


def _character(text: str) -> str:
    if text.startswith("\\u{"):
        return f"\\U{int(text[3:-1], 16):08x}"
    if text.startswith("\\c") and len(text) == 3:
        return f"\\x{ord(text[2]) % 32:02x}"
    return text
