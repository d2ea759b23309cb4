"""Hard negatives: for each request the wrong operations of its document that the model takes for right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .corpus import Corpus

KEPT: Final = 8
"""Wrong operations kept per request."""
MARGIN: Final = 0.05
"""A wrong operation nearer than the right one by more than this is rather an answer nobody labelled."""
MOST: Final = 150
"""Operations of one document that are looked at, those with requests first."""

Encode = Callable[[Sequence[str]], NDArray[np.float32]]


def nearest_wrong(corpus: Corpus, pool: Sequence[int], encode: Encode) -> dict[int, tuple[int, ...]]:
    """Return request -> at most :data:`KEPT` wrong operations of its document, nearest first.

    Args:
        corpus: What the numbers mean.
        pool: Numbers of the requests that are trained on.
        encode: Texts to rows of length 1.
    """
    by_document: dict[str, list[int]] = {}
    for number in pool:
        by_document.setdefault(corpus.requests[number].document, []).append(number)
    looked = {document: _candidates(corpus, document, own) for document, own in by_document.items()}
    operations = [number for own in looked.values() for number in own]
    rows = dict(zip(operations, encode([corpus.texts[n] for n in operations]), strict=True))
    asked = dict(zip(pool, encode([corpus.requests[n].text for n in pool]), strict=True))
    found: dict[int, tuple[int, ...]] = {}
    for document, own in by_document.items():
        columns = looked[document]
        cosines = np.stack([asked[n] for n in own]) @ np.stack([rows[n] for n in columns]).T
        for number, row in zip(own, cosines, strict=True):
            found[number] = _wrong(corpus, number, columns, row)
    return found


def _candidates(corpus: Corpus, document: str, own: Sequence[int]) -> list[int]:
    answers = dict.fromkeys(answer for number in own for answer in corpus.requests[number].answers)
    return [*dict.fromkeys([*answers, *corpus.siblings[document]])][: max(MOST, len(answers))]


def _wrong(
    corpus: Corpus, number: int, columns: Sequence[int], cosines: NDArray[np.float32]
) -> tuple[int, ...]:
    answers = corpus.requests[number].answers
    twins = {corpus.twins[answer] for answer in answers}
    place = {column: i for i, column in enumerate(columns)}
    limit = max(cosines[place[answer]] for answer in answers) + MARGIN
    order = np.argsort(-cosines, kind="stable")
    wrong = [columns[i] for i in order if cosines[i] <= limit and corpus.twins[columns[i]] not in twins]
    return tuple(wrong[:KEPT])


def save(path: Path, found: Mapping[int, Sequence[int]]) -> None:
    """Write what was mined, so that a run taken up again has the same negatives."""
    flat = [(request, wrong) for request, own in found.items() for wrong in own]
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    with temporary.open("wb") as file:
        np.save(file, np.array(flat, dtype=np.int64).reshape(-1, 2))
    temporary.replace(path)


def load(path: Path) -> dict[int, tuple[int, ...]]:
    """Read what :func:`save` wrote."""
    found: dict[int, list[int]] = {}
    for request, wrong in np.load(path).tolist():
        found.setdefault(request, []).append(wrong)
    return {request: tuple(own) for request, own in found.items()}
