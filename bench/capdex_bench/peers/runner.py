"""Runs one peer over rows and queries; a script that needs the standard library and the peer alone.

It is started by path with the interpreter of the environment that holds the peer, since peers and
capdex need not agree on versions. Usage: ``runner.py PEER ROWS.jsonl QUERIES.jsonl OUT.json K [MODEL]``.
``OUT.json`` becomes ``{"build_seconds", "answers": {query: [[id, score], ...]}, "latencies": [...]}``.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import re
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

Row = dict[str, Any]
Pairs = list[tuple[str, float]]
PeerSearch = Callable[[str, int], "Pairs | Awaitable[Pairs]"]


def described(row: Row) -> str:
    """Return one description: the summary, then the description where it says more."""
    summary, text = (row.get("summary") or "").strip(), (row.get("description") or "").strip()
    return f"{summary}\n\n{text}" if summary and text and not text.startswith(summary) else text or summary


def schema(row: Row) -> dict[str, Any]:
    """Return a JSON schema of the parameters, as an agent would see it."""
    properties = {name: {"type": "string", "description": ""} for name in row.get("params") or ()}
    return {"type": "object", "properties": properties}


def safe_names(rows: list[Row], limit: int = 64) -> dict[str, str]:
    """Return unique ``[A-Za-z0-9_-]`` names -> row ids, in the order of the rows."""
    names: dict[str, str] = {}
    for row in rows:
        base = re.sub(r"[^A-Za-z0-9_-]+", "_", row["name"]).strip("_")[:limit] or "op"
        name, number = base, 2
        while name in names:
            name, number = f"{base[: limit - len(str(number)) - 1]}_{number}", number + 1
        names[name] = row["id"]
    return names


def by_rank(ids: list[str]) -> Pairs:
    """Return ids with ``1 / rank`` as score, for peers that give none."""
    return [(one, 1.0 / rank) for rank, one in enumerate(ids, start=1)]


def embedder(model: str) -> Callable[[Any], Any]:
    """Return texts -> normalised vectors by a local sentence-transformers folder."""
    loaded = importlib.import_module("sentence_transformers").SentenceTransformer(model, device="cpu")
    return lambda texts: loaded.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)


async def fastmcp(rows: list[Row], k: int, model: str) -> PeerSearch:
    """FastMCP's BM25 search transform, through its in-memory client."""
    root, tools = importlib.import_module("fastmcp"), importlib.import_module("fastmcp.tools")
    transforms = importlib.import_module("fastmcp.server.transforms.search")
    names, server = safe_names(rows), root.FastMCP("peer")
    for name, row in zip(names, rows, strict=True):
        server.add_tool(tools.Tool(name=name, description=described(row), parameters=schema(row)))
    server.add_transform(
        transforms.BM25SearchTransform(
            max_results=k, search_result_serializer=lambda found: json.dumps([tool.name for tool in found])
        )
    )
    client = root.Client(server)
    await client.__aenter__()

    async def search(text: str, k: int) -> Pairs:
        answer = await client.call_tool("search_tools", {"query": text})
        return by_rank(
            [names[name] for name in json.loads(answer.content[0].text if answer.content else "[]")]
        )

    return search


def _callbus(rows: list[Row], scorer: Any) -> PeerSearch:
    domain = importlib.import_module("callbus.domain")
    documents = (
        {"name": row["name"], "description": described(row), "inputSchema": schema(row)} for row in rows
    )
    scorer.index(
        [domain.Tool(id=row["id"], doc=document) for row, document in zip(rows, documents, strict=True)]
    )

    def search(text: str, k: int) -> Pairs:
        found = scorer.rank([domain.Query(id="q", text=text, qrels={})], k)[0]
        return [
            (one, float(score)) for one, score in zip(found.tool_ids, found.scores, strict=True) if score > 0
        ]

    return search


def callbus_bm25(rows: list[Row], k: int, model: str) -> PeerSearch:
    """callbus's BM25 arm."""  # noqa: D403  (its name)
    return _callbus(rows, importlib.import_module("callbus.adapters.bm25").BM25Scorer(tool_format="schema"))


