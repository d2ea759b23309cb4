"""Configured sources -> what they hold -> the engine's :class:`Source` values."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from capdex_engine.catalog import Source, SourceSettings
from capdex_engine.errors import DocumentError
from capdex_engine.operation import SecurityScheme
from capdex_server.config import (
    DocumentLimits,
    OverrideConfig,
    SchemeConfig,
    SourceConfig,
)
from capdex_server.credentials import Credential, DefaultCredentials, HeldByAny, Secrets
from capdex_server.pieces import Piece, Stamp, ToolsPiece, read_file, stamp_of
from capdex_server.places import candidates, is_document, long_names, nothing_in, real_file
from capdex_server.reach import allowed_roots


@dataclass(slots=True)
class Loaded:
    """The documents of all sources, with what could not be read."""

    sources: list[Source] = field(default_factory=list)
    failures: dict[str, DocumentError] = field(default_factory=dict)
    """Configured source -> why it gave no document."""
    troubles: dict[str, DocumentError] = field(default_factory=dict)
    """Configured source -> what is wrong with its server, though its last good tools are there."""
    skipped: dict[str, list[str]] = field(default_factory=dict)
    """Configured source -> files of its folder that do not look like an API description."""
    credentials: dict[str, Mapping[str, Credential]] = field(default_factory=dict)
    """Engine source -> scheme -> credential."""
    tenants: dict[str, dict[str, Mapping[str, Credential]]] = field(default_factory=dict)
    """Tenant -> engine source -> scheme -> credential of its own."""
    owners: dict[str, str] = field(default_factory=dict)
    """Engine source -> configured source; a folder gives one engine source per document."""
    docs: dict[str, Doc] = field(default_factory=dict)
    """Engine source -> its document with what it refers to."""
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Engine source -> every name for it: its own, the configured one, and that with the file's name,
    which a folder's only document has not got for its own."""
    visible: dict[str, frozenset[str]] = field(default_factory=dict)
    """Engine source -> the tenants that it is for; one that is absent is for all."""


@dataclass(slots=True)
class Doc:
    """One document, with what it refers to."""

    long_name: str
    """The name that it has, or would have beside others of its folder."""
    location: str
    data: bytes
    document_url: str | None = None
    down: str | None = None
    """Of tools: why they cannot be called at present."""
    pieces: dict[str, Piece | DocumentError] = field(default_factory=dict)
    """URI or path -> what was there when the document was last read."""

    def named(self, name: str) -> Source:
        """Return it as the engine's source of this name, without settings."""
        return Source(name, self.location, self.data, self.document_url)

    def same_as(self, other: Doc) -> bool:
        """Return whether a catalog would be made from the same bytes."""
        mine = (self.long_name, self.location, self.document_url, self.down, self.data)
        return (
            mine == (other.long_name, other.location, other.document_url, other.down, other.data)
            and self.pieces.keys() == other.pieces.keys()
            and all(_same(piece, other.pieces[uri]) for uri, piece in self.pieces.items())
        )


