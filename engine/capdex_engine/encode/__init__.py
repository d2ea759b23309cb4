"""Texts to vectors: the pinned model, its export, and vectors kept on disk.

Loading a shipped model, or an export that is in place, imports neither torch nor transformers nor onnx.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .lock import read_lock
from .protocol import Encoder
from .store import VectorStore

__all__ = ["Encoder", "VectorStore", "load_encoder"]


def load_encoder(
    cache: Path,
    *,
    model: str | None = None,
    pinned: str | None = None,
    progress: Callable[[str], None] | None = None,
    threads: int | None = None,
) -> Encoder:
    """Load the encoder that models.lock names as default, or another one.

    A shipped model is opened where it lies. A pinned package is exported first where the cache lacks it
    (seconds, once).

    Args:
        cache: Folder for exports (``cache/models/...``); made when one is. A shipped model leaves it alone.
        model: The folder of a local sentence-transformers model, in place of the default.
        pinned: The name of an entry of models.lock, in place of the default.
        progress: Told in one sentence each what takes time; not called when nothing does.
        threads: For calls with many texts; ``None`` takes all cores. Local models ignore it.

    Raises:
        ModelError: The model is missing, altered, or fails a gate, the cache cannot be written, or a package
            is absent that only a local model or an export needs; the message says what to install.
        ValueError: Both ``model`` and ``pinned`` are given.
    """
    if model is not None and pinned is not None:
        raise ValueError("name a local model or a pinned one, not both")
    if model is not None:
        from .reference import SentenceTransformerEncoder

        return SentenceTransformerEncoder(Path(model))
    from .prepare import prepare_encoder

    lock = read_lock()
    entry = lock.model if pinned is None else lock.named(pinned)
    return prepare_encoder(cache, entry, progress or (lambda message: None), threads=threads)
