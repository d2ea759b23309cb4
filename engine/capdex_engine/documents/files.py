"""Reading sibling files from one folder, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from capdex_engine.documents.references import Retrieve
from capdex_engine.documents.shown import shown
from capdex_engine.errors import DocumentError

MAX_FILE_BYTES: Final = 64 * 1024 * 1024

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def folder_retrieve(root: Path, *, max_bytes: int = MAX_FILE_BYTES) -> Retrieve:
    """Return a callable that reads files inside ``root`` (symbolic links resolved) and refuses all else.

    It takes absolute paths and ``file:`` URLs of this machine.

    Args:
        root: The folder; everything below it may be read.
        max_bytes: Largest file that is read.
    """
    folder = root.resolve()

    def retrieve(identity: str) -> bytes:
        path = _local_path(identity)
        try:
            real = Path(path).resolve()
            inside = real.is_relative_to(folder) and real.is_file()
        except (OSError, ValueError, RuntimeError):
            inside = False
        if not inside:
            # The same words for a file that is missing: whether it exists elsewhere is nobody's business.
            raise DocumentError(f"{shown(path)} is no file inside the document's folder.", location=identity)
        return _read(real, max_bytes, identity)

    return retrieve


def _local_path(identity: str) -> str:
    if not _SCHEME.match(identity):
        if identity.startswith("/") and not identity.startswith("//"):
            return identity
        raise DocumentError(f"{shown(identity)} is no absolute path.", location=identity)
    parts = urlsplit(identity)
    if parts.scheme != "file" or parts.netloc not in {"", "localhost"}:
        raise DocumentError(
            f"{shown(identity)} is not in the document's folder; the network is not asked.",
            location=identity,
        )
    return unquote(parts.path)


def _read(path: Path, max_bytes: int, identity: str) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise DocumentError(
            f"{shown(str(path))} cannot be read: {error.strerror}.", location=identity
        ) from error
    if len(data) > max_bytes:
        raise DocumentError(f"{shown(str(path))} holds more than {max_bytes} bytes.", location=identity)
    return data
