"""The folder with one encoder's cached vectors: read, add, keep small."""

from __future__ import annotations

import contextlib
import logging
import re
import shutil
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .blocks import SUFFIX, Block, DamagedBlock, read_block, rows_in, write_block

NEIGHBOURS: Final = 3
"""Folders of other encoders that stay, those written last."""

MAX_BLOCKS: Final = 16
"""More of them are merged into one."""

_FOLDER_NAME: Final = re.compile(r"[0-9a-f]{16}")
_log = logging.getLogger(__name__)


class Shelf:
    """Blocks of one encoder. A damaged block is dropped, a folder that cannot be written is logged.

    Args:
        folder: Its name is 16 hex digits; folders beside it belong to other encoders.
        dimension: Numbers per vector.
        capacity: Vectors above which the oldest ones go.
    """

    def __init__(self, folder: Path, dimension: int, capacity: int) -> None:
        self._folder = folder
        self._dimension = dimension
        self._capacity = capacity

    def fill(self, rows: Mapping[bytes, int], vectors: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Put cached vectors into their rows; return (n,) which of the rows were found."""
        found = np.zeros(len(vectors), dtype=np.bool_)
        for block in self._blocks():
            hits = [(row, i) for i, key in enumerate(block.keys) if (row := rows.get(key)) is not None]
            if hits:
                targets, sources = np.array(hits, dtype=np.intp).T
                vectors[targets] = block.vectors[sources]
                found[targets] = True
        return found

    def add(self, block: Block) -> None:
        """Write a block."""
        try:
            if not self._folder.is_dir():
                self._folder.mkdir(parents=True, exist_ok=True)
                self._drop_neighbours()
            write_block(self._folder, block)
        except OSError as error:
            _log.warning("vectors are not cached: %s", error)

    def tidy(self, wanted: Collection[bytes]) -> None:
        """Merge many blocks into one; above the capacity, keep ``wanted`` and the newest, half of it.

        The capacity is never below twice the number of ``wanted``.
        """
        paths = self._paths()
        capacity = max(self._capacity, 2 * len(wanted))
        full = sum(rows_in(path, self._dimension) for path in paths) > capacity
        if full or len(paths) > MAX_BLOCKS:
            try:
                self._merge(paths, wanted, capacity // 2 if full else capacity)
            except OSError as error:
                _log.warning("cached vectors are not merged: %s", error)

    def _merge(self, paths: Collection[Path], wanted: Collection[bytes], limit: int) -> None:
        merged = write_block(self._folder, _select(list(self._blocks()), wanted, limit))
        for path in {*paths, *self._folder.glob("*.tmp")} - {merged}:
            path.unlink(missing_ok=True)

    def _blocks(self) -> Iterator[Block]:
        for path in self._paths():
            try:
                yield read_block(path, self._dimension)
            except DamagedBlock as damage:
                _log.warning("cached vectors are dropped: %s is damaged, %s", path, damage)
                with contextlib.suppress(OSError):
                    path.unlink()
            except OSError as error:  # also a block that another process has merged meanwhile
                _log.info("cached vectors are not read: %s", error)

    def _paths(self) -> list[Path]:
        return _newest_first(path for path in self._folder.glob(f"*{SUFFIX}"))

    def _drop_neighbours(self) -> None:
        beside = (path for path in self._folder.parent.iterdir() if _FOLDER_NAME.fullmatch(path.name))
        for folder in _newest_first(path for path in beside if path != self._folder)[NEIGHBOURS:]:
            shutil.rmtree(folder, ignore_errors=True)


def _select(blocks: Collection[Block], wanted: Collection[bytes], limit: int) -> Block:
    """Take each key once, at most ``limit``: first the wanted ones, then block by block."""
    keys: dict[bytes, None] = {}
    parts = []
    for first in (True, False):
        for block in blocks:
            rows = [i for i, key in enumerate(block.keys) if (key in wanted) is first and key not in keys]
            rows = rows[: limit - len(keys)]
            keys.update(dict.fromkeys(block.keys[i] for i in rows))
            parts.append(block.vectors[rows])
    return Block(list(keys), np.concatenate(parts))


def _newest_first(paths: Iterator[Path]) -> list[Path]:
    dated = []
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            dated.append((path.stat().st_mtime_ns, path))
    return [path for _, path in sorted(dated, reverse=True)]
