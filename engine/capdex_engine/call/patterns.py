r"""Regular expressions of strangers, matched without the risk of a stall.

Python's ``re`` backtracks and cannot be interrupted. Where the most steps that it could take are few, it is
used; else the pattern's automaton, which takes time proportional to the text; and where there is none (a
back reference that could stall), or the steps of the whole call are used up, the value is not checked: it
passes, and the upstream decides. Patterns that Python cannot compile (``\p{L}``) pass every value too.
"""

from __future__ import annotations

import re
from contextvars import ContextVar, Token
from dataclasses import dataclass
from functools import lru_cache
from re import _constants as op  # type: ignore[attr-defined]  # the compiler's own reading of a pattern
from re import _parser  # type: ignore[attr-defined]
from typing import Any, Final

from capdex_engine.call.automaton import Automaton, NotRegular
from capdex_engine.call.regex_cost import steps_of

MAX_STEPS: Final = 2_000_000
"""Steps of one match, each some 25 ns: 50 ms."""

MAX_STEPS_PER_CALL: Final = 40_000_000
"""Steps of everything that is checked of one call: a second or two."""

_STATE_STEPS: Final = 20
"""What following one state of an automaton over one character costs, in steps."""
_MAX_PATTERN: Final = 5000
_TOKEN: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)
_steps_left: ContextVar[list[int] | None] = ContextVar("steps_left", default=None)


class StepBudget:
    """Within the outermost such context all that is checked shares :data:`MAX_STEPS_PER_CALL`."""

    _token: Token[list[int] | None] | None = None

    def __enter__(self) -> None:
        if _steps_left.get() is None:
            self._token = _steps_left.set([MAX_STEPS_PER_CALL])

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _steps_left.reset(self._token)


def matches(pattern: str, text: str) -> bool:
    """Return whether ``pattern`` is found in ``text``; True where that cannot be decided cheaply."""
    compiled = _compile(pattern)
    if compiled is None:
        return True
    steps = compiled.steps(len(text))
    if steps <= MAX_STEPS:
        return not spend(int(steps)) or compiled.expression.search(text) is not None
    automaton = compiled.automaton
    if automaton is None:
        return True
    steps = _STATE_STEPS * len(automaton) * (len(text) + 1)
    return steps > MAX_STEPS or not spend(int(steps)) or automaton.search(text)


def spend(steps: int) -> bool:
    """Take steps from the budget of this context; False when too few are left."""
    left = _steps_left.get()
    if left is None:
        return True
    left[0] -= steps
    return left[0] >= 0


@dataclass(slots=True, eq=False)
class _Compiled:
    """A pattern, as ``re`` takes it and as it reads it."""

    expression: re.Pattern[str]
    tree: Any
    automaton: Automaton | None

    def steps(self, length: int) -> float:
        return _steps(self, length)

    @property
    def anchored(self) -> bool:
        return len(self.tree) > 0 and self.tree[0] in (
            (op.AT, op.AT_BEGINNING),
            (op.AT, op.AT_BEGINNING_STRING),
        )


@lru_cache(maxsize=8192)
def _steps(compiled: _Compiled, length: int) -> float:
    return steps_of(compiled.tree, length, anchored=compiled.anchored)


@lru_cache(maxsize=2048)
def _compile(pattern: str) -> _Compiled | None:
    if len(pattern) > _MAX_PATTERN:
        return None
    # A bare $ matches before a final newline in Python, and only at the end in ECMA-262.
    translated = "".join(r"\Z" if piece == "$" else piece for piece in _TOKEN.findall(pattern))
    try:
        expression = re.compile(translated)
        tree = _parser.parse(translated)
        # Counted repetitions inside others make numbers that only a walk over the tree can tell.
        steps_of(tree, 100, anchored=False)
    except (re.error, OverflowError, RecursionError):
        return None
    try:
        automaton = None if expression.flags & ~re.UNICODE else Automaton(tree)
    except (NotRegular, RecursionError):
        automaton = None
    return _Compiled(expression, tree, automaton)
