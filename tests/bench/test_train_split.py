from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.train_tiny import apis, write_train
from capdex_bench.train.corpus import publisher, read_corpus
from capdex_bench.train.exclusions import is_left_out
from capdex_bench.train.split import (
    MOST,
    choose_held_out,
    families,
    held_out_sets,
    read_held_out,
    titles_of,
)
from capdex_engine.errors import DocumentError

TITLES = {f"p{number}.com/{file}.json": "" for number in range(30) for file in "ab"[: 1 + number % 2]}


def test_documents_of_one_publisher_label_or_title_are_one_family() -> None:
    titles = {
        "bbc.co.uk.json": "Programmes",
        "bbc.com.json": "News",
        "netbox.dev.json": "NetBox API",
        "netboxdemo.com.json": "netbox api",
        "zeit.co.json": "ZEIT",
        "vercel.com.json": "Vercel",
        "alone.io.json": "",
        "alone2.io.json": "",
    }
    assert families(titles) == [
        ("alone.io.json",),
        ("alone2.io.json",),
        ("bbc.co.uk.json", "bbc.com.json"),
        ("netbox.dev.json", "netboxdemo.com.json"),
        ("vercel.com.json", "zeit.co.json"),
    ]


def test_a_title_joins_two_publishers_with_all_their_documents() -> None:
    titles = {"a.com/1.json": "Same", "a.com/2.json": "", "b.com/1.json": "Same", "b.com/2.json": ""}
    assert families(titles) == [tuple(titles)]


@given(st.sets(st.sampled_from(sorted(TITLES)), min_size=5), st.integers(1, 12), st.text(max_size=5))
def test_whole_families_are_chosen_whatever_the_order(documents: set[str], count: int, seed: str) -> None:
    titles = {document: TITLES[document] for document in documents}
    chosen = choose_held_out(titles, count=count, seed=seed)
    assert chosen == choose_held_out(dict(reversed(list(titles.items()))), count=count, seed=seed)
    assert len(chosen) <= count
    rest = set(titles) - set(chosen)
    assert {publisher(d) for d in chosen}.isdisjoint(publisher(d) for d in rest)


def test_large_publishers_are_never_held_out() -> None:
    titles = {f"big.com/{number}.json": "" for number in range(MOST + 1)} | {"small.com.json": ""}
    assert choose_held_out(titles) == ("small.com.json",)


def test_the_committed_list_is_the_rules(shared: Path) -> None:
    titles = titles_of(read_corpus(shared / "train"))
    allowed = {document: title for document, title in titles.items() if not is_left_out(document, title)}
    assert read_held_out() == choose_held_out(allowed)


def test_the_committed_list_splits_no_family(shared: Path) -> None:
    titles = titles_of(read_corpus(shared / "train"))
    held_out = set(read_held_out())
    assert len(held_out) == 60
    for family in families(titles):
        assert held_out.isdisjoint(family) or held_out.issuperset(family)


def test_held_out_apis_become_query_sets(tmp_path: Path) -> None:
    write_train(tmp_path, *apis(3))
    (one,) = held_out_sets(tmp_path, held_out=["api2.test.json"])
    assert (one.name, one.group) == ("api2.test", "held-out")
    assert len(one.catalog()) == 6
    assert {query.type for query in one.queries} == {"natural", "terse", "typo", "multi", "none"}
    graded = {query.text: one.grades(query) for query in one.queries}
    assert graded["teh delete order of 2"] == {"DELETE /orders/{id}": 2}
    assert graded["find a order then add a team in 2"] == {"GET /orders": 2, "POST /teams": 2}
    assert graded["sing a song for 2"] == {}


def test_their_whole_documents_may_be_the_catalogs(tmp_path: Path) -> None:
    write_train(tmp_path, *apis(1))
    path = tmp_path / "docs" / "api0.test.json"
    path.parent.mkdir()
    path.write_text(
        '{"openapi": "3.0.0", "info": {"title": "T", "version": "1"}, '
        '"servers": [{"url": "https://a.test"}], "paths": {"/users": {"get": {"responses": {}}}}}'
    )
    (one,) = held_out_sets(tmp_path, documents=tmp_path / "docs", held_out=["api0.test.json"])
    assert [operation.key for operation in one.catalog()] == ["GET /users"]


def test_a_listed_document_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    write_train(tmp_path, *apis(1))
    with pytest.raises(DocumentError):
        held_out_sets(tmp_path, held_out=["other.json"])
    with pytest.raises(DocumentError):
        held_out_sets(tmp_path, documents=tmp_path, held_out=["api0.test.json"])


def test_a_missing_or_empty_list_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DocumentError):
        read_held_out(tmp_path / "none.txt")
    (tmp_path / "empty.txt").write_text("# nothing\n\n")
    with pytest.raises(DocumentError):
        read_held_out(tmp_path / "empty.txt")
