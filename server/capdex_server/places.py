"""Where a configured source's documents lie, before any is read: one file or URL, or those of a folder."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from capdex_engine.catalog import Source
from capdex_engine.errors import DocumentError
from capdex_server.config import DOCUMENT_ENDINGS, SourceConfig

MAX_FILE_BYTES: Final = 64 * 1024 * 1024
"""A document file larger than this is refused."""
LOOKED_AT: Final = 1024 * 1024
"""Bytes at the beginning of a larger file that tell whether it is a document."""
_IS_DOCUMENT: Final = re.compile(rb"""["']?\b(?:openapi|swagger)["']?\s*:\s*["']?[23]\b""")


@dataclass(frozen=True, slots=True)
class Place:
    """One document that is not read yet."""

    owner: str
    """The configured source."""
    name: str
    """The engine's source for it."""
    long_name: str
    """The name that it has, or would have, beside others of its folder."""
    location: str
    document_url: str | None
    data: bytes | None = None
    """What was fetched, for a URL."""

    def read(self) -> Source:
        """Return the document, without settings.

        Raises:
            DocumentError: The file is gone, too large or unreadable.
        """
        data = read_file(Path(self.location)) if self.data is None else self.data
        return Source(self.name, self.location, data, self.document_url)


def find_places(
    name: str, config: SourceConfig, fetched: bytes | DocumentError | None
) -> tuple[list[Place], list[str]]:
    """Return a source's documents, and the files of its folder that do not look like any.

    A file of a folder that cannot be looked into counts as a document: reading it says why.

    Args:
        name: The source's, as configured.
        config: Its configuration.
        fetched: For a URL: the document, or why it could not be fetched.

    Raises:
        DocumentError: It could not be fetched, or the folder holds no document.
    """
    if isinstance(fetched, DocumentError):
        raise fetched
    if fetched is not None:
        url = config.document_url or config.location
        return [Place(name, name, name, config.location, url, fetched)], []
    path = Path(config.location)
    if path.is_dir():
        return _in_folder(name, path.absolute(), config)
    return [Place(name, name, name, str(path.absolute()), config.document_url)], []


def read_file(path: Path) -> bytes:
    """Return the bytes of a document's file.

    Raises:
        DocumentError: It is too large, or cannot be read.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise DocumentError(f"The file is larger than {MAX_FILE_BYTES} bytes.", location=str(path))
        return path.read_bytes()
    except OSError as error:
        raise DocumentError(
            f"The file {path.name} cannot be read: {error.strerror}.", location=str(path)
        ) from error


def _in_folder(name: str, folder: Path, config: SourceConfig) -> tuple[list[Place], list[str]]:
    files = [path for path in sorted(folder.rglob("*")) if path.suffix.lower() in DOCUMENT_ENDINGS]
    looked_at = [(path, _looks_like_a_document(path)) for path in files if path.is_file()]
    documents = [path for path, looks in looked_at if looks]
    others = [str(path) for path, looks in looked_at if not looks]
    if not documents:
        raise DocumentError(_nothing_in(folder, others), location=str(folder))
    stems = Counter(path.with_suffix("") for path in documents)
    places = []
    for path in documents:
        # Files that differ in their ending alone keep it, whatever order they are found in.
        shown = path if stems[path.with_suffix("")] > 1 else path.with_suffix("")
        long_name = ".".join((name, *shown.relative_to(folder).parts))
        own = name if len(documents) == 1 else long_name
        places.append(Place(name, own, long_name, str(path), config.document_url))
    return places, others


def _looks_like_a_document(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            head = file.read(LOOKED_AT)
            if _IS_DOCUMENT.search(head):
                return True
            rest = file.read(MAX_FILE_BYTES - LOOKED_AT)
    except OSError:
        return True
    return bool(rest) and _IS_DOCUMENT.search(head[-_SEAM:] + rest) is not None


_SEAM: Final = 64
"""Bytes read again where the second part of a file begins, so that nothing falls between the two."""


def _nothing_in(folder: Path, others: Sequence[str]) -> str:
    endings = ", ".join(sorted(DOCUMENT_ENDINGS))
    seen = (
        f"none of its {len(others)} files has an `openapi` or `swagger` field"
        if others
        else f"it has no file that ends in {endings}"
    )
    return f"The folder {folder} holds no OpenAPI document: {seen}. Check that the right folder is named."
