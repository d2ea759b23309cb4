from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex_server.decoding import BodyReader


def read(coding: str | None, chunks: list[bytes], limit: int = 10_000) -> BodyReader:
    reader = BodyReader([("Content-Encoding", coding)] if coding else [], limit)
    if all(reader.feed(chunk) for chunk in chunks):
        reader.finish()
    return reader


def raw_deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return compressor.compress(data) + compressor.flush()


CODERS = {"gzip": gzip.compress, "x-gzip": gzip.compress, "deflate": zlib.compress}


@given(data=st.binary(max_size=3000), size=st.integers(1, 700), coding=st.sampled_from(sorted(CODERS)))
def test_any_chunking_gives_the_body_back(data, size, coding):
    packed = CODERS[coding](data)
    reader = read(coding, [packed[at : at + size] for at in range(0, len(packed), size)])
    assert (reader.data, reader.truncated) == (data, False)


def test_raw_deflate_is_read_too():
    assert read("deflate", [raw_deflate(b"hello" * 9)]).data == b"hello" * 9


def test_gzip_members_are_joined_and_padding_is_ignored():
    assert read("gzip", [gzip.compress(b"a") + gzip.compress(b"b") + b"\0\0"]).data == b"ab"


@pytest.mark.parametrize("coding", [None, "identity", "gzip"])
def test_exactly_the_limit_passes_and_one_more_is_cut(coding):
    pack = gzip.compress if coding == "gzip" else bytes
    assert not read(coding, [pack(b"x" * 100)], 100).truncated
    over = read(coding, [pack(b"x" * 101)], 100)
    assert (over.data, over.truncated) == (b"x" * 100, True)


def test_a_bomb_is_stopped_at_the_limit():
    reader = read("gzip", [gzip.compress(b"\0" * 50_000_000)], 1000)
    assert (len(reader.data), reader.truncated) == (1000, True)


def test_a_body_of_several_steps_is_whole():
    data = bytes(range(256)) * 4096
    assert read("gzip", [gzip.compress(data)], 2_000_000).data == data


@pytest.mark.parametrize("chunks", [[b"not gzip at all"], [gzip.compress(b"x" * 100)[:20]]])
def test_a_broken_body_raises(chunks):
    with pytest.raises(zlib.error):
        read("gzip", chunks)


@pytest.mark.parametrize("coding", ["br", "gzip, gzip"])
def test_other_codings_stay_as_they_are_with_their_header(coding):
    reader = read(coding, [b"raw"])
    assert reader.data == b"raw"
    assert not reader.hides("Content-Encoding")


def test_a_decoded_body_hides_the_headers_that_no_longer_fit():
    reader = read("gzip", [])
    assert reader.hides("content-encoding") and reader.hides("Content-Length") and not reader.hides("etag")


def test_empty_gzip_members_without_end_are_cut():
    reader = BodyReader([("Content-Encoding", "gzip")], 1000)
    members = gzip.compress(b"") * 50
    assert any(not reader.feed(members) for _ in range(100))
    assert (reader.data, reader.truncated) == (b"", True)


def test_a_body_of_several_gzip_members_is_whole():
    reader = BodyReader([("Content-Encoding", "gzip")], 10_000)
    assert reader.feed(b"".join(gzip.compress(b"x" * 100) for _ in range(20)))
    assert reader.data == b"x" * 2000


def test_a_body_in_chunks_of_one_byte_is_cut_before_it_takes_long():
    reader = BodyReader([], 4 * 1024 * 1024)
    assert any(not reader.feed(b"x") for _ in range(100_000))
    assert reader.truncated


def test_inflating_pauses_between_pieces():
    reader = BodyReader([("Content-Encoding", "gzip")], 10_000_000)
    assert sum(1 for _ in reader.steps(gzip.compress(b"\0" * 1_000_000))) >= 10
    assert len(reader.data) == 1_000_000
