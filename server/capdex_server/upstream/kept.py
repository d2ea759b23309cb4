"""The last good tools on disk, so that a server that is down at the start is told from one without tools."""

from __future__ import annotations

import contextlib
from hashlib import sha256
from pathlib import Path

from capdex_engine.catalog.store import write_atomically
from capdex_engine.errors import DocumentError
from capdex_engine.tools.document import read_tool_document
from capdex_server.config import SourceConfig


class KeptTools:
    """One source's file.

    Args:
        folder: Of the cache.
        name: The source.
        config: Says which server it is: tools of another one are not taken for its own.
    """

    def __init__(self, folder: Path, name: str, config: SourceConfig) -> None:
        parts = (name, config.url or "", str(config.cwd or ""), *config.command, *config.args)
        mark = sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
        self._path = folder / f"{mark}.json"

    def read(self) -> bytes | None:
        """Return what was kept; None where there is nothing, or nothing whole."""
        try:
            data = self._path.read_bytes()
            read_tool_document(data, location=str(self._path))
        except (OSError, DocumentError):
            return None
        return data

    def write(self, data: bytes) -> None:
        """Keep tools; a full or read-only disk costs a later start its tools, not this run."""
        with contextlib.suppress(OSError):
            write_atomically(self._path, [data])
