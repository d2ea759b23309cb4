"""Files of lines that several processes append to: whole lines only, rotated by size.

``FILE`` is written; when it is full it becomes ``FILE.1``, what was ``FILE.1`` becomes ``FILE.2``, and so
on; the oldest is deleted. An advisory lock on ``FILE.lock`` makes each append and each rotation one step
among all processes of one host. A file that something else moves away is made anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

LOCK_WAIT: Final = 5.0
"""Seconds to wait for the other processes that write the same file."""
_LOCK_TRY: Final = 0.001
_MODE: Final = 0o600


class Journal:
    """Appends lines to one file; safe to share between threads and between processes of one host.

    A line is with the operating system when :meth:`append` returns, so that it survives the end of the
    process by whatever signal; with ``fsync`` it is on the disk.

    Args:
        path: The file; its folder must be there.
        max_bytes: A file that would grow beyond is rotated first.
        keep: Rotated files to keep.
        fsync: Wait for the disk.
    """

    def __init__(self, path: Path, *, max_bytes: int, keep: int, fsync: bool = False) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._keep = keep
        self._fsync = fsync
        self._file: int | None = None
        self._lock: int | None = None
        self._mutex = threading.Lock()

    def append(self, lines: Sequence[bytes]) -> None:
        """Append lines, each with its newline, in one write; none stays behind in part.

        Raises:
            OSError: They could not be written; the file is as it was.
        """
        data = b"".join(lines)
        with self._mutex, self._alone():
            file = self._with_room(len(data))
            size = os.fstat(file).st_size
            # What a process left that ended while it wrote must not swallow the next line.
            torn = size > 0 and os.pread(file, 1, size - 1) != b"\n"
            _write(file, b"\n" + data if torn else data, size)
            if self._fsync and data:
                os.fsync(file)

    def close(self) -> None:
        """Close the files; another append opens them again."""
        with self._mutex:
            for descriptor in (self._file, self._lock):
                if descriptor is not None:
                    os.close(descriptor)
            self._file = self._lock = None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if self._lock is None:
            self._lock = _opened(lock_of(self._path), os.O_RDWR | os.O_CREAT)
        _locked(self._lock)
        try:
            yield
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    def _with_room(self, wanted: int) -> int:
        file = self._current()
        size = os.fstat(file).st_size
        if size and size + wanted > self._max_bytes:
            self._rotate()
            file = self._current()
        return file

    def _current(self) -> int:
        """Return the file that the path now names: others rotate it too."""
        if self._file is not None and not _is_at(self._file, self._path):
            os.close(self._file)
            self._file = None
        if self._file is None:
            self._file = _opened(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
            if self._fsync:
                _sync_folder(self._path.parent)
        return self._file

    def _rotate(self) -> None:
        for number in range(self._keep, 0, -1):
            older = rotated(self._path, number)
            newer = rotated(self._path, number - 1) if number > 1 else self._path
            with contextlib.suppress(FileNotFoundError):
                os.replace(newer, older)


def rotated(path: Path, number: int) -> Path:
    """Return the name of a file that was full; 1 is the newest."""
    return path.with_name(f"{path.name}.{number}")


def lock_of(path: Path) -> Path:
    """Return the file whose lock orders the writers of ``path``."""
    return path.with_name(f"{path.name}.lock")


def all_of(path: Path) -> list[Path]:
    """Return what there is of a rotated file, the oldest first."""
    numbers = (one.name.removeprefix(f"{path.name}.") for one in path.parent.glob(f"{path.name}.*"))
    older = sorted((int(number) for number in numbers if number.isdecimal()), reverse=True)
    return [*(rotated(path, number) for number in older), *([path] if path.exists() else [])]


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Keep writers from rotating ``path`` meanwhile, where their lock can be had."""
    try:
        lock = os.open(lock_of(path), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        yield
        return
    try:
        with contextlib.suppress(OSError):
            _locked(lock)
        yield
    finally:
        os.close(lock)


def _opened(path: Path, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, _MODE)


def _is_at(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False


def _locked(lock: int) -> None:
    """Lock, but not for ever: a process that is stopped may hold it."""
    deadline = time.monotonic() + LOCK_WAIT
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError("another process keeps the file locked") from None
            time.sleep(_LOCK_TRY)


def _write(file: int, data: bytes, size: int) -> None:
    """Append all of it in one write, or (where the disk is full) nothing."""
    written = os.write(file, data) if data else 0
    try:
        while written < len(data):
            written += os.write(file, data[written:])
    except OSError:
        os.ftruncate(file, size)
        raise


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
