from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.helpers import OPERATIONS, WordEncoder, ticking
from capdex_bench import commands
from capdex_bench.cli import app
from capdex_bench.latency import ANSWER, REST, STAGES, Timings, measure, quantiles_ms, ratio
from capdex_bench.latency_catalog import (
    documents_in,
    filled,
    golden_texts,
    made_up_stock,
    probe_texts,
    stock_of,
)
from capdex_bench.latency_page import latency_json, latency_page
from capdex_bench.threads import few_threads
from capdex_engine.errors import DocumentError
from capdex_engine.rank import Searcher
from capdex_engine.rank.twins import twin_groups

SPEC = {
    "openapi": "3.1.0",
    "info": {"title": "Shop", "version": "1"},
    "servers": [{"url": "https://shop.example"}],
    "paths": {
        "/orders": {
            "get": {"operationId": "listOrders", "summary": "List all orders", "responses": {}},
            "post": {
                "operationId": "createOrder",
                "summary": "Place an order",
                "requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}},
                "responses": {},
            },
        }
    },
}
TEXTS = ("list all orders", "place an order", "cancel the order and send a reminder")


class Counting(WordEncoder):
    """Keeps what it encodes."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, ...]] = []

    def encode(self, texts):
        self.seen.append(tuple(texts))
        return super().encode(texts)


def taken(encoder: WordEncoder, texts=TEXTS) -> Timings:
    stock = made_up_stock(1)
    searcher = Searcher.build(OPERATIONS, encoder)
    return measure(searcher, encoder, stock.schemas, texts, clock=ticking(), processor=ticking())


def test_every_stage_of_a_search_is_timed_for_every_request():
    found = taken(WordEncoder())
    assert list(found.stages) == [*STAGES, ANSWER, REST]
    assert {len(times) for times in (found.encoding, found.search, *found.stages.values())} == {len(TEXTS)}
    # The clock ticks when it is read, so a stage that was entered took time: a renamed part would fail here.
    assert all(min(found.stages[stage]) > 0 for stage in (*STAGES, ANSWER))


def test_stages_add_up_to_the_watched_search():
    encoder = WordEncoder()
    found = taken(encoder)
    ticks = [sum(times) for times in zip(*found.stages.values(), strict=True)]
    calls = [sum(found.stages[stage][i] for stage in STAGES) for i in range(len(TEXTS))]
    # Each call that is watched reads the clock twice, the search itself once more, the answer once.
    assert ticks == [2 * spent + 2 for spent in calls]


def test_encoding_alone_takes_turns_with_whole_searches_after_a_warm_up():
    encoder = Counting()
    searcher = Searcher.build(OPERATIONS, encoder)
    encoder.seen.clear()
    schemas = made_up_stock(1).schemas
    measure(searcher, encoder, schemas, TEXTS[:2], clock=ticking(), processor=ticking())
    one, other = ((text,) for text in TEXTS[:2])
    # Per request: alone and inside the search; the search goes first for every second request.
    assert encoder.seen[:4] == encoder.seen[4:8] == [one, one, other, other]
    assert encoder.seen[8:] == [one, other]


def test_texts_per_search_are_counted():
    assert taken(WordEncoder()).texts == (1, 1, 3)


def test_the_share_of_processor_time_is_taken_while_counting():
    # Both clocks tick once per reading; the wall's is read four times per request more.
    assert taken(WordEncoder(), TEXTS[:2]).busy == pytest.approx(1 / (2 * 4 + 1))


def test_quantiles_are_milliseconds_and_the_ratio_is_of_medians():
    found = Timings((0.001, 0.002, 0.003), (0.004, 0.005, 1.0), {})
    assert quantiles_ms(found.encoding)["median"] == pytest.approx(2.0)
    assert quantiles_ms([i / 100 for i in range(101)])["p99"] == pytest.approx(990)
    assert ratio(found) == pytest.approx(2.5)


@pytest.mark.parametrize("wanted", [2, 5, 12, 300])
def test_a_catalog_is_filled_to_the_wanted_size_with_names_and_keys_of_their_own(wanted):
    found = filled(OPERATIONS, wanted)
    assert len(found) == wanted
    assert len({one.name for one in found}) == len({one.key for one in found}) == wanted
    assert {one.summary for one in found} <= {one.summary for one in OPERATIONS}


def test_copies_are_no_twins_of_their_originals():
    assert set(twin_groups(filled(OPERATIONS, 60))) == {-1}


def test_a_small_part_is_spread_over_the_whole_catalog():
    assert [one.name for one in filled(OPERATIONS, 2)] == ["listOrders", "cancelOrder"]


def test_copies_of_documents_keep_their_schemas(tmp_path):
    spec = tmp_path / "shop.json"
    spec.write_text(json.dumps(SPEC), encoding="utf-8")
    stock = stock_of([spec], 5)
    assert (len(stock.operations), stock.own) == (5, 2)
    bodies = [stock.schemas.body_schema(one) for one in stock.operations if one.has_body]
    assert len(bodies) >= 2
    assert all(body == bodies[0] and body for body in bodies)
    assert "3 copies" in stock.description
    assert "copies" not in stock_of([spec], 1).description


def test_documents_are_single_files_of_the_specs_folder_or_of_the_folder_itself(tmp_path):
    for name in ("b.yaml", "a.json", "notes.md"):
        (tmp_path / name).write_text("{}", encoding="utf-8")
    assert [path.name for path in documents_in(tmp_path)] == ["a.json", "b.yaml"]
    (tmp_path / "specs" / "folder.json").mkdir(parents=True)
    with pytest.raises(DocumentError):
        documents_in(tmp_path)


def test_documents_that_cannot_be_read_or_hold_nothing_are_errors(tmp_path):
    for text in ("{", json.dumps({**SPEC, "paths": {}})):
        (tmp_path / "bad.json").write_text(text, encoding="utf-8")
        with pytest.raises(DocumentError):
            stock_of([tmp_path / "bad.json"], 5)


def test_requests_are_those_of_the_golden_sets_or_the_probes_each_once():
    assert len(golden_texts()) == len(set(golden_texts())) > 400
    assert len(set(probe_texts())) == len(probe_texts()) == 192


def test_the_page_and_the_json_say_the_same():
    stock, found = made_up_stock(100), Timings((0.002,), (0.005,), {"reading": (0.001,)}, (2,), 0.9)
    body = latency_json(found, stock, threads=1, manifest={"encoder": "words"})
    page = latency_page(found, stock, threads=1, manifest={"encoder": "words"})
    assert (body["operations"], body["different_operations"]) == (100, 64)
    assert body["search_ms"] == {"median": 5.0, "p90": 5.0, "p99": 5.0}
    assert body["ratio_of_medians"] == 2.5
    assert "Ratio of medians: 2.50" in page
    assert "| reading | 1.00 | 1.00 | 1.00 |" in page
    assert "36 copies" in page
    json.dumps(body, allow_nan=False)


def test_threads_are_held_for_a_while_only(monkeypatch):
    import faiss

    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("TOKENIZERS_PARALLELISM", raising=False)
    before = faiss.omp_get_max_threads()
    with few_threads(1):
        assert faiss.omp_get_max_threads() == 1
        assert (os.environ["OMP_NUM_THREADS"], os.environ["TOKENIZERS_PARALLELISM"]) == ("1", "false")
    assert faiss.omp_get_max_threads() == before
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "TOKENIZERS_PARALLELISM" not in os.environ


def test_the_commands_leave_numerical_libraries_unloaded_until_threads_are_set():
    code = "import sys, capdex_bench.cli, capdex_bench.threads; print({'numpy', 'faiss'} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "set()"


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """A cache of our own, no data folder, an encoder that loads at once, and few requests."""
    monkeypatch.setenv("CAPDEX_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CAPDEX_BENCH_DATA", raising=False)
    monkeypatch.setattr(commands, "load_encoder", lambda cache, **_: WordEncoder())
    monkeypatch.setattr(commands, "golden_texts", lambda: TEXTS)
    monkeypatch.setattr(commands, "probe_texts", lambda: TEXTS[:1])


def latency(*args: object):
    return CliRunner().invoke(app, ["latency", *map(str, args)])


@pytest.mark.usefixtures("environment")
def test_latency_of_documents_is_printed_as_json(tmp_path):
    (tmp_path / "shop.json").write_text(json.dumps(SPEC), encoding="utf-8")
    for given in (("--spec", tmp_path / "shop.json"), ("--data", tmp_path)):
        found = latency(*given, "--operations", 7, "--json")
        assert found.exit_code == 0, found.output
        body = json.loads(found.stdout)
        assert (body["operations"], body["different_operations"], body["requests"]) == (7, 2, 3)
        assert body["threads"] == 1
        assert str(tmp_path) not in found.stdout


@pytest.mark.usefixtures("environment")
def test_latency_without_data_is_of_made_up_operations():
    found = latency("--operations", 70)
    assert found.exit_code == 0, found.output
    assert "64 of 64 operations of a made-up catalog, and 6 copies" in found.stdout
    assert "Ratio of medians" in found.stdout
    assert "requests: 1," in found.stdout


@pytest.mark.usefixtures("environment")
def test_latency_over_documents_that_are_not_there_is_an_error(tmp_path):
    assert latency("--data", tmp_path / "absent").exit_code == 1
    assert latency("--data", tmp_path).exit_code == 1
    assert latency("--spec", Path("absent.json")).exit_code == 2
    assert latency("--threads", 0).exit_code == 2
