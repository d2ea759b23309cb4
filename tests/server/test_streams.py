from __future__ import annotations

import httpcore2
import pytest

from capdex_server.streams import HEAD_BYTES, INTERIM, HeadBound

pytestmark = pytest.mark.anyio
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def stream(*pieces: bytes) -> HeadBound:
    return HeadBound(httpcore2.AsyncMockStream(list(pieces)))


async def read_all(bound: HeadBound, reads: int) -> int:
    return sum([len(await bound.read(65536)) for _ in range(reads)])


async def test_a_head_without_end_fails():
    bound = stream(*[b"X-A: 1\r\n" * 500] * 100)
    await bound.write(b"GET / HTTP/1.1\r\n\r\n")
    with pytest.raises(httpcore2.RemoteProtocolError):
        await read_all(bound, 100)


async def test_a_body_is_not_counted_once_the_head_has_ended():
    bound = stream(*[b"x" * 4096] * 100)
    await bound.write(b"GET / HTTP/1.1\r\n\r\n")
    await bound.read(4096)
    bound.head_ended()
    assert await read_all(bound, 99) > HEAD_BYTES


async def test_a_few_interim_answers_pass_and_many_fail():
    for count, fails in ((INTERIM, False), (INTERIM + 1, True)):
        bound = stream(CONTINUE * count, b"HTTP/1.1 200 OK\r\n\r\n")
        await bound.write(b"GET / HTTP/1.1\r\n\r\n")
        await bound.read(65536)
        if fails:
            with pytest.raises(httpcore2.RemoteProtocolError):
                await bound.read(65536)
        else:
            assert await bound.read(65536)


async def test_blank_lines_of_a_body_that_came_with_its_head_are_no_interim_answers():
    bound = stream(b"HTTP/1.1 200 OK\r\n\r\n" + b"\n\n" * 100, b"more")
    await bound.write(b"GET / HTTP/1.1\r\n\r\n")
    await bound.read(65536)
    bound.head_ended()
    assert await bound.read(65536) == b"more"


async def test_each_request_has_a_head_of_its_own():
    bound = stream(*[CONTINUE * INTERIM] * 2)
    for _ in range(2):
        await bound.write(b"GET / HTTP/1.1\r\n\r\n")
        await bound.read(65536)
