"""Further attempts at a call: for idempotent methods, where there was no connection, and not for long."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import anyio.abc
import pytest

from capdex_engine.call import Request, Response
from capdex_engine.errors import AddressRefused, UpstreamError, UpstreamProtocolError, UpstreamUnreachable
from capdex_server.outbound import PAUSES, Outbound

pytestmark = pytest.mark.anyio
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
SAFE = ["GET", "HEAD", "OPTIONS", "QUERY"]
IDEMPOTENT = [*SAFE, "PUT", "DELETE"]
OTHERS = ["POST", "PATCH"]


@dataclass
class Names:
    """A resolver that fails as often as it is told, then names loopback."""

    failures: int
    asked: int = 0

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked += 1
        if self.asked <= self.failures:
            raise OSError("no such host")
        return ["127.0.0.1"]


@dataclass
class Closing:
    """An upstream that closes its first connections, before or in the middle of an answer."""

    closes: int
    before_closing: bytes = b""
    port: int = 0
    requests: list[bytes] = field(default_factory=list)

    async def serve(self, stream: anyio.abc.SocketStream) -> None:
        async with stream:
            self.requests.append(await stream.receive())
            answer = ANSWER if len(self.requests) > self.closes else self.before_closing
            if answer:
                await stream.send(answer)


@asynccontextmanager
async def upstream(closes: int = 0, before_closing: bytes = b"") -> AsyncIterator[Closing]:
    found = Closing(closes, before_closing)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    found.port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, found.serve)
        yield found
        tasks.cancel_scope.cancel()


async def sent(
    found: Closing, method: str, names: Names, pauses: tuple[float, ...] = (0.0, 0.0), timeout: float = 5.0
) -> Response:
    origins = {"api": frozenset({("api.example", found.port)})}
    outbound = Outbound(origins, resolver=names, pauses=pauses)
    request = Request(method, f"http://api.example:{found.port}/x", (), None)
    try:
        return await outbound(request, source="api", timeout=timeout, max_bytes=1000)
    finally:
        await outbound.aclose()


@pytest.mark.parametrize("method", IDEMPOTENT)
async def test_an_idempotent_call_finds_the_connection_that_it_first_did_not(method):
    async with upstream() as found:
        names = Names(failures=2)
        assert (await sent(found, method, names)).status == 200
    assert (names.asked, len(found.requests)) == (3, 1)


@pytest.mark.parametrize("method", IDEMPOTENT)
async def test_attempts_are_bounded(method):
    async with upstream() as found:
        names = Names(failures=100)
        with pytest.raises(UpstreamUnreachable) as caught:
            await sent(found, method, names)
    assert names.asked == 3
    assert caught.value.retryable


@pytest.mark.parametrize("method", OTHERS)
async def test_another_call_has_one_attempt(method):
    async with upstream() as found:
        names = Names(failures=1)
        with pytest.raises(UpstreamUnreachable) as caught:
            await sent(found, method, names)
    assert (names.asked, found.requests) == (1, [])
    assert not caught.value.retryable


async def test_no_attempt_is_made_for_which_there_is_no_time():
    async with upstream() as found:
        names = Names(failures=100)
        with pytest.raises(UpstreamUnreachable):
            await sent(found, "GET", names, pauses=(60.0,))
    assert names.asked == 1


@pytest.mark.parametrize("method", SAFE)
async def test_a_connection_lost_before_the_answer_is_tried_again_where_nothing_can_change(method):
    async with upstream(closes=2) as found:
        assert (await sent(found, method, Names(0))).status == 200
    assert len(found.requests) == 3


@pytest.mark.parametrize("method", ["PUT", "DELETE", *OTHERS])
async def test_a_call_that_may_have_taken_effect_is_not_repeated_unasked(method):
    async with upstream(closes=1) as found:
        with pytest.raises(UpstreamError):
            await sent(found, method, Names(0))
    assert len(found.requests) == 1


@pytest.mark.parametrize("broken", [b"SSH-2.0\r\n\r\n", ANSWER[:-1]])
async def test_an_answer_that_has_begun_is_not_asked_for_again(broken):
    async with upstream(closes=1, before_closing=broken) as found:
        with pytest.raises(UpstreamProtocolError):
            await sent(found, "GET", Names(0))
    assert len(found.requests) == 1


@pytest.mark.parametrize("status", [b"500 Broken", b"503 Busy", b"429 Slow down"])
async def test_an_answer_is_an_answer_whatever_its_status(status):
    answer = b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n"
    async with upstream(closes=9, before_closing=answer) as found:
        assert (await sent(found, "GET", Names(0))).status == int(status[:3])
    assert len(found.requests) == 1


async def test_a_refused_address_is_not_tried_again():
    names = Names(0)
    outbound = Outbound({}, resolver=names, pauses=(0.0, 0.0))
    request = Request("GET", "http://api.example/x", (), None)
    with pytest.raises(AddressRefused):
        await outbound(request, source="api", timeout=5.0, max_bytes=10)
    assert names.asked == 1


def test_the_pauses_of_a_server_are_few_and_short():
    assert len(PAUSES) == 2
    assert sum(PAUSES) <= 1
