from __future__ import annotations

import sys

import pytest

from bench.helpers import OPERATIONS, operation, query_set
from capdex_bench import peers
from capdex_bench.peers import PEERS, find_peers, peer_row, run_peer
from capdex_bench.peers.runner import ADAPTERS, ask, by_rank, described, safe_names, schema
from capdex_engine.errors import ConfigurationError

LABELS = {"1": {"listOrders": 2}, "2": {"getInvoice": 2}}
ROWS = [peer_row(one) for one in OPERATIONS]
STUB = """
import json, sys
peer, rows, queries, out, k, *model = sys.argv[1:]
ids = [json.loads(line)["id"] for line in open(rows)]
asked = [json.loads(line)["id"] for line in open(queries)]
answers = {query: [[one, 0.5] for one in ids[: int(k)]] for query in asked}
json.dump({"build_seconds": 0.5, "answers": answers, "latencies": [0.25] * len(asked)}, open(out, "w"))
"""


@pytest.fixture
def runner(tmp_path, monkeypatch):
    """A runner whose text the test chooses."""
    path = tmp_path / "runner.py"
    monkeypatch.setattr(peers, "RUNNER", path)
    return path


def run(limit_seconds: float = 60.0):
    return run_peer(
        PEERS["fastmcp"], query_set(LABELS), OPERATIONS, python=sys.executable, limit_seconds=limit_seconds
    )


def test_every_peer_has_an_adapter():
    assert PEERS.keys() == ADAPTERS.keys()


def test_a_peer_gets_rows_and_queries_and_its_answers_become_a_result(runner):
    runner.write_text(STUB, encoding="utf-8")
    found = run()
    assert (found.system, found.build_seconds, found.latencies) == ("fastmcp", 0.5, (0.25, 0.25))
    assert [answer.key for answer in found.run["2"]] == [one.key for one in OPERATIONS]
    assert found.run["2"][0].source == "shop"
    assert not found.over_limit


def test_a_peer_past_its_limit_is_stopped_and_marked(runner):
    runner.write_text("import threading; threading.Event().wait()", encoding="utf-8")
    assert run(limit_seconds=0.5).over_limit


def test_a_failing_peer_is_an_error_that_says_what_to_install(runner):
    runner.write_text("raise ImportError('no such thing')", encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        run()
    assert "no such thing" in caught.value.message
    assert "pip install fastmcp" in caught.value.message


def test_an_absent_interpreter_is_an_error(tmp_path):
    with pytest.raises(ConfigurationError):
        run_peer(
            PEERS["stackone"],
            query_set(LABELS),
            OPERATIONS,
            python=str(tmp_path / "python"),
            limit_seconds=1.0,
        )


def test_peers_that_need_a_model_are_left_out_without_one(tmp_path):
    assert {peer.name for peer in find_peers([], None)} == {
        "fastmcp", "callbus-bm25", "graph-tool-call", "stackone",
    }  # fmt: skip
    assert len(find_peers([], tmp_path)) == len(PEERS)
    assert [peer.name for peer in find_peers(["bigtool"], tmp_path)] == ["bigtool"]


@pytest.mark.parametrize("name", ["bigtool", "nobody"])
def test_a_peer_that_cannot_run_is_an_error(name):
    with pytest.raises(ConfigurationError):
        find_peers([name], None)


def test_a_row_holds_the_documents_own_name_and_all_parameters():
    row = peer_row(operation("clean", operation_id="own name", path_params=("id",), body_properties=("b",)))
    assert (row["name"], row["params"]) == ("own name", ["id", "b"])
    assert schema(row)["properties"].keys() == {"id", "b"}


def test_names_for_peers_are_safe_and_unique():
    names = safe_names([{"id": str(i), "name": "a b/" + "x" * 80} for i in range(12)])
    assert list(names.values()) == [str(i) for i in range(12)]
    assert all(len(name) <= 64 and "/" not in name for name in names)


def test_a_description_repeats_nothing():
    assert described({"summary": "List.", "description": "List. All."}) == "List. All."
    assert described({"summary": "List", "description": "All."}) == "List\n\nAll."
    assert described({"summary": None, "description": None}) == ""


@pytest.mark.anyio
async def test_peers_may_answer_at_once_or_later():
    async def later(text, k):
        return by_rank(["a", "b", "c"])

    async def build(rows, k, model):
        return later

    queries = [{"id": "1", "text": "x"}]
    found = await ask(build, ROWS, queries, 2, "")
    assert found["answers"] == {"1": [("a", 1.0), ("b", 0.5)]}
    at_once = await ask(lambda rows, k, model: lambda text, k: by_rank(["a"]), ROWS, queries, 2, "")
    assert at_once["answers"] == {"1": [("a", 1.0)]}


def test_the_runner_needs_nothing_of_ours():
    text = peers.RUNNER.read_text(encoding="utf-8")
    assert "import capdex" not in text
    assert "from ." not in text
