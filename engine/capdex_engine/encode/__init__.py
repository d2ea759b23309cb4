"""Texts to vectors: the pinned model, its export, and vectors kept on disk.

Loading an export that is in place imports neither torch nor transformers nor onnx.
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
    progress: Callable[[str], None] | None = None,
    threads: int | None = None,
) -> Encoder:
    """Load the encoder, exporting the pinned model first where the cache lacks it (seconds, once).

    Args:
        cache: Folder for exports (``cache/models/...``); made when missing.
        model: ``None`` for the pinned default, else the folder of a local sentence-transformers model.
        progress: Told in one sentence each what takes time; not called when nothing does.
        threads: For calls with many texts; ``None`` takes all cores. The other models ignore it.

    Raises:
        ModelError: The model is missing, altered, or fails a gate, or the cache cannot be written.
    """
    if model is not None:
        from .reference import SentenceTransformerEncoder

        return SentenceTransformerEncoder(Path(model))
    from .prepare import prepare_encoder

    return prepare_encoder(cache, read_lock().model, progress or (lambda message: None), threads=threads)
