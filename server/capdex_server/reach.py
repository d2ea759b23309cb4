"""Where the references of a document may lead, and how much they may bring.

A file's references stay in its folder (in the configured folder, where one is), a URL's at its origin,
unless the operator names further roots or origins. Limits hold for each document with all its references.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from capdex_engine.catalog import Source
from capdex_engine.errors import DocumentError
from capdex_server.addresses import origin_of
from capdex_server.config import DOCUMENT_ENDINGS, DocumentLimits, SourceConfig
from capdex_server.pieces import Piece, read_file

Origin = tuple[str, str, int]
"""``(scheme, host, port)``."""
FetchPiece = Callable[[str, float, int], Piece]
"""``(url, seconds, bytes)`` -> what is there; raises DocumentError."""
Read = Callable[[Path, Path, int], Piece]
"""``(path as it is written, where it leads, bytes)`` -> what is there; raises DocumentError."""
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")


def allowed_origins(config: SourceConfig) -> frozenset[Origin]:
    """Return the origins that a source's documents, their references and redirects may lead to."""
    base = config.document_url or (config.location if config.is_url else None)
    found = (origin_of(url) for url in (base, *config.reference_origins))
    return frozenset(origin for origin in found if origin)


def allowed_roots(config: SourceConfig) -> tuple[Path, ...]:
    """Return the folders, links resolved, that a source's files may lie in; none for a URL."""
    if config.is_url:
        return ()
    location = Path(config.location)
    # A folder that has gone must not make its parent a root.
    is_file = location.is_file() or (location.suffix in DOCUMENT_ENDINGS and not location.is_dir())
    own = (location.parent, location.resolve().parent) if is_file else (location,)
    return tuple(path.resolve() for path in (*own, *config.reference_roots))


def inside(path: Path, roots: tuple[Path, ...]) -> Path | None:
    """Return where a path leads, links resolved; None where that is outside all roots."""
    try:
        real = path.resolve()
    except (OSError, ValueError, RuntimeError):  # a name with NUL or too long; links in a circle
        return None
    return real if any(real.is_relative_to(root) for root in roots) else None


def _read(_: Path, real: Path, max_bytes: int) -> Piece:
    return read_file(real, max_bytes)


class Retriever:
    """Reads what one document refers to, within its reach and its limits.

    Args:
        source: The document.
        config: Its source's configuration.
        fetch: Reads a URL.
        read: Reads a file.
        limits: What the document and all its references may bring.
        spent: Seconds that fetching the document itself took.
        clock: Seconds; only what waiting for fetches takes counts.
    """

    def __init__(
        self,
        source: Source,
        config: SourceConfig,
        fetch: FetchPiece,
        *,
        limits: DocumentLimits,
        clock: Callable[[], float],
        read: Read = _read,
        spent: float = 0.0,
    ) -> None:
        self._source = source
        self._config = config
        self._fetch, self._read = fetch, read
        self._limits, self._clock = limits, clock
        self._roots, self._origins = allowed_roots(config), allowed_origins(config)
        self._seconds = limits.total_timeout - spent
        self._bytes = limits.max_total_bytes - len(source.data)
        self._files = limits.max_files

    def __call__(self, uri: str) -> Piece:
        """Return the file of a URL, a ``file:`` URL or an absolute path.

        Raises:
            DocumentError: It is out of reach, over a limit, or cannot be read. The message shows nothing
                of a file that is refused, not even whether there is one.
        """
        self._files -= 1
        if self._files < 0:
            raise DocumentError(
                f"The document refers to more than {self._limits.max_files} files; [documents] max_files "
                "sets the limit.",
                location=uri,
            )
        room = min(self._limits.max_bytes, self._bytes)
        if room <= 0:
            raise self._too_much(uri)
        piece = self._get(uri, room)
        self._bytes -= len(piece.data)
        return piece

    def _get(self, uri: str, room: int) -> Piece:
        scheme = _SCHEME.match(uri)
        kind = scheme[1].lower() if scheme else "file"
        if kind in {"http", "https"}:
            beside = self._beside(uri)
            return self._over_http(uri, room) if beside is None else self._from_disk(beside, room)
        if kind != "file":
            raise DocumentError(
                f"The document refers to a {kind}: URL; files and http(s) are read.", location=uri
            )
        if not self._roots:
            raise DocumentError("A document from the web may not refer to local files.", location=uri)
        return self._from_disk(_local_path(uri), room)

    def _from_disk(self, path: Path, room: int) -> Piece:
        real = inside(path, self._roots)
        if real is None:
            raise DocumentError(
                "The document refers to a file outside its folder; the source's reference_roots may allow "
                "more folders.",
                location=str(path),
            )
        if real.suffix.lower() not in DOCUMENT_ENDINGS:
            endings = ", ".join(sorted(DOCUMENT_ENDINGS))
            raise DocumentError(
                f"The document refers to {path.name}; only files that end in {endings} are read.",
                location=str(path),
            )
        return self._read(path, real, room)

    def _over_http(self, uri: str, room: int) -> Piece:
        if origin_of(uri) not in self._origins:
            raise DocumentError(
                "The document refers to another origin, which is not read; the source's reference_origins "
                "may allow it.",
                location=uri,
            )
        if self._seconds <= 0:
            raise DocumentError(
                f"The document and what it refers to took more than {self._limits.total_timeout:g} seconds "
                "to fetch; [documents] total_timeout sets the limit.",
                location=uri,
            )
        started = self._clock()
        try:
            return self._fetch(uri, min(self._limits.timeout, self._seconds), room)
        finally:
            self._seconds -= self._clock() - started

    def _beside(self, uri: str) -> Path | None:
        """Return the file here that a URL below ``document_url``'s folder means, if there is one."""
        base = (self._config.document_url or "").rpartition("/")[0] + "/"
        if not self._roots or not self._config.document_url or not uri.startswith(base):
            return None
        path = Path(self._source.location).parent / unquote(uri.removeprefix(base))
        real = inside(path, self._roots)
        return path if real is not None and real.is_file() else None

    def _too_much(self, uri: str) -> DocumentError:
        return DocumentError(
            f"The document and the files it refers to hold more than {self._limits.max_total_bytes} bytes; "
            "[documents] max_total_bytes sets the limit.",
            location=uri,
        )


def _local_path(uri: str) -> Path:
    if not uri.lower().startswith("file:"):
        return Path(uri)
    parts = urlsplit(uri)
    if parts.netloc not in {"", "localhost"}:
        raise DocumentError("The document refers to a file of another machine.", location=uri)
    return Path(unquote(parts.path))
