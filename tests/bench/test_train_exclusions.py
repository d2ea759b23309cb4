from __future__ import annotations

from pathlib import Path

import pytest

from bench.helpers import write_jsonl
from bench.train_tiny import apis, corpus, operation_row
from capdex_bench.documents import GOLDEN
from capdex_bench.formats import read_queries
from capdex_bench.train.corpus import read_corpus
from capdex_bench.train.exclusions import NearTexts, is_left_out, judging_texts
from capdex_bench.train.pool import select
from capdex_bench.train.split import read_held_out
from capdex_engine.errors import ConfigurationError


@pytest.mark.parametrize(
    "document",
    [
        "github.com/api.github.com.json",
        "box.com.json",
        "squareup.com.json",
        "izettle.com/products.json",
        "lgtm.com.json",
        "api.sendgrid.com/v3.json",
        "paypal.com/payments.json",
        "rapidapi.com/spotify-search.json",
    ],
)
def test_companies_that_judge_are_left_out_with_their_products(document: str) -> None:
    assert is_left_out(document, "An API")


@pytest.mark.parametrize(
    "document", ["azure.com/databox.json", "britbox.co.uk.json", "netbox.dev.json", "stackslack.io.json"]
)
def test_names_that_only_contain_theirs_stay(document: str) -> None:
    assert not is_left_out(document, "An API (https://github.com/somebody/api), boxes and squares")


def test_a_title_that_names_one_of_them_counts() -> None:
    assert is_left_out("apideck.com/wrapper.json", "GitHub issues, easier")


def test_a_text_is_near_another_when_it_has_most_of_its_words() -> None:
    near = NearTexts(["Create an invoice for the customer", "close it"])
    assert "create invoices for customers!" in near
    assert "creating invoice, customer number" in near
    assert "close" in near
    assert "create an order for the shop" not in near
    assert "close everything" not in near


def test_an_empty_list_is_near_nothing() -> None:
    assert "anything at all here" not in NearTexts([])


def test_all_judging_sets_are_known(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "datasets" / "one" / "queries.jsonl", [{"id": "a", "text": "water the plants"}])
    write_jsonl(tmp_path / "golden" / "new" / "queries.jsonl", [{"id": "b", "text": "feed the cat"}])
    texts = judging_texts(tmp_path)
    committed = [q.text for path in GOLDEN.glob("*/queries.jsonl") for q in read_queries(path)]
    assert {"water the plants", "feed the cat", *committed} == set(texts)


def test_training_without_the_judging_sets_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        judging_texts(tmp_path)


def test_every_request_is_used_or_counted_with_its_reason(tmp_path: Path) -> None:
    operations, requests = apis(3)
    operations.append(operation_row("spotify.com.json", "GET /songs", summary="Songs"))
    requests.append(("spotify.com.json", "GET /songs", "natural", "play me something"))
    found = corpus(tmp_path, operations, requests)
    pool = select(found, {"api1.test.json"}, NearTexts(["quick list user of 0"]))
    assert pool.counts["API of a judging set"] == 1
    assert pool.counts["held out"] == 20
    assert pool.counts["without an answer"] == 2
    assert pool.counts["near a judging request"] == 1
    assert pool.counts["used"] == len(pool.numbers) == 2 * 19 - 1
    assert sum(n for name, n in pool.counts.items() if not name.startswith("used ")) == len(requests)
    assert {found.requests[number].document for number in pool.numbers} == {
        "api0.test.json",
        "api2.test.json",
    }


def test_of_the_teams_data_nothing_forbidden_is_used(shared: Path) -> None:
    found = read_corpus(shared / "train")
    held_out = frozenset(read_held_out())
    near = NearTexts(judging_texts(shared))
    pool = select(found, held_out, near)
    used = [found.requests[number] for number in pool.numbers]
    assert len(used) > 35_000
    assert held_out.isdisjoint(request.document for request in used)
    assert not {"izettle.com/products.json", "lgtm.com.json"} & {request.document for request in used}
    assert all(request.answers for request in used)
    assert not [request.text for request in used if request.text in near]
