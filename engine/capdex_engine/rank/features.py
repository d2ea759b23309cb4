"""What the blend sees of a request and an operation: numbers between -1 and 1, named."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from capdex_engine.operation import Operation
from capdex_engine.rank.intent import method_agreement, method_numbers, wants_many
from capdex_engine.rank.lexical import BIT, LexicalIndex, Terms, path_text
from capdex_engine.text import tokens, words

FEATURES: Final = (
    "meaning",  # cosine of request and operation
    "words",  # BM25F over the rarity of the whole request
    "words_share",  # BM25F over the best BM25F of this request
    "name_fill",  # rarity of the name's words that the request holds, over that of the whole name
    "summary_fill",  # the same of the summary
    "same",  # 1 where the request's words and those of the name, or of the summary, are the same
    "method",  # whether the HTTP method suits the first verb
    "collection",  # whether a request for many meets a path that ends without a placeholder
    "deprecated",
)
GATES: Final = ("always", "short", "known", "best_words", "best_meaning", "foreign", "part", "plain")
"""What decides how much each feature counts, per request:

``short``: 1 / number of words. ``known``: share of the request's rarity that the catalog knows.
``best_words``, ``best_meaning``: the best value of the feature among the candidates.
``foreign``: 1 for a request that was put into English, else its share of letters outside ASCII.
``part``: 1 for one of the needs of a split request.
``plain``: how far the request and the name, summary or path of one candidate say the same words: the lesser
of the shares of rarity that they have in common.
"""


_AT: Final = {name: column for column, name in enumerate(FEATURES)}
_COVERS: Final = ("name", "summary", "path")
_COVER_BITS: Final = np.array([BIT[field] for field in _COVERS], dtype=np.uint16)[:, None, None]
_SAME: Final = 0.999
"""Both shares of rarity above it: all words met, but for rounding."""


@dataclass(frozen=True, slots=True)
class Need:
    """One thing asked for, as both indexes see it."""

    text: str
    vector: NDArray[np.float32]
    terms: Terms
    foreign: float = 0.0
    """1 where the words are those of a gloss; else the share of letters outside ASCII."""
    part: bool = False
    """Whether the request was split, and this is one of its needs."""


class FeatureReader:
    """Describes candidates of a need; holds what is fixed per operation."""

    def __init__(self, operations: Sequence[Operation], lexical: LexicalIndex) -> None:
        self._methods = method_numbers(operations)
        self._deprecated = np.array([o.deprecated for o in operations], dtype=np.float32)
        self._ends = np.array([_end(o.path) for o in operations], dtype=np.float32)
        self._texts = (
            _Distinct((o.name for o in operations), lexical),
            _Distinct((o.summary for o in operations), lexical),
            _Distinct((path_text(o) for o in operations), lexical),
        )
        """As in :data:`_COVERS`."""
        self._weigh(lexical)

    def _weigh(self, lexical: LexicalIndex) -> None:
        self._lexical = lexical
        self._rarity = np.stack([texts.rarities(lexical.idf) for texts in self._texts])

    def within(self, lexical: LexicalIndex) -> FeatureReader:
        """Return the same by the rarities of a part of the operations (:meth:`LexicalIndex.within`)."""
        other = copy(self)
        other._weigh(lexical)
        return other

    def read(
        self,
        need: Need,
        rows: NDArray[np.int64],
        scores: NDArray[np.float32],
        similarities: NDArray[np.float32],
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return features, shape (rows, FEATURES), and gates, shape (GATES,).

        Args:
            need: The request, or a part of it.
            rows: The candidates' numbers.
            scores: BM25F of every operation.
            similarities: Cosine of each candidate.
        """
        masks = self._lexical.hits(need.terms, rows)
        idf = self._lexical.idf[list(need.terms.known)]
        total = max(need.terms.total_idf, 1e-6)
        covered = idf @ ((masks & _COVER_BITS) != 0)
        fill = np.minimum(covered / self._rarity[:, rows], 1.0)
        alike = np.minimum(fill, covered / total)
        same = alike[:2].max(axis=0)
        words_met = scores[rows]
        features = np.zeros((len(rows), len(FEATURES)), dtype=np.float32)
        columns = features.T
        columns[_AT["meaning"]] = similarities
        columns[_AT["words"]] = words_met / total
        columns[_AT["words_share"]] = words_met / max(float(words_met.max(initial=0.0)), 1e-6)
        columns[_AT["name_fill"]], columns[_AT["summary_fill"]] = fill[0], fill[1]
        columns[_AT["same"]] = same > _SAME
        columns[_AT["method"]] = method_agreement(need.text)[self._methods[rows]]
        if wants_many(need.text):
            columns[_AT["collection"]] = self._ends[rows]
        columns[_AT["deprecated"]] = self._deprecated[rows]
        plain = max(float(same.max(initial=0.0)), float(alike[2].max(initial=0.0)))
        return features, self._gates(need, features, plain)

    def _gates(self, need: Need, features: NDArray[np.float32], plain: float) -> NDArray[np.float32]:
        return np.array(
            [
                1.0,
                1.0 / max(len(words(need.text)), 1),
                self._lexical.known(need.terms),
                features[:, _AT["words"]].max(initial=0.0),
                features[:, _AT["meaning"]].max(initial=0.0),
                need.foreign,
                float(need.part),
                min(plain, 1.0),
            ],
            dtype=np.float32,
        )


def foreign_share(text: str) -> float:
    """Return the share of letters outside ASCII: 0..1."""
    letters = [c for c in text if c.isalpha()]
    return sum(not c.isascii() for c in letters) / max(len(letters), 1)


class _Distinct:
    """The different words of one text per operation, as numbers."""

    def __init__(self, texts: Iterable[str], lexical: LexicalIndex) -> None:
        words, owners = array("i"), array("i")
        self._size = 0
        for text in texts:
            found = (lexical.number(token) for token in dict.fromkeys(tokens(text)))
            numbers = [number for number in found if number is not None]
            words.extend(numbers)
            owners.extend([self._size] * len(numbers))
            self._size += 1
        self._words, self._owners = np.array(words, dtype=np.int32), np.array(owners, dtype=np.int32)

    def rarities(self, idf: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the summed idf of each text, shape (texts,)."""
        weights = idf[self._words].astype(np.float64)
        summed = np.bincount(self._owners, weights=weights, minlength=self._size)
        return np.maximum(summed, 1e-6).astype(np.float32)


def _end(path: str) -> float:
    """Return -1 for a path that ends with a placeholder, 1 for another, 0 for none."""
    return (-1.0 if path.rstrip("/").endswith("}") else 1.0) if path else 0.0
