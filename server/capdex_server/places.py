"""Where a configured source's documents lie, before any is read: one file or URL, or those of a folder."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from capdex_engine.catalog import Source
from capdex_engine.errors import DocumentError
from capdex_server.config import DOCUMENT_ENDINGS, DocumentLimits, SourceConfig
from capdex_server.pieces import read_file
from capdex_server.reach import allowed_roots, inside

LOOKED_AT: Final = 1024 * 1024
"""Bytes at the beginning of a larger file that tell whether it is a document."""
_SEAM: Final = 64
"""Bytes read again where the second part of a file begins, so that nothing falls between the two."""
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
    roots: tuple[Path, ...] = ()
    """Folders that the file of a folder may lie in, links resolved."""
    data: bytes | None = None
    """What was fetched, for a URL."""

    def read(self, limits: DocumentLimits) -> Source:
        """Return the document, without settings.

        Raises:
            DocumentError: The file is gone, too large, unreadable or leads out of its folder.
        """
        path = Path(self.location)
        real = real_file(path, self.roots) if self.roots else path
        data = read_file(real, limits.max_bytes).data if self.data is None else self.data
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
        return [Place(name, name, name, config.location, url, data=fetched)], []
    path = Path(config.location)
    if path.is_dir():
        return _in_folder(name, path.absolute(), config)
    return [Place(name, name, name, str(path.absolute()), config.document_url)], []


def _in_folder(name: str, folder: Path, config: SourceConfig) -> tuple[list[Place], list[str]]:
    roots = allowed_roots(config)
    looked_at = [(path, _looks_like_a_document(path, roots)) for path in candidates(folder)]
    documents = [path for path, looks in looked_at if looks]
    others = [str(path) for path, looks in looked_at if not looks]
    if not documents:
        raise nothing_in(folder, len(others))
    names = long_names(name, folder, documents)
    return [
        Place(
            name,
            name if len(documents) == 1 else names[path],
            names[path],
            str(path),
            config.document_url,
            roots,
        )
        for path in documents
    ], others


def candidates(folder: Path) -> list[Path]:
    """Return a folder's files that may be documents, links that lead nowhere too.

    Hidden files and folders, pipes and devices are left alone.
    """
    return [
        path
        for path in sorted(folder.rglob("*"), key=str)
        if path.suffix.lower() in DOCUMENT_ENDINGS
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
        and (path.is_file() or not path.exists())
    ]


def long_names(name: str, folder: Path, files: Collection[Path]) -> dict[Path, str]:
    """Return what each document of a folder is called beside the others: source, folders, file name."""
    stems = Counter(path.with_suffix("") for path in files)
    # Files that differ in their ending alone keep it, whatever order they are found in.
    shown = {path: path if stems[path.with_suffix("")] > 1 else path.with_suffix("") for path in files}
    return {path: ".".join((name, *short.relative_to(folder).parts)) for path, short in shown.items()}


def real_file(path: Path, roots: tuple[Path, ...]) -> Path:
    """Return the file that a folder's file leads to.

    Raises:
        DocumentError: It is a link that leads out of the source's folders.
    """
    real = inside(path, roots)
    if real is None:
        raise DocumentError(
            f"{path.name} is a link that leads out of the source's folder; its reference_roots may allow "
            "more folders.",
            location=str(path),
        )
    return real


def is_document(data: bytes) -> bool:
    """Tell whether a file looks like an API description."""
    return _IS_DOCUMENT.search(data) is not None


def nothing_in(folder: Path, others: int) -> DocumentError:
    """Return the error for a folder without documents, but with so many other files."""
    seen = (
        f"none of its {others} files has an `openapi` or `swagger` field"
        if others
        else f"it has no file that ends in {', '.join(sorted(DOCUMENT_ENDINGS))}"
    )
    return DocumentError(
        f"The folder {folder} holds no OpenAPI document: {seen}. Check that the right folder is named.",
        location=str(folder),
    )


def _looks_like_a_document(path: Path, roots: tuple[Path, ...]) -> bool:
    if inside(path, roots) is None:
        return True
    try:
        with path.open("rb") as file:
            head = file.read(LOOKED_AT)
            if is_document(head):
                return True
            rest = file.read()
    except OSError:
        return True
    return bool(rest) and is_document(head[-_SEAM:] + rest)
