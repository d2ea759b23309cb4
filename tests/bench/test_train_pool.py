"""Which requests are trained on, which serve as negatives, and which are neither."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.train_tiny import Row, corpus, operation_row
from capdex_bench.train.exclusions import NearTexts
from capdex_bench.train.pool import UNSERVED, USED, Pool, select

DOCUMENTS = ("open.json", "held.json", "spotify.com.json")


def pool_of(folder: Path, *more: Row) -> tuple[Pool, list[str], list[str]]:
    """Return the pool over three documents, and the texts of its used and its unserved requests."""
    requests: list[Row] = []
    for document in DOCUMENTS:
        requests += [
            (document, "GET /x", "natural", f"get the thing of {document}"),
            (document, "-", "none", f"sing a song about {document}"),
        ]
    rows = [operation_row(document, "GET /x", summary="Get it") for document in DOCUMENTS]
    data = corpus(folder, rows, [*requests, *more])
    near = NearTexts(["feed the hungry cat", "water the dry plants"])
    pool = select(data, {"held.json"}, near)
    used, unserved = ([data.requests[n].text for n in own] for own in (pool.numbers, pool.unserved))
    return pool, used, unserved


def test_requests_that_nothing_serves_are_kept_apart_from_those_trained_on(tmp_path: Path) -> None:
    pool, used, unserved = pool_of(tmp_path)
    assert used == ["get the thing of open.json"]
    assert unserved == ["sing a song about open.json"]
    assert (pool.counts[USED], pool.counts[UNSERVED]) == (1, 1)


@pytest.mark.parametrize("document", ["held.json", "spotify.com.json"])
def test_none_is_of_a_held_out_or_a_judging_api(tmp_path: Path, document: str) -> None:
    pool, _, unserved = pool_of(tmp_path)
    assert not [text for text in unserved if document in text]
    assert (pool.counts["held out"], pool.counts["API of a judging set"]) == (2, 2)


def test_none_is_near_a_judging_request(tmp_path: Path) -> None:
    pool, used, unserved = pool_of(
        tmp_path,
        ("open.json", "-", "none", "feed hungry cats"),
        ("open.json", "GET /x", "natural", "the dry plants, water them"),
    )
    assert not [text for text in (*used, *unserved) if "cat" in text or "plant" in text]
    assert pool.counts["near a judging request"] == 2


def test_every_request_is_counted_once(tmp_path: Path) -> None:
    pool, used, unserved = pool_of(tmp_path, ("open.json", "-", "none", "feed the hungry cat"))
    whole = {name: count for name, count in pool.counts.items() if not name.startswith(f"{USED} ")}
    assert sum(whole.values()) == 2 * len(DOCUMENTS) + 1
    assert len(used) + len(unserved) == whole[USED] + whole[UNSERVED]


def test_numbers_keep_the_corpus_order(tmp_path: Path) -> None:
    pool, _, unserved = pool_of(
        tmp_path, ("open.json", "-", "none", "dance"), ("open.json", "-", "none", "a")
    )
    assert list(pool.unserved) == sorted(pool.unserved)
    assert unserved[-2:] == ["dance", "a"]
