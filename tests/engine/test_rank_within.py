"""A searcher within a part of the operations answers as one that was built of that part alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capdex_engine.catalog import Source, build_catalog
from capdex_engine.encode import Encoder, VectorStore
from capdex_engine.encode.testing import HashEncoder
from capdex_engine.operation import Operation
from capdex_engine.rank import Searcher
from capdex_engine.rank.exact import ExactNames
from capdex_engine.rank.lexical import LexicalIndex
from capdex_engine.rank.spelling import Speller
from capdex_engine.text import tokens

VERBS = ("list", "create", "delete", "zorble")
NOUNS = ("invoice", "refund", "webhook", "quuxor", "issue", "webHook")
QUERIES = (
    "create an invoice",
    "quuxer",
    "zorbel the refnd",
    "create_invoice",
    "createInvoice",
    "POST /invoice",
    "/invoice/7",
    "delete the web hook and create an issue",
    "Rechnung erstellen",
    "all invoices",
)


def op(verb: str, noun: str, number: int) -> Operation:
    name = f"{verb}{'_' * (number % 2)}{noun.title()}" + (str(number) if number > 3 else "")
    path = f"/{noun}" if number % 3 else f"/{noun}/{{id}}"
    method = "POST" if verb == "create" else "GET"
    summary = f"{verb} {noun}s " + "of the team " * (number % 4)
    return Operation(name, "s", method, path, summary=summary, key=f"{name}{number}", tags=(noun,))


catalogs = st.lists(
    st.tuples(
        st.builds(op, st.sampled_from(VERBS), st.sampled_from(NOUNS), st.integers(0, 9)), st.booleans()
    ),
    min_size=1,
    max_size=25,
    unique_by=lambda pair: pair[0].name,
)


def answers(searcher: Searcher, query: str) -> object:
    result = searcher.search(query, limit=20)
    return [(hit.operation.name, hit.score) for hit in result.hits], result.hint, result.read_as


@settings(deadline=None, max_examples=25)
@given(catalogs)
def test_what_is_not_permitted_changes_nothing(catalog: list[tuple[Operation, bool]]) -> None:
    operations = [operation for operation, _ in catalog]
    permitted = np.array([may for _, may in catalog])
    within = Searcher.build(operations, HashEncoder()).within(permitted)
    alone = Searcher.build([operation for operation, may in catalog if may], HashEncoder())
    for query in QUERIES:
        assert answers(within, query) == answers(alone, query)


def test_a_searchers_own_filter_stays_inside_what_is_permitted() -> None:
    operations = [op("list", noun, 1) for noun in NOUNS]
    searcher = Searcher.build(operations, HashEncoder()).within(np.array([True, True, False] * 2))
    found = searcher.search("list", limit=20, allowed=np.array([False, True, True] * 2)).hits
    assert {hit.operation.name for hit in found} <= {operations[1].name, operations[4].name}


def test_all_permitted_is_the_searcher_itself() -> None:
    searcher = Searcher.build([op("list", "invoice", 1)], HashEncoder())
    assert searcher.within(np.array([True])) is searcher


def test_nothing_permitted_is_as_nothing_there() -> None:
    within = Searcher.build([op("list", "invoice", 1)], HashEncoder()).within(np.array([False]))
    nothing = Searcher.build([], HashEncoder())
    assert [answers(within, query) for query in QUERIES] == [answers(nothing, query) for query in QUERIES]


def test_an_index_within_a_part_has_its_rarities_and_scores() -> None:
    operations = [op(verb, noun, i) for i, (verb, noun) in enumerate(zip(VERBS * 3, NOUNS * 2, strict=True))]
    part = np.arange(len(operations)) % 3 > 0
    within = LexicalIndex(operations).within(part)
    alone = LexicalIndex([operation for operation, may in zip(operations, part, strict=True) if may])
    for query in ("list the webhooks", "zorble quuxor", "team invoice", "nothing"):
        mine, its = within.terms(query), alone.terms(query)
        assert mine.total_idf == its.total_idf and within.known(mine) == alone.known(its)
        assert within.scores(mine)[part].tolist() == alone.scores(its).tolist()
    assert "quuxor" in LexicalIndex(operations) and 7 not in within


def test_a_word_is_not_corrected_to_one_that_is_not_permitted() -> None:
    speller = Speller(frozenset(tokens("quuxor lemma invoice")))
    part = speller.within(frozenset(tokens("invoice")))
    assert (speller.correct("quuxer"), speller.correct("lema")) == ("quuxor", "lemma")
    assert (part.correct("quuxer"), part.correct("invoise")) == ("quuxer", "invoice")
    assert part.correct("lema") == Speller(frozenset(tokens("invoice"))).correct("lema")


def test_a_name_that_is_not_permitted_stands_in_no_ones_way() -> None:
    operations = [
        Operation("createIssue", "a", "POST", "/issues/new"),
        Operation("create_issue", "b", "POST", "/issues/{kind}"),
    ]
    names = ExactNames(operations)
    may = np.array([False, True])
    for query in ("createIssue", "POST /issues/new", "/issues/new"):
        assert names.find(query).whole == (0,)
        assert names.find(query, may).whole == (1,)
    assert names.find("use createIssue", np.array([False, False])).among == ()


def words_of(operations: Sequence[Operation]) -> list[str]:
    """Requests of one to four words that the operations hold, some of them misspelt."""
    draw = random.Random(7)
    words = [word for operation in draw.sample(operations, 60) for word in operation.summary.lower().split()]
    queries = [" ".join(draw.sample(words, draw.randint(1, 4))) for _ in range(60)]
    return [query[:3] + query[4:] if number % 4 == 0 else query for number, query in enumerate(queries)]


@pytest.fixture(scope="module")
def store(encoder: Encoder, tmp_path_factory: pytest.TempPathFactory) -> VectorStore:
    return VectorStore(tmp_path_factory.mktemp("vectors"), encoder)


@pytest.fixture(scope="module")
def real(specs: Path, encoder: Encoder, store: VectorStore) -> Searcher:
    sources = [Source.from_file(specs / name) for name in ("docker-engine.swagger2.yaml", "box.json")]
    return Searcher.build(build_catalog(sources).operations, encoder, store=store)


@pytest.mark.parametrize("share", [0.03, 0.5, 0.97])
def test_a_part_of_a_real_catalog_answers_as_it_would_alone(
    real: Searcher, encoder: Encoder, store: VectorStore, share: float
) -> None:
    """With the encoder that serves: names, order, hints, readings and scores, to the last digit shown."""
    permitted = np.random.default_rng(3).random(len(real.operations)) < share
    part = [one for one, may in zip(real.operations, permitted, strict=True) if may]
    within, alone = real.within(permitted), Searcher.build(part, encoder, store=store)
    for query in words_of(real.operations):
        assert answers(within, query) == answers(alone, query)
