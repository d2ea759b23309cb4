"""What the blend is fitted on, in folds that share no API."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..formats import Query
from ..sets import QuerySet, merge, read_folder
from ..train.split import families, held_out_sets, read_held_out

FOLDS: Final = 3
ALONE: Final = "alone"
"""Group of the sets that are one API each."""
MERGED: Final = "merged"
PUBLIC: Final = "public training sets"
GROUPS: Final = (ALONE, MERGED, PUBLIC)

MOST: Final = 300
"""Requests that are taken of one public set."""
SEED: Final = 20261130

_LIST: Final = "sets"


@dataclass(frozen=True, slots=True)
class Part:
    """A query set; requests of one fold are never fitted on when that fold is measured."""

    set: QuerySet
    fold: int

    @property
    def group(self) -> str:
        """One of :data:`GROUPS`."""
        return self.set.group


def load_material(
    train: Path,
    *,
    documents: Path | None = None,
    cache: Path | None = None,
    held_out: Sequence[str] | None = None,
) -> tuple[Part, ...]:
    """Return the held-out APIs, alone and merged, and the public sets under ``train/sets``.

    Args:
        train: Folder of the training data.
        documents: Folder of the npm package's documents: whole catalogs instead of at most 27 operations.
        cache: Of documents that were read before.
        held_out: Default: the committed list.

    Raises:
        DocumentError: A file is missing or wrong.
    """
    named = tuple(read_held_out() if held_out is None else held_out)
    sets = held_out_sets(train, documents=documents, held_out=named)
    whole = [dataclasses.replace(one, group=ALONE, operations=one.catalog(cache)) for one in sets]
    alone = [Part(one, fold) for one, fold in zip(whole, _folds(named, whole), strict=True)]
    return (*alone, *merged(alone), *_public(train / _LIST))


def _folds(documents: Sequence[str], sets: Sequence[QuerySet]) -> list[int]:
    """Deal families out, the largest first, so that no fold holds another's sister."""
    titles = {d: one.operations[0].api_title for d, one in zip(documents, sets, strict=True)}
    sizes = {d: len(one.queries) for d, one in zip(documents, sets, strict=True)}
    fold: dict[str, int] = {}
    in_order = sorted(families(titles), key=lambda own: (-sum(sizes[d] for d in own), own))
    for number, family in enumerate(in_order):
        fold |= dict.fromkeys(family, number % FOLDS)
    return [fold[document] for document in documents]


def merged(alone: Sequence[Part]) -> list[Part]:
    """Return each fold's APIs, some twenty, as one catalog, with every other of their requests.

    Requests that no operation serves are left out: another API might.
    """
    found = []
    for fold in sorted({part.fold for part in alone}):
        one = merge([part.set for part in alone if part.fold == fold], name=f"merged-{fold}")
        found.append(Part(dataclasses.replace(one, queries=_every_other(one)), fold))
    return found


def _every_other(one: QuerySet) -> tuple[Query, ...]:
    return tuple(query for query in one.queries if one.grades(query))[::2]


def _public(folder: Path) -> list[Part]:
    """Return the public sets; those whose names begin alike are of one making, and share a fold."""
    folders = sorted(path.parent for path in folder.glob("*/catalog.jsonl"))
    makings: Mapping[str, int] = {
        making: number % FOLDS
        for number, making in enumerate(dict.fromkeys(path.name.split("_")[0] for path in folders))
    }
    return [
        Part(_sample(read_folder(path, group=PUBLIC)), makings[path.name.split("_")[0]]) for path in folders
    ]


def _sample(one: QuerySet, *, seed: int = SEED) -> QuerySet:
    queries = [query for query in one.queries if one.grades(query)]
    if len(queries) > MOST:
        queries = random.Random(seed).sample(queries, MOST)  # noqa: S311 -- a sample, no secret
    return dataclasses.replace(one, queries=tuple(queries))
