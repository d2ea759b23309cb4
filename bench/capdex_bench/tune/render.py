"""``weights.py`` as text: what the fit found, in the order that the engine reads it."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping
from typing import Final

from capdex_engine.rank.blend import Blend
from capdex_engine.rank.features import FEATURES

from .fit import FALSE_ABSTENTION, L2

_HEAD: Final = '''"""Fitted numbers of the blend (:mod:`capdex_engine.rank.blend`), by ``capdex bench tune``.

{made}
"""

from collections.abc import Mapping
from typing import Final
'''
_WEIGHTS_SAY: Final = f'''"""Feature -> gate -> weight: listwise softmax over each request's
candidates, L2 {L2:g}. ``same`` and ``deprecated`` are set by hand, since the training requests hold
too few of either."""'''
_CALIBRATION_SAY: Final = '''"""Logistic over what a caller sees of each request: slopes of an
operation's utility and of its rivals' together, and each gate's shift."""'''
_SERVED_SAY: Final = f'''"""Below 0, and nothing is returned: logistic over the utility of all
candidates together and the gates, its constant such that {FALSE_ABSTENTION:.0%} of the served requests
for single training APIs lie below."""'''


def weights_module(blend: Blend, made: str) -> str:
    """Return the source text.

    Args:
        blend: Rounded as it shall be stated.
        made: A sentence or two on what it was fitted on.
    """
    rows = "".join(f"    {_quoted(f)}: {_row(blend.weights[f])},\n" for f in FEATURES if blend.weights.get(f))
    text = "\n".join(
        (
            _HEAD.format(made=textwrap.fill(made, 105)),
            f"WEIGHTS: Final[Mapping[str, Mapping[str, float]]] = {{\n{rows}}}",
            _WEIGHTS_SAY,
            "",
            f"CALIBRATION: Final[Mapping[str, float]] = {_row(blend.calibration, 0)}",
            _CALIBRATION_SAY,
            "",
            f"SERVED: Final[Mapping[str, float]] = {_row(blend.served, 0)}",
            _SERVED_SAY,
            "",
        )
    )
    ast.parse(text)
    return text


def _row(numbers: Mapping[str, float], indent: int = 4) -> str:
    """Return a dict display, on one line where it fits, else as the formatter breaks it."""
    pairs = [f"{_quoted(name)}: {value!r}" for name, value in numbers.items()]
    if indent and len(pairs) < 2:
        return "{" + ", ".join(pairs) + "}"
    inner = "".join(f"{' ' * (indent + 4)}{pair},\n" for pair in pairs)
    return "{\n" + inner + " " * indent + "}"


def _quoted(name: str) -> str:
    return f'"{name}"'
