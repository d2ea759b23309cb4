"""Bytes by number, in memory or in a mapped file.

File layout, integers little-endian::

    magic 16 bytes | format version u32 | entries u64 | bytes of meta u64 | bytes of blob u64
    BLAKE2b-256 of all that follows, 32 bytes
    offsets (entries + 1) x u64 | meta, JSON | blob

A file is written beside its place and moved there whole. One that is damaged, cut short, or of another
format version is no store: :meth:`Store.open` answers ``None`` and its owner builds it again.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import struct
import sys
import tempfile
from array import array
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

FORMAT_VERSION: Final = 1
_MAGIC: Final = b"capdex store\n\x00\x00\x00"
_HEADER: Final = struct.Struct("<16sIQQQ32s")
_DIGEST_SIZE: Final = 32

Buffer = bytes | bytearray | memoryview


class Store:
    """Entries of bytes, numbered from 0, and one JSON value about them, ``meta``."""

    def __init__(self, offsets: array[int], meta: Any, blob: Buffer) -> None:
        self._offsets = offsets
        self._blob = memoryview(blob)
        self.meta = meta

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, number: int) -> bytes:
        if not 0 <= number < len(self):
            raise IndexError(number)
        return bytes(self._blob[self._offsets[number] : self._offsets[number + 1]])

    @classmethod
    def open(cls, path: Path) -> Store | None:
        """Map a store's file; ``None`` where there is none, or none that is whole."""
        try:
            with path.open("rb") as file:
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):  # ValueError: an empty file cannot be mapped
            return None
        return cls._parse(memoryview(mapped))

    @classmethod
    def _parse(cls, view: memoryview) -> Store | None:
        if len(view) < _HEADER.size:
            return None
        magic, version, count, meta_size, blob_size, expected = _HEADER.unpack_from(view)
        body = view[_HEADER.size :]
        offsets_size = 8 * (count + 1)
        sizes_fit = len(body) == offsets_size + meta_size + blob_size
        if magic != _MAGIC or version != FORMAT_VERSION or not sizes_fit:
            return None
        if blake2b(body, digest_size=_DIGEST_SIZE).digest() != expected:
            return None
        offsets = array("Q")
        offsets.frombytes(body[:offsets_size])
        meta = json.loads(bytes(body[offsets_size : offsets_size + meta_size]))
        return cls(_little_endian(offsets), meta, body[offsets_size + meta_size :])


class StoreWriter:
    """Collects entries; equal ones are kept once."""

    def __init__(self) -> None:
        self._offsets = array("Q", [0])
        self._blob = bytearray()
        self._known: dict[bytes, int] = {}

    def add(self, data: bytes) -> int:
        """Keep ``data`` and return its number."""
        mark = blake2b(data, digest_size=16).digest()
        number = self._known.get(mark)
        if number is None:
            number = self._known[mark] = len(self._offsets) - 1
            self._blob += data
            self._offsets.append(len(self._blob))
        return number

    def finish(self, meta: Any, path: Path | None) -> Store:
        """Return the store, mapped from ``path`` where one is given and can be written."""
        encoded = json.dumps(meta, separators=(",", ":")).encode()
        if path is not None:
            with contextlib.suppress(OSError):  # a full or read-only disk costs the cache, not the catalog
                self._write(encoded, path)
                stored = Store.open(path)
                if stored is not None:
                    return stored
        return Store(self._offsets, json.loads(encoded), bytes(self._blob))

    def _write(self, meta: bytes, path: Path) -> None:
        parts: list[Buffer] = [_little_endian(self._offsets).tobytes(), meta, self._blob]
        checksum = blake2b(digest_size=_DIGEST_SIZE)
        for part in parts:
            checksum.update(part)
        header = _HEADER.pack(
            _MAGIC, FORMAT_VERSION, len(self._offsets) - 1, len(meta), len(self._blob), checksum.digest()
        )
        write_atomically(path, [header, *parts])


def write_atomically(path: Path, parts: list[Buffer]) -> None:
    """Write ``parts`` to ``path`` so that a reader meets the old file or the new one, whole.

    Raises:
        OSError: The folder cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            for part in parts:
                file.write(part)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _little_endian(offsets: array[int]) -> array[int]:
    if sys.byteorder == "little":
        return offsets
    swapped = array("Q", offsets)
    swapped.byteswap()
    return swapped
