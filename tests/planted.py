"""Planted secrets: credentials of tests that must show nowhere; ``leaks.py`` looks for them all the time."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Final
from urllib.parse import quote

PREFIX: Final = "pl4ntedSecret"
"""Begins every planted secret. It looks alike in clear, in a URL and in JSON, so one look finds them all."""


def planted(purpose: str, suffix: str = "") -> str:
    """Return a secret for a purpose: always the same, and like no other text.

    Args:
        purpose: Names it.
        suffix: Ends it, for characters that encodings write in their own ways.
    """
    return f"{PREFIX}{hashlib.sha256(purpose.encode()).hexdigest()[:16]}{suffix}"


def forms(secret: str) -> set[str]:
    """Return what one secret may look like where it leaks."""
    raw = secret.encode()
    coded = {code(raw).decode().rstrip("=") for code in (base64.b64encode, base64.urlsafe_b64encode)}
    escaped = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    return {secret, quote(secret, safe=""), raw.hex(), *escaped, *coded}


def _anywhere_in_base64(text: bytes) -> list[str]:
    """Return the base64 of a text at each of the three places that it may stand at."""
    found = []
    for shift in range(3):
        whole = base64.b64encode(b"\0" * shift + text)
        found.append(whole[(0, 2, 3)[shift] : (shift + len(text)) * 8 // 6].decode())
    return found


TRACES: Final = (PREFIX, PREFIX.encode().hex(), *_anywhere_in_base64(PREFIX.encode()))
_TRACE: Final = re.compile("|".join(TRACES))
_BYTES: Final = re.compile("|".join(TRACES).encode())
_ESCAPED: Final = re.compile(r"%([0-9A-Fa-f]{2})|\\u00([0-9A-Fa-f]{2})")


def trace_in(text: str | bytes) -> str | None:
    """Return the place around a planted secret in any form, or None."""
    if isinstance(text, bytes):
        if not (_BYTES.search(text) or b"%70" in text or b"\\u0070" in text):
            return None
        text = text.decode("utf-8", "replace")
    found = _TRACE.search(text)
    if found is None and ("%70" in text or "\\u0070" in text):
        # Every letter escaped, as nobody needs to but a server may.
        text = _ESCAPED.sub(lambda one: chr(int(one[1] or one[2], 16)), text)
        found = _TRACE.search(text)
    return text[max(0, found.start() - 60) : found.end() + 20] if found else None
