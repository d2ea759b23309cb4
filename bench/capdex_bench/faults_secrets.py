"""The credential that the bench plants, and how it is found again."""

from __future__ import annotations

import base64
import json
from typing import Final
from urllib.parse import quote

SECRET: Final = 'pl4nted/faults+"bench"=9d2c61f0a7e8'  # noqa: S105 - planted to be found
"""Holds what every encoding writes in its own way."""


def leaks(text: str) -> list[str]:
    """Return the forms of :data:`SECRET` that stand in a text."""
    return [form for form in _FORMS if form in text]


def _forms() -> list[str]:
    raw = SECRET.encode()
    plain = [
        SECRET,
        quote(SECRET),
        quote(SECRET, safe=""),
        base64.b64encode(raw).decode().rstrip("="),
        base64.urlsafe_b64encode(raw).decode().rstrip("="),
        raw.hex(),
    ]
    once = [json.dumps(form)[1:-1] for form in plain]
    # A tool's result holds JSON as a text inside JSON.
    return list(dict.fromkeys([*plain, *once, *(json.dumps(form)[1:-1] for form in once)]))


_FORMS: Final = _forms()
