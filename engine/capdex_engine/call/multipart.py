"""multipart/form-data (RFC 7578)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """One part; without a content type it is plain text."""

    name: str
    data: bytes
    content_type: str | None = None
    filename: str | None = None


def write_multipart(parts: Sequence[Part], boundary: str | None = None) -> tuple[bytes, str]:
    """Return the body and its boundary.

    Args:
        parts: In the order to send them.
        boundary: Without one it is derived from the content, so that equal parts give equal bytes.
    """
    blocks = [_head(part) + part.data for part in parts]
    if boundary is None:
        boundary = "capdex-" + hashlib.sha256(b"\0".join(blocks)).hexdigest()[:40]
    line = b"--" + boundary.encode()
    return b"".join(line + b"\r\n" + block + b"\r\n" for block in blocks) + line + b"--\r\n", boundary


def _head(part: Part) -> bytes:
    head = f'Content-Disposition: form-data; name="{_escape(part.name)}"'
    if part.filename is not None:
        head += f'; filename="{_escape(part.filename)}"'
    if part.content_type is not None:
        head += f"\r\nContent-Type: {_escape(part.content_type)}"
    return head.encode() + b"\r\n\r\n"


def _escape(text: str) -> str:
    """Escape as browsers do (WHATWG HTML): a name can neither end its quotes nor its line."""
    escaped = text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
    return "".join(letter for letter in escaped if letter >= " " and letter != "\x7f")
