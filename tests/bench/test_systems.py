from __future__ import annotations

import random

import numpy as np
import pytest

from bench.helpers import OPERATIONS, WordEncoder, operation
from capdex_bench.systems import ABLATIONS, SYSTEMS, Context, find_systems
from capdex_bench.systems.base import tokens, top
from capdex_bench.systems.fused import reciprocal_ranks, spread
from capdex_bench.systems.keyword import build_keyword
from capdex_bench.systems.lexical import BM25, bm25_text
from capdex_engine.errors import ConfigurationError


@pytest.fixture
def context():
    return Context(load=WordEncoder)


def keys(found):
    return [one[0] for one in found]


def test_tokens_part_camel_case_snake_case_digits_and_keep_other_scripts():
    assert tokens("getHTTPStatus_v2/{orderId}") == ["get", "http", "status", "v", "2", "order", "id"]
    assert tokens("Café löschen 削除") == ["café", "löschen", "削除"]


@pytest.mark.parametrize("name", [*SYSTEMS, *ABLATIONS])
def test_every_system_answers_best_first_within_k(name, context):
    search = find_systems([name])[name](OPERATIONS, context)
    found = search("cancel an order", 3)
    assert 1 <= len(found) <= 3
    scores = [one[1] for one in found]
    assert scores == sorted(scores, reverse=True)
    assert set(keys(found)) <= {one.key for one in OPERATIONS}


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_finds_the_obvious(name, context):
    search = SYSTEMS[name](OPERATIONS, context)
    assert keys(search("cancel an order", 5))[0] == "cancelOrder"


@pytest.mark.parametrize("name", ["keyword", "bm25"])
def test_lexical_systems_return_nothing_without_a_shared_word(name, context):
    assert not SYSTEMS[name](OPERATIONS, context)("zebra", 5)


@pytest.mark.parametrize("name", ["keyword", "bm25"])
def test_lexical_systems_never_load_the_encoder(name):
    def load():
        raise AssertionError

    assert SYSTEMS[name](OPERATIONS, Context(load=load))("order", 5)


def test_an_unknown_system_is_an_error_that_lists_the_known():
    with pytest.raises(ConfigurationError) as caught:
        find_systems(["bm26"])
    assert "bm25" in caught.value.message


def test_the_keyword_scorer_adds_five_three_two_and_one(context):
    catalog = (
        operation("exact.order", "x", path="/x"),
        operation("prefix.ordering", "x", path="/x"),
        operation("summary", "one order", path="/x"),
        operation("path", "x", path="/order"),
        operation("all.order", "order", path="/order"),
    )
    found = build_keyword(catalog, context)("order", 10)
    assert found == [
        ("all.order", 8.0),
        ("exact.order", 5.0),
        ("prefix.ordering", 3.0),
        ("summary", 2.0),
        ("path", 1.0),
    ]


def test_keyword_ties_go_by_name(context):
    catalog = tuple(operation(f"{letter}.order") for letter in "dbac")
    assert keys(build_keyword(catalog, context)("order", 2)) == ["a.order", "b.order"]


def test_top_keeps_what_ties_with_the_last_place_before_names_decide():
    catalog = [operation(name) for name in ("d", "c", "b", "a")]
    assert top(catalog, np.array([1.0, 1.0, 1.0, 2.0]), 2) == [3, 2]
    assert top(catalog, np.array([0.0, -1.0, 0.0, 0.0]), 2) == []


def test_bm25_reads_names_texts_paths_and_parameters():
    text = bm25_text(
        operation("n", "s", description="d", path="/p", query_params=("q",), body_properties=("b",))
    )
    assert text.split() == ["n", "s", "d", "/p", "q", "b"]


def test_bm25_equals_bm25s():
    bm25s = pytest.importorskip("bm25s")
    draw = random.Random(7)
    words = [f"w{number}" for number in range(30)]
    corpus = [draw.choices(words, k=draw.randint(1, 25)) for _ in range(60)]
    theirs = bm25s.BM25(method="lucene", k1=1.5, b=0.75, dtype="float64")
    theirs.index(corpus, show_progress=False)
    ours = BM25(corpus)
    for _ in range(20):
        query = draw.sample(words, 4)
        np.testing.assert_allclose(ours.scores(query), theirs.get_scores(query), rtol=1e-9)


def test_bm25_over_nothing_and_over_empty_texts_scores_nothing():
    assert BM25([]).scores(["x"]).size == 0
    assert not BM25([[], []]).scores(["x"]).any()


def test_spread_scales_to_the_unit_interval_and_is_zero_without_differences():
    assert spread(np.array([1.0, 3.0, 2.0])).tolist() == [0.0, 1.0, 0.5]
    assert spread(np.array([2.0, 2.0])).tolist() == [0.0, 0.0]


def test_reciprocal_ranks_give_ties_one_rank_and_nothing_below_the_floor():
    found = reciprocal_ranks(np.array([3.0, 5.0, 3.0, 0.0]), floor=0.0)
    assert found == pytest.approx([1 / 62, 1 / 61, 1 / 62, 0.0])


def test_the_dense_side_is_encoded_once_per_text(tmp_path):
    encoder = WordEncoder()
    context = Context(tmp_path, lambda: encoder)
    for name in ("minilm", "blend", "rrf"):
        SYSTEMS[name](OPERATIONS, context)
    assert encoder.calls == len(OPERATIONS)
    assert context.identity == "words"


def test_ablations_keep_the_keys_and_take_one_thing_away(context):
    search = ABLATIONS["capdex-name"](OPERATIONS, context)
    assert "cancelOrder" in keys(search("cancel an order that was not shipped", 5))


def test_the_dense_baselines_keep_their_own_encoder():
    def engine_encoder():
        raise AssertionError("a baseline must not ask for the engine's encoder")

    for name in ("minilm", "blend", "rrf"):
        context = Context(load=engine_encoder, load_baseline=WordEncoder)
        assert SYSTEMS[name](OPERATIONS, context)("order", 5)
        assert context.identity == WordEncoder().identity
