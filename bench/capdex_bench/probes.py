"""Known-item queries over a made-up catalog in which each field says something of its own.

In real documents name, summary and path mostly say the same, so a mean over real requests hides
the loss of a field. Here 64 operations hold every pair of eight words and eight other words in
each field, the fields' words are disjoint, and a probe asks with the words of one field: it falls
at once when that field no longer counts. Probes guard the ranker and need no data; they say
nothing about how well it serves agents, and no figure of quality includes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from capdex_engine.operation import Operation

from .formats import Query

_NAME: Final = (
    ("rotate", "archive", "publish", "duplicate", "freeze", "export", "assign", "rename"),
    ("badge", "voucher", "playlist", "warehouse", "tournament", "recipe", "telescope", "mortgage"),
)
_SUMMARY: Final = (
    ("translate", "measure", "schedule", "repair", "compare", "approve", "paint", "weigh"),
    ("contract", "elevator", "garden", "vaccine", "orchestra", "satellite", "passport", "bicycle"),
)
_PATH: Final = (
    ("harbours", "libraries", "museums", "clinics", "stadiums", "bakeries", "embassies", "farms"),
    ("tickets", "lamps", "fences", "engines", "mirrors", "blankets", "ladders", "kettles"),
)
_ASKED: Final[Mapping[str, str]] = {
    "name": "please {} the {}",
    "summary": "I want to {} a {}",
    "path": "something about {} and their {}",
}
_STEPS: Final[Mapping[str, int]] = {"name": 1, "summary": 11, "path": 27}
"""Odd, so that each field runs through all 64 pairs, and in an order of its own."""
SIZE: Final = 64


def _pair(field: str, number: int) -> tuple[str, str]:
    first, second = {"name": _NAME, "summary": _SUMMARY, "path": _PATH}[field]
    place = number * _STEPS[field] % SIZE
    return first[place // 8], second[place % 8]


def _operation(number: int) -> Operation:
    name, summary, path = (_pair(field, number) for field in ("name", "summary", "path"))
    return Operation(
        name=name[0] + name[1].title(),
        source="probes",
        method="POST",
        path=f"/{path[0]}/{path[1]}",
        summary=f"{summary[0].title()} a {summary[1]}",
        key=f"probe-{number:02}",
    )


def probe_operations() -> tuple[Operation, ...]:
    """Return the made-up catalog."""
    return tuple(_operation(number) for number in range(SIZE))


def probes() -> Iterator[tuple[Query, str]]:
    """Yield each query, typed by its field, with the key that answers it."""
    for field, asked in _ASKED.items():
        for number in range(SIZE):
            text = asked.format(*_pair(field, number))
            yield Query(f"{field}-{number:02}", text, field), f"probe-{number:02}"
