"""Field-weighted BM25 over operations (BM25F), as arrays that a query only adds up.

Term frequencies are weighted and length-normalised per field, summed, then saturated once
(Robertson, Zaragoza, Taylor 2004)::

    tf(t, d)    = sum over fields f of  weight_f * count_f(t, d) / (1 - b + b * length_f(d) / mean_f)
    score(q, d) = sum over t of  idf(t) * tf(t, d) / (K1 + tf(t, d))
    idf(t)      = ln(1 + (N - df(t) + 0.5) / (df(t) + 0.5))

With one field of weight 1 this is the ``lucene`` variant of BM25. Nothing in a posting depends on
the query, so every (token, operation) pair holds its finished share of the score.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from capdex_engine.operation import Operation
from capdex_engine.text import joined_pairs, tokens, words

K1: Final = 1.2
B: Final = 0.75

FIELD_WEIGHTS: Final[Mapping[str, float]] = {
    "name": 3.0,
    "keywords": 3.0,  # the operator's own words: as good as a name
    "operation_id": 2.0,
    "compounds": 1.5,  # neighbouring words of the name in one piece: listWebHooks holds webhook
    "summary": 2.0,
    "path": 1.0,
    "tags": 1.0,
    "title": 0.8,
    "description": 0.6,
    "parameters": 0.5,
    "properties": 0.4,
}
"""How much one occurrence counts. Names over summaries over paths is SPEC's order."""

FIELDS: Final = tuple(FIELD_WEIGHTS)
BIT: Final[Mapping[str, int]] = {name: 1 << i for i, name in enumerate(FIELDS)}
"""Field -> its bit in :attr:`Postings.masks`."""

_PLACEHOLDER: Final = re.compile(r"\{[^}]*\}")
_DESCRIPTION_CHARACTERS: Final = 600


def path_text(operation: Operation) -> str:
    """Return the path without its placeholders."""
    return _PLACEHOLDER.sub(" ", operation.path)


def field_texts(operation: Operation) -> dict[str, str]:
    """Return the texts of an operation, keyed as :data:`FIELD_WEIGHTS` (``compounds`` is no text)."""
    same = operation.operation_id in (None, operation.name)
    return {
        "name": operation.name,
        "keywords": " ".join(operation.keywords),
        "operation_id": "" if same else operation.operation_id or "",
        "summary": operation.summary,
        "path": path_text(operation),
        "tags": " ".join(operation.tags),
        "title": operation.api_title,
        "description": operation.description[:_DESCRIPTION_CHARACTERS],
        "parameters": " ".join((*operation.path_params, *operation.query_params, *operation.header_params)),
        "properties": " ".join(operation.body_properties),
    }


def _field_tokens(operation: Operation) -> dict[str, list[str]]:
    found = {field: tokens(text) for field, text in field_texts(operation).items()}
    return {**found, "compounds": joined_pairs(words(operation.name))}


@dataclass(frozen=True, slots=True)
class Postings:
    """The inverted index in CSR form; token ``t`` owns ``[starts[t], starts[t + 1])``."""

    vocabulary: Mapping[str, int]
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]
    """Operation numbers, ascending within a token."""
    impacts: NDArray[np.float32]
    """The pair's whole share of the score, the idf included."""
    masks: NDArray[np.uint16]
    """Which fields hold the token (:data:`BIT`)."""
    idf: NDArray[np.float32]
    size: int
    """Number of operations."""

    def of(self, token: int) -> slice:
        """Return where the postings of a token stand."""
        return slice(int(self.starts[token]), int(self.starts[token + 1]))


def build_postings(
    documents: Sequence[Mapping[str, Sequence[str]]], weights: Mapping[str, float] = FIELD_WEIGHTS
) -> Postings:
    """Index ``documents``: field -> tokens each. Fields that ``weights`` lacks are left out."""
    fields = tuple(weights)
    scale = _length_scales(documents, fields)
    vocabulary: dict[str, int] = {}
    pairs = _Pairs()
    for row, document in enumerate(documents):
        for token, (tf, mask) in _weighted_counts(document, fields, weights, scale[row]).items():
            pairs.add(vocabulary.setdefault(token, len(vocabulary)), row, tf, mask)
    return _to_arrays(vocabulary, pairs, len(documents))


class _Pairs:
    """(token, operation) pairs as they are met: millions in a large catalog, so plain numbers."""

    def __init__(self) -> None:
        self.token, self.row, self.tf, self.mask = array("i"), array("i"), array("d"), array("H")

    def add(self, token: int, row: int, tf: float, mask: int) -> None:
        self.token.append(token)
        self.row.append(row)
        self.tf.append(tf)
        self.mask.append(mask)


