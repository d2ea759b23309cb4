"""``capdex bench train``: data in, a folder with the trained encoder and its recipe out."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from capdex_engine.encode import load_encoder
from capdex_engine.errors import ModelError

from ..documents import sha256_of
from ..sets import QuerySet
from .corpus import FILES, Corpus, own_files, read_corpus
from .exclusions import NearTexts, judging_texts
from .export import write_folder
from .loop import Run
from .model import Model, base_folder
from .pool import Pool, select
from .recipe import Settings, fingerprint, versions, write_json
from .split import HELD_OUT, held_out_sets, read_held_out
from .validate import dense_results, figures, sentence

MODEL: Final = "model"
"""The trained encoder's folder, inside the run's."""
RECIPE: Final = "recipe.json"
TOKENS: Final = 256
"""As the engine reads a text; training cuts earlier."""

_AGREE: Final = 0.999
Say = Callable[[str], None]


def run_training(
    data: Path,
    out: Path,
    settings: Settings,
    *,
    say: Say,
    base: Path | None = None,
    threads: int | None = None,
    minutes: float = 3.0,
    documents: Path | None = None,
    cache: Path | None = None,
) -> str:
    """Train, or go on with the run in ``out``; return the last line to show.

    Args:
        data: The folder that holds ``train/`` and, to stay away from, ``golden/`` and ``datasets/``.
        out: The run's folder: checkpoint, ``model/`` and ``recipe.json``.
        settings: The recipe.
        say: Told how it goes.
        base: Folder of the weights to start from; default: the pinned model's.
        threads: For torch; default: its own choice. The last digits depend on it.
        minutes: Between two checkpoints.
        documents: Of the npm package, whole (:func:`~.corpus.read_corpus`).
        cache: Of documents that were read before.

    Raises:
        CapdexError: Data, base or folder cannot be used; nothing is trained then.
    """
    if threads:
        torch.set_num_threads(threads)
    corpus = read_corpus(data / "train", documents=documents, cache=cache)
    held_out = read_held_out()
    pool = select(corpus, frozenset(held_out), NearTexts(judging_texts(data)))
    say(", ".join(f"{name}: {count}" for name, count in pool.counts.items()))
    sets = held_out_sets(data / "train", held_out=held_out)
    model = Model(base_folder(base))
    started = model.digest()
    run = Run(model, corpus, pool, settings, folder=out, fingerprint=_mark(corpus, pool, settings, started))
    before = _figures("before", model, sets, say)
    if run.resume():
        say(f"going on after step {run.progress.step} of {run.steps}")
    run.train(say=say, clock=time.perf_counter, every=minutes * 60)
    write_folder(model, out / MODEL)
    _check(model, out / MODEL, [query.text for query in sets[0].queries[:8]])
    after = _figures("after", model, sets, say)
    record = _record(run, pool, data / "train", started, held_out, documents is not None)
    measured = {"heldOut": {"before": before, "after": after}}
    write_json(out / RECIPE, {**record, **measured, **_earlier(base, started)})
    return f"{out / MODEL}: {sentence('held-out APIs', after)}"


def _mark(corpus: Corpus, pool: Pool, settings: Settings, base: str) -> str:
    requests = (
        "\t".join(map(str, (number, *corpus.requests[number].answers, corpus.requests[number].text)))
        for number in (*pool.numbers, *pool.unserved)
    )
    return fingerprint(settings, base, (*requests, *corpus.texts))


def _earlier(base: Path | None, weights: str) -> dict[str, Any]:
    """Return the recipe of the run that trained the base, where it lies beside the base's folder."""
    path = base.resolve().parent / RECIPE if base else None
    if path is None or not path.is_file():
        return {}
    recipe = json.loads(path.read_bytes())
    if recipe.get("weights") != weights:
        return {}
    return {"startedFrom": {name: value for name, value in recipe.items() if name != "losses"}}


def _figures(name: str, model: Model, sets: Sequence[QuerySet], say: Say) -> dict[str, Any]:
    found = figures(dense_results(sets, lambda texts: model.vectors(texts, TOKENS)))
    say(sentence(name, found))
    return found


def _check(model: Model, folder: Path, texts: Sequence[str]) -> None:
    """Read the folder back as a user would; ``ModelError`` where its vectors are not the trained ones."""
    read = load_encoder(folder.parent, model=str(folder)).encode(texts)
    cosine = float(np.min(np.sum(read * model.vectors(texts, TOKENS), axis=1)))
    if cosine < _AGREE:
        raise ModelError(f"{folder} does not give the trained vectors (cosine {cosine:.4f}). Keep the run.")


def _record(
    run: Run, pool: Pool, train: Path, base: str, held_out: Sequence[str], documents: bool
) -> dict[str, Any]:
    return {
        "settings": asdict(run.settings),
        "steps": run.steps,
        "seconds": round(run.progress.seconds),
        "threads": torch.get_num_threads(),
        "base": base,
        "weights": run.model.digest(),
        "data": {path.name: sha256_of(path) for path in (*(train / name for name in FILES), *own_files())},
        "wholeDocuments": documents,
        "heldOutList": {"documents": len(held_out), "sha256": sha256_of(HELD_OUT)},
        "requests": dict(pool.counts),
        "versions": versions(),
        "losses": [round(loss, 4) for loss in run.progress.losses],
    }
