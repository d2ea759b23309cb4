"""Every error of capdex.

::

    CapdexError
    ├── InvalidRequest            invalid_request               400   (ValueError)
    ├── UnknownCapability         unknown_capability            404   (LookupError)
    ├── NotExecutable             not_executable                409
    ├── InvalidArguments          invalid_capability_arguments  422   (ValueError)
    ├── MissingCredentials        missing_credentials           424
    ├── RateLimited               rate_limited                  429
    ├── UpstreamError
    │   ├── UpstreamUnreachable   upstream_unreachable          502   (ConnectionError)
    │   ├── UpstreamTimeout       upstream_timeout              504   (TimeoutError)
    │   └── UpstreamProtocolError upstream_protocol_error       502
    ├── AddressRefused            address_refused               403   (PermissionError)
    ├── InternalError             internal_error                500
    ├── DocumentError             document_error                —     (ValueError)
    ├── ToolCatalogError          MCP_CATALOG_…                 —     (ValueError)
    ├── ModelError                model_error                   —     (RuntimeError)
    └── ConfigurationError        configuration_error           —     (ValueError)

The first ten are what a caller of the two tools may meet; the last four end a start-up, a
listing or a command. Messages say what to do next, and never hold a credential or a stack trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import urlsplit, urlunsplit


class CapdexError(Exception):
    """Base of every error that capdex raises on purpose.

    Args:
        message: One or two sentences that say what is wrong and what to do next.
        capability: Name of the capability concerned, where there is one.
        details: Further fields of the error object; ``None`` values are left out.
    """

    code: ClassVar[str] = "internal_error"
    http_status: ClassVar[int] = 500

    def __init__(
        self, message: str, *, capability: str | None = None, retryable: bool = False, **details: Any
    ) -> None:
        super().__init__(message)
        self.message = message
        self.capability = capability
        self.retryable = retryable
        self.details = {key: value for key, value in details.items() if value is not None}

    def __str__(self) -> str:
        return self.message

    def payload(self) -> dict[str, Any]:
        """Return the error object of SPEC section 4: ``{"error": {"code", "message", ...}}``."""
        error: dict[str, Any] = {"code": self.code, "message": self.message, "retryable": self.retryable}
        if self.capability is not None:
            error["capability"] = self.capability
        return {"error": {**error, **self.details}}


class InvalidRequest(CapdexError, ValueError):
    """The tool's own input is wrong; ``issues`` lists every fault."""

    code = "invalid_request"
    http_status = 400

    def __init__(self, message: str, *, issues: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(message, issues=[dict(issue) for issue in issues])


class UnknownCapability(CapdexError, LookupError):
    """No such capability for this caller; ``suggestions`` are permitted near names."""

    code = "unknown_capability"
    http_status = 404

    def __init__(self, name: str, *, suggestions: Sequence[str] = ()) -> None:
        near = f" Did you mean {', '.join(suggestions)}?" if suggestions else ""
        super().__init__(
            f"There is no capability named {name!r}.{near} Use search_capabilities to find one.",
            capability=name,
            suggestions=list(suggestions),
        )


class NotExecutable(CapdexError):
    """The capability is known and permitted, but cannot be called; ``reason`` says why."""

    code = "not_executable"
    http_status = 409

    def __init__(self, capability: str, reason: str) -> None:
        super().__init__(f"{capability} cannot be called: {reason}", capability=capability, reason=reason)


class InvalidArguments(CapdexError, ValueError):
    """Arguments do not fit; every issue at once, with the schema to repair them by.

    Args:
        issues: ``{in, pointer, keyword, message}`` each.
        arguments_schema: Schema of the whole argument object, the body included.
        drift: Whether the caller's ``schemaDigest`` was out of date.
        extra: Further fields, such as ``changes`` and the new ``schemaDigest`` under drift.
    """

    code = "invalid_capability_arguments"
    http_status = 422

    def __init__(
        self,
        capability: str,
        issues: Sequence[Mapping[str, Any]],
        arguments_schema: Mapping[str, Any],
        *,
        drift: bool = False,
        **extra: Any,
    ) -> None:
        count = len(issues)
        super().__init__(
            f"The arguments do not fit {capability} ({count} issue{'s' if count != 1 else ''}): "
            + "; ".join(str(issue["message"]) for issue in list(issues)[:3])
            + ". Repair them by argumentsSchema and call again.",
            capability=capability,
            issues=[dict(issue) for issue in issues],
            argumentsSchema=dict(arguments_schema),
            drift=drift,
            **extra,
        )


class MissingCredentials(CapdexError):
    """The source needs a credential that the server does not hold; ``scheme`` names it."""

    code = "missing_credentials"
    http_status = 424

    def __init__(self, capability: str, scheme: str, message: str) -> None:
        super().__init__(message, capability=capability, scheme=scheme)


class RateLimited(CapdexError):
    """A quota is used up; ``retryAfter`` in whole seconds (at least 1), ``scope`` names the quota."""

    code = "rate_limited"
    http_status = 429

    def __init__(self, message: str, *, retry_after: int, scope: str, capability: str | None = None) -> None:
        super().__init__(
            message, capability=capability, retryable=True, retryAfter=max(1, retry_after), scope=scope
        )


class UpstreamError(CapdexError):
    """The call failed before a response; ``retryable`` only where repeating it is safe."""

    http_status = 502


class UpstreamUnreachable(UpstreamError, ConnectionError):
    """No connection to the upstream could be made."""

    code = "upstream_unreachable"


class UpstreamTimeout(UpstreamError, TimeoutError):
    """The upstream did not answer in time."""

    code = "upstream_timeout"
    http_status = 504


class UpstreamProtocolError(UpstreamError):
    """The upstream's answer is no valid HTTP."""

    code = "upstream_protocol_error"


class AddressRefused(CapdexError, PermissionError):
    """The target's address is not allowed (SPEC section 5)."""

    code = "address_refused"
    http_status = 403


class InternalError(CapdexError):
    """A bug of ours; ``referenceId`` finds it in the log."""

    code = "internal_error"

    def __init__(self, reference_id: str) -> None:
        super().__init__(
            f"capdex met an internal error. Report the reference {reference_id} to its operator.",
            referenceId=reference_id,
        )


def shown_location(location: str) -> str:
    """Return a document's location as it may be shown: a URL without the secrets that it may hold.

    User, password and query are masked; a path is returned as it is.
    """
    if "://" not in location:
        return location
    try:
        parts = urlsplit(location)
    except ValueError:
        return f"{location.partition('://')[0]}://***"
    host = f"***@{parts.netloc.rpartition('@')[2]}" if "@" in parts.netloc else parts.netloc
    return urlunsplit(parts._replace(netloc=host, query="***" if parts.query else ""))


class DocumentError(CapdexError, ValueError):
    """A document cannot be read; ``location`` and ``pointer`` say where.

    Args:
        location: File or URL of the document.
        pointer: JSON pointer into it, where one is known.
    """

    code = "document_error"

    def __init__(self, message: str, *, location: str | None = None, pointer: str | None = None) -> None:
        super().__init__(message, location=location and shown_location(location), pointer=pointer)


class ToolCatalogError(CapdexError, ValueError):
    """The tools of an upstream MCP server break a limit of SPEC section 6; ``code`` says which.

    Args:
        code: ``MCP_CATALOG_…``; :mod:`capdex_engine.tools` lists them.
        message: Names the tool where it is the fault of one.
    """

    code = "MCP_CATALOG_INVALID_PAGE"

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code  # type: ignore[misc] # one class, since what is done about them is the same


class ModelError(CapdexError, RuntimeError):
    """The encoder's files are missing, altered, or give other vectors than pinned."""

    code = "model_error"


class ConfigurationError(CapdexError, ValueError):
    """A setting is wrong; the message names it and says what is right."""

    code = "configuration_error"
