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
    """Exact inner product over row-normalised vectors, shape (n, dimension)."""

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        count, dimension = vectors.shape
        self._index = faiss.IndexFlatIP(dimension)
        self._index.add(np.ascontiguousarray(vectors, dtype=np.float32))
        # A view of the index's own memory: the vectors are held once.
        self._vectors = faiss.rev_swig_ptr(self._index.get_xb(), count * dimension).reshape(count, dimension)

    def search(
        self, query: NDArray[np.float32], count: int, allowed: NDArray[np.bool_] | None = None
    ) -> NDArray[np.int64]:
        """Return the rows of the best ``count`` allowed vectors, best first; fewer where fewer are."""
        parameters = None if allowed is None else _only(allowed)
        wanted = min(count, self._index.ntotal)
        if wanted == 0:
            return np.zeros(0, dtype=np.int64)
        _, rows = self._index.search(query.reshape(1, -1), wanted, params=parameters)
        found: NDArray[np.int64] = rows[0][rows[0] >= 0]
        return found

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
