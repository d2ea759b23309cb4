"""Plots as SVG text, drawn by hand: no plotting library, no request, colours from the page's CSS.

Values are in the units of the axes; an axis runs from 0 to its largest value unless told.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

WIDTH: Final = 720
HEIGHT: Final = 300
LEFT, RIGHT, TOP, BOTTOM = 48, 12, 12, 44
COLOURS: Final = 8
"""Classes ``c0``..``c7`` that the page's CSS colours."""

Points = Sequence[tuple[float, float]]
Counted = Sequence[tuple[float, float, int]]
"""Points, each with how many things it stands for."""


def _x(share: float) -> float:
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _y(share: float) -> float:
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _frame(title: str, body: Sequence[str], x_label: str, y_label: str) -> str:
    axes = f'<path class="axis" d="M{_x(0):.1f} {_y(1):.1f}V{_y(0):.1f}H{_x(1):.1f}"/>'
    labels = [_text(_x(0.5), HEIGHT - 6, x_label), _text(_x(0) + 6, _y(1) + 4, y_label, "start")]
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img"><title>{escape(title)}</title>'
        + "".join([axes, *labels, *body])
        + "</svg>"
    )


def _y_ticks(top: float) -> list[str]:
    ticks = [(share, share * top) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    lines = [f'<path class="grid" d="M{_x(0):.1f} {_y(s):.1f}H{_x(1):.1f}"/>' for s, _ in ticks[1:]]
    return lines + [_text(_x(0) - 6, _y(share) + 4, f"{value:.2g}", "end") for share, value in ticks]


def legend(names: Sequence[str]) -> str:
    """Return the colours of the series, as HTML."""
    keys = (f'<span class="key c{i % COLOURS}">{escape(name)}</span>' for i, name in enumerate(names))
    return f'<p class="legend">{"".join(keys)}</p>'


def bars(title: str, columns: Mapping[str, Mapping[str, float]], *, y_label: str, top: float = 1.0) -> str:
    """Return grouped bars: ``{series: {group: value}}``; a missing or NaN value leaves a gap."""
    groups = list(dict.fromkeys(group for column in columns.values() for group in column))
    body = _y_ticks(top)
    slot = 1 / max(1, len(groups))
    wide = slot * 0.8 / max(1, len(columns))
    for place, group in enumerate(groups):
        body.append(_text(_x((place + 0.5) * slot), HEIGHT - BOTTOM + 15, group))
        for number, (name, column) in enumerate(columns.items()):
            left = (place + 0.1) * slot + number * wide
            body.append(_bar(left, wide, column.get(group, math.nan) / top, number, f"{name}, {group}"))
    return _frame(title, body, "", y_label) + legend(list(columns))


def _bar(left: float, wide: float, share: float, number: int, label: str) -> str:
    if math.isnan(share):
        return ""
    high = max(0.0, min(1.0, share))
    return (
        f'<rect class="c{number % COLOURS}" x="{_x(left):.1f}" y="{_y(high):.1f}" '
        f'width="{_x(wide) - _x(0):.1f}" height="{_y(0) - _y(high):.1f}">'
        f"<title>{escape(label)}: {share:.3f}</title></rect>"
    )


def lines(title: str, series: Mapping[str, Points], *, x_label: str, y_label: str) -> str:
    """Return one line per series over a common x axis; y from 0 to 1."""
    right = max((x for points in series.values() for x, _ in points), default=1.0) or 1.0
    body = _y_ticks(1.0) + _x_ticks(right)
    for number, (name, points) in enumerate(series.items()):
        body.append(_line([(x / right, y) for x, y in points], number, name))
    return _frame(title, body, x_label, y_label) + legend(list(series))


def _x_ticks(right: float) -> list[str]:
    shares = (0, 0.25, 0.5, 0.75, 1)
    return [_text(_x(share), HEIGHT - BOTTOM + 15, f"{share * right:.3g}") for share in shares]


def _line(shares: Points, number: int, name: str) -> str:
    places = " ".join(f"{_x(x):.1f},{_y(y):.1f}" for x, y in shares)
    shown = f"<title>{escape(name)}</title>"
    return f'<polyline class="c{number % COLOURS}" points="{places}">{shown}</polyline>'


def reliability(title: str, series: Mapping[str, Counted], *, x_label: str, y_label: str) -> str:
    """Return predicted against found shares, 0..1 both: dots as large as their counts, and the diagonal."""
    body = _y_ticks(1.0) + _x_ticks(1.0)
    body.append(f'<path class="grid" d="M{_x(0):.1f} {_y(0):.1f}L{_x(1):.1f} {_y(1):.1f}"/>')
    for number, (name, points) in enumerate(series.items()):
        most = max((count for _, _, count in points), default=1)
        body.append(_line([(x, y) for x, y, _ in points], number, name))
        body += [_dot(*point, most=most, number=number, name=name) for point in points]
    return _frame(title, body, x_label, y_label) + legend(list(series))


def _dot(x: float, y: float, count: int, *, most: int, number: int, name: str) -> str:
    """Return a dot with its count beside it: left of the first series' dots, right of the others'."""
    radius = 2 + 6 * math.sqrt(count / most)
    beside, anchor = (-radius - 3, "end") if number == 0 else (radius + 3, "start")
    return (
        f'<circle class="c{number % COLOURS}" cx="{_x(x):.1f}" cy="{_y(y):.1f}" r="{radius:.1f}">'
        f"<title>{escape(name)}: {count} with mean {x:.3f}, share right {y:.3f}</title></circle>"
        + _text(_x(x) + beside, _y(y) + 4, str(count), anchor)
    )


def scatter(title: str, points: Mapping[str, tuple[float, float]], *, x_label: str, y_label: str) -> str:
    """Return one named dot per entry; x on a logarithmic axis, y from 0 to 1."""
    known = {name: (max(x, 1e-3), y) for name, (x, y) in points.items() if not math.isnan(x + y)}
    exponents = [math.log10(x) for x, _ in known.values()] or [0.0]
    low, high = math.floor(min(exponents)), math.ceil(max(exponents) + 1e-9)
    span = max(1, high - low)
    body = _y_ticks(1.0)
    for power in range(low, low + span + 1):
        body.append(_text(_x((power - low) / span), HEIGHT - BOTTOM + 15, f"{10.0**power:g}"))
    for number, (name, (x, y)) in enumerate(known.items()):
        across = _x((math.log10(x) - low) / span)
        body.append(f'<circle class="c{number % COLOURS}" cx="{across:.1f}" cy="{_y(y):.1f}" r="5"/>')
        body.append(_text(across + 8, _y(y) + 4, name, "start"))
    return _frame(title, body, x_label, y_label)
