"""What the blend sees of a request and an operation: numbers between -1 and 1, named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
        self._lexical = lexical
        self._methods = method_numbers(operations)
        self._deprecated = np.array([o.deprecated for o in operations], dtype=np.float32)
        self._item = np.array([o.path.rstrip("/").endswith("}") for o in operations], dtype=bool)
        self._has_path = np.array([bool(o.path) for o in operations], dtype=bool)
        self._name_rarity = self._rarities(o.name for o in operations)
        self._summary_rarity = self._rarities(o.summary for o in operations)
        self._path_rarity = self._rarities(path_text(o) for o in operations)

    def _rarities(self, texts: Iterable[str]) -> NDArray[np.float32]:
        found = (lexical_rarity(self._lexical, tokens(text)) for text in texts)
        return np.maximum(np.fromiter(found, dtype=np.float32), 1e-6)

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
        idf = self._lexical.postings.idf[list(need.terms.known)]
        total = max(need.terms.total_idf, 1e-6)
        name = _covered(masks, idf, BIT["name"])
        summary = _covered(masks, idf, BIT["summary"])
        name_fill = np.minimum(name / self._name_rarity[rows], 1.0)
        summary_fill = np.minimum(summary / self._summary_rarity[rows], 1.0)
        same = np.maximum(np.minimum(name_fill, name / total), np.minimum(summary_fill, summary / total))
        path = _covered(masks, idf, BIT["path"])
        plain = np.maximum(same, np.minimum(path / self._path_rarity[rows], path / total))
        columns = {
            "meaning": similarities,
            "words": scores[rows] / total,
            "words_share": scores[rows] / max(float(scores[rows].max(initial=0.0)), 1e-6),
            "name_fill": name_fill,
            "summary_fill": summary_fill,
            "same": same > _SAME,
            "method": method_agreement(need.text)[self._methods[rows]],
            "collection": self._collection(need.text, rows),
            "deprecated": self._deprecated[rows],
        }
        features = np.stack([columns[name] for name in FEATURES], axis=1).astype(np.float32)
        return features, self._gates(need, features, float(plain.max(initial=0.0)))

    def _collection(self, text: str, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        if not wants_many(text):
            return np.zeros(len(rows), dtype=np.float32)
        return np.where(self._has_path[rows], np.where(self._item[rows], -1.0, 1.0), 0.0).astype(np.float32)

    def _gates(self, need: Need, features: NDArray[np.float32], plain: float) -> NDArray[np.float32]:
        return np.array(
            [
                1.0,
                1.0 / max(len(words(need.text)), 1),
                self._lexical.known(need.terms),
                features[:, FEATURES.index("words")].max(initial=0.0),
                features[:, FEATURES.index("meaning")].max(initial=0.0),
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


def lexical_rarity(index: LexicalIndex, found: Sequence[str]) -> float:
    """Return the summed idf of distinct tokens that the index knows."""
    postings = index.postings
    return float(sum(postings.idf[postings.vocabulary[t]] for t in set(found) if t in postings.vocabulary))


def _covered(masks: NDArray[np.uint16], idf: NDArray[np.float32], bits: int) -> NDArray[np.float32]:
    covered: NDArray[np.float32] = idf @ ((masks & bits) != 0)
    return covered
