"""A usable export, made where the cache lacks one. Imports the exporter only to make one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from ..errors import ModelError
from .artefact import Artefact, DamagedArtefact, artefact_folder, open_artefact
from .lock import LockedModel
from .onnx import OnnxEncoder

_ATTEMPTS: Final = 3  # another process may replace a damaged export while we read it

Progress = Callable[[str], None]


def prepare_encoder(
    cache: Path, model: LockedModel, progress: Progress, *, threads: int | None = None
) -> OnnxEncoder:
    """Open a pinned model's encoder, exporting it first where needed; ``ModelError`` as ``load_encoder``."""
    artefact = prepare_artefact(cache, model, progress)
    return OnnxEncoder(
        artefact.model,
        artefact.tokenizer,
        identity=f"{model.name}:{model.key}:{artefact.digest[:16]}",
        max_tokens=model.max_tokens,
        prefix=model.prefix,
        threads=threads,
    )


def prepare_artefact(cache: Path, model: LockedModel, progress: Progress) -> Artefact:
    """Return the verified export under ``cache``; a damaged one is replaced, and ``progress`` told so."""
    folder = artefact_folder(cache, model)
    for _ in range(_ATTEMPTS):
        try:
            return open_artefact(folder, model)
        except DamagedArtefact as damage:
            if folder.exists():
                progress(f"The encoder in {folder} cannot be used ({damage}); it is made anew")
        _export(model, folder, progress)
    raise ModelError(f"The encoder in {folder} is damaged as often as it is made. Check the disk.")


def _export(model: LockedModel, folder: Path, progress: Progress) -> None:
    from .export import export

    try:
        export(model, folder, progress)
    except OSError as error:
        raise ModelError(
            f"The encoder cannot be written to {folder} ({error.strerror or error}). Name a cache "
            "folder that can be written and has 200 MB to spare."
        ) from error
