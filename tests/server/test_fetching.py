"""Documents from servers that misbehave."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import cycle, islice

import anyio
import anyio.abc
import pytest

from capdex_engine.call import Request
from capdex_engine.errors import AddressRefused, DocumentError
from capdex_server.config import DocumentLimits, SourceConfig
from capdex_server.fetching import MAX_REDIRECTS, MAX_RETRY_AFTER
from capdex_server.outbound import Outbound
from capdex_server.pieces import FetchFailed, Piece
from capdex_server.reach import allowed_origins

pytestmark = pytest.mark.anyio
SMALL = DocumentLimits(max_bytes=4096, timeout=30)


class Web:
    """A loopback server: path -> the pieces of the answer, sent as they come."""

    def __init__(self) -> None:
        self.answers: dict[str, object] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.sent = 0

    async def serve(self, stream: anyio.abc.SocketStream) -> None:
        async with stream:
            head = b""
            while b"\r\n\r\n" not in head:
                head += await stream.receive()
            first, *lines = head.decode("latin-1").strip().split("\r\n")
            self.requests.append((first.split(" ")[1], dict(line.lower().split(": ", 1) for line in lines)))
            try:
                for part in self.answers[first.split(" ")[1]]:
                    await stream.send(part)
                    self.sent += len(part)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return

    def answer(self, path: str, status: str, body: bytes = b"", *headers: str) -> None:
        lines = (f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers)
        self.answers[path] = ["\r\n".join(lines).encode() + b"\r\n\r\n" + body]


@pytest.fixture
async def web():
    web = Web()
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        web.url = f"http://127.0.0.1:{port}"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, web.serve)
            yield web
            tasks.cancel_scope.cancel()


async def fetch(web, path="/x", *, limits=SMALL, since=None, resolver=None, **fields) -> Piece:
    config = SourceConfig(location=fields.pop("location", f"{web.url}{path}"), **fields)
    options = {"resolver": resolver} if resolver else {}
    outbound = Outbound({}, documents={"api": allowed_origins(config)}, **options)
    try:
        return await outbound.fetch(config.location, source="api", since=since, limits=limits)
    finally:
        await outbound.aclose()


async def test_an_unchanged_document_costs_a_304(web):
    web.answer("/x", "200 OK", b"{}", 'ETag: "v1"', "Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT")
    first = await fetch(web)
    web.answer("/x", "304 Not Modified")
    assert await fetch(web, since=first) is first
    _, headers = web.requests[1]
    assert (headers["if-none-match"], headers["if-modified-since"]) == (
        '"v1"',
        "mon, 01 jan 2024 00:00:00 gmt",
    )


async def test_a_304_that_nobody_asked_for_is_a_failure(web):
    web.answer("/x", "304 Not Modified")
    with pytest.raises(FetchFailed, match="304"):
        await fetch(web)


@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/latest",
        "http://127.0.0.1:1/x",
        "http://[::1]/x",
        "//evil.example/x",
        "file:///etc/passwd",
        "ftp://evil.example/x",
    ],
)
async def test_a_redirect_does_not_leave_the_origins(web, target):
    web.answer("/x", "302 Found", b"", f"Location: {target}")
    with pytest.raises(DocumentError, match="reference_origins"):
        await fetch(web)
    assert len(web.requests) == 1


async def test_a_redirect_within_the_origin_or_to_an_allowed_one_is_followed(web):
    web.answer("/x", "301 Moved", b"", "Location: /y")
    web.answer("/y", "200 OK", b"there")
    assert (await fetch(web)).data == b"there"

    async def resolver(host, port):
        return ["127.0.0.1"]

    start = web.url.replace("127.0.0.1", "start.example")
    web.answer("/x", "302 Found", b"", f"Location: {web.url}/y")
    found = await fetch(web, location=f"{start}/x", reference_origins=[web.url], resolver=resolver)
    assert found.data == b"there"


async def test_redirects_in_a_circle_end(web):
    web.answer("/x", "302 Found", b"", "Location: /x")
    with pytest.raises(FetchFailed, match="redirects"):
        await fetch(web)
    assert len(web.requests) == MAX_REDIRECTS + 1


async def test_a_name_that_leads_to_loopback_is_refused_unless_it_is_configured(web):
    asked = []

    async def resolver(host, port):
        asked.append(host)
        return ["127.0.0.1"]

    outbound = Outbound({}, documents={"api": frozenset()}, resolver=resolver)
    with pytest.raises(DocumentError) as caught:
        await outbound.fetch(f"{web.url.replace('127.0.0.1', 'inner.example')}/x", source="api")
    assert "127.0.0.1" not in caught.value.message
    assert asked == ["inner.example"] and not web.requests


async def test_what_documents_may_reach_calls_may_not(web):
    config = SourceConfig(location="https://a.example/x", reference_origins=[web.url])
    outbound = Outbound({"api": frozenset()}, documents={"api": allowed_origins(config)})
    web.answer("/x", "200 OK", b"{}")
    assert (await outbound.fetch(f"{web.url}/x", source="api")).data == b"{}"
    with pytest.raises(AddressRefused):
        await outbound(Request("GET", f"{web.url}/x", (), None), source="api", timeout=5, max_bytes=10)
    await outbound.aclose()


ENDLESS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n%s\r\n"


async def test_an_endless_body_is_cut_at_the_limit(web):
    web.answers["/x"] = iter([ENDLESS % b"", *islice(cycle([b"400\r\n" + b"x" * 1024 + b"\r\n"]), 20_000)])
    with pytest.raises(DocumentError, match="max_bytes"):
        await fetch(web)
    assert web.sent < 20_000 * 1024


async def test_a_compression_bomb_is_cut_at_the_limit(web):
    web.answer("/x", "200 OK", gzip.compress(b"\0" * 50_000_000), "Content-Encoding: gzip")
    with pytest.raises(DocumentError, match="max_bytes"):
        await fetch(web)


async def test_a_compressed_stream_that_gives_nothing_for_ever_is_cut(web):
    empty = gzip.compress(b"") * 1000
    chunk = b"%x\r\n" % len(empty) + empty + b"\r\n"
    web.answers["/x"] = iter([ENDLESS % b"Content-Encoding: gzip\r\n", *islice(cycle([chunk]), 2000)])
    with pytest.raises(DocumentError, match="max_bytes"):
        await fetch(web)
    assert web.sent < 2000 * len(empty)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 50_000 + b"\r\n",
        b"",
    ],
)
async def test_a_broken_answer_is_a_failure_that_may_pass(web, answer):
    web.answers["/x"] = [answer]
    with pytest.raises(FetchFailed):
        await fetch(web)


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"])
async def test_a_server_that_drips_or_is_silent_is_left_in_time(web, head):
    async def serve(stream):
        async with stream:
            await stream.receive()
            await stream.send(head or b"H")
            await anyio.sleep_forever()

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        web.url = f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, serve)
            with pytest.raises(FetchFailed, match=r"0\.1"):
                await fetch(web, limits=DocumentLimits(timeout=0.1))
            tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("7", 7), ("99999999999999999999", MAX_RETRY_AFTER), ("-5", None), ("soon", None), ("²", None)],
)
async def test_retry_after_is_read_within_bounds(web, value, seconds):
    web.answer("/x", "503 Busy", b"", f"Retry-After: {value}".encode().decode("latin-1"))
    with pytest.raises(FetchFailed) as caught:
        await fetch(web)
    assert caught.value.retry_after == seconds


async def test_retry_after_may_be_a_date(web):
    when = format_datetime(datetime.now(UTC) + timedelta(days=2), usegmt=True)
    web.answer("/x", "429 Slow down", b"", f"Retry-After: {when}")
    with pytest.raises(FetchFailed) as caught:
        await fetch(web)
    assert caught.value.retry_after == MAX_RETRY_AFTER
