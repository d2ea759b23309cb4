"""The additive keyword scorer that tool catalogs usually start with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from capdex_engine.operation import Operation

from .base import Context, Scores, Search, ranked, tokens

EXACT: Final = 5.0
"""The word is a word of the name."""
PREFIX: Final = 3.0
"""The word begins a word of the name, without being one."""
SUMMARY: Final = 2.0
PATH: Final = 1.0

Postings = Mapping[str, list[int]]


def _postings(texts: Iterable[str]) -> Postings:
    postings: dict[str, list[int]] = {}
    for index, text in enumerate(texts):
        for word in set(tokens(text)):
            postings.setdefault(word, []).append(index)
    return postings


def _with_prefix(names: Postings, prefix: str) -> set[int]:
    return {index for word, found in names.items() if word.startswith(prefix) for index in found}


def build_keyword(operations: Sequence[Operation], context: Context) -> Search:
    """Each distinct word of the request adds 5, or 3, for the name, 2 for the summary, 1 for the path."""
    names = _postings(operation.name for operation in operations)
    summaries = _postings(operation.summary or operation.description for operation in operations)
    paths = _postings(operation.path for operation in operations)

    def score(text: str) -> Scores:
        scores = np.zeros(len(operations))
        for word in set(tokens(text)):
            exact = names.get(word, [])
            scores[exact] += EXACT
            scores[list(_with_prefix(names, word).difference(exact))] += PREFIX
            scores[summaries.get(word, [])] += SUMMARY
            scores[paths.get(word, [])] += PATH
        return scores

    return ranked(operations, score)
