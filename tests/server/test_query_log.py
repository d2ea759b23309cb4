from __future__ import annotations

import json
from pathlib import Path

import pytest

from capdex_bench.sets import log_set
from capdex_server.callers import Caller
from capdex_server.config import RuleConfig
from capdex_server.query_log import CALLERS, SEARCHES, QueryLog
from capdex_server.service import Service
from capdex_server.trails import Trails, open_trails

pytestmark = pytest.mark.anyio
ONE, TWO = (Caller(name, "acme", frozenset(), allow=(RuleConfig(),)) for name in ("one-secret", "two-secret"))
GOOD = {"status": 200, "revision": "r1"}


def answer(*names: str, revision: str = "r1") -> dict:
    return {"matches": [{"name": name, "score": 1} for name in names], "revision": revision}


class Log:
    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.broken = False
        self.log = QueryLog(self.append)

    def append(self, lines) -> None:
        if self.broken:
            raise OSError("broken")
        self.lines += lines

    @property
    def labels(self) -> list[tuple[str, str]]:
        rows = [json.loads(line) for line in self.lines]
        return [(row["query"], row["executed"]) for row in rows if "executed" in row]


@pytest.fixture
def log() -> Log:
    return Log()


async def test_what_a_caller_calls_after_a_search_is_its_label(log):
    await log.log.searched(ONE, "find it", answer("a", "b"))
    await log.log.executed(ONE, "b", GOOD)
    first, second = (json.loads(line) for line in log.lines)
    assert (first["query"], first["matches"]) == ("find it", ["a", "b"])
    assert {**second, "time": first["time"]} == {**first, "executed": "b"}


@pytest.mark.parametrize(
    ("caller", "name", "result"),
    [
        (TWO, "a", GOOD),
        (ONE, "other", GOOD),
        (ONE, "a", {"status": 404, "revision": "r1"}),
        (ONE, "a", {"status": 200, "revision": "r2"}),
        (ONE, "a", {"method": "GET", "url": "https://x"}),
    ],
    ids=["another caller", "never shown", "failed", "another revision", "dry run"],
)
async def test_what_says_nothing_about_a_search_is_no_label(log, caller, name, result):
    await log.log.searched(ONE, "find it", answer("a"))
    await log.log.executed(caller, name, result)
    assert log.labels == []


async def test_the_newest_search_that_showed_it_gets_the_label(log):
    for query, names in (("old", ("a",)), ("new", ("a", "b")), ("newest", ("c",))):
        await log.log.searched(ONE, query, answer(*names))
    await log.log.executed(ONE, "a", GOOD)
    await log.log.executed(ONE, "c", GOOD)
    assert log.labels == [("new", "a"), ("newest", "c")]


async def test_what_is_remembered_is_bounded(log):
    for number in range(SEARCHES + 1):
        await log.log.searched(ONE, str(number), answer(f"op{number}"))
    await log.log.executed(ONE, "op0", GOOD)
    for number in range(CALLERS + 5):
        await log.log.searched(Caller(str(number), "t", frozenset(), allow=()), "x", answer("a"))
    assert log.labels == [] and len(log.log._searches) == CALLERS


async def test_a_log_that_cannot_be_written_stops_nobody(log, caplog):
    log.broken = True
    await log.log.searched(ONE, "find it", answer("a"))
    await log.log.executed(ONE, "a", GOOD)
    assert len(caplog.records) == 1


async def test_it_is_off_unless_a_path_is_set(make_settings):
    log = open_trails(make_settings(audit={"to": "off"})).queries
    await log.searched(ONE, "find it", answer("a"))
    assert not log._searches


async def test_what_a_server_logs_is_a_query_set(make_settings, make_live, documents, tmp_path):
    path: Path = tmp_path / "queries.jsonl"
    settings = make_settings(audit={"to": "off"}, query_log={"path": str(path)})
    live = make_live(settings)
    await live.reload()
    service = Service(live, settings, trails=Trails(queries=open_trails(settings).queries))
    await service.search(ONE, {"query": "get one order", "limit": 3})
    await service.execute(ONE, {"name": "getOrder", "pathParams": {"id": 31337}})
    await service.search(ONE, {"query": "send a mail"})
    found = log_set(path, sorted(documents.glob("*.json")))
    (query,) = found.queries
    assert (query.text, found.grades(query)) == ("get one order", {"GET /orders/{id}": 2})
    assert "31337" not in path.read_text() and "secret" not in path.read_text()
