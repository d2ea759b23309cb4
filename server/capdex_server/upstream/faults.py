"""What goes wrong with an upstream MCP server, in words that a caller may read."""

from __future__ import annotations

from typing import Final

import mcp_types as types
from mcp.shared.exceptions import MCPError

from capdex_engine.catalog.texts import clean_text
from capdex_engine.errors import (
    AddressRefused,
    CapdexError,
    UpstreamError,
    UpstreamProtocolError,
    UpstreamTimeout,
    UpstreamUnreachable,
)

UNREACHABLE: Final = -31901
TIMEOUT: Final = -31902
REFUSED: Final = -31903
PROTOCOL: Final = -31904
"""Codes by which the HTTP transport says its own failures; no server's answer may use them."""
_CLOSED: Final = ("Connection closed", "SSE stream")
"""How the client says that a connection ended; servers use the same code for errors of all kinds."""
MAX_SAID: Final = 300
"""Characters of a server's own message."""
_KINDS: Final[dict[int, type[UpstreamError] | type[AddressRefused]]] = {
    UNREACHABLE: UpstreamUnreachable,
    TIMEOUT: UpstreamTimeout,
    REFUSED: AddressRefused,
    PROTOCOL: UpstreamProtocolError,
}


class Ended(UpstreamUnreachable):
    """The connection to a server has ended, and this is why."""


def fault_of(error: BaseException, source: str) -> CapdexError:
    """Return an error of a connection as one of ours; of a group, the first that says something.

    Args:
        error: What the client or a transport raised.
        source: Whose server it is.
    """
    if isinstance(error, BaseExceptionGroup):
        faults = [fault_of(one, source) for one in error.exceptions]
        known = [fault for fault in faults if not isinstance(fault, _Unknown)]
        return (known or faults)[0]
    if isinstance(error, CapdexError):
        return error
    if isinstance(error, MCPError):
        return _of_protocol(error, source)
    if isinstance(error, TimeoutError):
        return UpstreamTimeout(f"The MCP server of {source} did not answer in time.", retryable=True)
    if isinstance(error, FileNotFoundError):
        return UpstreamUnreachable(f"The program of the MCP server of {source} is not there.")
    if isinstance(error, PermissionError):
        return UpstreamUnreachable(f"The program of the MCP server of {source} may not be run.")
    if isinstance(error, OSError):
        return UpstreamUnreachable(f"The connection to the MCP server of {source} failed.", retryable=True)
    return _Unknown(f"The MCP server of {source} does not keep to the protocol.")


class _Unknown(UpstreamProtocolError):
    """Nothing is known but that it went wrong."""


def _of_protocol(error: MCPError, source: str) -> CapdexError:
    kind = _KINDS.get(error.code)
    if kind is not None:
        return kind(error.message, retryable=issubclass(kind, UpstreamError))
    if error.code == types.REQUEST_TIMEOUT:
        return UpstreamTimeout(f"The MCP server of {source} did not answer in time.", retryable=True)
    if error.code == types.CONNECTION_CLOSED and error.message.startswith(_CLOSED):
        return Ended(f"The connection to the MCP server of {source} ended.", retryable=True)
    said = clean_text(error.message, MAX_SAID) or "no reason"
    return UpstreamProtocolError(f"The MCP server of {source} answered with an error: {said} ({error.code}).")
