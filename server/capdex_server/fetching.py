"""One document over HTTP: conditional, its redirects within its source's origins, within limits."""

from __future__ import annotations

import email.utils
import time
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import quote, urljoin

import anyio

from capdex_engine.call import Request, Response
from capdex_engine.errors import AddressRefused, CapdexError, DocumentError
from capdex_server.addresses import origin_of
from capdex_server.config import DocumentLimits
from capdex_server.pieces import FetchFailed, Piece
from capdex_server.reach import Origin

MAX_REDIRECTS: Final = 3
MAX_RETRY_AFTER: Final = 3600.0
"""Seconds; a server that asks to be left alone for longer is asked again then."""
Send = Callable[[Request], Awaitable[Response]]
"""Sends one request and follows no redirect; raises CapdexError."""
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_PRINTABLE: Final = "".join(map(chr, range(33, 127)))
_ACCEPT: Final = ("Accept", "application/json, application/yaml, */*;q=0.5")


async def fetch_document(
    send: Send, url: str, *, allowed: frozenset[Origin], since: Piece | None, limits: DocumentLimits
) -> Piece:
    """Return what a URL gives.

    Redirects are followed, at most three, each to the URL's own or an allowed origin.

    Args:
        send: Sends one request; it checks every hop's address.
        url: The document's.
        allowed: Origins beside the URL's own.
        since: What the URL gave before; returned itself when its server says that nothing has changed.
        limits: Bytes, and seconds for all hops together.

    Raises:
        FetchFailed: It cannot be had now.
        DocumentError: It may not be had.
    """
    try:
        with anyio.fail_after(limits.timeout):
            answer = await _last_answer(send, url, allowed, since)
    except TimeoutError:
        raise FetchFailed(
            f"The document cannot be fetched within {limits.timeout:g} seconds.", location=url
        ) from None
    except DocumentError:
        raise
    except AddressRefused as error:
        raise DocumentError(f"The document cannot be fetched: {error.message}", location=url) from None
    except CapdexError as error:
        raise FetchFailed(f"The document cannot be fetched: {error.message}", location=url) from None
    if answer.status == 304 and since is not None:
        return since
    _check(answer, url, limits)
    return Piece(answer.body, None, _header(answer, "etag"), _header(answer, "last-modified"))


def redirect_target(request: Request, response: Response) -> str | None:
    """Return the URL that a redirect leads to; None for any other answer, and where it is none."""
    location = _header(response, "location") if response.status in _REDIRECTS else None
    if not location:
        return None
    # A header's bytes were read as Latin-1.
    ascii_location = quote(location.encode("latin-1", "replace"), safe=_PRINTABLE)
    try:
        return urljoin(request.url, ascii_location)
    except ValueError:
        return None


async def _last_answer(send: Send, url: str, allowed: frozenset[Origin], since: Piece | None) -> Response:
    conditions = (
        ("If-None-Match", since.etag if since else None),
        ("If-Modified-Since", since.last_modified if since else None),
    )
    headers = (_ACCEPT, *((name, value) for name, value in conditions if value))
    request = Request("GET", url, headers, None)
    for _ in range(MAX_REDIRECTS + 1):
        answer = await send(request)
        target = redirect_target(request, answer)
        if target is None:
            return answer
        if origin_of(target) not in {origin_of(url), *allowed} - {None}:
            raise DocumentError(
                "The document has moved to another origin. Configure its new URL, or allow the origin in the "
                "source's reference_origins.",
                location=url,
            )
        request = Request("GET", target, headers, None)
    raise FetchFailed(f"The document's URL redirects more than {MAX_REDIRECTS} times.", location=url)


def _check(answer: Response, url: str, limits: DocumentLimits) -> None:
    if answer.status != 200:
        raise FetchFailed(
            f"The document cannot be fetched: its server answered {answer.status}.",
            location=url,
            retry_after=_retry_after(answer),
        )
    if answer.truncated:
        raise DocumentError(
            f"The document is larger than {limits.max_bytes} bytes; [documents] max_bytes sets the limit.",
            location=url,
        )


def _retry_after(answer: Response) -> float | None:
    """Return the seconds of ``Retry-After``, which may be a date, within bounds; None without one."""
    text = _header(answer, "retry-after") or ""
    if text.strip().isascii() and text.strip().isdigit():
        return min(float(text), MAX_RETRY_AFTER)
    try:
        wanted = email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None
    return min(max(wanted - time.time(), 0.0), MAX_RETRY_AFTER)


def _header(answer: Response, name: str) -> str | None:
    return next((value for key, value in answer.headers if key.lower() == name), None)