@dataclass(slots=True)
class Reading:
    """What one configured source held when it was last read."""

    docs: list[Doc] = field(default_factory=list)
    error: DocumentError | None = None
    """Why the source as a whole gave nothing."""
    trouble: DocumentError | None = None
    """What is wrong with its server, though its last good tools are there."""
    unreadable: dict[str, DocumentError] = field(default_factory=dict)
    """Location -> why that file of a folder could not be read."""
    skipped: list[str] = field(default_factory=list)
    """Files of a folder that do not look like an API description."""
    seen: dict[Path, Stamp | None] = field(default_factory=dict)
    """Every file that was read or missed, the referenced ones too, with its stamp then."""
    listing: frozenset[Path] | None = None
    """The files that a folder held; None for anything but a folder."""
    spent: float = 0.0
    """Seconds that fetching the document took."""
    visible: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Location of a document -> the tenants that it is for; one that is absent is for all."""

    def same_as(self, other: Reading) -> bool:
        """Return whether a catalog would be made from the same bytes."""
        return (
            len(self.docs) == len(other.docs)
            and all(mine.same_as(its) for mine, its in zip(self.docs, other.docs, strict=True))
            and _said(self) == _said(other)
        )


def read_source(
    name: str, config: SourceConfig, page: Piece | DocumentError | None, limits: DocumentLimits
) -> Reading:
    """Read a source's documents; references are read when a catalog is made from them.

    Args:
        name: As it is configured.
        config: Its configuration.
        page: For a URL: the document, or why it could not be fetched.
        limits: The most that one file may hold.
    """
    reading = Reading()
    try:
        if isinstance(page, DocumentError):
            raise page
        if page is not None:
            url = config.document_url or config.location
            down = page.down if isinstance(page, ToolsPiece) else None
            reading.docs = [Doc(name, config.location, page.data, url, down)]
            reading.trouble = _trouble(page, config.location)
        elif (path := Path(config.location)).is_dir():
            _read_folder(reading, name, path.absolute(), config, limits)
        else:
            piece = _read_noted(reading, path.absolute(), path, limits.max_bytes)
            reading.docs = [Doc(name, str(path.absolute()), piece.data, config.document_url)]
    except DocumentError as error:
        reading.error = error
    return reading


def _trouble(page: Piece, location: str) -> DocumentError | None:
    """Return what is wrong with the server of tools that are there all the same."""
    if not isinstance(page, ToolsPiece):
        return None
    if page.down is not None:
        return DocumentError(
            f"{page.down} Its last good tools stay listed and cannot be called.", location=location
        )
    if page.problem is not None:
        return DocumentError(f"{page.problem} Its last good tools stay in use.", location=location)
    return None


def combine(
    readings: Mapping[str, Reading],
    configs: Mapping[str, SourceConfig],
    secrets: Secrets,
    defaults: DefaultCredentials,
) -> Loaded:
    """Return the documents of all sources; one that failed is noted.

    Args:
        readings: Configured source -> what it held.
        configs: Configured sources.
        secrets: Credentials that the configuration names; they win over the defaults.
        defaults: ``CAPDEX_CREDENTIAL_…`` variables.
    """
    loaded = Loaded()
    for name, config in configs.items():
        reading = readings[name]
        if reading.error is not None:
            loaded.failures[name] = reading.error
        if reading.trouble is not None:
            loaded.troubles[name] = reading.trouble
        for location, error in reading.unreadable.items():
            file = part_name(name, location)
            loaded.failures[file], loaded.names[file] = error, (file, name)
        if reading.skipped:
            loaded.skipped[name] = reading.skipped
        # Skills of a workspace are named alike whether or not other tenants have any.
        several = (
            config.kind == "skills" or len({*reading.unreadable, *(d.location for d in reading.docs)}) > 1
        )
        for doc in reading.docs:
            own = doc.long_name if several else name
            held = secrets.held("", name, defaults.of(name, doc.long_name))
            mine = {tenant: secrets.held(tenant, name) for tenant in config.tenant_credentials}
            held_by_any = HeldByAny((held, *mine.values()))
            loaded.sources.append(with_settings(doc.named(own), config, held_by_any, doc.down))
            loaded.credentials[own] = held
            for tenant, its in mine.items():
                loaded.tenants.setdefault(tenant, {})[own] = its
            loaded.owners[own] = name
            if doc.location in reading.visible:
                loaded.visible[own] = reading.visible[doc.location]
            loaded.docs[own] = doc
            loaded.names[own] = (own, *sorted({name, doc.long_name} - {own} - (configs.keys() - {name})))
    return loaded


def load_sources(
    configs: Mapping[str, SourceConfig],
    fetched: Mapping[str, Piece | DocumentError],
    secrets: Secrets,
    defaults: DefaultCredentials,
    limits: DocumentLimits | None = None,
) -> Loaded:
    """Read every source's documents at once; see :func:`read_source` and :func:`combine`."""
    limits = limits or DocumentLimits()
    readings = {
        name: read_source(name, config, fetched.get(name), limits) for name, config in configs.items()
    }
    return combine(readings, configs, secrets, defaults)


