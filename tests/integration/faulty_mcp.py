"""An MCP server over stdio that goes wrong in one way, which its argument names; it needs no package.

    python faulty_mcp.py MODE [FOLDER]

It writes its process id to ``FOLDER/pids`` and counts listings in ``FOLDER/listings``, one line each.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

MODE = sys.argv[1]
FOLDER = Path(sys.argv[2]) if len(sys.argv) > 2 else None
LOCK = threading.Lock()


def note(file, text):
    if FOLDER is not None:
        with open(FOLDER / file, "a") as log:
            log.write(f"{text}\n")


def raw(data):
    with LOCK:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def send(message):
    raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def answer(request, result):
    send({"id": request["id"], "result": result})


def tool(name, **fields):
    return {"name": name, "description": f"Does {name}", "inputSchema": {"type": "object"}, **fields}


def initialize(request):
    if MODE == "silent":
        time.sleep(3600)
    if MODE == "garbage":
        raw(b"Welcome to this server!\n\xff\xfe\x00 not json\n{broken\n[1, 2]\n\n")
    if MODE == "only-garbage":
        while True:
            raw(b"no message at all\n" * 50)
            time.sleep(0.05)
    answer(
        request,
        {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "faulty", "version": "1"},
        },
    )


def listed(request):
    note("listings", time.monotonic())
    cursor = (request.get("params") or {}).get("cursor")
    if MODE == "dies-listing":
        if cursor is None:
            return answer(request, {"tools": [tool("first")], "nextCursor": "2"})
        os._exit(3)
    if MODE == "never-lists":
        return None
    if MODE == "mixed":
        deep = {}
        for _ in range(300):
            deep = {"not": deep}
        odd = [{"name": 7}, tool("deep", inputSchema=deep), tool("no-schema", inputSchema="x"), None]
        return answer(request, {"tools": [tool("good"), *odd]})
    if MODE == "too-many":
        return answer(request, {"tools": [tool(f"t{number}") for number in range(2001)]})
    answer(request, {"tools": [tool(MODE)]})
    if MODE == "flood":
        threading.Thread(target=flood, daemon=True).start()
    return None


def flood():
    change = json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}).encode() + b"\n"
    while True:
        raw(change * 50)
        time.sleep(0.05)


def called(request):
    if MODE == "dies-calling":
        os._exit(4)
    if MODE == "never-answers":
        note("calls", request["id"])
        return None
    if MODE == "garbage-answer":
        return answer(request, {"content": "text", "isError": "maybe"})
    if MODE == "odd-block":
        return answer(request, {"content": [7, {"type": "alien", "x": 1}]})
    if MODE == "odd-flag":
        return answer(request, {"content": [], "isError": "maybe"})
    if MODE == "not-finite":
        numbers = {"none": float("nan"), "most": float("inf"), "some": [1.5]}
        return answer(request, {"content": [], "structuredContent": numbers})
    if MODE == "huge":
        return raw(b'{"jsonrpc": "2.0", "id": 1, "result": "' + b"x" * (40 * 1024 * 1024))
    if MODE == "error":
        return send({"id": request["id"], "error": {"code": -32000, "message": "no \u202ebudget left"}})
    return answer(request, {"content": [{"type": "text", "text": "done"}]})


def main():
    note("pids", os.getpid())
    if MODE == "dies":
        sys.stderr.write("I cannot go on, my key is planted-secret-2718\n")
        sys.exit(5)
    if MODE == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
        note("pids", child.pid)
    if MODE == "chatty":
        sys.stderr.write("x" * 100_000 + "\n" + "line\n" * 5000)
    for line in sys.stdin:
        request = json.loads(line)
        method = request.get("method")
        if method == "initialize":
            initialize(request)
        elif method == "tools/list":
            listed(request)
        elif method == "tools/call":
            called(request)
        elif method == "notifications/cancelled":
            note("cancelled", request["params"]["requestId"])
        elif "id" in request:
            send({"id": request["id"], "error": {"code": -32601, "message": "Method not found"}})
    if MODE == "stubborn":
        time.sleep(3600)


main()
