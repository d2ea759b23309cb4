"""Patterns matched in time proportional to text times pattern, for those on which ``re`` could stall.

A pattern becomes a graph of states (Thompson's construction) that are followed all at once. Only what is
regular has such a graph: back references, look-around and flags have none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from re import _constants as op  # type: ignore[attr-defined]  # the compiler's own reading of a pattern
from typing import Any, Final

MAX_STATES: Final = 2000

_Test = Callable[[str], bool]
_CATEGORIES: Final = {
    op.CATEGORY_DIGIT: r"\d",
    op.CATEGORY_NOT_DIGIT: r"\D",
    op.CATEGORY_SPACE: r"\s",
    op.CATEGORY_NOT_SPACE: r"\S",
    op.CATEGORY_WORD: r"\w",
    op.CATEGORY_NOT_WORD: r"\W",
}
_STARTS: Final = {op.AT_BEGINNING, op.AT_BEGINNING_STRING}


class NotRegular(ValueError):
    """The pattern has no graph, or one that is too large."""


class Automaton:
    """The graph of one pattern.

    Args:
        tree: What :func:`re._parser.parse` returns, of a pattern without flags.

    Raises:
        NotRegular: There is no graph.
    """

    def __init__(self, tree: Any) -> None:
        self._tests: list[_Test | None] = []
        """State -> what the next character must be; None where none is taken."""
        self._at: list[Any] = []
        """State -> where in the text it must be; None for anywhere."""
        self._next: list[list[int]] = []
        self._end = self._state()
        self._start = self._sequence(tree, self._end)

    def __len__(self) -> int:
        return len(self._next)

    def search(self, text: str) -> bool:
        """Return whether the pattern is found in ``text``; takes len(text) * len(self) steps at most."""
        alive: set[int] = set()
        for position in range(len(text) + 1):
            reached = self._closure([*alive, self._start], text, position)
            if self._end in reached:
                return True
            if position == len(text):
                break
            letter = text[position]
            alive = {
                following
                for state in reached
                if (test := self._tests[state]) is not None and test(letter)
                for following in self._next[state]
            }
        return False

    def _closure(self, states: Iterable[int], text: str, position: int) -> set[int]:
        reached: set[int] = set()
        pending = list(states)
        while pending:
            state = pending.pop()
            if state in reached:
                continue
            reached.add(state)
            if self._tests[state] is None and (
                self._at[state] is None or _is_at(self._at[state], text, position)
            ):
                pending.extend(self._next[state])
        return reached

    def _state(self, *following: int, test: _Test | None = None, at: Any = None) -> int:
        if len(self._next) >= MAX_STATES:
            raise NotRegular("too many states")
        self._tests.append(test)
        self._at.append(at)
        self._next.append(list(following))
        return len(self._next) - 1

    def _sequence(self, pieces: Any, after: int) -> int:
        for code, argument in reversed(list(pieces)):
            after = self._piece(code, argument, after)
        return after

    def _piece(self, code: Any, argument: Any, after: int) -> int:
        if code is op.SUBPATTERN and not argument[1] and not argument[2]:
            return self._sequence(argument[3], after)
        if code is op.BRANCH:
            return self._state(*[self._sequence(branch, after) for branch in argument[1]])
        if code in {op.MAX_REPEAT, op.MIN_REPEAT}:
            least, most, inner = argument
            return self._repeat(least, most, inner, after)
        if code is op.AT:
            return self._state(after, at=argument)
        return self._state(after, test=_test(code, argument))

    def _repeat(self, least: int, most: int, pieces: Any, after: int) -> int:
        if most is op.MAXREPEAT or most == op.MAXREPEAT:
            again = self._state(after)
            self._next[again].append(self._sequence(pieces, again))
            after = again
        else:
            out = after
            for _ in range(int(most) - least):
                after = self._state(out, self._sequence(pieces, after))
        for _ in range(least):
            after = self._sequence(pieces, after)
        return after


def _test(code: Any, argument: Any) -> _Test:
    if code is op.LITERAL:
        return lambda letter: ord(letter) == argument
    if code is op.NOT_LITERAL:
        return lambda letter: ord(letter) != argument
    if code is op.ANY:
        return lambda letter: letter != "\n"
    if code is op.ANY_ALL:
        return lambda _: True
    if code is op.RANGE:
        return lambda letter: argument[0] <= ord(letter) <= argument[1]
    if code is op.CATEGORY and argument in _CATEGORIES:
        matches = re.compile(_CATEGORIES[argument]).match
        return lambda letter: matches(letter) is not None
    if code is op.IN:
        return _one_of(argument)
    raise NotRegular(str(code))


def _one_of(members: list[tuple[Any, Any]]) -> _Test:
    negated = bool(members) and members[0][0] is op.NEGATE
    tests = [_test(*member) for member in members[negated:]]
    return lambda letter: any(test(letter) for test in tests) is not negated


def _is_at(place: Any, text: str, position: int) -> bool:
    if place in _STARTS:
        return position == 0
    if place is op.AT_END_STRING:
        return position == len(text)
    if place is op.AT_END:
        return position == len(text) or (position == len(text) - 1 and text[position] == "\n")
    if place in {op.AT_BOUNDARY, op.AT_NON_BOUNDARY}:
        before = position > 0 and re.match(r"\w", text[position - 1]) is not None
        behind = position < len(text) and re.match(r"\w", text[position]) is not None
        return (before is not behind) is (place is op.AT_BOUNDARY)
    return False
