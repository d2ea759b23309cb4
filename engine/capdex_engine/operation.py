"""The frozen values that every room speaks.

An :class:`Operation` is small and stays in memory for the life of its catalog. Whatever is large
(schemas, media types, servers, security) is an :class:`OperationDetails`, kept as bytes and parsed
on demand by :meth:`capdex_engine.catalog.Catalog.details`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Literal

MCP_METHOD: Final = "MCP"
"""Stands for the method of a tool of an upstream MCP server."""
SKILL_METHOD: Final = "SKILL"
"""Stands for the method of a remote skill, whose path is its ``skill://`` URL."""

Location = Literal["path", "query", "header", "cookie"]
Schema = Mapping[str, Any] | bool
SecurityRequirement = Mapping[str, tuple[str, ...]]
"""Scheme name -> scopes. All schemes of one requirement are needed together; ``{}`` needs none."""

SLOTS: Mapping[Location, str] = {
    "path": "pathParams",
    "query": "queryParams",
    "header": "headerParams",
    "cookie": "cookieParams",
}
"""Parameter location -> the key of execute_capability's argument object that holds its values."""


class Availability(StrEnum):
    """Whether an operation can be called (SPEC section 1)."""

    READY = "ready"
    NO_SERVER = "no_server"
    """In search, with ``executable: false``: the document names no usable server."""
    NO_CREDENTIAL = "no_credential"
    """In search, with ``executable: false``: a credential is missing."""
    KEPT_OUT = "kept_out"
    """Not callable by structure: out of search, listed in the load report."""
    LEFT_OUT = "left_out"
    """Left out by the source's settings: the same, and unknown to every caller."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of one source, without its schemas.

    Parameter name tuples hold required names first, then the document's order.
    """

    name: str
    """Unique in the catalog, ``[A-Za-z0-9_.-]{1,64}``."""
    source: str
    method: str = ""
    """Upper case; empty only for rows of a plain search catalog."""
    path: str = ""
    """The template as it stands in the document."""
    operation_id: str | None = None
    summary: str = ""
    description: str = ""
    """Cleaned text; at most 2,000 characters."""
    tags: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    """Search words added by the source's settings."""
    api_title: str = ""
    path_params: tuple[str, ...] = ()
    query_params: tuple[str, ...] = ()
    header_params: tuple[str, ...] = ()
    cookie_params: tuple[str, ...] = ()
    required_params: tuple[tuple[Location, str], ...] = ()
    has_body: bool = False
    body_required: bool = False
    body_properties: tuple[str, ...] = ()
    """Names of the body's top-level properties, at most 40."""
    deprecated: bool = False
    schema_digest: str = ""
    """``sha256:`` + hex over everything a caller depends on (SPEC section 1)."""
    availability: Availability = Availability.READY
    reason: str | None = None
    """Why it is not ready, and which setting would cure it."""
    key: str = ""
    """Identity outside the catalog (``METHOD path``, or the row id of a plain search catalog)."""
    details_id: int = -1
    """Where its source's store holds the details."""
    harmless: bool = False
    """Whether a source that is trusted says that it changes nothing."""

    @property
    def executable(self) -> bool:
        """Whether a call can be sent as things are configured."""
        return self.availability is Availability.READY

    @property
    def read_only(self) -> bool:
        """Whether it cannot change anything: GET, HEAD, and tools of which a trusted source says so."""
        return self.method in {"GET", "HEAD"} or self.harmless

    @property
    def is_skill(self) -> bool:
        """Whether it is a remote skill; a document's own method of that name has another path."""
        return self.method == SKILL_METHOD and self.path.startswith("skill://")

    def params(self, location: Location) -> tuple[str, ...]:
        """Return the parameter names of one location, required ones first."""
        return {
            "path": self.path_params,
            "query": self.query_params,
            "header": self.header_params,
            "cookie": self.cookie_params,
        }[location]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter, with OpenAPI's defaults for style and explode already filled in."""

    name: str
    location: Location
    required: bool
    schema: Schema
    """JSON Schema 2020-12; references are ``#/$defs/KEY`` into the details' definitions."""
    style: str
    explode: bool
    allow_reserved: bool = False
    content_type: str | None = None
    """Set for a parameter with ``content``: its value is serialised by this media type."""
    description: str = ""
    delimiter: str | None = None
    """Swagger 2's ``tsv`` (a tab), which no OpenAPI 3 style expresses."""


@dataclass(frozen=True, slots=True)
class MediaType:
    """One media type of a request body."""

    content_type: str
    """As the document writes it, parameters and wildcards included."""
    schema: Schema | None
    encoding: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Property name -> OpenAPI Encoding Object, for form and multipart bodies."""


@dataclass(frozen=True, slots=True)
class Body:
    """A request body; ``media_types`` holds the preferred one first."""

    required: bool
    media_types: tuple[MediaType, ...]
    description: str = ""


@dataclass(frozen=True, slots=True)
class SecurityScheme:
    """A security scheme of the document or of the source's configuration."""

    name: str
    kind: Literal["apiKey", "basic", "bearer", "oauth2", "openIdConnect", "unsupported"]
    location: Literal["header", "query", "cookie"] | None = None
    """Where an ``apiKey`` goes."""
    parameter_name: str | None = None
    """Under which name an ``apiKey`` goes."""
    token_url: str | None = None
    """Of the client-credentials flow, absolute."""


@dataclass(frozen=True, slots=True)
class OperationDetails:
    """What a call and a full description need of one operation."""

    parameters: tuple[Parameter, ...] = ()
    body: Body | None = None
    definitions: Mapping[str, Schema] = field(default_factory=dict)
    """Every ``$defs`` entry that parameters and body reach, cycles kept as references."""
    base_url: str | None = None
    """Absolute, variables filled in, no slash at the end of its path, a query kept; ``None`` when the
    document names no usable server."""
    security: tuple[SecurityRequirement, ...] = ()
    """Alternatives in order of preference; empty means that no credential is needed."""
    security_schemes: Mapping[str, SecurityScheme] = field(default_factory=dict)
    responses: Mapping[str, Any] = field(default_factory=dict)
    """Status -> ``{"description", "contentType"?, "schema"?}``, self-contained schemas."""
