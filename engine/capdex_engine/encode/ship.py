"""A trained encoder made ready to ship: an int8 graph and its tokenizer for this package, and its lock entry.

For maintainers: ``python -m capdex_engine.encode.ship FOLDER NAME --recipe RECIPE`` writes the two files
under ``capdex_engine/models/NAME/`` and prints the entry to paste into ``models.lock``. Nothing that is
installed or served imports this module; it needs torch, sentence-transformers and onnx.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from ..errors import ModelError
from .artefact import EXACT, workshop
from .export import tools, write_graphs
from .gates import PARITY_SENTENCES, check, open_graph
from .lock import (
    MODEL,
    MODELS,
    TOKENIZER,
    Canonical,
    LockedModel,
    ServedVector,
    model_folder,
    read_lock,
    sha256_file,
    verify_files,
)
from .reference import SentenceTransformerEncoder
from .toml import to_toml

WEIGHTS: Final = "model.safetensors"

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]*")
_CANONICAL: Final = 8  # numbers of the canonical vector that are pinned
_UNTRAINED: Final = ("pooler.", "embeddings.position_ids")
_NOT_KEPT: Final = frozenset({"losses"})  # of a recipe: a curve, long

Progress = Callable[[str], None]


def ship(
    folder: Path,
    target: Path,
    name: str,
    *,
    recipe: Path | None = None,
    base: LockedModel | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write ``target/name/`` with the graph and the tokenizer; return the entry for ``models.lock``.

    The same folder and recipe give the same bytes and the same entry. Where a gate fails, ``target`` stays
    as it was.

    Args:
        folder: A sentence-transformers folder: BERT, mean pooling, no prompt.
        target: Of the shipped models; ``capdex_engine/models`` in this package.
        name: Of the entry: lower-case letters, digits, ``-`` and ``_``.
        recipe: ``recipe.json`` of the training run. It becomes provenance when its weights are these.
        base: Its settings of the export, its thresholds and its sentence are taken; default: the lock's.
        progress: Told in one sentence each what takes time.

    Raises:
        ModelError: The model is of another kind, the recipe belongs to another one, or a gate fails: an
            unused input, float32 vectors unlike those of sentence-transformers, too much lost to int8.
        OSError: ``target`` cannot be written.
    """
    if not _NAME.fullmatch(name):
        raise ModelError(f"{name!r} is no name for a shipped model: lower-case letters, digits, - and _.")
    base = base or read_lock().base_model
    reference = SentenceTransformerEncoder(folder)
    plan = _plan(base, folder, name)
    provenance = _provenance(base, folder, recipe)
    with workshop(target / name, lambda: False) as room:
        write_graphs(plan, folder, room, progress or (lambda message: None))
        plan = replace(plan, canonical=_canonical(base, room, plan, reference))
        provenance["parity"] = check(plan, room)
        (room / EXACT).unlink()
        return _entry(plan, room, provenance)


def entry_toml(name: str, entry: Mapping[str, Any]) -> str:
    """Return an entry as the text to paste into ``models.lock``."""
    return to_toml(("models", name), entry)


def _plan(base: LockedModel, folder: Path, name: str) -> LockedModel:
    """Return the base's entry with the folder's own sizes: what the exporter and the gates work from."""
    sizes = {}
    for file, field in (("config.json", "hidden_size"), ("sentence_bert_config.json", "max_seq_length")):
        try:
            sizes[field] = int(json.loads((folder / file).read_bytes())[field])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ModelError(f"{folder / file} does not give {field}: {error!r}") from error
    return replace(
        base, name=name, dimension=sizes["hidden_size"], max_tokens=sizes["max_seq_length"], prefix=""
    )


