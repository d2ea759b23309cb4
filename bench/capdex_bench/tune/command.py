"""``capdex bench tune``: training requests in, ``weights.py`` and a table out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from capdex_engine.encode import Encoder, VectorStore
from capdex_engine.rank import Searcher
from capdex_engine.rank.blend import FITTED, Blend

from ..evaluate import DEPTH, Result
from ..formats import write_lines
from ..runs import production_run
from .examples import Example, Remembered, read_examples
from .figures import Figures, figures, page
from .fit import fit_blend
from .material import FOLDS, Part, load_material
from .render import weights_module

Say = Callable[[str], None]
BEFORE, AFTER = "before", "after"


@dataclass(frozen=True, slots=True)
class _Read:
    part: Part
    searcher: Searcher
    examples: list[Example]


def run_tuning(
    train: Path,
    out: Path,
    encoder: Encoder,
    *,
    say: Say,
    cache: Path | None = None,
    documents: Path | None = None,
    held_out: Sequence[str] | None = None,
) -> str:
    """Fit on everything, write ``out``, and return the table: each fold's requests by a fit on the others.

    Args:
        train: Folder of the training data.
        out: File to write, in the form of the engine's ``weights.py``.
        encoder: Whose vectors the blend will see.
        say: Told how it goes.
        cache: Of vectors and documents.
        documents: Of the held-out APIs, whole; without them at most 27 operations each.
        held_out: Default: the committed list.

    Raises:
        CapdexError: Data cannot be used; nothing is written then.
    """
    parts = load_material(train, documents=documents, cache=cache, held_out=held_out)
    say(f"{len(parts)} catalogs, {sum(len(part.set.queries) for part in parts)} requests")
    read = _read(parts, encoder, cache, say)
    nested = nested_figures(read, say)
    blend = fit_blend([example for one in read for example in one.examples])
    write_lines(out, weights_module(blend, _made(parts, encoder, documents)).rstrip("\n").split("\n"))
    return f"{page(nested)}\n{out}"


def _read(parts: Sequence[Part], encoder: Encoder, cache: Path | None, say: Say) -> list[_Read]:
    store = VectorStore(cache / "vectors" if cache else None, encoder)
    remembered = Remembered(store, encoder.identity, encoder.dimension)
    found = []
    for part in parts:
        searcher = Searcher.build(part.set.operations, remembered, store=store)
        remembered.learn(text for query in part.set.queries for text in searcher.texts(query.text))
        found.append(_Read(part, searcher, read_examples(part, searcher)))
    say(f"{sum(len(one.examples) for one in found)} examples read")
    return found


def nested_figures(read: Sequence[_Read], say: Say) -> dict[str, Figures]:
    """Return the figures of today's blend, and of blends that never saw the requests they answer."""
    before: list[Result] = []
    after: list[Result] = []
    for fold in range(FOLDS):
        fitted = fit_blend([e for one in read if one.part.fold != fold for e in one.examples])
        for one in (one for one in read if one.part.fold == fold):
            before.append(_result(one, FITTED))
            after.append(_result(one, fitted))
        say(f"fold {fold + 1} of {FOLDS} measured")
    return {BEFORE: figures(before), AFTER: figures(after)}


def _result(one: _Read, blend: Blend) -> Result:
    run, _ = production_run(one.searcher.blended(blend), one.part.set.queries, limit=DEPTH)
    return Result("capdex", one.part.set, run)


def _made(parts: Sequence[Part], encoder: Encoder, documents: Path | None) -> str:
    groups: dict[str, int] = {}
    for part in parts:
        groups[part.group] = groups.get(part.group, 0) + len(part.set.queries)
    counts = ", ".join(f"{count} {group}" for group, count in groups.items())
    catalogs = "whole documents" if documents else "their operations in the training data"
    return (
        f"Fitted on requests for APIs that the encoder never saw ({catalogs}): {counts}. "
        f"Encoder: {encoder.identity}."
    )
