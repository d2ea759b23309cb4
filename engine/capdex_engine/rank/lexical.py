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
from copy import copy
from dataclasses import dataclass, replace
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
class Corpus:
    """What BM25F asks of many operations together: of all, or of those that a caller may see."""

    size: int
    """Number of operations."""
    means: NDArray[np.float64]
    """Mean length of each field, over the operations that have it."""
    holders: NDArray[np.int64]
    """How many of the operations hold each token."""
    idf: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Postings:
    """The inverted index in CSR form; token ``t`` owns ``[starts[t], starts[t + 1])``."""

    vocabulary: Mapping[str, int]
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]
    """Operation numbers, ascending within a token."""
    impacts: NDArray[np.float32]
    """The pair's whole share of the score among all operations, the idf included."""
    masks: NDArray[np.uint16]
    """Which fields hold the token (:data:`BIT`)."""
    offsets: NDArray[np.int64]
    """Pair ``p`` owns ``[offsets[p], offsets[p + 1])`` of the two below: an entry per field that holds it."""
    fields: NDArray[np.uint8]
    counts: NDArray[np.uint16]
    lengths: NDArray[np.uint16]
    """Tokens of each field, shape (operations, fields)."""
    weights: NDArray[np.float64]
    """Of each field."""

    @property
    def size(self) -> int:
        """Number of operations."""
        return len(self.lengths)

    def of(self, token: int) -> slice:
        """Return where the postings of a token stand."""
        return slice(int(self.starts[token]), int(self.starts[token + 1]))

    def corpus(self, allowed: NDArray[np.bool_] | None = None) -> Corpus:
        """Return the figures of the allowed operations, the same as of an index of these alone."""
        lengths = self.lengths if allowed is None else self.lengths[allowed]
        # The mean over operations that have the field at all: an often empty field is no short field.
        means = lengths.sum(axis=0, dtype=np.float64) / np.maximum((lengths > 0).sum(axis=0), 1)
        holders = np.diff(self.starts)
        if allowed is not None and len(holders):
            holders = np.add.reduceat(allowed[self.rows], self.starts[:-1], dtype=np.int64)
        size = len(lengths)
        return Corpus(size, means, holders, np.log(1.0 + (size - holders + 0.5) / (holders + 0.5)))

    def impacts_in(self, corpus: Corpus, token: int) -> NDArray[np.float32]:
        """Return what :attr:`impacts` holds for a token, by the figures of other operations."""
        where = self.of(token)
        tf = self._frequencies(corpus, where)
        result: NDArray[np.float32] = (corpus.idf[token] * tf / (K1 + tf)).astype(np.float32)
        return result

    def all_impacts(self) -> NDArray[np.float32]:
        """Return :attr:`impacts` as the index begins with it."""
        corpus = self.corpus()
        tf = self._frequencies(corpus, slice(0, len(self.rows)))
        idf = np.repeat(corpus.idf, np.diff(self.starts))
        result: NDArray[np.float32] = (idf * tf / (K1 + tf)).astype(np.float32)
        return result

    def _frequencies(self, corpus: Corpus, where: slice) -> NDArray[np.float64]:
        """Return the weighted, length-normalised frequency of each pair."""
        offsets = self.offsets[where.start : where.stop + 1]
        entries = slice(int(offsets[0]), int(offsets[-1]))
        field = self.fields[entries]
        lengths = self.lengths[np.repeat(self.rows[where], np.diff(offsets)), field]
        scales = 1.0 / (1.0 - B + B * lengths / np.maximum(corpus.means, 1.0)[field])
        shares = self.weights[field] * scales * self.counts[entries]
        result: NDArray[np.float64] = np.add.reduceat(shares, offsets[:-1] - offsets[0])
        return result


_MOST: Final = 2**16 - 1
"""Occurrences that are counted: texts are cut far below it, but lists of names are not."""


def build_postings(
    documents: Sequence[Mapping[str, Sequence[str]]], weights: Mapping[str, float] = FIELD_WEIGHTS
) -> Postings:
    """Index ``documents``: field -> tokens each. Fields that ``weights`` lacks are left out."""
    fields = tuple(weights)
    vocabulary: dict[str, int] = {}
    pairs = _Pairs()
    for row, document in enumerate(documents):
        for token, held in _counts(document, fields).items():
            pairs.add(vocabulary.setdefault(token, len(vocabulary)), row, held)
    lengths = np.array([[min(len(d.get(f, ())), _MOST) for f in fields] for d in documents], dtype=np.uint16)
    return _to_arrays(vocabulary, pairs, lengths.reshape(len(documents), len(fields)), list(weights.values()))


