"""A response body: decoded piece by piece, and never more than a limit in memory."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Final

_GZIP: Final = frozenset({"gzip", "x-gzip"})
_STEP: Final = 64 * 1024
"""Most bytes that one step may inflate to."""
_SLACK: Final = 256 * 1024
"""Bytes as sent that are always read."""
_CHUNK: Final = 512
"""Bytes that a chunk counts for beside its own: parsing 9,000 chunks takes a tenth of a second."""
_MEMBER: Final = 1024
"""Bytes that a further gzip member counts for: opening one takes time, and an empty one gives nothing."""


class BodyReader:
    """Collects a body up to ``limit`` decoded bytes.

    A coding that was not asked for (only gzip and deflate are) stays as it is, its header too.
    """

    def __init__(self, headers: Sequence[tuple[str, str]], limit: int) -> None:
        codings = [
            coding.strip().lower()
            for name, value in headers
            if name.lower() == "content-encoding"
            for coding in value.split(",")
            if coding.strip().lower() not in {"", "identity"}
        ]
        coding = codings[0] if len(codings) == 1 else ""
        self._inflate = _Inflate(coding) if coding in _GZIP | {"deflate"} else None
        self._limit = limit
        self._unread = limit + limit // 8 + _SLACK
        self._body = bytearray()
        self.truncated = False

    @property
    def data(self) -> bytes:
        """What was read, at most ``limit`` bytes."""
        return bytes(self._body)

    def hides(self, header: str) -> bool:
        """Return whether a header no longer fits the decoded body."""
        return self._inflate is not None and header.lower() in {"content-encoding", "content-length"}

    def feed(self, chunk: bytes) -> bool:
        """Take a chunk as it came; return False once the limit is passed.

        Raises:
            zlib.error: The chunk is not what ``Content-Encoding`` says.
        """
        for _ in self.steps(chunk):
            pass
        return not self.truncated

    def steps(self, chunk: bytes) -> Iterator[None]:
        """Take a chunk, pausing after each step of bounded work, until its end or that of the limit.

        Raises:
            zlib.error: The chunk is not what ``Content-Encoding`` says.
        """
        # Bytes as sent count too, with room for what compression may add: a compressed stream can go on
        # for ever and inflate to nothing.
        self._unread -= len(chunk) + _CHUNK
        if self._unread < 0:
            self.truncated = True
            return
        pieces = self._inflate.pieces(chunk) if self._inflate else (chunk,)
        for piece in pieces:
            room = self._limit - len(self._body)
            self._body += piece[:room]
            costly = self._inflate is not None and self._inflate.members * _MEMBER > self._unread
            if len(piece) > room or costly:
                self.truncated = True
                return
            yield

    def finish(self) -> None:
        """Note the end of the body.

        Raises:
            zlib.error: The compressed data broke off.
        """
        if self._inflate and not self._inflate.complete:
            raise zlib.error("compressed body broke off")


class _Inflate:
    """gzip (also of several members) and deflate (zlib or raw), in bounded steps."""

    def __init__(self, coding: str) -> None:
        self._gzip = coding in _GZIP
        self._started = False
        self.members = 0
        """Those after the first."""
        self._new(zlib.MAX_WBITS | 16 if self._gzip else zlib.MAX_WBITS)

    def _new(self, wbits: int) -> None:
        self._decompressor = zlib.decompressobj(wbits)

    @property
    def complete(self) -> bool:
        return not self._started or self._decompressor.eof

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """Yield decoded pieces of at most ``_STEP`` bytes."""
        pending = False
        while chunk or pending:
            if self._decompressor.eof:
                if not self._gzip or not chunk.strip(b"\0"):
                    return
                self.members += 1
                self._new(zlib.MAX_WBITS | 16)
            piece = self._step(chunk)
            yield piece
            chunk = self._decompressor.unconsumed_tail or self._decompressor.unused_data
            # A full step may leave output inside zlib although all input is consumed.
            pending = len(piece) == _STEP and not self._decompressor.eof

    def _step(self, chunk: bytes) -> bytes:
        first, self._started = not self._started, True
        try:
            return self._decompressor.decompress(chunk, _STEP)
        except zlib.error:
            if self._gzip or not first:
                raise
        self._new(-zlib.MAX_WBITS)
        return self._decompressor.decompress(chunk, _STEP)
