"""Requests that nobody forgives a search for missing, over GitHub's real document.

On 30 November 2026, hit@1 and recall@5 over all 68 requests:

    capdex           .66  .89
    minilm           .43  .82    our dense baseline
    graph-tool-call  .43  .68
    bigtool          .32  .68
    bm25             .47  .63    our lexical baseline
    fastmcp          .41  .62
    callbus-hybrid   .34  .63
    callbus-bm25     .40  .62
    stackone         .38  .56

The floors lie a little below capdex, and above every peer.
"""

from __future__ import annotations

import pytest

from bench.helpers import ticking
from capdex_bench.evaluate import evaluate, mean
from capdex_bench.formats import read_qrels, read_queries
from capdex_bench.measures import Measure
from capdex_bench.sets import load_sets
from capdex_bench.systems import Context
from capdex_bench.systems.engine import build_capdex
from capdex_bench.verbs import DOCUMENT, FOLDER, GROUP, NAME, verb_set
from capdex_engine.errors import DocumentError

LONGEST = 6
"""Words of a request: a verb, a noun, and at most what it is done to."""
FLOORS = {"hit@1": 0.6, "recall@5": 0.84}
PLAIN_FLOORS = {"hit@1": 0.78, "recall@5": 0.95}
"""For requests with the verb and the noun of the operation's own summary."""


@pytest.fixture(scope="module")
def found(specs):
    return verb_set(specs)


@pytest.fixture(scope="module")
def operations(found, cache):
    return found.catalog(cache)


@pytest.fixture(scope="module")
def result(found, operations, cache, encoder):
    context = Context(cache, lambda: encoder)
    return evaluate("capdex", build_capdex, found, operations, context, clock=ticking())


def test_requests_are_short_and_each_is_asked_once():
    queries = read_queries(FOLDER / "queries.jsonl")
    assert (
        len(queries) == len({query.text for query in queries}) == len({query.id for query in queries}) == 68
    )
    assert all(2 <= len(query.text.split()) <= LONGEST for query in queries)
    assert {query.type for query in queries} == {"plain", "reworded"}


def test_every_request_has_a_best_answer_and_every_label_a_request():
    qrels = read_qrels(FOLDER / "qrels.tsv")
    assert qrels.keys() == {query.id for query in read_queries(FOLDER / "queries.jsonl")}
    assert all(2 in grades.values() for grades in qrels.values())


@pytest.mark.parametrize("name", [GROUP, NAME])
def test_the_bench_finds_the_set_by_its_group_and_its_name(specs, name):
    (one,) = load_sets([name], specs)
    assert (one.name, one.group) == (NAME, GROUP)
    assert one.documents == (specs / f"{DOCUMENT}.json",)


def test_without_the_document_the_bench_says_where_to_get_it(tmp_path):
    with pytest.raises(DocumentError) as caught:
        load_sets([GROUP], tmp_path)
    assert caught.value.details["location"] == str(tmp_path / f"{DOCUMENT}.json")


def test_all_labels_exist_in_the_document(found, operations):
    keys = {operation.key for operation in operations}
    assert not {key for grades in found.qrels.values() for key in grades} - keys


@pytest.mark.parametrize(("measure", "floor"), FLOORS.items())
def test_capdex_answers_what_peers_fail_at(result, measure, floor):
    assert result.mean(Measure.parse(measure)) >= floor


@pytest.mark.parametrize(("measure", "floor"), PLAIN_FLOORS.items())
def test_capdex_finds_an_operation_by_its_own_verb_and_noun(result, measure, floor):
    assert mean(result.by_type(Measure.parse(measure))["plain"].values()) >= floor


def test_no_request_goes_unanswered(result):
    assert all(result.run[query.id] for query in result.set.queries)
