"""Cached vectors as immutable files: a header, keys, vectors, and a checksum over both.

::

    magic 8 | dimension u32 | checksum u32 | count u64 | count keys of 16 bytes | count x dimension float32

Little-endian throughout. A block is written whole under a temporary name and renamed, so a reader sees
all of it or nothing, and processes that write at once make two blocks instead of losing one.
"""

from __future__ import annotations

import hashlib
import os
import struct
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

MAGIC: Final = b"capdexv1"
"""The last character is the format version."""

SUFFIX: Final = ".vectors"
KEY_BYTES: Final = 16

_HEADER: Final = struct.Struct("<8sIIQ")
_FLOAT: Final = np.dtype("<f4")


class DamagedBlock(Exception):
    """The file is no whole block of this format and dimension; the message says why."""


@dataclass(frozen=True, slots=True)
class Block:
    """Keys and vectors, row by row: (count, dimension)."""

    keys: Sequence[bytes]
    vectors: NDArray[np.float32]


def read_block(path: Path, dimension: int) -> Block:
    """Read and verify one file.

    Raises:
        DamagedBlock: The file is cut short, altered, or of another format or dimension.
        OSError: The file cannot be read.
    """
    data = path.read_bytes()
    if len(data) < _HEADER.size:
        raise DamagedBlock("it is shorter than its header")
    magic, width, checksum, count = _HEADER.unpack_from(data)
    if (magic, width) != (MAGIC, dimension):
        raise DamagedBlock("it has another format or dimension")
    body = memoryview(data)[_HEADER.size :]
    split = count * KEY_BYTES
    if len(body) != split + count * dimension * _FLOAT.itemsize:
        raise DamagedBlock("its length does not fit its header")
    if zlib.crc32(body) != checksum:
        raise DamagedBlock("its checksum does not fit its content")
    keys = [bytes(body[start : start + KEY_BYTES]) for start in range(0, split, KEY_BYTES)]
    return Block(keys, np.frombuffer(body[split:], dtype=_FLOAT).reshape(count, dimension))


def rows_in(path: Path, dimension: int) -> int:
    """Return how many vectors a block of this size holds; 0 when it is gone."""
    try:
        return max(0, path.stat().st_size - _HEADER.size) // (KEY_BYTES + dimension * _FLOAT.itemsize)
    except FileNotFoundError:
        return 0


def write_block(folder: Path, block: Block) -> Path:
    """Write a block atomically; its name comes from its keys, so writing it twice makes one file."""
    body = b"".join(block.keys) + np.ascontiguousarray(block.vectors, dtype=_FLOAT).tobytes()
    header = _HEADER.pack(MAGIC, block.vectors.shape[1], zlib.crc32(body), len(block.keys))
    name = hashlib.blake2b(b"".join(block.keys), digest_size=8).hexdigest() + SUFFIX
    handle, temporary = tempfile.mkstemp(dir=folder, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(header)
            stream.write(body)
        os.replace(temporary, folder / name)
    finally:
        Path(temporary).unlink(missing_ok=True)
    return folder / name
