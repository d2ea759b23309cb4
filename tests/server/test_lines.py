from __future__ import annotations

import json
import os
import threading

import anyio
import pytest

from capdex_server.lines import LineWriter, append_to_stream, line_of, shown

pytestmark = pytest.mark.anyio


class Sink:
    """Keeps batches; the first waits until it is let go."""

    def __init__(self) -> None:
        self.batches: list[list[bytes]] = []
        self.errors: list[OSError] = []
        self.go = threading.Event()
        self.entered = threading.Event()

    def __call__(self, lines) -> None:
        self.entered.set()
        assert self.go.wait(20)
        if self.errors:
            raise self.errors.pop(0)
        self.batches.append(list(lines))


def numbers(batches: list[list[bytes]]) -> list[list[int]]:
    return [[json.loads(line)["n"] for line in lines] for lines in batches]


async def until(condition) -> None:
    while not condition():
        await anyio.sleep(0)


async def test_what_waits_at_one_time_is_written_together_and_in_order():
    sink = Sink()
    writer = LineWriter(sink)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writer.write, {"n": 0})
        await until(sink.entered.is_set)
        for number in range(1, 5):
            tasks.start_soon(writer.write, {"n": number})
        await until(lambda: len(writer._batch.lines) == 4)
        sink.go.set()
    assert numbers(sink.batches) == [[0], [1, 2, 3, 4]]


async def test_all_of_a_batch_that_fails_are_told_and_the_next_is_written():
    sink = Sink()
    sink.errors = [OSError(28, "No space left on device")]
    sink.go.set()
    writer = LineWriter(sink)
    failures = []

    async def write(number: int) -> None:
        try:
            await writer.write({"n": number})
        except OSError as error:
            failures.append(str(error))

    async with writer._turn, anyio.create_task_group() as tasks:
        tasks.start_soon(write, 1)
        tasks.start_soon(write, 2)
        await until(lambda: len(writer._batch.lines) == 2)
        writer._turn.release()
        await until(lambda: len(failures) == 2)
        await writer._turn.acquire()
    assert failures == ["No space left on device"] * 2
    await writer.write({"n": 3})
    assert numbers(sink.batches) == [[3]]


async def test_one_who_is_cancelled_while_it_waits_holds_nobody_up():
    sink = Sink()
    writer = LineWriter(sink)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writer.write, {"n": 0})
        await until(sink.entered.is_set)
        async with anyio.create_task_group() as inner:
            inner.start_soon(writer.write, {"n": 1})
            await until(lambda: len(writer._batch.lines) == 1)
            inner.cancel_scope.cancel()
        sink.go.set()
        await writer.write({"n": 2})
    assert numbers(sink.batches) == [[0], [1, 2]]


async def test_one_who_is_cancelled_while_it_writes_for_others_has_written_for_them():
    sink = Sink()
    writer = LineWriter(sink)
    async with anyio.create_task_group() as inner:
        inner.start_soon(writer.write, {"n": 0})
        await until(sink.entered.is_set)
        inner.cancel_scope.cancel()
        sink.go.set()
    assert numbers(sink.batches) == [[0]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getOrder", "getOrder"),
        ("GET /orders/{id}", "GET /orders/{id}"),
        ("a\nb\r\nc", "a\\nb\\r\\nc"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\u2028\u2029\u0085", "\\u2028\\u2029\\x85"),
        ("\u202eevil", "\\u202eevil"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
        ("Überweisung 送金", "Überweisung 送金"),
        ('","outcome":"ok', '","outcome":"ok'),
        (None, ""),
        (7, ""),
        (["x"], ""),
    ],
)
def test_what_somebody_else_chose_is_made_printable(text, expected):
    assert shown(text) == expected


@pytest.mark.parametrize("text", ["n" * 101, "\x00" * 100, "n" * 1_000_000])
def test_what_somebody_else_chose_is_short(text):
    assert len(shown(text)) == 100 and shown(text).endswith("…")


def test_a_line_is_ascii_whatever_it_holds():
    line = line_of({"a": "ü\u2028\x85\n\x1b", "b": None})
    assert line.isascii() and line.count(b"\n") == 1 and line.endswith(b"\n")
    assert json.loads(line) == {"a": "ü\u2028\x85\n\x1b", "b": None}


def test_a_stream_gets_whole_lines():
    read, write = os.pipe()
    append_to_stream(write)([b"a\n", b"b\n"])
    assert os.read(read, 100) == b"a\nb\n"
    os.close(read), os.close(write)


def test_a_stream_that_nobody_reads_is_an_error_and_no_end():
    read, write = os.pipe()
    append = append_to_stream(write, wait=0.01)
    with pytest.raises(TimeoutError):
        for _ in range(10_000):
            append([b"x" * 1000 + b"\n"])
    os.close(read), os.close(write)


def test_a_stream_whose_reader_is_gone_is_an_error():
    read, write = os.pipe()
    os.close(read)
    with pytest.raises(BrokenPipeError):
        append_to_stream(write)([b"a\n"])
    os.close(write)
