"""The corpus with whole documents and with further own requests, on documents of a few lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.train_tiny import Row, operation_row, write_requests, write_train
from capdex_bench.train import corpus as module
from capdex_bench.train.corpus import Corpus, Request, read_corpus
from capdex_engine.errors import DocumentError

CART = {
    "summary": "Put goods into a cart",
    "description": "Reserves them for an hour.",
    "requestBody": {
        "content": {
            "application/json": {
                "schema": {"type": "object", "properties": {"voucherCode": {"type": "string"}}}
            }
        }
    },
}
ROWS = [
    operation_row("shop.json", "POST /carts", summary="Put goods into a cart"),
    operation_row("shop.json", "GET /gone", summary="What the document no longer has"),
    operation_row("small.json", "GET /pets", summary="List pets"),
]
ASKED: list[Row] = [
    ("shop.json", "POST /carts", "natural", "buy this"),
    ("shop.json", "GET /gone", "terse", "old thing"),
    ("small.json", "GET /pets", "natural", "which pets are there"),
]
OWN: list[Row] = [
    ("shop.json", "GET /carts/{id}", "terse", "show cart"),
    ("new.json", "GET /boats ; POST /boats", "multi", "find a boat, then add one"),
    ("new.json", "-", "none", "sink a boat"),
    ("small.json", "-", "none", "sell a pet"),
]


def write_document(path: Path, paths: Mapping[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "openapi": "3.1.0",
        "info": {"title": f"{path.stem.title()} API", "version": "1"},
        "servers": [{"url": "https://a.example"}],
        "paths": paths,
    }
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Rows of two documents, requests in both places, and two whole documents; small.json has none."""
    write_train(tmp_path, ROWS, ASKED)
    write_requests(tmp_path / "own" / "more.tsv", OWN)
    answer = {"responses": {"200": {"description": "done"}}}
    cart = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    write_document(
        tmp_path / "api" / "shop.json",
        {
            "/carts": {"post": {**CART, **answer}},
            "/carts/{id}": {"get": {"summary": "Show a cart", "parameters": [cart], **answer}},
        },
    )
    boats = {"get": {"summary": "List boats", **answer}, "post": {"summary": "Add a boat", **answer}}
    write_document(tmp_path / "api" / "new.json", {"/boats": boats})
    return tmp_path


def whole(home: Path) -> Corpus:
    return read_corpus(home, documents=home / "api", cache=home / "cache", own=home / "own")


def keys(data: Corpus, document: str) -> list[str]:
    return [data.operations[number].key for number in data.siblings.get(document, ())]


def answered(data: Corpus) -> dict[str, list[tuple[str, str]]]:
    """Return request -> (document, key) of what answers it."""
    return {
        one.text: [(data.documents[n], data.operations[n].key) for n in one.answers] for one in data.requests
    }


def test_an_operation_says_what_the_whole_document_says(home: Path) -> None:
    rows, data = read_corpus(home, own=home / "own"), whole(home)
    (plain,), (full,) = (
        [n for n, op in enumerate(one.operations) if op.key == "POST /carts"] for one in (rows, data)
    )
    assert "voucher" not in rows.texts[plain]
    assert "voucher code" in data.texts[full]
    assert "Reserves them for an hour" in data.texts[full]
    assert data.operations[full].api_title == "Shop API"


def test_requests_follow_their_operation_into_the_whole_document(home: Path) -> None:
    found = answered(whole(home))
    assert found["buy this"] == [("shop.json", "POST /carts")]
    assert found["old thing"] == [("shop.json", "GET /gone")]
    assert found["show cart"] == [("shop.json", "GET /carts/{id}")]


def test_siblings_come_with_the_document_and_what_it_lacks_stays_last(home: Path) -> None:
    found = keys(whole(home), "shop.json")
    assert sorted(found[:-1]) == ["GET /carts/{id}", "POST /carts"]
    assert found[-1] == "GET /gone"


def test_a_document_without_rows_is_read_for_own_requests(home: Path) -> None:
    data = whole(home)
    assert answered(data)["find a boat, then add one"] == [
        ("new.json", "GET /boats"),
        ("new.json", "POST /boats"),
    ]
    assert answered(data)["sink a boat"] == []
    assert sorted(keys(data, "new.json")) == ["GET /boats", "POST /boats"]


