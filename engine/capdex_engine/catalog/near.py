"""Names near to one that does not exist: "did you mean", over a hundred thousand names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from capdex_engine.operation import Operation

CLOSE_ENOUGH: Final = 0.6
"""Least similarity of a suggestion, as difflib measures it (0..1)."""
_CANDIDATES: Final = 200
"""Names compared letter by letter, of those that share most letter pairs."""
_BITS: Final = 256
_SEPARATORS: Final = str.maketrans("", "", "_.-")


class NearNames:
    """Finds near names by shared letter pairs, then by difflib; built at its first use.

    Args:
        operations: Those that may be suggested.
    """

    def __init__(self, operations: Sequence[Operation]) -> None:
        self._operations = operations
        self._plain = [_plain(operation.name) for operation in operations]
        self._signatures = _signatures(self._plain)

    def find(self, name: str, limit: int, allowed: Callable[[Operation], bool] | None) -> list[str]:
        """Return up to ``limit`` names, the nearest first, among the operations that are allowed."""
        wanted = _plain(name)
        close: list[tuple[float, str]] = []
        for index in self._candidates(wanted, allowed):
            similarity = SequenceMatcher(None, wanted, self._plain[index], autojunk=False).ratio()
            if similarity >= CLOSE_ENOUGH:
                close.append((-similarity, self._operations[index].name))
        return [found for _, found in sorted(close)[:limit]]

    def _candidates(self, wanted: str, allowed: Callable[[Operation], bool] | None) -> list[int]:
        """Return the likeliest of the allowed, asking for every one: time must not tell what is near."""
        if allowed is None:
            rows = np.arange(len(self._plain))
        else:
            rows = np.flatnonzero(np.fromiter(map(allowed, self._operations), np.bool_, len(self._plain)))
        if not len(rows):
            return []
        signatures, mine = self._signatures[rows], _signatures([wanted])[0]
        shared = np.bitwise_count(signatures & mine).sum(axis=1, dtype=np.int32)
        own = np.bitwise_count(signatures).sum(axis=1, dtype=np.int32)
        likeness = 2.0 * shared / np.maximum(1, own + int(np.bitwise_count(mine).sum()))
        best: list[int] = rows[np.argsort(-likeness, kind="stable")[:_CANDIDATES]].tolist()
        return best


def _plain(name: str) -> str:
    return name.lower().translate(_SEPARATORS)[:64]


def _signatures(names: Sequence[str]) -> NDArray[np.uint64]:
    """Return (len(names), 4) words of which each set bit stands for a pair of letters."""
    letters = np.array([name.encode("ascii", "replace") for name in names], dtype="S64")
    codes = letters.view(np.uint8).reshape(len(names), 64).astype(np.uint16)
    pairs = (codes[:, :-1] * 31 + codes[:, 1:]) % _BITS
    present = (codes[:, :-1] > 0) & (codes[:, 1:] > 0)
    words: NDArray[Any] = np.zeros((len(names), _BITS // 64), dtype=np.uint64)
    rows = np.arange(len(names))
    for column in range(pairs.shape[1]):
        held = present[:, column]
        pair = pairs[held, column]
        words[rows[held], pair // 64] |= np.uint64(1) << (pair % 64).astype(np.uint64)
    return words
