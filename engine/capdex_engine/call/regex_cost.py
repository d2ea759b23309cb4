"""How long Python's backtracking ``re`` can take with a pattern: an upper bound from its parse tree.

Of each piece two numbers are computed for a text of ``n`` characters: in how many ways it can match from
one place, and how many steps it takes to try them all. A sequence multiplies the ways of what stands before
each piece; a repetition is a sequence of as many pieces as fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from re import _constants as op  # type: ignore[attr-defined]  # the compiler's own reading of a pattern
from typing import Any, Final

ENDLESS: Final = 1e18
"""No number of steps is told beyond this."""


@dataclass(frozen=True, slots=True)
class Effort:
    """Upper bounds for one piece of a pattern.

    Args:
        ways: Matches from one place.
        steps: To find them all.
        width: Least number of characters that it takes.
    """

    ways: float
    steps: float
    width: int


_ONE: Final = Effort(1, 1, 1)
_NOTHING: Final = Effort(1, 1, 0)


def steps_of(tree: Any, length: int, *, anchored: bool) -> float:
    """Return how many steps a search in a text of ``length`` characters can take at most.

    Args:
        tree: What :func:`re._parser.parse` returns.
        length: Of the text.
        anchored: Whether the pattern can only match at the text's beginning.
    """
    return min(ENDLESS, _sequence(tree, length).steps * (1 if anchored else length + 1))


def _sequence(pieces: Any, length: int) -> Effort:
    ways, steps, width = 1.0, 1.0, 0
    for piece in pieces:
        found = _piece(piece, length)
        steps = min(ENDLESS, steps + ways * found.steps)
        ways = min(ENDLESS, ways * found.ways)
        width += found.width
    return Effort(ways, steps, width)


def _piece(piece: tuple[Any, Any], length: int) -> Effort:
    code, argument = piece
    if code in _INNER:
        return _sequence(_INNER[code](argument), length)
    if code in _REPEATS:
        least, most, inner = argument
        return _repeat(least, most, inner, length)
    if code in {op.BRANCH, op.GROUPREF_EXISTS}:
        branches = argument[1] if code is op.BRANCH else [part for part in argument[1:] if part]
        found = [_sequence(branch, length) for branch in branches]
        width = min((each.width for each in found), default=0)
        ways = sum(each.ways for each in found) + 1
        return Effort(ways, sum(each.steps for each in found) + 1, width)
    if code in {op.ASSERT, op.ASSERT_NOT}:
        return Effort(1, _sequence(argument[1], length).steps, 0)
    if code is op.GROUPREF:
        return Effort(1, length + 1, 0)
    return _NOTHING if code is op.AT else _ONE


_INNER: Final[Mapping[Any, Callable[[Any], Any]]] = {
    op.SUBPATTERN: lambda argument: argument[-1],
    op.ATOMIC_GROUP: lambda argument: argument,
}
_REPEATS: Final = {op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT}


def _repeat(least: int, most: int, pieces: Any, length: int) -> Effort:
    inner = _sequence(pieces, length)
    # Python ends a repetition when a round takes nothing, once the least number of rounds is done.
    fitting = length // inner.width if inner.width else least + length + 1
    rounds = min(int(most), fitting)
    width = min(least * inner.width, 1 << 32)
    if inner.ways <= 1:
        return Effort(max(1, rounds - least + 1), min(ENDLESS, inner.steps * (rounds + 1)), width)
    if rounds * math.log(inner.ways) > math.log(ENDLESS):
        return Effort(ENDLESS, ENDLESS, width)
    tries = (inner.ways ** (rounds + 1) - 1) / (inner.ways - 1)
    return Effort(tries, min(ENDLESS, inner.steps * tries), width)
