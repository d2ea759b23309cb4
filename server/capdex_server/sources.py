"""Configured sources -> the engine's :class:`Source` values, and what their references may read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from capdex_engine.catalog import Source, SourceSettings
from capdex_engine.errors import DocumentError
from capdex_engine.operation import SecurityScheme
from capdex_server.addresses import origin_of
from capdex_server.config import DOCUMENT_ENDINGS, OverrideConfig, SchemeConfig, SourceConfig, is_url
from capdex_server.credentials import Credential, DefaultCredentials, Held
from capdex_server.logs import get_logger
from capdex_server.places import Place, find_places, read_file

Fetch = Callable[[str, str], bytes]
"""``(url, source name)`` -> bytes; raises DocumentError."""
_log = get_logger(__name__)


@dataclass(slots=True)
class Loaded:
    """The documents of all sources, with what could not be read."""

    sources: list[Source] = field(default_factory=list)
    failures: dict[str, DocumentError] = field(default_factory=dict)
    """Configured source -> why it gave no document."""
    skipped: dict[str, list[str]] = field(default_factory=dict)
    """Configured source -> files of its folder that do not look like an API description."""
    credentials: dict[str, Mapping[str, Credential]] = field(default_factory=dict)
    """Engine source -> scheme -> credential."""
    owners: dict[str, str] = field(default_factory=dict)
    """Engine source -> configured source; a folder gives one engine source per document."""
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Engine source -> every name for it: its own, the configured one, and that with the file's name,
    which a folder's only document has not got for its own."""


def load_sources(
    configs: Mapping[str, SourceConfig],
    fetched: Mapping[str, bytes | DocumentError],
    explicit: Mapping[str, Mapping[str, Credential]],
    defaults: DefaultCredentials,
) -> Loaded:
    """Read every source's documents; one that fails is noted, and the others are still read.

    Args:
        configs: Configured sources.
        fetched: For sources with a URL: the document, or why it could not be fetched.
        explicit: Credentials that the configuration names; they win over the defaults.
        defaults: ``CAPDEX_CREDENTIAL_…`` variables.
    """
    loaded = Loaded()
    for name, config in configs.items():
        try:
            places, skipped = find_places(name, config, fetched.get(name))
        except DocumentError as error:
            loaded.failures[name] = error
            continue
        if skipped:
            # Fragments that documents refer to; said once so that a misspelt document is not missed.
            loaded.skipped[name] = skipped
            _log.info("source.not_documents", source=name, files=skipped)
        for place in places:
            try:
                held = Held(explicit.get(name, {}), defaults.of(name, place.long_name))
                loaded.sources.append(read_source(place, config, held))
            except DocumentError as error:
                loaded.failures[place.name] = error
                continue
            loaded.credentials[place.name] = held
            loaded.owners[place.name] = name
            others = {name, place.long_name} - {place.name} - (configs.keys() - {name})
            loaded.names[place.name] = (place.name, *sorted(others))
    return loaded


def read_source(place: Place, config: SourceConfig, held: Held) -> Source:
    """Return a document with its source's settings.

    Raises:
        DocumentError: It cannot be read.
    """
    return replace(place.read(), settings=_settings(config, held))


def retriever(source: Source, owner: str, config: SourceConfig, fetch: Fetch) -> Callable[[str], bytes]:
    """Return what reads the files that a document refers to.

    A file's references stay in its folder (in the configured folder, where one is); a URL's stay
    at its origin. With ``document_url`` a file's references are looked for beside the file first.
    """
    root = None if config.is_url else _root(config)
    remote = config.document_url or (config.location if config.is_url else None)

    def retrieve(uri: str) -> bytes:
        if not is_url(uri):
            if root is None:
                raise DocumentError("A document from the web may not refer to local files.", location=uri)
            return _read_inside(_local_path(uri), root)
        beside = _beside(uri, source, config)
        if beside is not None and root is not None and beside.is_file():
            return _read_inside(beside, root)
        if remote is None or origin_of(remote) != origin_of(uri):
            raise DocumentError("The document refers to another origin, which is not read.", location=uri)
        return fetch(uri, owner)

    return retrieve


def _root(config: SourceConfig) -> Path:
    path = Path(config.location).resolve()
    return path if path.is_dir() else path.parent


def _local_path(uri: str) -> Path:
    return Path(unquote(urlsplit(uri).path)) if uri.startswith("file:") else Path(uri)


def _beside(uri: str, source: Source, config: SourceConfig) -> Path | None:
    """Return the file that a URL below ``document_url``'s folder means on this machine."""
    base = (config.document_url or "").rpartition("/")[0] + "/"
    if config.is_url or not config.document_url or not uri.startswith(base):
        return None
    return Path(source.location).parent / unquote(uri.removeprefix(base))


def _read_inside(path: Path, root: Path) -> bytes:
    resolved = path.resolve()
    if not resolved.is_relative_to(root):
        raise DocumentError("The document refers to a file outside its folder.", location=str(path))
    if resolved.suffix.lower() not in DOCUMENT_ENDINGS:
        endings = ", ".join(sorted(DOCUMENT_ENDINGS))
        raise DocumentError(
            f"The document refers to {path.name}; only files that end in {endings} are read.",
            location=str(path),
        )
    return read_file(resolved)


def _settings(config: SourceConfig, credentials: Held) -> SourceSettings:
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