def callbus_hybrid(rows: list[Row], k: int, model: str) -> PeerSearch:
    """callbus's hybrid: its BM25 and a local model, fused by reciprocal rank."""  # noqa: D403
    encode = embedder(model)
    encoder = SimpleNamespace(name="local", encode=lambda texts, kind="query": encode(texts))
    dense = importlib.import_module("callbus.adapters.dense").DenseScorer(encoder, tool_format="name_desc")
    lexical = importlib.import_module("callbus.adapters.bm25").BM25Scorer(tool_format="schema")
    return _callbus(rows, importlib.import_module("callbus.adapters.hybrid").HybridScorer(dense, lexical))


def graph_tool_call(rows: list[Row], k: int, model: str) -> PeerSearch:
    """graph-tool-call's keyword and graph search."""
    names, graph = safe_names(rows), importlib.import_module("graph_tool_call").ToolGraph()
    graph.add_tools(
        [
            {"name": name, "description": described(row), "inputSchema": schema(row)}
            for name, row in zip(names, rows, strict=True)
        ],
        detect_dependencies=True,
    )
    return lambda text, k: [
        (names[found.tool.name], float(found.score)) for found in graph.retrieve_with_scores(text, top_k=k)
    ]


def stackone(rows: list[Row], k: int, model: str) -> PeerSearch:
    """StackOne's local tool search: BM25 (0.2) and TF-IDF (0.8)."""
    names = safe_names(rows)
    lower = {name.lower(): one for name, one in names.items()}
    index = importlib.import_module("stackone_ai.local_search").ToolIndex(
        [
            SimpleNamespace(name=name.lower(), description=described(row))
            for name, row in zip(names, rows, strict=True)
        ]
    )
    return lambda text, k: [(lower[found.name], float(found.score)) for found in index.search(text, limit=k)]


def bigtool(rows: list[Row], k: int, model: str) -> PeerSearch:
    """LangGraph BigTool's own retrieval over an in-memory store with a local model."""
    memory, base = (importlib.import_module(f"langgraph.store.{name}") for name in ("memory", "base"))
    tools, encode = importlib.import_module("langgraph_bigtool.tools"), embedder(model)
    embed = {"embed": lambda texts: encode(texts).tolist(), "dims": len(encode(["x"])[0])}
    store = memory.InMemoryStore(index={**embed, "fields": ["description"]})
    puts = [
        base.PutOp(("tools",), row["id"], {"description": f"{name}: {described(row)}"})
        for name, row in zip(safe_names(rows), rows, strict=True)
    ]
    for start in range(0, len(puts), 256):
        store.batch(puts[start : start + 256])
    retrieve, _ = tools.get_default_retrieval_tool(("tools",), limit=k)
    return lambda text, k: by_rank(list(retrieve(text, store=store)))


ADAPTERS: dict[str, Callable[[list[Row], int, str], Any]] = {
    "fastmcp": fastmcp,
    "callbus-bm25": callbus_bm25,
    "callbus-hybrid": callbus_hybrid,
    "graph-tool-call": graph_tool_call,
    "stackone": stackone,
    "bigtool": bigtool,
}


async def _settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


async def ask(
    build: Callable[[list[Row], int, str], Any], rows: list[Row], queries: list[Row], k: int, model: str
) -> dict[str, Any]:
    """Build a peer and put the queries to it; the first search, which may index, is not timed."""
    start = time.perf_counter()
    search = await _settled(build(rows, k, model))
    await _settled(search("warm up the index", k))
    built = time.perf_counter() - start
    answers, latencies = {}, []
    for query in queries:
        before = time.perf_counter()
        found = await _settled(search(query["text"], k))
        latencies.append(time.perf_counter() - before)
        answers[query["id"]] = found[:k]
    return {"build_seconds": built, "answers": answers, "latencies": latencies}


def _rows(path: str) -> list[Row]:
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").split("\n") if line]


def main(peer: str, rows: str, queries: str, out: str, k: str, model: str = "") -> None:
    """Run one peer, as the module says."""
    found = asyncio.run(ask(ADAPTERS[peer], _rows(rows), _rows(queries), int(k), model))
    Path(out).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