def _canonical(
    base: LockedModel, room: Path, plan: LockedModel, reference: SentenceTransformerEncoder
) -> Canonical:
    """Measure the canonical vectors; ``ModelError`` where the float32 graph is not the reference."""
    exact, small = (open_graph(plan, room, name) for name in (EXACT, MODEL))
    pinned = base.canonical
    texts = (pinned.sentence, *PARITY_SENTENCES)
    expected = reference.encode(texts)
    error = float(np.abs(exact.encode(texts) - expected).max())
    if not error <= pinned.fp32_tolerance:
        raise ModelError(
            f"The float32 graph of {plan.name} gives other vectors than sentence-transformers (off by "
            f"{error:.2g}, allowed {pinned.fp32_tolerance:.2g}): only mean pooling without a prompt is built."
        )
    return replace(pinned, fp32=_rounded(expected[0]), int8=_rounded(small.encode(texts[:1])[0]))


def _rounded(vector: NDArray[np.float32]) -> tuple[float, ...]:
    return tuple(round(float(number), 6) for number in vector[:_CANONICAL])


def _entry(plan: LockedModel, room: Path, provenance: Mapping[str, Any]) -> dict[str, Any]:
    pinned = plan.canonical
    served = ServedVector(pinned.sentence, pinned.int8, pinned.int8_tolerance)
    files = {file: room / file for file in (MODEL, TOKENIZER)}
    return {
        "kind": "shipped",
        **{
            name: getattr(plan, name)
            for name in ("licence", "dimension", "max_tokens", "pooling", "normalise", "prefix")
        },
        "files": {
            file: {"sha256": sha256_file(path), "bytes": path.stat().st_size} for file, path in files.items()
        },
        "canonical": asdict(served),
        "provenance": dict(provenance),
    }


def _provenance(base: LockedModel, folder: Path, recipe: Path | None) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "weights_sha256": sha256_file(folder / WEIGHTS),
        "export": asdict(base.export),
        "made_with": tools(),
    }
    if recipe is None:
        return facts
    record = _read_recipe(recipe, folder)
    facts |= {"recipe_sha256": sha256_file(recipe), "recipe": record}
    source = model_folder(base)
    verify_files(base, source)
    if record.get("base") == _digest(source):  # else the run started elsewhere, and the recipe says where
        facts |= {"base": base.name, "base_sha256": base.files[WEIGHTS].sha256}
    return facts


def _read_recipe(recipe: Path, folder: Path) -> dict[str, Any]:
    try:
        record = dict(json.loads(recipe.read_bytes()))
    except (OSError, ValueError, TypeError) as error:
        raise ModelError(f"{recipe} cannot be read as a recipe: {error!r}") from error
    found, expected = _digest(folder), record.get("weights")
    if found != expected:
        raise ModelError(
            f"{recipe} belongs to other weights: it says {expected}, {folder} holds {found}. Name the recipe "
            "of the run that trained this model.",
            expected=expected,
            found=found,
        )
    return {name: value for name, value in record.items() if name not in _NOT_KEPT}


def _digest(folder: Path) -> str:
    """Hash over the names and values of the trained weights, as a recipe states it."""
    digest = hashlib.sha256()
    for name, value in sorted(load_file(folder / WEIGHTS).items()):
        if not name.startswith(_UNTRAINED):
            digest.update(name.encode())
            digest.update(value.astype(np.float32).tobytes())
    return digest.hexdigest()


def main(arguments: Sequence[str], progress: Progress | None = None) -> str:
    """Ship what the command line names; return the entry as TOML."""
    parser = argparse.ArgumentParser(
        prog="python -m capdex_engine.encode.ship", description="Prepare a model to ship."
    )
    parser.add_argument("folder", type=Path, help="sentence-transformers folder of the trained model")
    parser.add_argument("name", help="name of the entry in models.lock")
    parser.add_argument("--recipe", type=Path, help="recipe.json of the run that trained it")
    parser.add_argument("--target", type=Path, default=MODELS, help="folder of the shipped models")
    given = parser.parse_args(arguments)
    entry = ship(given.folder, given.target, given.name, recipe=given.recipe, progress=progress)
    return entry_toml(given.name, entry)


def _tell(message: str) -> None:
    sys.stderr.write(f"{message}\n")


if __name__ == "__main__":
    try:
        sys.stdout.write(main(sys.argv[1:], _tell))
    except ModelError as error:
        sys.exit(str(error))
