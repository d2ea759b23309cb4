"""Vectors on disk, so that a rebuilt catalog encodes only what changed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .blocks import KEY_BYTES, Block
from .protocol import Encoder
from .shelf import Shelf

CAPACITY: Final = 250_000
"""Vectors kept per encoder, or twice those of the last call if that is more: 384 MB at 384 numbers."""

_CHUNK: Final = 4096  # texts encoded before they are saved: what an interrupted build may lose
_STEP: Final = 256  # texts between two reports of progress

Progress = Callable[[int, int], None]


class VectorStore:
    """An encoder with a memory: what it has encoded before is read from ``folder``.

    Each encoder's vectors lie in a folder named after its identity, as immutable blocks (``blocks.py``),
    so an encoder never meets another one's vectors, and processes may share the folder. Growth is
    bounded per encoder by ``capacity``, and to the folders of the last few encoders (``shelf.py``).
    The cache is an aid: where it is damaged or cannot be written, texts are encoded again.

    Args:
        folder: Where to keep them; made when missing. ``None`` keeps nothing.
        encoder: Encodes what is new.
        capacity: See ``CAPACITY``.
    """

    def __init__(self, folder: Path | None, encoder: Encoder, *, capacity: int = CAPACITY) -> None:
        self._encoder = encoder
        self._secret = hashlib.sha256(encoder.identity.encode()).digest()
        name = self._secret.hex()[:16]
        self._shelf = Shelf(folder / name, encoder.dimension, capacity) if folder else None

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> NDArray[np.float32]:
        """Return (n, dimension) float32, rows of length 1, encoding each new text once.

        Args:
            texts: In any order, repeated or not.
            progress: Told how many of the different texts are done, and how many there are.
        """
        keys = [self._key(text) for text in texts]
        distinct = dict(zip(keys, texts, strict=True))
        rows = {key: row for row, key in enumerate(distinct)}
        vectors = np.empty((len(rows), self._encoder.dimension), dtype=np.float32)
        found = self._shelf.fill(rows, vectors) if self._shelf else np.zeros(len(rows), dtype=np.bool_)
        self._complete(distinct, found, vectors, progress or (lambda done, total: None))
        return vectors[[rows[key] for key in keys]]

    def _key(self, text: str) -> bytes:
        data = text.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(data, digest_size=KEY_BYTES, key=self._secret).digest()

    def _complete(
        self,
        texts: dict[bytes, str],
        found: NDArray[np.bool_],
        vectors: NDArray[np.float32],
        progress: Progress,
    ) -> None:
        """Encode the rows that were not found, saving as it goes."""
        missing = np.flatnonzero(~found)
        keys = list(texts)
        progress(len(keys) - len(missing), len(keys))
        for start in range(0, len(missing), _CHUNK):
            for step in range(start, min(start + _CHUNK, len(missing)), _STEP):
                part = missing[step : step + _STEP]
                vectors[part] = self._encoder.encode([texts[keys[row]] for row in part])
                progress(len(keys) - len(missing) + step + len(part), len(keys))
            chunk = missing[start : start + _CHUNK]
            self._save(Block([keys[row] for row in chunk], vectors[chunk]), texts)

    def _save(self, block: Block, texts: dict[bytes, str]) -> None:
        if self._shelf:
            self._shelf.add(block)
            self._shelf.tidy(texts.keys())
