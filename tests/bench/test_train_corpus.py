from __future__ import annotations

from pathlib import Path

import pytest

from bench.train_tiny import Row, apis, corpus, operation_row, write_train
from capdex_bench.train.corpus import publisher, read_corpus
from capdex_engine.errors import DocumentError
from capdex_engine.rank import operation_text


def test_requests_point_to_the_operations_that_answer_them(tmp_path: Path) -> None:
    found = corpus(tmp_path, *apis(2))
    asked = {request.text: request for request in found.requests}
    assert [found.operations[i].key for i in asked["quick list invoice of 1"].answers] == ["GET /invoices"]
    both = asked["find a user then add a invoice in 0"]
    assert [found.operations[i].key for i in both.answers] == ["GET /users", "POST /invoices"]
    assert asked["sing a song for 0"].answers == ()
    assert {found.documents[i] for i in both.answers} == {"api0.test.json"}


def test_operations_get_the_names_and_texts_of_the_engine(tmp_path: Path) -> None:
    rows = [
        operation_row(
            "shop.json",
            "GET /carts/{id}",
            description="<p>Returns <b>one</b> cart. And more.</p>",
            params=["id", "expand", "X-Trace", "Shop-Version"],
        ),
        operation_row("shop.json", "POST /carts", name="carts/create it", summary="Make a cart"),
    ]
    first, second = corpus(tmp_path, rows, []).operations
    assert (first.name, second.name) == ("getCartsById", "carts_create_it")
    assert first.summary == "Returns one cart."
    assert (first.path_params, first.query_params) == (("id",), ("expand",))
    assert first.header_params == ("X-Trace", "Shop-Version")
    assert (second.method, second.path, second.key) == ("POST", "/carts", "POST /carts")


def test_the_trained_text_is_the_indexed_one(tmp_path: Path) -> None:
    found = corpus(tmp_path, *apis(1))
    assert found.texts == tuple(operation_text(operation) for operation in found.operations)


def test_twins_share_path_and_words_but_not_silence(tmp_path: Path) -> None:
    rows = [
        operation_row("a.json", "GET /x", summary="Do it"),
        operation_row("a.json", "POST /x", summary="Do it"),
        operation_row("a.json", "GET /y", summary="Do it"),
        operation_row("a.json", "GET /z"),
        operation_row("a.json", "POST /z"),
        operation_row("b.json", "GET /x", summary="Do it"),
    ]
    twins = corpus(tmp_path, rows, []).twins
    assert twins[0] == twins[1]
    assert len(set(twins)) == 5


@pytest.mark.parametrize(
    ("document", "expected"),
    [("azure.com/compute.json", "azure.com"), ("art19.com.json", "art19.com"), ("x", "x")],
)
def test_the_publisher_is_the_folder_or_the_file(document: str, expected: str) -> None:
    assert publisher(document) == expected


@pytest.mark.parametrize(
    "row",
    [
        ("a.json", "GET /nothing", "natural", "what"),
        ("a.json", "GET /x", "shouted", "what"),
        ("a.json", "-", "natural", "what"),
        ("a.json", "GET /x", "none", "what"),
        ("a.json", "GET /x", "natural"),
    ],
)
def test_a_wrong_line_is_an_error_that_names_it(tmp_path: Path, row: Row) -> None:
    write_train(tmp_path, [operation_row("a.json", "GET /x")], [row])
    with pytest.raises(DocumentError) as caught:
        read_corpus(tmp_path)
    assert "line 2" in caught.value.message


def test_missing_files_columns_and_keys_are_errors(tmp_path: Path) -> None:
    with pytest.raises(DocumentError):
        read_corpus(tmp_path)
    write_train(tmp_path, [{"doc": "a.json"}], [])
    with pytest.raises(DocumentError):
        read_corpus(tmp_path)
    write_train(tmp_path, [operation_row("a.json", "GET /x")], [])
    (tmp_path / "requests.tsv").write_text("query\tkey\n")
    with pytest.raises(DocumentError):
        read_corpus(tmp_path)
    (tmp_path / "requests.tsv").unlink()
    with pytest.raises(DocumentError):
        read_corpus(tmp_path)


def test_the_teams_data_can_be_read(shared: Path) -> None:
    found = read_corpus(shared / "train")
    assert len(found.requests) > 40_000
    assert len(found.operations) == len(found.documents) > 10_000
