"""The pinned model as an int8 ONNX file, made once per machine and checked before it is used."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from onnxruntime.quantization import QuantType, quantize_dynamic
from safetensors import SafetensorError
from safetensors.numpy import load_file

from ..errors import ModelError
from .artefact import EXACT, DamagedArtefact, open_artefact, workshop, write_manifest
from .gates import check
from .graph import BertShape, build_bert
from .lock import MODEL, TOKENIZER, LockedModel, model_folder, verify_files

_INT8: Final = QuantType.QInt8

Progress = Callable[[str], None]


def export(model: LockedModel, target: Path, progress: Progress) -> None:
    """Export a pinned model into ``target``, replacing what is there; takes seconds.

    Raises:
        ModelError: The package or one of its files is missing or altered, or a gate fails: an input that
            the graph does not use, vectors that differ from the pinned ones, too much lost to int8.
        OSError: The folder cannot be written.
    """
    source = model_folder(model)
    progress(f"Preparing the encoder {model.name} (once per machine): verifying {model.requirement}")
    verify_files(model, source)
    with workshop(target, lambda: _is_good(target, model)) as folder:
        write_graphs(model, source, folder, progress)
        progress("Preparing the encoder: comparing its vectors")
        parity = check(model, folder)
        (folder / EXACT).unlink()
        write_manifest(folder, model, {"parity": parity, "made_with": tools()})
    progress(
        f"The encoder {model.name} is ready: cosine to float32 {parity['mean']} (lowest {parity['min']})"
    )


def write_graphs(model: LockedModel, source: Path, folder: Path, progress: Progress) -> None:
    """Write the float32 and the int8 graph of the model in ``source``, and its tokenizer."""
    progress("Preparing the encoder: building the graph")
    write_exact(model, source, folder / EXACT)
    progress("Preparing the encoder: quantising to int8")
    _quantise(model, folder / EXACT, folder / MODEL)
    shutil.copyfile(source / TOKENIZER, folder / TOKENIZER)


def write_exact(model: LockedModel, source: Path, target: Path) -> None:
    """Write the float32 graph of the model in ``source``; ``ModelError`` where it is of another kind."""
    if (model.pooling, model.normalise) != ("mean", True):
        raise ModelError(
            f"models.lock asks for pooling {model.pooling!r}: only 'mean', normalised, can be exported."
        )
    try:
        config = json.loads((source / "config.json").read_bytes())
        shape = BertShape.from_config(config, max_tokens=model.max_tokens)
        weights = {
            name: value.astype(np.float32) for name, value in load_file(source / "model.safetensors").items()
        }
        onnx.save(build_bert(weights, shape, opset=model.export.opset), target)
    except (ValueError, KeyError, SafetensorError) as error:
        raise ModelError(f"{model.name} is not the kind of model that can be exported: {error!r}") from error


def tools() -> dict[str, str]:
    """Return the versions of the packages that the bytes of an export depend on."""
    return {name: version(name) for name in ("onnx", "onnxruntime", "numpy")}


def _quantise(model: LockedModel, source: Path, target: Path) -> None:
    settings = model.export
    quantize_dynamic(
        source,
        target,
        op_types_to_quantize=list(settings.operators),
        per_channel=settings.per_channel,
        reduce_range=settings.reduce_range,
        weight_type=_INT8,
    )


def _is_good(target: Path, model: LockedModel) -> bool:
    try:
        open_artefact(target, model)
    except DamagedArtefact:
        return False
    return True
