from __future__ import annotations

import pytest

from bench.helpers import OPERATIONS, operation
from capdex_bench.formats import Query
from capdex_bench.runs import Answer, key_of, production_run, ranking, read_run, write_run
from capdex_engine.errors import DocumentError, InvalidRequest
from capdex_engine.rank import Hit, SearchResult


class StubSearcher:
    def search(self, query, *, limit):
        if query == "too long":
            raise InvalidRequest("too long")
        if query == "nothing":
            return SearchResult((), "try other words")
        hits = tuple(Hit(one, 0.5 - 0.1 * i, {"words": 1.0}) for i, one in enumerate(OPERATIONS))
        return SearchResult(hits[:limit], None)


def test_the_production_run_holds_what_the_searcher_returned():
    run, refused = production_run(StubSearcher(), [Query("1", "orders"), Query("2", "nothing")], limit=2)
    assert ranking(run["1"]) == ["listOrders", "createOrder"]
    assert run["1"][0] == Answer("listOrders", 0.5, "shop", {"words": 1.0})
    assert run["2"] == ()
    assert not refused


def test_a_refused_request_is_told_and_gets_no_answer():
    run, refused = production_run(StubSearcher(), [Query("1", "too long")])
    assert refused == {"1": "too long"}
    assert not run


def test_a_run_file_has_five_columns_and_no_line_for_a_query_without_answers(tmp_path):
    path = tmp_path / "deep" / "run.tsv"
    write_run(path, {"q1": (Answer("GET /a", 0.9, "shop"), Answer("GET /b", 0.25, "shop")), "q2": ()})
    assert (
        path.read_text(encoding="utf-8") == "q1\tGET /a\t1\t0.900000\tshop\nq1\tGET /b\t2\t0.250000\tshop\n"
    )


def test_a_run_file_reads_back_by_its_ranks(tmp_path):
    path = tmp_path / "run.tsv"
    path.write_text("q\tb\t2\t0.1\ts\nq\ta\t1\t0.9\ts\nr\tc\t1\t1\n", encoding="utf-8")
    assert read_run(path) == {"q": (Answer("a", 0.9, "s"), Answer("b", 0.1, "s")), "r": (Answer("c", 1.0),)}


@pytest.mark.parametrize("line", ["q\ta\t1", "q\ta\tfirst\t0.5", "q a 1 0.5"])
def test_a_faulty_run_line_is_an_error(tmp_path, line):
    path = tmp_path / "run.tsv"
    path.write_text(line + "\n", encoding="utf-8")
    with pytest.raises(DocumentError):
        read_run(path)


def test_an_absent_run_file_is_an_error(tmp_path):
    with pytest.raises(DocumentError):
        read_run(tmp_path / "absent.tsv")


def test_a_key_returned_twice_counts_at_its_best_place():
    assert ranking([Answer("a", 1), Answer("b", 0.5), Answer("a", 0.1)]) == ["a", "b"]


def test_an_operation_without_a_key_goes_by_method_and_path():
    assert key_of(operation("x", key="", method="GET", path="/x")) == "GET /x"
    assert key_of(operation("x", key="row-7")) == "row-7"
