"""Planted secrets: credentials of tests that must show up nowhere; see ``leaks.py`` for who looks."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote, quote_plus

PREFIX: Final = "pl4nted-"
"""Begins every planted secret, so that one look finds any of them in clear."""


def planted(purpose: str) -> str:
    """Return a secret for a purpose: always the same, and like no other text."""
    digest = hashlib.sha256(purpose.encode()).hexdigest()[:20]
    return f"{PREFIX}{digest}"


def forms(secret: str) -> set[str]:
    """Return what a secret may look like where it leaks."""
    raw = secret.encode()
    escaped = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    return {secret, quote(secret, safe=""), quote_plus(secret), raw.hex(), *escaped, *_coded([raw])}


def _coded(raws: Iterable[bytes]) -> set[str]:
    return {
        code(raw).decode().rstrip("=") for raw in raws for code in (base64.b64encode, base64.urlsafe_b64encode)
    }
