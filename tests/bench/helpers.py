"""Small operations, sets and systems for the bench's tests."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from capdex_bench.evaluate import Result
from capdex_bench.formats import Query
from capdex_bench.runs import Answer
from capdex_bench.sets import QuerySet
from capdex_bench.systems.base import tokens
from capdex_engine.operation import Operation


def operation(name: str, summary: str = "", **fields: object) -> Operation:
    return Operation(name=name, source="shop", summary=summary, key=str(fields.pop("key", name)), **fields)


OPERATIONS = (
    operation("listOrders", "List all orders of a customer", method="GET", path="/orders"),
    operation("createOrder", "Place a new order", method="POST", path="/orders"),
    operation("cancelOrder", "Cancel an order that was not shipped", method="DELETE", path="/orders/{id}"),
    operation("getInvoice", "Download an invoice as PDF", method="GET", path="/invoices/{id}"),
    operation("sendReminder", "Remind somebody of an unpaid bill", method="POST", path="/reminders"),
)


class WordEncoder:
    """Each distinct word is an axis (by its hash), so cosine is word overlap."""

    identity = "words"
    dimension = 2048

    def __init__(self) -> None:
        self.calls = 0

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls += len(texts)
        vectors = np.full((len(texts), self.dimension), 1e-3, dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word in tokens(text):
                row[zlib.crc32(word.encode()) % self.dimension] += 1.0
            row /= np.linalg.norm(row)
        return vectors


def query_set(
    labels: Mapping[str, Mapping[str, int]],
    *,
    types: Mapping[str, str] | None = None,
    name: str = "shop",
    group: str = "",
) -> QuerySet:
    queries = tuple(Query(query, f"text of {query}", (types or {}).get(query, "")) for query in labels)
    return QuerySet(
        name=name,
        group=group,
        queries=queries,
        qrels={query: grades for query, grades in labels.items() if grades},
        operations=OPERATIONS,
    )


def result(
    answers: Mapping[str, Sequence[str]], of: QuerySet, *, system: str = "ours", seconds: float = 0.001
) -> Result:
    run = {
        query: tuple(Answer(key, 1.0 / rank, "shop") for rank, key in enumerate(keys, start=1))
        for query, keys in answers.items()
    }
    return Result(system, of, run, latencies=(seconds,) * len(of.queries))


def write_jsonl(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def ticking(step: float = 1.0) -> Callable[[], float]:
    """Return a clock that goes ``step`` seconds further each time it is read."""
    now = -step

    def clock() -> float:
        nonlocal now
        now += step
        return now

    return clock
