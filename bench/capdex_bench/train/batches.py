"""Batches whose negatives are hard: a few APIs, several requests for each, so siblings compete."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from capdex_engine.text import tokens

from .corpus import Corpus

Chunk = tuple[str, tuple[int, ...]]
"""A document, and some of its requests."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows are requests, columns are operations; both hold numbers of the corpus."""

    requests: tuple[int, ...]
    operations: tuple[int, ...]
    positives: tuple[tuple[int, int], ...]
    """(row, column) of every right answer."""
    blocked: tuple[tuple[int, int], ...]
    """(row, column) that may not serve as a negative: a twin of a right answer, or a right answer of
    another row with the same words."""


@dataclass(frozen=True, slots=True)
class Extras:
    """What a batch holds beside its requests and their answers: negatives of three kinds."""

    siblings: int = 0
    """Operations per document and batch."""
    mined: float = 0.0
    """Nearest wrong operations per request, in the mean."""
    nearest: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """Request -> its nearest wrong operations."""
    unserved: int = 0
    """Requests that nothing serves, per document and batch."""
    nothing: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Document -> its requests that nothing serves."""

    def operations(
        self, corpus: Corpus, chosen: Sequence[Chunk], taken: Collection[int], order: random.Random
    ) -> Iterator[int]:
        """Yield negatives: mined ones, which may be among the ``taken`` answers, and siblings beside them."""
        for document, requests in chosen:
            for number in requests:
                near = self.nearest.get(number, ())
                yield from order.sample(near, min(int(self.mined + order.random()), len(near)))
            own = [number for number in corpus.siblings[document] if number not in taken]
            yield from order.sample(own, min(self.siblings, len(own)))

    def requests(self, chosen: Sequence[Chunk], order: random.Random) -> Iterator[int]:
        """Yield requests that no operation here answers."""
        for document, _ in chosen:
            own = self.nothing.get(document, ())
            yield from order.sample(own, min(self.unserved, len(own)))


def epoch_batches(
    corpus: Corpus,
    pool: Sequence[int],
    *,
    apis: int,
    requests: int,
    seed: str,
    extras: Extras = Extras(),
) -> list[Batch]:
    """Return one epoch: every request of ``pool`` once, in an order that ``seed`` fixes.

    Args:
        corpus: What the numbers mean.
        pool: Numbers of the requests to train on; each has an answer.
        apis: Different documents per batch.
        requests: Requests per document and batch, at most; a document's are shared out evenly.
        seed: Same seed, same batches.
        extras: Further negatives.
    """
    order = random.Random(seed)  # noqa: S311 - an order, not a secret
    chunks = list(_chunks(corpus, pool, requests, order))
    order.shuffle(chunks)
    return [_batch(corpus, chosen, extras, order) for chosen in _grouped(chunks, apis)]


def _chunks(corpus: Corpus, pool: Sequence[int], size: int, order: random.Random) -> Iterator[Chunk]:
    found: dict[str, dict[int, list[int]]] = {}
    for number in pool:
        request = corpus.requests[number]
        found.setdefault(request.document, {}).setdefault(request.answers[0], []).append(number)
    for document, by_operation in found.items():
        dealt = _dealt(list(by_operation.values()), order)
        count = -(-len(dealt) // size)
        cuts = [len(dealt) * i // count for i in range(count + 1)]
        for i in range(count):
            yield document, tuple(dealt[cuts[i] : cuts[i + 1]])


def _dealt(hands: list[list[int]], order: random.Random) -> list[int]:
    """Return one request of each operation, then a second of each, and so on, so that neighbours differ."""
    for hand in hands:
        order.shuffle(hand)
    dealt: list[int] = []
    for turn in zip_longest(*hands):
        cards = [card for card in turn if card is not None]
        order.shuffle(cards)
        dealt += cards
    return dealt


def _grouped(chunks: Sequence[Chunk], apis: int) -> list[list[Chunk]]:
    """Return groups of ``apis`` chunks of different documents; the last ones may be smaller."""
    full: list[list[Chunk]] = []
    open_groups: list[list[Chunk]] = []
    for chunk in chunks:
        group = next((one for one in open_groups if all(chunk[0] != own for own, _ in one)), None)
        if group is None:
            group = []
            open_groups.append(group)
        group.append(chunk)
        if len(group) == apis:
            open_groups.remove(group)
            full.append(group)
    return full + open_groups


def _batch(corpus: Corpus, chosen: Sequence[Chunk], extras: Extras, order: random.Random) -> Batch:
    answered = [number for _, own in chosen for number in own]
    columns = dict.fromkeys(answer for number in answered for answer in corpus.requests[number].answers)
    columns.update(dict.fromkeys(list(extras.operations(corpus, chosen, columns, order))))
    requests = (*answered, *extras.requests(chosen, order))
    operations = tuple(columns)
    right = _right_answers(corpus, requests)
    pairs = [(row, column) for row in range(len(requests)) for column in range(len(operations))]
    positives = {(i, j) for i, j in pairs if operations[j] in corpus.requests[requests[i]].answers}
    twins = [{corpus.twins[answer] for answer in answers} for answers in right]
    near = {(i, j) for i, j in pairs if corpus.twins[operations[j]] in twins[i]}
    return Batch(requests, operations, tuple(sorted(positives)), tuple(sorted(near - positives)))


def _right_answers(corpus: Corpus, requests: Sequence[int]) -> list[set[int]]:
    """Return per row what answers it or a row with the same words."""
    keys = [tuple(tokens(corpus.requests[number].text)) or (str(number),) for number in requests]
    shared: dict[tuple[str, ...], set[int]] = {}
    for key, number in zip(keys, requests, strict=True):
        shared.setdefault(key, set()).update(corpus.requests[number].answers)
    return [shared[key] for key in keys]
