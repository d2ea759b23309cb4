"""What is near, by vectors in short form (FAISS): rows to look at exactly.

Up to :data:`PRODUCT_FROM` vectors their numbers are bytes: every vector is read, a quarter of its memory.
Above, they are product-quantised (Jegou, Douze, Schmid 2011), four bits for two dimensions, and scanned in
registers: a sixteenth of the memory, a third of the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Protocol

import faiss
import numpy as np
from numpy.typing import NDArray

PRODUCT_FROM: Final = 8_000
"""Vectors from which products pay: below, reading bytes takes a tenth of a request's encoding."""
_BYTE: Final = 127
_BYTE_MARGIN: Final = 50  # the true best 150 of 10,000 were always among the best 200 by bytes
_PRODUCT_MARGIN: Final = 150  # 99.6 % of the true best 150, and all of the best 10, were among the best 300
_BLOCK: Final = 65_536  # vectors added at a time; bounds the memory of a large build
_SAMPLE: Final = 5_000
_ROUNDS: Final = 10  # of k-means: more of either gained nothing
# The wheel's type stubs know the C++ signatures only, not the Python wrappers around them.
_faiss: Final[Any] = faiss


class Scan(Protocol):
    """Finds rows that may be near."""

    def near(
        self, query: NDArray[np.float32], count: int, allowed: NDArray[np.bool_] | None
    ) -> NDArray[np.int64]:
        """Return allowed rows, in any order, among them the best ``count`` but for what the scan loses.

        There are more than ``count`` where there are enough.
        """
        ...


def scan_of(vectors: NDArray[np.float32]) -> Scan:
    """Return the scan that suits the number of vectors, shape (n, dimension)."""
    return _Products(vectors) if len(vectors) >= PRODUCT_FROM else _Bytes(vectors)


class _Bytes:
    def __init__(self, vectors: NDArray[np.float32]) -> None:
        self._scale = _BYTE / max(float(np.abs(vectors).max(initial=0.0)), 1e-9)
        self._index = faiss.IndexScalarQuantizer(
            vectors.shape[1], faiss.ScalarQuantizer.QT_8bit_direct_signed, faiss.METRIC_INNER_PRODUCT
        )
        for block in _blocks(vectors):
            self._index.add(self._bytes(block))

    def _bytes(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return whole numbers from -127 to 127; the index takes them as floats."""
        found: NDArray[np.float32] = np.rint(vectors * self._scale)
        return found.clip(-_BYTE, _BYTE, out=found)

    def near(
        self, query: NDArray[np.float32], count: int, allowed: NDArray[np.bool_] | None
    ) -> NDArray[np.int64]:
        wanted = min(count + _BYTE_MARGIN, self._index.ntotal)
        parameters = None if allowed is None else _faiss.SearchParameters(sel=_only(allowed))
        return _found(self._index, self._bytes(query[None]), wanted, parameters)


class _Products:
    def __init__(self, vectors: NDArray[np.float32]) -> None:
        dimension = vectors.shape[1]
        # One list, which all vectors are in: unlike the plain product index this one knows permissions.
        self._index = _faiss.IndexIVFPQFastScan(
            _faiss.IndexFlatIP(dimension), dimension, 1, dimension // 2, 4, faiss.METRIC_INNER_PRODUCT
        )
        self._index.by_residual = False
        self._index.pq.cp.niter = _ROUNDS
        self._index.train(vectors[:: max(1, len(vectors) // _SAMPLE)])
        for block in _blocks(vectors):
            self._index.add(block)

    def near(
        self, query: NDArray[np.float32], count: int, allowed: NDArray[np.bool_] | None
    ) -> NDArray[np.int64]:
        wanted = min(count + _PRODUCT_MARGIN, self._index.ntotal)
        selected = {} if allowed is None else {"sel": _only(allowed)}
        return _found(self._index, query[None], wanted, _faiss.IVFSearchParameters(nprobe=1, **selected))


def _blocks(vectors: NDArray[np.float32]) -> Iterator[NDArray[np.float32]]:
    for start in range(0, len(vectors), _BLOCK):
        yield vectors[start : start + _BLOCK]


def _only(allowed: NDArray[np.bool_]) -> Any:
    return _faiss.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))


def _found(index: Any, query: NDArray[np.float32], wanted: int, parameters: Any) -> NDArray[np.int64]:
    if wanted == 0:
        return np.zeros(0, dtype=np.int64)
    rows: NDArray[np.int64] = index.search(query, wanted, params=parameters)[1][0]
    return rows[rows >= 0]
