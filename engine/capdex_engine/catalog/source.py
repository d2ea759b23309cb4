"""What a catalog is built from: one document each, and how its operator wants it read."""

from __future__ import annotations

import os
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from capdex_engine.errors import DocumentError
from capdex_engine.operation import SecurityRequirement, SecurityScheme


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """A source's configuration, as far as its catalog entries depend on it."""

    include: tuple[str, ...] = ()
    """Globs (``*``, ``?``, ``[...]``) over ``tag:``, ``path:``, ``method:`` and ``name:``, the last where
    no kind is given. With any given, an operation must match one of them."""
    exclude: tuple[str, ...] = ()
    """Globs as in ``include``; they win over it."""
    hide_deprecated: bool = False
    server: str | None = None
    """Absolute URL instead of every server that the document names; may hold ``{variables}``."""
    server_variables: Mapping[str, str] = field(default_factory=dict)
    security_schemes: Mapping[str, SecurityScheme] = field(default_factory=dict)
    """Schemes beside the document's; of one name, this one counts."""
    security: tuple[SecurityRequirement, ...] | None = None
    """Alternatives for every operation of the source; ``None`` leaves the document's."""
    credentials: Container[str] = frozenset()
    """Names of the schemes for which the server holds a credential."""
    trusted: bool = False
    """Whether the read-only hints of a server's tools count."""
    unavailable: str | None = None
    """Why the server of the tools cannot be called at present."""
    overrides: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """``METHOD /path`` or operationId -> ``{"summary": str, "keywords": [str]}``."""


@dataclass(frozen=True, slots=True)
class Source:
    """One document under the name that the operator gave it.

    Args:
        name: Unique among the catalog's sources.
        location: File path or URL, for messages and as base of relative references.
        data: The document's bytes; of kind ``mcp``, :func:`~capdex_engine.tools.document.tool_document`'s.
        document_url: Where the document was fetched from; relative servers and references resolve
            against it.
        kind: What the document is: an API description; the tools of an MCP server, whose location is
            ``mcp://NAME``; or the skills of one (:meth:`capdex_engine.skills.SkillIndex.document`).
    """

    name: str
    location: str
    data: bytes
    document_url: str | None = None
    settings: SourceSettings = field(default_factory=SourceSettings)
    kind: Literal["openapi", "mcp", "skills"] = "openapi"

    @property
    def base(self) -> str:
        """What relative references in the document resolve against."""
        return self.document_url or self.location

    @classmethod
    def from_file(
        cls, path: Path, *, document_url: str | None = None, settings: SourceSettings | None = None
    ) -> Source:
        """Read a file; the source is named like it, without the last ending.

        Raises:
            DocumentError: The file is missing or cannot be read.
        """
        try:
            data = path.read_bytes()
        except OSError as error:
            raise DocumentError(
                f"The document {path.name} cannot be read: {error.strerror}. Check its path and permissions.",
                location=str(path),
            ) from error
        return cls(path.stem, os.path.abspath(path), data, document_url, settings or SourceSettings())