def test_a_document_that_is_not_there_keeps_its_rows(home: Path) -> None:
    data = whole(home)
    assert keys(data, "small.json") == ["GET /pets"]
    assert data.texts[data.siblings["small.json"][0]] == read_corpus(home, own=home / "own").texts[2]


def test_a_document_that_is_too_large_keeps_its_rows(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST", (home / "api" / "shop.json").stat().st_size - 1)
    write_requests(home / "own" / "more.tsv", OWN[1:])
    data = whole(home)
    assert keys(data, "shop.json") == ["POST /carts", "GET /gone"]
    assert len(keys(data, "new.json")) == 2


def test_a_document_nobody_asks_about_is_not_read(home: Path) -> None:
    write_document(home / "api" / "other.json", {"/x": {"get": {"responses": {}}}})
    assert set(whole(home).documents) == {"shop.json", "small.json", "new.json"}


def test_a_document_that_cannot_be_read_is_an_error(home: Path) -> None:
    (home / "api" / "shop.json").write_text("{", encoding="utf-8")
    with pytest.raises(DocumentError):
        whole(home)


def test_without_documents_requests_for_what_no_row_holds_are_left_out(home: Path) -> None:
    data = read_corpus(home, own=home / "own")
    assert [one.text for one in data.requests] == [*(row[3] for row in ASKED), "sell a pet"]
    assert set(data.documents) == {"shop.json", "small.json"}


def test_own_requests_come_last_file_by_file(home: Path) -> None:
    write_requests(home / "own" / "again.tsv", [("small.json", "GET /pets", "jargon", "enumerate pets")])
    (home / "own" / "README.md").write_text("no requests", encoding="utf-8")
    texts = [one.text for one in whole(home).requests]
    assert texts == [row[3] for row in (*ASKED, ("", "", "", "enumerate pets"), *OWN)]


def test_without_own_files_there_are_the_rows_alone(home: Path) -> None:
    assert len(read_corpus(home, own=home / "nothing").requests) == len(ASKED)


@pytest.mark.parametrize("read", [whole, lambda home: read_corpus(home, own=home / "own")])
def test_a_second_reading_gives_the_same(home: Path, read: Any) -> None:
    assert read(home) == read(home)


@pytest.mark.parametrize(
    "row",
    [
        ("shop.json", "GET /carts/{id}", "shouted", "what"),
        ("shop.json", "-", "natural", "what"),
        ("shop.json", "GET /carts/{id}", "none", "what"),
        ("shop.json", "GET /carts/{id}", "natural"),
        ("shop.json", "GET /carts/{id}", "natural", "what", "more"),
    ],
)
@pytest.mark.parametrize("documents", [True, False])
def test_a_bad_line_names_its_file_and_line(home: Path, row: Row, documents: bool) -> None:
    write_requests(home / "own" / "bad.tsv", [OWN[0], row])
    with pytest.raises(DocumentError) as caught:
        read_corpus(home, documents=home / "api" if documents else None, own=home / "own")
    assert "bad.tsv, line 3" in caught.value.message


def test_with_documents_an_unknown_operation_is_an_error_that_names_its_line(home: Path) -> None:
    write_requests(home / "own" / "bad.tsv", [("new.json", "GET /ships", "terse", "ships")])
    with pytest.raises(DocumentError) as caught:
        whole(home)
    assert "bad.tsv, line 2" in caught.value.message
    assert "GET /ships" in caught.value.message


def test_other_columns_or_bytes_in_an_own_file_are_an_error(home: Path) -> None:
    bad = home / "own" / "bad.tsv"
    for content in (b"query\tkey\n", b"\xff\xfe"):
        bad.write_bytes(content)
        with pytest.raises(DocumentError) as caught:
            whole(home)
        assert "bad.tsv" in caught.value.message


def test_a_bare_text_leaves_out_what_the_operation_says_about_itself(home: Path) -> None:
    data = whole(home)
    number = next(n for n, one in enumerate(data.operations) if one.key == "POST /carts")
    assert "goods" in data.texts[number]
    assert "goods" not in data.bare_texts[number]
    assert "Reserves" not in data.bare_texts[number]
    assert "voucher code" in data.bare_texts[number]
    assert len(data.bare_texts) == len(data.texts)


def test_a_request_is_a_plain_value(home: Path) -> None:
    assert whole(home).requests[-1] == Request("small.json", "none", "sell a pet", ())
