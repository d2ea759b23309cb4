"""An encoder for tests: no model, no files, the same vectors everywhere."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_STEM: Final = 4  # letters that a plural, a tense and their stem have in common


class HashEncoder:
    """Bag of hashed words: texts that share words are near each other, nothing more.

    Words are split at case changes and punctuation and lower-cased; each counts once by itself and, so
    that "orders" is near "order", once by its first four letters. A text without words is a fixed vector.

    Args:
        dimension: More of them means fewer chance likenesses.
    """

    def __init__(self, dimension: int = 256) -> None:
        self.dimension = dimension
        self.identity = f"hash:{dimension}"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return (n, dimension) float32, rows of length 1."""
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for piece in _pieces(text):
                place, sign = self._bucket(piece)
                row[place] += sign
            if not row.any():
                row[0] = 1.0
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors

    def _bucket(self, piece: str) -> tuple[int, float]:
        number = int.from_bytes(
            hashlib.blake2b(piece.encode("utf-8", "replace"), digest_size=8).digest(), "big"
        )
        return (number >> 1) % self.dimension, 1.0 if number & 1 else -1.0


def _pieces(text: str) -> Iterator[str]:
    for word in _WORD.findall(text):
        yield word.lower()
        yield f"{word.lower()[:_STEM]}*"
