"""The encoder of a lock entry: shipped files as they are, else an export, made where the cache lacks one.

The exporter is imported only to make one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from ..errors import ModelError
from .artefact import Artefact, DamagedArtefact, artefact_folder, open_artefact
from .lock import MODEL, TOKENIZER, LockedModel, Model, ShippedModel, model_folder, verify_files
from .onnx import OnnxEncoder
from .packages import require

_ATTEMPTS: Final = 3  # another process may replace a damaged export while we read it

Progress = Callable[[str], None]


def prepare_encoder(
    cache: Path, model: Model, progress: Progress, *, threads: int | None = None
) -> OnnxEncoder:
    """Open a pinned model's encoder, exporting it first where needed; ``ModelError`` as ``load_encoder``.

    A shipped model is verified and opened where it lies; ``cache`` and ``progress`` are then unused.
    """
    if isinstance(model, ShippedModel):
        folder, identity = model_folder(model), f"{model.name}:{model.key}"
        verify_files(model, folder)
    else:
        artefact = prepare_artefact(cache, model, progress)
        folder, identity = artefact.folder, f"{model.name}:{model.key}:{artefact.digest[:16]}"
    return OnnxEncoder(
        folder / MODEL,
        folder / TOKENIZER,
        identity=identity,
        max_tokens=model.max_tokens,
        prefix=model.prefix,
        threads=threads,
    )


def encoder_folder(cache: Path, model: Model) -> Path:
    """Return the folder from which a model is served: the shipped one, or its export under ``cache``."""
    return model_folder(model) if isinstance(model, ShippedModel) else artefact_folder(cache, model)


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
    require(f"The export of {model.name}", ("onnx", "safetensors"), beside=(model.requirement,))
    from .export import export

    try:
        export(model, folder, progress)
    except OSError as error:
        raise ModelError(
            f"The encoder cannot be written to {folder} ({error.strerror or error}). Name a cache "
            "folder that can be written and has 200 MB to spare."
        ) from error
