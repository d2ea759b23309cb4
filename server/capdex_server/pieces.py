"""What is read from one file or URL, with what tells later whether it has changed."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from capdex_engine.errors import DocumentError

Stamp = tuple[int, int, int, int]
"""Of a file: device, inode, size, nanoseconds of its last change."""
_NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True)
class Piece:
    """A document, or another file that it refers to."""

    data: bytes
    stamp: Stamp | None = None
    """Of a file, taken before it was read: a later change shows."""
    etag: str | None = None
    """Of a URL: what its server calls this version."""
    last_modified: str | None = None
    """Of a URL: the date that its server gives this version."""


@dataclass(frozen=True, slots=True)
class ToolsPiece(Piece):
    """The tools of an MCP server as a document, and how the server is."""

    down: str | None = None
    """Why they cannot be called at present."""
    problem: str | None = None
    """Why the server's last listing was not taken."""


class FetchFailed(DocumentError):
    """A URL gave nothing; it may do so later.

    Args:
        text: Why.
        retry_after: Seconds that its server asks to wait.
    """

    def __init__(self, text: str, *, location: str, retry_after: float | None = None) -> None:
        super().__init__(text, location=location)
        self.retry_after = retry_after


def stamp_of(path: Path) -> Stamp | None:
    """Return the stamp of the file that a path leads to now; None where there is none."""
    try:
        return _stamp(path.stat())
    except (OSError, ValueError):
        return None


def read_file(path: Path, max_bytes: int) -> Piece:
    """Read a regular file whole; a pipe or a device is none and is not waited for.

    Raises:
        DocumentError: It cannot be read, is no regular file or is too large.
    """
    try:
        with open(os.open(path, os.O_RDONLY | _NO_WAIT), "rb") as file:
            status = os.fstat(file.fileno())
            data = file.read(max_bytes + 1) if stat.S_ISREG(status.st_mode) else None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "its name is none"
        raise DocumentError(f"The file {path.name} cannot be read: {reason}.", location=str(path)) from None
    if data is None:
        raise DocumentError(f"{path.name} is no regular file.", location=str(path))
    if len(data) > max_bytes:
        raise DocumentError(
            f"The file {path.name} is larger than {max_bytes} bytes; [documents] max_bytes sets the limit.",
            location=str(path),
        )
    return Piece(data, _stamp(status))


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