def _length_scales(
    documents: Sequence[Mapping[str, Sequence[str]]], fields: Sequence[str]
) -> NDArray[np.float64]:
    """Return ``1 / (1 - b + b * length / mean)``, shape (documents, fields)."""
    lengths = np.array([[len(d.get(f, ())) for f in fields] for d in documents], dtype=np.float64)
    lengths = lengths.reshape(len(documents), len(fields))
    # The mean over operations that have the field at all: an often empty field is no short field.
    means = lengths.sum(axis=0) / np.maximum((lengths > 0).sum(axis=0), 1)
    scales: NDArray[np.float64] = 1.0 / (1.0 - B + B * lengths / np.maximum(means, 1.0))
    return scales


def _weighted_counts(
    document: Mapping[str, Sequence[str]],
    fields: Sequence[str],
    weights: Mapping[str, float],
    scales: NDArray[np.float64],
) -> dict[str, tuple[float, int]]:
    found: dict[str, tuple[float, int]] = {}
    for i, field in enumerate(fields):
        factor = weights[field] * float(scales[i])
        for token, count in Counter(document.get(field, ())).items():
            tf, mask = found.get(token, (0.0, 0))
            found[token] = (tf + factor * count, mask | (1 << i))
    return found


def _to_arrays(vocabulary: dict[str, int], pairs: _Pairs, size: int) -> Postings:
    token = np.array(pairs.token, dtype=np.int64)
    order = np.argsort(token, kind="stable")
    counts = np.bincount(token, minlength=len(vocabulary))
    idf = np.log(1.0 + (size - counts + 0.5) / (counts + 0.5))
    tf = np.array(pairs.tf, dtype=np.float64)
    return Postings(
        vocabulary=vocabulary,
        starts=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
        rows=np.array(pairs.row, dtype=np.int32)[order],
        impacts=(idf[token] * tf / (K1 + tf))[order].astype(np.float32),
        masks=np.array(pairs.mask, dtype=np.uint16)[order],
        idf=idf.astype(np.float32),
        size=size,
    )


@dataclass(frozen=True, slots=True)
class Terms:
    """A query as the lexical index sees it."""

    known: tuple[int, ...]
    """Token numbers, in the query's order, without repeats."""
    total_idf: float
    """Rarity of the whole query; a word that no operation holds counts as the rarest."""

    def __bool__(self) -> bool:
        return bool(self.known)


class LexicalIndex:
    """BM25F over a sequence of operations; numbers are positions in it."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        documents = [_field_tokens(o) for o in operations]
        self.postings = build_postings(documents)
        self._unseen = float(np.log(1.0 + (len(operations) + 0.5) / 0.5))

    def terms(self, query: str) -> Terms:
        """Read a query; neighbouring words that the catalog writes as one are joined too."""
        wanted = dict.fromkeys(tokens(query))
        vocabulary = self.postings.vocabulary
        joined = [t for t in joined_pairs(words(query)) if t in vocabulary and t not in wanted]
        idf = sum(self._rarity(t) for t in wanted)
        return Terms(tuple(vocabulary[t] for t in (*wanted, *joined) if t in vocabulary), idf)

    def known(self, terms: Terms) -> float:
        """Return the share of a query's rarity that the operations know: 0..1."""
        idf = float(self.postings.idf[list(terms.known)].sum())
        return min(idf / max(terms.total_idf, 1e-6), 1.0)

    def _rarity(self, token: str) -> float:
        number = self.postings.vocabulary.get(token)
        return self._unseen if number is None else float(self.postings.idf[number])

    def scores(self, terms: Terms) -> NDArray[np.float32]:
        """Return BM25F of every operation, shape (n,); 0 where no term is met."""
        total = np.zeros(self.postings.size, dtype=np.float32)
        for token in terms.known:
            where = self.postings.of(token)
            total[self.postings.rows[where]] += self.postings.impacts[where]
        return total

    def hits(self, terms: Terms, rows: NDArray[np.int64]) -> NDArray[np.uint16]:
        """Return the field masks of the terms at the given operations, shape (terms, rows)."""
        masks = np.zeros((len(terms.known), len(rows)), dtype=np.uint16)
        for i, token in enumerate(terms.known):
            where = self.postings.of(token)
            owners = self.postings.rows[where]
            at = np.minimum(np.searchsorted(owners, rows), len(owners) - 1)
            masks[i] = np.where(owners[at] == rows, self.postings.masks[where][at], 0)
        return masks


def top(
    scores: NDArray[np.float32], count: int, allowed: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """Return the numbers of the best ``count`` scores above 0 among the allowed, best first."""
    usable = scores > 0 if allowed is None else (scores > 0) & allowed
    rows = np.flatnonzero(usable)
    if len(rows) > count:
        rows = rows[np.argpartition(-scores[rows], count - 1)[:count]]
    return rows[np.lexsort((rows, -scores[rows]))]