def part_name(source: str, location: str) -> str:
    """Return what a document of a source is called where it gives none."""
    return source if location == source else f"{source}.{Path(location).name}"


def changed_on_disk(reading: Reading, config: SourceConfig) -> dict[Path, Stamp | None]:
    """Return the files that are not as they were read, with their stamps now; empty when all are."""
    now = {path: stamp_of(path) for path in reading.seen}
    if reading.listing is not None:
        folder = Path(config.location).absolute()
        listing = frozenset(candidates(folder))
        now |= {path: stamp_of(path) for path in listing ^ reading.listing}
    return {path: stamp for path, stamp in now.items() if stamp != reading.seen.get(path, _NEVER)}


_NEVER: Final = (-1, -1, -1, -1)


def _same(mine: Piece | DocumentError, its: Piece | DocumentError) -> bool:
    if isinstance(mine, Piece) and isinstance(its, Piece):
        return mine.data == its.data
    return isinstance(mine, DocumentError) and isinstance(its, DocumentError) and str(mine) == str(its)


def _said(reading: Reading) -> tuple[object, ...]:
    errors = {location: str(error) for location, error in reading.unreadable.items()}
    trouble = str(reading.trouble)
    return (str(reading.error), trouble, errors, reading.skipped, reading.visible)


def _read_noted(reading: Reading, path: Path, real: Path, max_bytes: int) -> Piece:
    """Read a file and note its stamp under the path that leads to it, also when it is missing."""
    reading.seen[path] = stamp_of(path)
    piece = read_file(real, max_bytes)
    reading.seen[path] = piece.stamp
    return piece


def _read_folder(
    reading: Reading, name: str, folder: Path, config: SourceConfig, limits: DocumentLimits
) -> None:
    files = candidates(folder)
    reading.listing = frozenset(files)
    roots = allowed_roots(config)
    documents: dict[Path, bytes] = {}
    for path in files:
        try:
            data = _file_of_folder(reading, path, roots, limits)
        except DocumentError as error:
            reading.unreadable[str(path)] = error
            continue
        if is_document(data):
            documents[path] = data
        else:
            # Fragments that documents refer to; told so that a misspelt document is not missed.
            reading.skipped.append(str(path))
    if not documents and not reading.unreadable:
        raise nothing_in(folder, len(reading.skipped))
    names = long_names(name, folder, documents)
    reading.docs += [
        Doc(names[path], str(path), data, config.document_url) for path, data in documents.items()
    ]


def _file_of_folder(reading: Reading, path: Path, roots: tuple[Path, ...], limits: DocumentLimits) -> bytes:
    return _read_noted(reading, path, real_file(path, roots), limits.max_bytes).data


def with_settings(
    source: Source, config: SourceConfig, held: Container[str], down: str | None = None
) -> Source:
    """Return a document with what its source's configuration says.

    Args:
        source: The document.
        config: Of its source.
        held: Schemes with a credential.
        down: Of tools: why they cannot be called at present.
    """
    settings = replace(_settings(config, held), trusted=config.trusted, unavailable=down)
    return replace(source, settings=settings, kind=config.kind)


def _settings(config: SourceConfig, credentials: Container[str]) -> SourceSettings:
    return SourceSettings(
        include=config.include,
        exclude=config.exclude,
        hide_deprecated=config.hide_deprecated,
        server=config.server,
        server_variables=dict(config.server_variables),
        security_schemes={name: _scheme(name, one) for name, one in config.security_schemes.items()},
        security=config.security,
        credentials=credentials,
        overrides={key: _override(one) for key, one in config.overrides.items()},
    )


def _override(config: OverrideConfig) -> dict[str, Any]:
    fields: dict[str, Any] = {"keywords": list(config.keywords)} if config.keywords else {}
    return fields | ({"summary": config.summary} if config.summary is not None else {})


def _scheme(name: str, config: SchemeConfig) -> SecurityScheme:
    kind = (config.scheme or "unsupported") if config.type == "http" else config.type
    return SecurityScheme(name, kind, config.location, config.name, config.token_url)
