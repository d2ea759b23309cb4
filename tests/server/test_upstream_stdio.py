"""Lines of a process: whole however they arrive, bounded however long they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from capdex_engine.call.masking import Masker
from capdex_engine.errors import UpstreamProtocolError
from capdex_server.upstream import connecting
from capdex_server.upstream.connecting import LINES_A_MINUTE, Lines
from capdex_server.upstream.stdio import cut_lines, lines

pytestmark = pytest.mark.anyio


class Chunks:
    """A stream that gives these pieces."""

    def __init__(self, *chunks: bytes) -> None:
        self.chunks = list(chunks)

    def __aiter__(self) -> Chunks:
        return self

    async def __anext__(self) -> bytes:
        if not self.chunks:
            raise StopAsyncIteration
        return self.chunks.pop(0)


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([b"a\nb\n"], [b"a", b"b"]),
        ([b"a", b"b\nc", b"\n"], [b"ab", b"c"]),
        ([b"\n\n"], [b"", b""]),
        ([b"a\nrest without an end"], [b"a"]),
        ([], []),
        ([b"x" * 10 + b"\n"], [b"x" * 10]),
    ],
)
async def test_lines_are_whole_however_they_arrive(chunks: Sequence[bytes], expected: list[bytes]) -> None:
    stream: Any = Chunks(*chunks)
    assert [line async for line in lines(stream, 20)] == expected


async def test_a_line_beyond_the_limit_ends_it_before_it_has_come_whole() -> None:
    stream: Any = Chunks(*[b"x" * 5] * 1000)
    with pytest.raises(UpstreamProtocolError):
        [line async for line in lines(stream, 20)]
    assert len(stream.chunks) == 995


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([b"a\nb"], [b"a", b"b"]),
        ([b"x" * 5] * 100, [b"x" * 8]),
        ([b"x" * 50 + b"\ny\n"], [b"x" * 8, b"y"]),
        ([b"\n \n"], []),
    ],
)
async def test_lines_of_standard_error_are_cut(chunks: Sequence[bytes], expected: list[bytes]) -> None:
    stream: Any = Chunks(*chunks)
    assert [line async for line in cut_lines(stream, 8)] == expected


def test_too_many_lines_in_a_minute_are_counted_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    logged: list[dict[str, Any]] = []

    class Log:
        def info(self, event: str, **fields: Any) -> None:
            logged.append({"event": event, **fields})

    monkeypatch.setattr(connecting, "_log", Log())
    say = Lines("upstream.stderr", "odd", lambda: Masker(["s3cret-value"]), lambda: now[0])
    for number in range(LINES_A_MINUTE + 40):
        say(f"line {number} s3cret-value \u202e\xff".encode())
    assert len(logged) == LINES_A_MINUTE
    assert logged[0]["line"] == "line 0 *** \xff"
    now[0] = 61.0
    say(b"later \xff")
    assert logged[-2:] == [
        {"event": "upstream.stderr", "source": "odd", "left_out": 40},
        {"event": "upstream.stderr", "source": "odd", "line": "later \ufffd"},
    ]
