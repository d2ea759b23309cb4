"""Meaning: one vector per operation, searched exactly by inner product (FAISS)."""

from __future__ import annotations

import re
from typing import Any, Final

import faiss
import numpy as np
from numpy.typing import NDArray

from capdex_engine.operation import Operation
from capdex_engine.text import words

_SENTENCE_END: Final = re.compile(r"(?<=[.!?。])\s+")
_PLACEHOLDER: Final = re.compile(r"\{[^}]*\}")
_DESCRIPTION_CHARACTERS: Final = 200
_PARAMETERS: Final = 8
_BYTE: Final = 127
_BLOCK: Final = 65_536  # vectors added at a time; bounds the memory of a large build
_MARGIN: Final = 50  # the true best 150 of 10,000 were always among the best 200 by bytes


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

    A search reads all vectors as bytes, a quarter of the memory, and takes a margin more than was asked for;
    their exact similarities then decide.
    """

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        self._vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        largest = float(np.abs(self._vectors).max(initial=0.0))
        self._scale = _BYTE / max(largest, 1e-9)
        self._index = faiss.IndexScalarQuantizer(
            vectors.shape[1], faiss.ScalarQuantizer.QT_8bit_direct_signed, faiss.METRIC_INNER_PRODUCT
        )
        for start in range(0, len(vectors), _BLOCK):
            self._index.add(self._bytes(self._vectors[start : start + _BLOCK]))

    def _bytes(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return whole numbers from -127 to 127; the index takes them as floats."""
        found: NDArray[np.float32] = np.clip(np.rint(vectors * self._scale), -_BYTE, _BYTE)
        return found

    def search(
        self, query: NDArray[np.float32], count: int, allowed: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the rows of the best ``count`` allowed vectors and their cosines, best first.

        Fewer where fewer are.
        """
        parameters = None if allowed is None else _only(allowed)
        wanted = min(count + _MARGIN, self._index.ntotal)
        if wanted == 0:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
        _, found = self._index.search(self._bytes(query.reshape(1, -1)), wanted, params=parameters)
        rows: NDArray[np.int64] = np.sort(found[0][found[0] >= 0])
        similarities = self.similarities(query, rows)
        best = np.lexsort((rows, -similarities))[:count]
        return rows[best], similarities[best]

    def similarities(self, query: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the cosine of ``query`` and each row, shape (rows,), to six digits.

        einsum sums every row by itself, so the digits depend neither on neighbours nor on threads.
        """
        found: NDArray[np.float32] = np.round(np.einsum("ij,j->i", self._vectors[rows], query), 6)
        return found


def _only(allowed: NDArray[np.bool_]) -> Any:
    # The wheel's type stubs know the C++ signatures only, not the Python wrappers around them.
    library: Any = faiss
    bitmap = np.packbits(allowed, bitorder="little")
    return library.SearchParameters(sel=library.IDSelectorBitmap(bitmap))
