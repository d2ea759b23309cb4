"""The size of a JSON value, taken in one pass that ends where a limit is met.

Nothing is written out and nothing recurses, so that neither a schema of a gigabyte nor one of a million
levels costs more than its limits say. What is shared counts as often as JSON would write it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from capdex_engine.tools.limits import Code

_MAX_DIGITS: Final = 4000
"""Of a whole number; Python itself refuses to write more than 4,300."""


class Misfit(ValueError):
    """A value breaks a limit, or is no JSON; ``code`` says which, ``size`` how much had been counted."""

    def __init__(self, code: Code, problem: str, size: int = 0) -> None:
        super().__init__(problem)
        self.code = code
        self.size = size


def measure(value: Any, *, max_bytes: int, max_levels: int) -> int:
    """Return the bytes of ``value`` as compact JSON in UTF-8.

    Args:
        value: Made of mappings, lists, tuples, strings, numbers, booleans and None.
        max_bytes: The most that passes.
        max_levels: The most objects and lists inside each other.

    Raises:
        Misfit: It is larger or deeper, holds itself, or is no JSON.
    """
    return _Measure(max_bytes, max_levels).of(value)


def text_size(text: str) -> int:
    """Return the bytes of a text as JSON in UTF-8."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return len(text) + 2
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass"))


class _Measure:
    def __init__(self, max_bytes: int, max_levels: int) -> None:
        self._max_bytes = max_bytes
        self._max_levels = max_levels
        self._size = 0
        self._open: list[tuple[int, Iterator[Any]]] = []
        """Identity and remaining members of every container around the present place."""
        self._around: set[int] = set()

    def of(self, value: Any) -> int:
        self._enter(value)
        while self._open:
            identity, members = self._open[-1]
            try:
                member = next(members)
            except StopIteration:
                self._open.pop()
                self._around.discard(identity)
            except RuntimeError:  # changed while it is read
                raise Misfit(Code.INVALID_TOOL, "changes while it is read", self._size) from None
            else:
                self._enter(member)
        return self._size

    def _enter(self, value: Any) -> None:
        # Texts are the most, and asking whether something is a mapping takes long.
        if isinstance(value, str):
            self._count(self._text(value))
        elif isinstance(value, (dict, Mapping)):
            self._count(2 + max(0, len(value) - 1))
            self._push(value, self._members(value))
        elif isinstance(value, list | tuple):
            self._count(2 + max(0, len(value) - 1))
            self._push(value, iter(value))
        else:
            self._count(self._scalar(value))

    def _push(self, container: Any, members: Iterator[Any]) -> None:
        if id(container) in self._around:
            raise Misfit(Code.SCHEMA_CYCLE, "holds itself", self._size)
        if len(self._open) == self._max_levels:
            problem = f"is nested deeper than {self._max_levels} levels"
            raise Misfit(Code.SCHEMA_TOO_DEEP, problem, self._size)
        self._around.add(id(container))
        self._open.append((id(container), members))

    def _members(self, value: Mapping[Any, Any]) -> Iterator[Any]:
        for name, member in value.items():
            if not isinstance(name, str):
                raise Misfit(Code.INVALID_TOOL, "has a name that is no text", self._size)
            self._count(self._text(name) + 1)
            yield member

    def _scalar(self, value: Any) -> int:
        if value is None or value is True:
            return 4
        if value is False:
            return 5
        if isinstance(value, int):
            return self._digits(value)
        if isinstance(value, float) and math.isfinite(value):
            return len(float.__repr__(value))
        raise Misfit(Code.INVALID_TOOL, "holds a value that is no JSON", self._size)

    def _text(self, text: str) -> int:
        if len(text) > self._max_bytes - self._size:
            return len(text) + 2
        return text_size(text)

    def _digits(self, number: int) -> int:
        if number.bit_length() > _MAX_DIGITS * 3.3:
            problem = f"holds a number of more than {_MAX_DIGITS} digits"
            raise Misfit(Code.INVALID_TOOL, problem, self._size)
        return len(int.__repr__(number))

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > self._max_bytes:
            problem = f"has more than {self._max_bytes} bytes"
            # What is beyond the limit costs its server nothing.
            raise Misfit(Code.SCHEMA_TOO_LARGE, problem, self._max_bytes)
