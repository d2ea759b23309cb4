"""How many threads the libraries below may use; imports none of them, so that it can come before them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_COUNTS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
"""Read once, when numpy, FAISS or the tokenizers start their threads."""
_TOKENIZERS: Final = "TOKENIZERS_PARALLELISM"
"""Read at every call."""


@contextmanager
def few_threads(count: int) -> Iterator[None]:
    """Hold numerical libraries to ``count`` threads, as far as they are not started already.

    FAISS is told whether it is loaded or not; numpy's BLAS only listens before its import.
    """
    wanted = {**dict.fromkeys(_COUNTS, str(count)), _TOKENIZERS: "false" if count == 1 else "true"}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    faiss_before = _faiss_threads(count) if "faiss" in sys.modules else None
    try:
        yield
    finally:
        for name, value in before.items():
            _restore(name, value)
        if faiss_before is not None:
            _faiss_threads(faiss_before)


def _restore(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def _faiss_threads(count: int) -> int:
    """Set FAISS's threads; return how many it had."""
    import faiss

    before = int(faiss.omp_get_max_threads())
    faiss.omp_set_num_threads(count)
    return before
