"""What is sent, what comes back, and the callable in between that owns the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "QUERY"})
"""They change nothing (RFC 9110, section 9.2.1): an answer that broke off is of no use."""
REPEATABLE_METHODS: Final = SAFE_METHODS | {"PUT", "DELETE"}
"""Idempotent (RFC 9110, section 9.2.2): safe to repeat whether the first call took effect or not."""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, ready to send; it holds the credentials in clear."""

    method: str
    """Upper case."""
    url: str
    """Absolute, percent-encoded, without a fragment: send it as it stands."""
    headers: tuple[tuple[str, str], ...]
    """Names are unique; values may hold non-ASCII text, to be sent as UTF-8."""
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Response:
    """One HTTP response, with the content coding already undone."""

    status: int
    headers: tuple[tuple[str, str], ...]
    """In the order received; a name may come several times."""
    body: bytes
    truncated: bool
    """Whether the upstream had more than the bytes allowed."""


class Transport(Protocol):
    """Sends one request under the address policy of its source."""

    async def __call__(self, request: Request, *, source: str, timeout: float, max_bytes: int) -> Response:
        """Return the response, of at most ``max_bytes`` body bytes, within ``timeout`` seconds.

        Raises:
            UpstreamUnreachable: No connection could be made.
            UpstreamTimeout: No answer in time.
            UpstreamProtocolError: The answer is no valid HTTP.
            AddressRefused: The target's address is not allowed.
        """
        ...
