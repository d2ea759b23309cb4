"""Rules that leave 1, 10 and 90 of 100 operations of a large catalog: the best are found all the same."""

from __future__ import annotations

import random

import numpy as np
import pytest
from numpy.typing import NDArray

from capdex_engine.encode.testing import HashEncoder
from capdex_engine.operation import Operation
from capdex_engine.rank import Searcher, operation_text, searcher
from capdex_engine.rank.dense import DenseIndex
from capdex_engine.rank.lexical import LexicalIndex, top
from capdex_server.aliases import Aliases
from capdex_server.columns import Columns
from capdex_server.policy import Policy
from server.policy_support import caller

COUNT = 10_000
NOUNS = [
    f"{a}{b}{c}"
    for a in ("bal", "cor", "den", "fil", "gro", "han", "jus", "kel", "lom", "mir")
    for b in ("a", "e", "i", "o", "u")
    for c in ("dan", "fer", "gos", "lin", "mok", "pit", "ras", "tov")
]
VERBS = {"list": "GET", "create": "POST", "delete": "DELETE", "update": "PATCH", "search": "GET"}
QUERIES = [
    "create a baladan",
    "list the corefer of a denigos",
    "delete a filolin",
    "search gromok by hanepit",
    f"which {NOUNS[77]} has the {NOUNS[123]}",
    f"update a {NOUNS[200]}, then create an {NOUNS[321]}",
    "keluras lomatov mirefer",
    f"all {NOUNS[399]} there are",
]
SHARES = {"one": 0.01, "ten": 0.1, "ninety": 0.9}


def generated() -> list[Operation]:
    draw = random.Random(5)
    found = []
    for number in range(COUNT):
        verb, (noun, of, at) = draw.choice([*VERBS]), draw.sample(NOUNS, 3)
        tags = tuple(tag for tag, share in SHARES.items() if draw.random() < share)
        found.append(
            Operation(
                f"{verb}{noun.title()}{of.title()}{number}",
                f"api{number % 25}",
                VERBS[verb],
                f"/{of}/{{id}}/{noun}/{at}",
                summary=f"{verb} the {noun} of the {of}",
                description=" ".join(draw.choices(NOUNS, k=draw.randint(0, 15))),
                tags=tags,
                key=str(number),
            )
        )
    return found


OPERATIONS = generated()


@pytest.fixture(scope="module")
def everything() -> Searcher:
    return Searcher.build(OPERATIONS, HashEncoder())


def mask(tag: str) -> NDArray[np.bool_]:
    return Policy().mask(caller([{"tag": tag}]), OPERATIONS)


@pytest.mark.parametrize("tag", [*SHARES])
def test_both_indexes_find_the_ten_that_filtering_all_would_leave(tag: str) -> None:
    encoder, may = HashEncoder(), mask(tag)
    vectors = encoder.encode([operation_text(operation) for operation in OPERATIONS])
    dense, lexical = DenseIndex(vectors), LexicalIndex(OPERATIONS)
    for query in QUERIES:
        vector = encoder.encode([query])[0]
        exact = dense.similarities(vector, np.arange(COUNT))
        order = np.lexsort((np.arange(COUNT), -exact))
        assert dense.search(vector, 10, may)[0].tolist() == order[may[order]][:10].tolist()
        scores = lexical.scores(lexical.terms(query))
        assert top(scores, 10, may).tolist() == filtered(scores, 10, may).tolist()


def searched_by_no_index(
    self: DenseIndex, query: NDArray[np.float32], count: int, allowed: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Compare all vectors, then leave out what is not allowed."""
    exact = self.similarities(query, np.arange(COUNT))
    rows = filtered(exact, count, allowed, above=-2.0)
    return rows, exact[rows]


def filtered(
    scores: NDArray[np.float32],
    count: int,
    allowed: NDArray[np.bool_] | None = None,
    above: float = 0.0,
) -> NDArray[np.int64]:
    """Order everything, then leave out what is not allowed."""
    order = np.lexsort((np.arange(COUNT), -scores))
    may = np.ones(COUNT, np.bool_) if allowed is None else allowed
    found: NDArray[np.int64] = order[may[order] & (scores[order] > above)][:count]
    return found


@pytest.mark.parametrize("tag", [*SHARES])
def test_the_ten_best_are_those_of_filtering_an_exhaustive_search(
    everything: Searcher, tag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    within = everything.within(mask(tag))
    found = [ten_of(within, query) for query in QUERIES]
    monkeypatch.setattr(DenseIndex, "search", searched_by_no_index)
    monkeypatch.setattr(searcher, "top", filtered)
    assert found == [ten_of(within, query) for query in QUERIES]
    assert sum(map(len, found)) >= 60


def ten_of(within: Searcher, query: str) -> list[tuple[str, float]]:
    return [(hit.operation.name, hit.score) for hit in within.search(query, limit=10).hits]


def test_globs_are_tried_once_per_different_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule over 10,000 operations of 25 sources looks at 25 names, and 5 methods more."""
    from capdex_server import columns

    tried = 0
    plain = columns.glob_fits

    def counted(*arguments: object) -> bool:
        nonlocal tried
        tried += 1
        return plain(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(columns, "glob_fits", counted)
    who = caller([{"source": "api1*", "method": "GET"}], [{"source": "api2*"}])
    found = Policy().mask_over(who, Columns(OPERATIONS, Aliases()))
    assert found.any() and tried == 25 + len(set(VERBS.values())) + 25
