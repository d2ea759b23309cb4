from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.helpers import write_jsonl
from capdex_bench.formats import read_catalog, read_qrels, read_queries, read_rows, unique_name
from capdex_engine.errors import DocumentError


def test_a_catalog_row_becomes_an_operation_with_its_id_as_key(tmp_path):
    row = {
        "id": "shop:GET /orders",
        "name": "listOrders",
        "method": "get",
        "path": "/orders",
        "summary": "List",
        "description": "All of them.",
        "params": ["page", {"name": "size", "type": "integer"}, "page"],
        "api": "Shop",
        "source": "shop",
    }
    (found,) = read_catalog(write_jsonl(tmp_path / "catalog.jsonl", [row]))
    assert (found.key, found.name, found.method, found.path) == (row["id"], "listOrders", "GET", "/orders")
    assert found.query_params == ("page", "size")
    assert (found.api_title, found.source) == ("Shop", "shop")


def test_of_rows_with_one_id_the_first_counts(tmp_path):
    rows = [{"id": "a", "name": "first"}, {"id": "b", "name": "other"}, {"id": "a", "name": "second"}]
    found = read_catalog(write_jsonl(tmp_path / "c.jsonl", rows))
    assert [(one.key, one.name) for one in found] == [("a", "first"), ("b", "other")]


def test_names_become_unique_and_the_original_stays_as_operation_id(tmp_path):
    rows = [{"id": "a", "name": "get /x y"}, {"id": "b", "name": "get /x y"}, {"id": "c"}]
    first, second, third = read_catalog(write_jsonl(tmp_path / "shop.jsonl", rows))
    assert (first.name, second.name, third.name) == ("get_x_y", "get_x_y_2", "c")
    assert second.operation_id == "get /x y"
    assert third.source == "shop"


def test_beir_rows_are_read_too(tmp_path):
    (found,) = read_catalog(write_jsonl(tmp_path / "corpus.jsonl", [{"_id": "7", "title": "T", "text": "x"}]))
    assert (found.key, found.name, found.description) == ("7", "T", "x")
    (query,) = read_queries(write_jsonl(tmp_path / "q.jsonl", [{"_id": 3, "text": "x", "metadata": {}}]))
    assert query.id == "3"


def test_a_repeated_query_is_read_once_but_two_texts_under_one_id_are_an_error(tmp_path):
    same = write_jsonl(tmp_path / "same.jsonl", [{"id": "1", "text": "x"}, {"id": "1", "text": "x"}])
    assert len(read_queries(same)) == 1
    other = write_jsonl(tmp_path / "other.jsonl", [{"id": "1", "text": "x"}, {"id": "1", "text": "y"}])
    with pytest.raises(DocumentError):
        read_queries(other)


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '"text"',
        '{"id": "1"}',
        '{"text": "x"}',
        '{"id": "a\\tb", "text": "x"}',
        '{"id": "", "text": "x"}',
    ],
)
def test_a_faulty_query_line_is_named(tmp_path, line):
    path = tmp_path / "queries.jsonl"
    path.write_text('{"id": "0", "text": "fine"}\n\n' + line + "\n", encoding="utf-8")
    with pytest.raises(DocumentError) as caught:
        read_queries(path)
    assert "line 3" in caught.value.message


def test_absent_and_undecodable_files_are_clear_errors(tmp_path):
    (tmp_path / "latin.jsonl").write_bytes(b"\xff\xfe{}")
    for name in ("absent.jsonl", "latin.jsonl"):
        with pytest.raises(DocumentError):
            list(read_rows(tmp_path / name))


def test_an_empty_catalog_is_an_error(tmp_path):
    with pytest.raises(DocumentError):
        read_catalog(write_jsonl(tmp_path / "c.jsonl", []))


def test_qrels_may_have_three_columns_or_trecs_four_or_a_heading(tmp_path):
    path = tmp_path / "qrels.tsv"
    path.write_text(
        "query-id\tcorpus-id\tscore\nq\tGET /a\t2\nq\t0\tGET /b\t1\nq\tGET /c\t0\r\n", encoding="utf-8"
    )
    assert read_qrels(path) == {"q": {"GET /a": 2, "GET /b": 1}}


def test_of_two_grades_for_one_pair_the_higher_counts(tmp_path):
    path = tmp_path / "qrels.tsv"
    path.write_text("q\ta\t2\nq\ta\t1\n", encoding="utf-8")
    assert read_qrels(path) == {"q": {"a": 2}}


@pytest.mark.parametrize("line", ["q\ta", "q\ta\tbest", "q\ta\t3", "q a 1"])
def test_a_faulty_label_is_an_error(tmp_path, line):
    path = tmp_path / "qrels.tsv"
    path.write_text(line + "\n", encoding="utf-8")
    with pytest.raises(DocumentError):
        read_qrels(path)


@given(st.lists(st.text(max_size=90), max_size=20))
def test_unique_names_are_unique_and_fit_the_alphabet(texts):
    taken: set[str] = set()
    names = [unique_name(text, taken) for text in texts]
    assert len(set(names)) == len(names)
    assert all(1 <= len(name) <= 64 and name.isascii() and "/" not in name for name in names)
