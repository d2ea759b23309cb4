"""sentence-transformers as the reference, and for any other local model."""

from __future__ import annotations

import hashlib
import os
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError
from .lock import model_folder, read_lock, sha256_file, verify_files
from .onnx import clean
from .packages import require


class SentenceTransformerEncoder:
    """Any sentence-transformers model in a local folder; torch and gigabytes of memory come with it.

    Args:
        folder: As ``SentenceTransformer.save`` writes it; ``None`` takes the files of the lock's ``base``.

    Raises:
        ModelError: There is no such model, or sentence-transformers is not installed. Nothing is ever
            downloaded.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = _pinned_folder() if folder is None else _require_model(folder)
        self._model = _load(self._folder)
        self._lock = threading.Lock()
        self.dimension = int(self._model.get_embedding_dimension())
        self.identity = f"sentence-transformers:{_digest(self._folder)}"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return (n, dimension) float32, rows of length 1. One call runs at a time."""
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        # The tokenizer inside changes its truncation while it works, so two calls must not meet.
        with self._lock:
            vectors = self._model.encode(
                [clean(text) for text in texts], normalize_embeddings=True, show_progress_bar=False
            )
        return np.asarray(vectors, dtype=np.float32)


def _pinned_folder() -> Path:
    model = read_lock().base_model
    folder = model_folder(model)
    verify_files(model, folder)
    return folder


def _require_model(folder: Path) -> Path:
    if not (folder / "modules.json").is_file():
        raise ModelError(
            f"{folder} is not a folder with a sentence-transformers model (it has no modules.json). Give the "
            "path of a folder that SentenceTransformer.save wrote; capdex downloads no models."
        )
    return folder


def _load(folder: Path) -> Any:
    require("A local sentence-transformers model", ("sentence-transformers",))
    # Read by huggingface_hub at its import; the model is local, so no request may ever leave.
    os.environ["HF_HUB_OFFLINE"] = "1"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import transformers
        from sentence_transformers import SentenceTransformer

        transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        try:
            return SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        except Exception as error:  # the edge to a library that raises whatever its parts raise
            raise ModelError(f"The model in {folder} cannot be loaded: {error}") from error


def _digest(folder: Path) -> str:
    """Hash over the names and bytes of all files, so that an altered model is another encoder."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(folder).as_posix()}\0{sha256_file(path)}\n".encode())
    return digest.hexdigest()[:16]
