"""The encoder while it is trained: base weights, tokenizer, texts to vectors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor

from capdex_engine.encode.lock import model_folder, read_lock, verify_files
from capdex_engine.encode.onnx import clean
from capdex_engine.errors import ModelError

from .bert import Shape, embed, pack

DTYPES: Final = {"bf16": torch.bfloat16, "fp32": torch.float32}
WEIGHTS: Final = "model.safetensors"

_UNTRAINED: Final = ("pooler.", "embeddings.position_ids")
_MOST: Final = 64
"""Texts encoded at once outside training."""


class Model:
    """A BERT with mean pooling; its weights are float32 and change in place.

    Args:
        folder: A sentence-transformers folder.

    Raises:
        ModelError: A file is missing, or the model is of another kind.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            config = json.loads((folder / "config.json").read_bytes())
            self.shape = Shape.from_config(config)
            self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
            stored = load_file(folder / WEIGHTS)
        except (OSError, ValueError, KeyError, SafetensorError) as error:
            raise ModelError(f"{folder} holds no model that can be trained: {error!r}") from error
        self.tokenizer.no_padding()
        self.weights: dict[str, Tensor] = {
            name: value.to(torch.float32).requires_grad_()
            for name, value in sorted(stored.items())
            if not name.startswith(_UNTRAINED)
        }

    def tokens(self, texts: Sequence[str], limit: int) -> list[list[int]]:
        """Return the ids of each text, cut to ``limit`` with its end mark kept."""
        self.tokenizer.enable_truncation(limit)
        return [one.ids for one in self.tokenizer.encode_batch([clean(text) for text in texts])]

    def embed(self, ids: Sequence[Sequence[int]], *, precision: str, dropout: float = 0.0) -> Tensor:
        """Return (texts, hidden) float32, rows of length 1, with gradients."""
        packed = pack(ids)
        return embed(self.weights, self.shape, packed, dtype=DTYPES[precision], dropout=dropout)

    def vectors(self, texts: Sequence[str], limit: int, precision: str = "fp32") -> NDArray[np.float32]:
        """Return (texts, hidden) without gradients, for measuring and mining."""
        ids = self.tokens(texts, limit)
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
        found = np.zeros((len(ids), self.hidden), dtype=np.float32)
        with torch.no_grad():
            for start in range(0, len(order), _MOST):
                rows = order[start : start + _MOST]
                found[rows] = self.embed([ids[i] for i in rows], precision=precision).numpy()
        return found

    @property
    def hidden(self) -> int:
        """Numbers per vector."""
        return int(self.weights["embeddings.word_embeddings.weight"].shape[1])

    def digest(self) -> str:
        """Return the hex sha256 over names and values of the weights."""
        digest = hashlib.sha256()
        for name, value in self.weights.items():
            digest.update(name.encode())
            digest.update(value.detach().numpy().tobytes())
        return digest.hexdigest()


def base_folder(given: Path | None) -> Path:
    """Return ``given``, or the folder of the pinned model, its files verified.

    Raises:
        ModelError: The pinned package is missing or altered.
    """
    if given is not None:
        return given
    model = read_lock().base_model
    folder = model_folder(model)
    verify_files(model, folder)
    return folder
