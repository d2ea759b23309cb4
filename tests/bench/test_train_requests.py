"""The requests that are committed with the bench: every line can be trained on, and none may judge."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from capdex_bench.train.corpus import COLUMNS, KINDS, OWN, read_corpus
from capdex_bench.train.exclusions import is_left_out
from capdex_bench.train.split import read_held_out, titles_of

FILES = sorted(OWN.glob("*.tsv"))
NOTHING = "none.tsv"
KEY = re.compile(r"(GET|PUT|POST|DELETE|OPTIONS|HEAD|PATCH|TRACE) /.*\S|(GET|PUT|POST|DELETE|PATCH) /")

each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)


def rows(path: Path) -> list[tuple[str, ...]]:
    head, *lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    assert tuple(head.split("\t")) == COLUMNS
    return [tuple(line.split("\t")) for line in lines]


def all_rows() -> list[tuple[str, ...]]:
    return [row for path in FILES for row in rows(path)]


def test_both_files_are_there() -> None:
    assert [path.name for path in FILES] == ["more.tsv", NOTHING]


@each_file
def test_every_line_has_the_columns_filled_and_trimmed(path: Path) -> None:
    assert not [row for row in rows(path) if len(row) != len(COLUMNS)]
    assert not [row for row in rows(path) if any(not cell or cell != cell.strip() for cell in row)]
    assert b"\r" not in path.read_bytes()


@each_file
def test_every_line_has_a_kind_that_fits_its_file_and_its_operations(path: Path) -> None:
    for document, operations, kind, text in rows(path):
        where = (document, text)
        keys = operations.split(" ; ")
        assert kind in KINDS, where
        assert (kind == "none") == (operations == "-") == (path.name == NOTHING), where
        assert (kind == "multi") == (len(keys) > 1), where
        assert len(set(keys)) == len(keys), where


def test_operations_are_a_method_and_a_path() -> None:
    keys = {key for _, operations, kind, _ in all_rows() if kind != "none" for key in operations.split(" ; ")}
    assert not [key for key in keys if not KEY.fullmatch(key)]


def test_no_request_stands_twice_for_a_document() -> None:
    counts = Counter((document, text.casefold()) for document, _, _, text in all_rows())
    assert not [key for key, count in counts.items() if count > 1]


@each_file
def test_lines_are_sorted(path: Path) -> None:
    assert rows(path) == sorted(rows(path), key="\t".join)


def test_documents_are_relative_json_files() -> None:
    assert not [
        document
        for document, *_ in all_rows()
        if not re.fullmatch(r"[\w.@+ -]+(/[\w.@+ -]+)*\.json", document)
    ]
    assert not [document for document, *_ in all_rows() if ".." in document.split("/")]


def test_no_document_is_of_a_company_that_judges() -> None:
    assert not [document for document in {row[0] for row in all_rows()} if is_left_out(document, "")]


def test_held_out_documents_have_requests_for_nothing_only() -> None:
    held_out = set(read_held_out())
    assert {row[2] for row in all_rows() if row[0] in held_out} == {"none"}
    assert not [row for row in rows(OWN / "more.tsv") if row[0] in held_out]


def test_none_is_of_a_judging_company_by_its_title_either(shared: Path) -> None:
    titles = titles_of(read_corpus(shared / "train"))
    documents = {row[0] for row in all_rows()}
    assert not [one for one in documents if is_left_out(one, titles.get(one, ""))]


def test_none_repeats_a_request_of_the_teams_data(shared: Path) -> None:
    data = read_corpus(shared / "train", own=shared / "nothing of our own")
    known = {(request.document, request.text.casefold()) for request in data.requests}
    assert not [row for row in all_rows() if (row[0], row[3].casefold()) in known]