class _Pairs:
    """(token, operation) pairs as they are met: millions in a large catalog, so plain numbers."""

    def __init__(self) -> None:
        self.token, self.row, self.mask = array("i"), array("i"), array("H")
        self.fields, self.field, self.count = array("B"), array("B"), array("H")

    def add(self, token: int, row: int, held: Sequence[tuple[int, int]]) -> None:
        self.token.append(token)
        self.row.append(row)
        self.mask.append(sum(1 << field for field, _ in held))
        self.fields.append(len(held))
        for field, count in held:
            self.field.append(field)
            self.count.append(min(count, _MOST))


def _counts(document: Mapping[str, Sequence[str]], fields: Sequence[str]) -> dict[str, list[tuple[int, int]]]:
    """Return token -> (number of the field, occurrences there), for the fields that hold it."""
    found: dict[str, list[tuple[int, int]]] = {}
    for i, field in enumerate(fields):
        for token, count in Counter(document.get(field, ())).items():
            found.setdefault(token, []).append((i, count))
    return found


def _to_arrays(
    vocabulary: dict[str, int], pairs: _Pairs, lengths: NDArray[np.uint16], weights: Sequence[float]
) -> Postings:
    token = np.array(pairs.token, dtype=np.int64)
    order = np.argsort(token, kind="stable")
    held = np.array(pairs.fields, dtype=np.int64)
    before = np.cumsum(held) - held
    offsets = np.concatenate(([0], np.cumsum(held[order]))).astype(np.int64)
    entries = np.repeat(before[order] - offsets[:-1], held[order]) + np.arange(offsets[-1])
    postings = Postings(
        vocabulary=vocabulary,
        starts=np.concatenate(([0], np.cumsum(np.bincount(token, minlength=len(vocabulary))))).astype(
            np.int64
        ),
        rows=np.array(pairs.row, dtype=np.int32)[order],
        impacts=np.zeros(0, dtype=np.float32),
        masks=np.array(pairs.mask, dtype=np.uint16)[order],
        offsets=offsets,
        fields=np.array(pairs.field, dtype=np.uint8)[entries],
        counts=np.array(pairs.count, dtype=np.uint16)[entries],
        lengths=lengths,
        weights=np.array(weights, dtype=np.float64),
    )
    return replace(postings, impacts=postings.all_impacts()) if len(token) else postings


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
        self._narrowed = False
        self._judge_by(self.postings.corpus())

    def _judge_by(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self.idf: NDArray[np.float32] = corpus.idf.astype(np.float32)
        self._unseen = float(np.log(1.0 + (corpus.size + 0.5) / 0.5))

    def within(self, allowed: NDArray[np.bool_]) -> LexicalIndex:
        """Return this index as one of the allowed operations alone: the others lend it no word and no rarity.

        The others keep their numbers, and scores that mean nothing.
        """
        other = copy(self)
        other._narrowed = True
        other._judge_by(self.postings.corpus(allowed))
        return other

    def number(self, token: str) -> int | None:
        """Return the token's number; ``None`` where no operation holds it."""
        number = self.postings.vocabulary.get(token)
        return number if number is not None and self._corpus.holders[number] else None

    def __contains__(self, token: object) -> bool:
        return isinstance(token, str) and self.number(token) is not None

    def terms(self, query: str) -> Terms:
        """Read a query; neighbouring words that the catalog writes as one are joined too."""
        wanted = dict.fromkeys(tokens(query))
        joined = [t for t in joined_pairs(words(query)) if t in self and t not in wanted]
        numbers = [self.number(t) for t in (*wanted, *joined)]
        return Terms(tuple(n for n in numbers if n is not None), sum(self._rarity(t) for t in wanted))

    def known(self, terms: Terms) -> float:
        """Return the share of a query's rarity that the operations know: 0..1."""
        idf = float(self.idf[list(terms.known)].sum())
        return min(idf / max(terms.total_idf, 1e-6), 1.0)

    def _rarity(self, token: str) -> float:
        number = self.number(token)
        return self._unseen if number is None else float(self.idf[number])

    def scores(self, terms: Terms) -> NDArray[np.float32]:
        """Return BM25F of every operation, shape (n,); 0 where no term is met."""
        total = np.zeros(self.postings.size, dtype=np.float32)
        for token in terms.known:
            total[self.postings.rows[self.postings.of(token)]] += self._impacts(token)
        return total

    def _impacts(self, token: int) -> NDArray[np.float32]:
        if self._narrowed:
            return self.postings.impacts_in(self._corpus, token)
        return self.postings.impacts[self.postings.of(token)]

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
    """Return the numbers of the best ``count`` scores above 0 among the allowed, best first.

    Of equal scores the lower numbers are taken.
    """
    usable = scores > 0 if allowed is None else (scores > 0) & allowed
    rows = np.flatnonzero(usable)
    if len(rows) > count:
        last = np.partition(scores[rows], -count)[-count]
        better, equal = rows[scores[rows] > last], rows[scores[rows] == last]
        rows = np.concatenate([better, equal[: count - len(better)]])
    return rows[np.lexsort((rows, -scores[rows]))]
