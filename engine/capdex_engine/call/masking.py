"""Keeps credentials out of what comes back."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from typing import Any, Final

from capdex_engine.call.credentials import MASK

MIN_LENGTH: Final = 6
"""Shorter credentials are not masked: they would blot out innocent text."""
_WINDOW: Final = 16 * 1024
"""Bytes that are searched at once."""


class Masker:
    """Replaces exact occurrences of secrets: raw, percent-encoded, JSON-escaped, base64.

    A header's bytes are often read as Latin-1, here and at upstreams that echo them, so a secret beyond
    ASCII is replaced as it reads then, too.
    Base64 of a longer text that holds a secret, such as a whole header, loses the characters that hold it.
    ``hit`` tells whether anything was replaced; no form of a secret has more than ``longest`` bytes.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        known = {secret for secret in secrets if len(secret) >= MIN_LENGTH}
        long = sorted({*known, *map(_misread, known)}, key=len, reverse=True)
        forms = [form for secret in long for form in _forms(secret)]
        self._pattern = re.compile(b"|".join(forms), re.DOTALL) if forms else None
        # A character of four bytes has the most in base64 of which each character is percent-encoded.
        self.longest = max((16 * len(secret) + 18 for secret in long), default=0)
        self.hit = False

    def data(self, data: bytes) -> bytes:
        """Return ``data`` with every secret replaced."""
        found = self._spans(data)
        if not found:
            return data
        self.hit = True
        pieces, end = [], 0
        for start, stop in found:
            pieces += [data[end:start], MASK.encode()]
            end = stop
        return b"".join([*pieces, data[end:]])

    def _spans(self, data: bytes) -> list[tuple[int, int]]:
        """Return where secrets stand.

        A search holds up every other thread until it returns, so it looks at one window after another.
        """
        spans: list[tuple[int, int]] = []
        if self._pattern is None:
            return spans
        end = 0
        for window in range(0, len(data), _WINDOW):
            stop = window + _WINDOW
            for found in self._pattern.finditer(data, max(window, end), stop + self.longest):
                if found.start() >= stop:
                    break
                spans.append(found.span())
                end = found.end()
        return spans

    def text(self, text: str) -> str:
        """Return ``text`` with every secret replaced."""
        if self._pattern is None:
            return text
        return self.data(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def json(self, value: Any) -> Any:
        """Return a JSON value with every secret in its names and values replaced."""
        if self._pattern is None:
            return value
        # Every form that a string can hold a secret in is in the pattern as JSON writes it, too.
        written = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
        return self._json(value) if self._spans(written) else value

    def _json(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self._json(member) for key, member in value.items()}
        if isinstance(value, list):
            return [self._json(item) for item in value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            return MASK if self.text(json.dumps(value)) == MASK else value
        return value


def _misread(secret: str) -> str:
    """Return a secret as it reads where its bytes are taken for Latin-1."""
    return secret.encode("utf-8", "surrogatepass").decode("latin-1")


def _forms(secret: str) -> list[bytes]:
    """Return patterns of the forms of a secret, the longest first."""
    raw = secret.encode("utf-8", "surrogatepass")
    encoded = dict.fromkeys(form for shift in range(3) for form in _base64(raw, shift))
    escaped = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]} - {secret}
    return [
        *(re.escape(form.encode()) for form in escaped),
        *(_CHANGED.sub(_either, re.escape(form)) + b"(?:=|%3[dD]){0,2}" for form in encoded),
        # Each byte as it is or percent-encoded covers every encoder's own set of safe characters.
        b"".join(_byte(byte) for byte in raw),
    ]


def _base64(raw: bytes, shift: int) -> list[bytes]:
    """Return the base64 of ``raw``, standing ``shift`` bytes after the start of three; the alphabets' two.

    What stands beside it decides on the characters that it shares with it; these are left out, but for the
    last one where nothing follows.
    """
    padded = b"\0" * shift + raw
    first, whole = (0, 2, 3)[shift], len(padded) * 8 // 6
    texts = (base64.b64encode(padded), base64.urlsafe_b64encode(padded))
    ended = [text.rstrip(b"=")[first:] for text in texts]
    return [*ended, *(text[first:whole] for text in texts)]


_CHANGED: Final = re.compile(rb"\\?[+/]")
"""Base64's characters that encodings change, as a pattern holds them."""


def _either(found: re.Match[bytes]) -> bytes:
    return _byte(found[0][-1])


def _byte(byte: int) -> bytes:
    """Return a pattern of a byte as it is, percent-encoded, or a slash as some write it in JSON."""
    plain = {0x20: rb"[ +]", 0x2F: rb"\\?/"}.get(byte, re.escape(bytes([byte])))
    return b"(?:%s|(?i:%%%02x))" % (plain, byte)
