"""Meaning: one vector per operation, searched by inner product."""

from __future__ import annotations

import re
from typing import Final

import numpy as np
from numpy.typing import NDArray

from capdex_engine.operation import Operation
from capdex_engine.rank.scan import scan_of
from capdex_engine.text import words

_SENTENCE_END: Final = re.compile(r"(?<=[.!?。])\s+")
_PLACEHOLDER: Final = re.compile(r"\{[^}]*\}")
_DESCRIPTION_CHARACTERS: Final = 200
_PARAMETERS: Final = 8
_NONE: Final[NDArray[np.int64]] = np.zeros(0, dtype=np.int64)


def operation_text(op: Operation) -> str:
    """Return the text that is embedded: what an operation says about itself, the telling parts first.

    The API's title stands last: in front it drew all operations of one API together.
    """
    parts = (
        " ".join(words(op.name)),
        op.summary,
        first_sentences(op.description, _DESCRIPTION_CHARACTERS),
        " ".join(words(_PLACEHOLDER.sub(" ", op.path))),
        ", ".join(" ".join(words(name)) for name in _argument_names(op)[:_PARAMETERS]),
        " ".join(op.keywords),
        op.api_title,
    )
    return ". ".join(trimmed for part in parts if (trimmed := part.strip(" .")))


def first_sentences(text: str, limit: int) -> str:
    """Return as many whole sentences as fit ``limit`` characters; a longer first one is cut."""
    kept = ""
    for sentence in _SENTENCE_END.split(text):
        longer = f"{kept} {sentence}".strip()
        if kept and len(longer) > limit:
            break
        kept = longer
    return kept[:limit]


def _argument_names(op: Operation) -> tuple[str, ...]:
    return (*op.path_params, *op.query_params, *op.body_properties)


class DenseIndex:
    """Inner product over row-normalised vectors, shape (n, dimension).

    A scan of all vectors in short form (:mod:`capdex_engine.rank.scan`) takes more than was asked for; their
    exact similarities then decide.
    """

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        self._vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        self._scan = scan_of(self._vectors)

    def search(
        self, query: NDArray[np.float32], count: int, allowed: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the rows of the best ``count`` allowed vectors and their cosines, best first.

        Fewer where fewer are.
        """
        rows, similarities = self.candidates(query, count, allowed)
        best = np.lexsort((rows, -similarities))[:count]
        return rows[best], similarities[best]

    def candidates(
        self,
        query: NDArray[np.float32],
        count: int,
        allowed: NDArray[np.bool_] | None = None,
        also: NDArray[np.int64] = _NONE,
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the best ``count`` allowed rows and those of ``also``, each once, by number; and cosines.

        Args:
            query: Shape (dimension,), of length 1.
            count: How many at most, beside ``also``.
            allowed: Shape (n,); all may be found when ``None``.
            also: Row numbers, each once.
        """
        near = self._scan.near(query, count, allowed)
        rows = np.concatenate([near, also])
        rows.sort()
        rows = rows[np.flatnonzero(np.diff(rows, prepend=-1))]
        similarities = self.similarities(query, rows)
        if len(near) <= count:
            return rows, similarities
        wanted = np.zeros(len(rows), dtype=bool)
        wanted[np.lexsort((rows, -similarities))[:count]] = True
        wanted[np.searchsorted(rows, also)] = True
        return rows[wanted], similarities[wanted]

    def similarities(self, query: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the cosine of ``query`` and each row, shape (rows,), to six digits.

        vecdot sums every row by itself, so the digits depend neither on neighbours nor on threads.
        """
        found: NDArray[np.float32] = np.vecdot(self._vectors.take(rows, axis=0), query)
        return found.round(6)
