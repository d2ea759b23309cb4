r"""Regular expressions of strangers, matched without the risk of a stall.

Python's ``re`` backtracks and cannot be interrupted. The worst case is estimated from the pattern's
shape (how many unbounded repetitions follow each other, and whether one stands inside another), and
a value too long for that estimate is not checked at all: it passes, and the upstream decides.
Patterns that Python cannot compile (``\p{L}``) pass every value too.
"""

from __future__ import annotations

import math
import re
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

MAX_STEPS: Final = 2_000_000
"""Worst-case steps of one match: some 50 ms."""

MAX_STEPS_PER_VALUE: Final = 20_000_000
"""Worst-case steps of all matches within one validation."""

_TOKEN: Final = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?(?:[:=!>]|<[=!]|P?<\w+>)|\{\d*,?\d*\}|.", re.DOTALL
)
_steps_left: ContextVar[list[int] | None] = ContextVar("steps_left", default=None)


class StepBudget:
    """Within this context all matches share :data:`MAX_STEPS_PER_VALUE`."""

    def __enter__(self) -> None:
        self._token = _steps_left.set([MAX_STEPS_PER_VALUE])

    def __exit__(self, *_: object) -> None:
        _steps_left.reset(self._token)


def matches(pattern: str, text: str) -> bool:
    """Return whether ``pattern`` is found in ``text``; True where that cannot be decided cheaply."""
    compiled = _compile(pattern)
    if compiled is None:
        return True
    expression, shape = compiled
    steps = shape.steps(len(text))
    return steps > MAX_STEPS or not spend(steps) or expression.search(text) is not None


def spend(steps: int) -> bool:
    """Take steps from the budget of this context; False when too few are left."""
    left = _steps_left.get()
    if left is None:
        return True
    left[0] -= steps
    return left[0] >= 0


@dataclass(slots=True)
class _Shape:
    """What decides the cost of a pattern."""

    anchored: bool = False
    loops: int = 0
    branching: int = 0
    """Ways per character when a repetition stands inside a repetition; 0 when none does."""

    def steps(self, length: int) -> int:
        if self.branching:
            return int(math.exp(min(40.0, length * math.log(self.branching))))
        return int(max(1, length) ** min(12, max(1, self.loops + (not self.anchored))))


@dataclass(slots=True)
class _Group:
    loops: bool = False
    branches: int = 1


@dataclass(slots=True)
class _Scanner:
    """One pass over a pattern's tokens."""

    shape: _Shape
    groups: list[_Group] = field(default_factory=lambda: [_Group()])
    closed: _Group | None = None
    """The group that the previous piece closed."""

    def read(self, piece: str) -> str:
        closed, self.closed = self.closed, None
        if piece.startswith("("):
            self.groups.append(_Group())
        elif piece == ")" and len(self.groups) > 1:
            self.closed = self.groups.pop()
            self.groups[-1].loops |= self.closed.loops
        elif piece == "|":
            self.groups[-1].branches += 1
        elif _repeats(piece):
            self._repeat(piece, closed)
        return r"\Z" if piece == "$" else piece

    def _repeat(self, piece: str, closed: _Group | None) -> None:
        if closed is not None and (closed.loops or closed.branches > 1):
            self.shape.branching = max(self.shape.branching, 2, closed.branches)
        elif _unbounded(piece):
            self.shape.loops += 1
        self.groups[-1].loops |= _unbounded(piece)


def _repeats(piece: str) -> bool:
    return piece in {"*", "+"} or (piece.startswith("{") and piece not in {"{", "{1}", "{0,1}", "{,1}"})


def _unbounded(piece: str) -> bool:
    return piece in {"*", "+"} or (len(piece) > 1 and "," in piece)


@lru_cache(maxsize=2048)
def _compile(pattern: str) -> tuple[re.Pattern[str], _Shape] | None:
    scanner = _Scanner(_Shape(anchored=pattern.startswith(("^", r"\A"))))
    # A bare $ matches before a final newline in Python, and only at the end in ECMA-262.
    translated = "".join(scanner.read(piece) for piece in _TOKEN.findall(pattern))
    try:
        return re.compile(translated), scanner.shape
    except (re.error, OverflowError, RecursionError):
        return None
