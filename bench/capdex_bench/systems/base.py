"""What all systems share: the context they are built in, tokens, and the top of an array."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from capdex_engine.encode import Encoder, VectorStore, load_encoder
from capdex_engine.operation import Operation

Scores = NDArray[np.float64]
"""One score per operation, in the catalog's order."""
Found = tuple[str, float] | tuple[str, float, Mapping[str, float]]
"""Key and score, and the parts of the score where the system can tell them."""
Search = Callable[[str, int], Sequence[Found]]


class Context:
    """What a system may need beside the operations; the encoder is loaded only when asked for.

    Args:
        cache: Folder for the model and for vectors; ``None`` keeps vectors in memory.
        load: Returns the encoder. Default: the engine's pinned model, under ``cache``.
        load_baseline: Returns the encoder of the dense baselines. Default: the same encoder.
    """

    def __init__(
        self,
        cache: Path | None = None,
        load: Callable[[], Encoder] | None = None,
        load_baseline: Callable[[], Encoder] | None = None,
    ) -> None:
        self.cache = cache
        self._load = load or self._pinned
        self._load_baseline = load_baseline

    def _pinned(self) -> Encoder:
        if self.cache is None:
            raise ValueError("the pinned encoder needs a cache folder")
        return load_encoder(self.cache)

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder, loaded once."""
        return self._load()

    @cached_property
    def baseline(self) -> Context:
        """The context of the dense baselines, which must not move when the engine's encoder does."""
        return Context(self.cache, self._load_baseline) if self._load_baseline else self

    @property
    def identity(self) -> str:
        """Identities of the encoders that systems asked for, joined by `` + ``."""
        contexts = [self, *([self.baseline] if "baseline" in self.__dict__ else [])]
        used = [one.encoder.identity for one in contexts if "encoder" in one.__dict__]
        return " + ".join(dict.fromkeys(used))

    @cached_property
    def store(self) -> VectorStore:
        """Vectors of texts met before."""
        return VectorStore(self.cache / "vectors" if self.cache else None, self.encoder)


Build = Callable[[Sequence[Operation], Context], Search]

_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD: Final = re.compile(r"[^\W\d_]+|\d+")


def tokens(text: str) -> list[str]:
    """Return lower-case words; camelCase, snake_case and digits are parted.

    Plain on purpose, and not the engine's: a baseline must not move when the engine does.
    """
    return [word.lower() for word in _WORD.findall(_HUMP.sub(" ", text))]


def top(operations: Sequence[Operation], scores: Scores, k: int, *, floor: float = 0.0) -> list[int]:
    """Return the indices of the ``k`` best scores above ``floor``; ties go by name."""
    candidates = np.flatnonzero(scores > floor)
    if len(candidates) > k:  # keep everything that ties with the k-th
        cut = np.partition(scores[candidates], len(candidates) - k)[len(candidates) - k]
        candidates = candidates[scores[candidates] >= cut]
    order = sorted(candidates.tolist(), key=lambda i: (-scores[i], operations[i].name))
    return order[:k]


def ranked(operations: Sequence[Operation], score: Callable[[str], Scores], *, floor: float = 0.0) -> Search:
    """Return the search over a function that scores the whole catalog."""

    def search(text: str, k: int) -> list[tuple[str, float]]:
        scores = score(text)
        return [(operations[i].key, float(scores[i])) for i in top(operations, scores, k, floor=floor)]

    return search
