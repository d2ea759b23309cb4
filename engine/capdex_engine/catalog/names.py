"""Names of operations (SPEC section 1): clean, short, unique, the same whatever the order.

Clashes are resolved in rounds over sets. In every round all holders of a name that is not unique give
it up together and take their next candidate; a name once given up is never taken again. So nothing
depends on who came first, and a name never passes silently from one operation to another.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

MAX_LENGTH: Final = 64
"""Characters; what MCP clients accept."""
MAX_PREFIX: Final = 24
"""Characters of a source's name in front of a clashing name, so that something is left of the latter."""

_ALLOWED = re.compile(r"[A-Za-z0-9_.-]+")
_WORD = re.compile(r"[A-Za-z0-9]+")
_TEMPLATE = re.compile(r"(\{[^{}]*\})")

Ladder = Callable[[int], str]
"""Round -> candidate; later ones are longer-winded and end in ever longer hashes."""


@dataclass(frozen=True, slots=True)
class Nameable:
    """What the name of an operation is made from.

    Args:
        key: Identity inside the source, such as ``GET /pets``.
    """

    source: str
    key: str
    operation_id: str | None
    method: str
    path: str


def clean_name(text: str) -> str:
    """Return ``text`` in ``[A-Za-z0-9_.-]``: accents folded, runs of other characters as one ``_``."""
    return "_".join(_ALLOWED.findall(_fold(text)))


def built_name(method: str, path: str) -> str:
    """Return a name made from method and path: ``GET /workers/{id}/jobs`` -> ``getWorkersByIdJobs``."""
    parts = (_camel(part) for part in _TEMPLATE.split(_fold(path)))
    return (method.lower() or "path") + "".join(parts)


def lone_name(item: Nameable) -> str:
    """Return the name of an operation that has none beside it."""
    return _local_ladder(item)(0)


def assign_names(items: Sequence[Nameable]) -> list[str]:
    """Return one name for each item, unique over all of them and independent of their order.

    Raises:
        ValueError: Two items share source and key.
    """
    if len({(item.source, item.key) for item in items}) != len(items):
        raise ValueError("two operations of one source share their key")
    local, given_up = _local_names(items)
    ladders = [_global_ladder(item, name) for item, name in zip(items, local, strict=True)]
    return _settle(ladders, given_up)


def _local_names(items: Sequence[Nameable]) -> tuple[list[str], set[str]]:
    by_source: defaultdict[str, list[int]] = defaultdict(list)
    for index, item in enumerate(items):
        by_source[item.source].append(index)
    names = [""] * len(items)
    given_up: set[str] = set()
    for indexes in by_source.values():
        burned: set[str] = set()
        settled = _settle([_local_ladder(items[index]) for index in indexes], burned)
        given_up |= burned
        for index, name in zip(indexes, settled, strict=True):
            names[index] = name
    return names, given_up


def _settle(ladders: Sequence[Ladder], burned: set[str]) -> list[str]:
    rounds = [0] * len(ladders)
    names = [ladder(0) for ladder in ladders]
    while True:
        counts = Counter(names)
        clashing = {name for name, count in counts.items() if count > 1 or name in burned}
        if not clashing:
            return names
        burned |= clashing
        for index, name in enumerate(names):
            if name in clashing:
                rounds[index] += 1
                names[index] = ladders[index](rounds[index])


def _local_ladder(item: Nameable) -> Ladder:
    base = clean_name(item.operation_id or "") or built_name(item.method, item.path)

    def candidate(turn: int) -> str:
        if turn == 0:
            return _fit(base)
        if turn == 1 and base != (built := built_name(item.method, item.path)):
            return _fit(f"{base}_{built}")
        return _with_hash(base, item.key, turn)

    return candidate


def _global_ladder(item: Nameable, local: str) -> Ladder:
    def candidate(turn: int) -> str:
        if turn == 0:
            return local
        prefixed = f"{_prefix(item.source)}.{local}"
        if turn == 1:
            return _fit(prefixed)
        return _with_hash(prefixed, f"{item.source}\n{item.key}", turn)

    return candidate


def _prefix(source: str) -> str:
    return _fit(clean_name(source) or _with_hash("source", source, 1), MAX_PREFIX)


def _fit(text: str, limit: int = MAX_LENGTH) -> str:
    return text if len(text) <= limit else _with_hash(text, text, 1, limit)


def _with_hash(text: str, identity: str, turn: int, limit: int = MAX_LENGTH) -> str:
    digest = sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[: min(8 * turn, 40)]
    head = text[: limit - 1 - len(digest)].rstrip("_.-")
    return f"{head}_{digest}"


def _camel(part: str) -> str:
    words = "".join(word[:1].upper() + word[1:] for word in _WORD.findall(part))
    return f"By{words}" if part.startswith("{") and words else words


def _fold(text: str) -> str:
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(char for char in decomposed if not unicodedata.combining(char))
