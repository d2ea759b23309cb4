"""BM25F: the oracle for one field, the order of fields, permissions."""

from __future__ import annotations

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capdex_engine.operation import Operation
from capdex_engine.rank.lexical import (
    BIT,
    FIELD_WEIGHTS,
    K1,
    B,
    LexicalIndex,
    build_postings,
    field_texts,
    top,
)

WORDS = ["invoice", "label", "user", "branch", "list", "get", "merge", "file"]


def op(name: str, **fields: object) -> Operation:
    return Operation(name=name, source="s", **fields)  # type: ignore[arg-type]


def scores(index: LexicalIndex, query: str) -> list[float]:
    return index.scores(index.terms(query)).tolist()


@settings(deadline=None, max_examples=30)
@given(st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=12), min_size=2, max_size=12))
def test_one_field_scores_as_bm25s_does(documents: list[list[str]]) -> None:
    postings = build_postings([{"summary": d} for d in documents], {"summary": 1.0})
    oracle = bm25s.BM25(method="lucene", k1=K1, b=B)
    oracle.index(documents, show_progress=False)
    for word in {w for d in documents for w in d}:
        ours = np.zeros(len(documents))
        where = postings.of(postings.vocabulary[word])
        ours[postings.rows[where]] = postings.impacts[where]
        np.testing.assert_allclose(ours, oracle.get_scores([word]), atol=1e-5)


def test_a_hit_counts_more_in_a_name_than_in_a_summary_than_in_a_path() -> None:
    index = LexicalIndex(
        [op("other", path="/invoice"), op("invoice", path="/other"), op("thing", summary="invoice")]
    )
    path, name, summary = scores(index, "invoice")
    assert name > summary > path > 0


def test_an_operators_keyword_counts_like_a_name() -> None:
    assert FIELD_WEIGHTS["keywords"] == FIELD_WEIGHTS["name"]
    index = LexicalIndex([op("a", keywords=("payslip",)), op("b", description="payslip")])
    with_keyword, with_description = scores(index, "payslip")
    assert with_keyword > with_description


def test_every_field_is_searched() -> None:
    index = LexicalIndex(
        [
            op(
                "n",
                operation_id="grue",
                summary="summa",
                description="descr",
                path="/pathy/{placeholder}",
                tags=("taggy",),
                keywords=("keyed",),
                api_title="titled",
                query_params=("paramX",),
                body_properties=("proper",),
            )
        ]
    )
    for word in ("grue", "summa", "descr", "pathy", "taggy", "keyed", "titled", "param", "proper"):
        assert scores(index, word)[0] > 0
    assert scores(index, "placeholder") == [0.0]


def test_a_name_that_is_also_the_operation_id_counts_once() -> None:
    assert field_texts(op("x", operation_id="x"))["operation_id"] == ""


def test_a_compound_is_found_in_two_words_and_two_words_in_a_compound() -> None:
    index = LexicalIndex([op("createWebhook"), op("listWebHooks"), op("other")])
    assert scores(index, "web hook")[0] > 0
    assert scores(index, "webhook")[1] > 0


def test_a_word_that_nothing_holds_makes_the_query_rarer_and_scores_nothing() -> None:
    index = LexicalIndex([op("invoice")])
    terms = index.terms("invoice zebra")
    assert len(terms.known) == 1
    assert terms.total_idf > index.terms("invoice").total_idf


def test_stop_words_alone_leave_no_terms() -> None:
    terms = LexicalIndex([op("theOf", summary="the of and")]).terms("the of and")
    assert not terms
    assert terms.total_idf == 0


def test_hits_name_the_fields_that_hold_each_term() -> None:
    index = LexicalIndex([op("invoice", summary="send"), op("send")])
    masks = index.hits(index.terms("invoice send"), np.array([0, 1]))
    assert masks.tolist() == [[BIT["name"], 0], [BIT["summary"], BIT["name"]]]


def test_an_empty_catalog_is_searched_without_fault() -> None:
    index = LexicalIndex([])
    assert scores(index, "anything") == []


@pytest.mark.parametrize("count", [1, 2, 10])
def test_top_gives_the_best_allowed_rows_best_first(count: int) -> None:
    values = np.array([0.5, 0.0, 2.0, 1.0, 3.0], dtype=np.float32)
    allowed = np.array([True, True, True, True, False])
    assert top(values, count, allowed).tolist() == [2, 3, 0][:count]
    assert top(values, count).tolist() == [4, 2, 3, 0][:count]
