"""The trained encoder as a folder that sentence-transformers, and so ``load_encoder``, reads."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Final

from safetensors.torch import load_file, save_file

from .model import WEIGHTS, Model

_LEFT: Final = frozenset({WEIGHTS, "README.md", "data_config.json", "__init__.py", "__pycache__"})
"""What speaks of the base model only."""


def write_folder(model: Model, target: Path) -> None:
    """Write weights (float32) with the base's tokenizer, configuration and pooling, replacing ``target``."""
    target.parent.mkdir(parents=True, exist_ok=True)
    room = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        new = room / "new"
        shutil.copytree(model.folder, new, ignore=lambda _, names: [one for one in names if one in _LEFT])
        # Tensors that are not trained stay in, so that the folder is as complete as the base's.
        trained = {name: value.detach() for name, value in model.weights.items()}
        save_file({**load_file(model.folder / WEIGHTS), **trained}, new / WEIGHTS, metadata={"format": "pt"})
        if target.exists():
            target.rename(room / "old")
        new.rename(target)
    finally:
        shutil.rmtree(room, ignore_errors=True)
