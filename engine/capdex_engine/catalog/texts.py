"""Third-party text made fit to be shown, embedded and handed to a model."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any, Final

from capdex_engine.catalog.digest import map_subschemas
from capdex_engine.documents import text_of

MAX_SUMMARY: Final = 300
MAX_DESCRIPTION: Final = 2000
MAX_TAG: Final = 100
_RAW: Final = 20
"""Characters read for each that is kept: enough for the markup of real texts, and an end to others."""

INVISIBLE: Final = re.compile(
    "[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Control, zero-width, bidirectional and tag characters: a reader cannot see them, a model can."""

_INLINE_TAG = re.compile(
    r"</?(?:a|abbr|b|code|em|i|kbd|s|small|span|strong|sub|sup|tt|u|var)(?:\s[^<>]*)?/?>", re.I
)
_TAG = re.compile(r"<!--.*?(?:-->|\Z)|</?[A-Za-z][^<>]*>", re.DOTALL)
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*(?:\s[^()]*)?\)")
_SPACE = re.compile(r"\s+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"'(\[])")
_LEADING_MARKUP = re.compile(r"^[#>*\s]+")


def clean_text(value: Any, limit: int) -> str:
    """Return text on one line, without markup or invisible characters, of at most ``limit`` characters."""
    if value is None or isinstance(value, (dict, list)):
        return ""
    text = INVISIBLE.sub("", text_of(value)[: limit * _RAW])
    text = html.unescape(_TAG.sub(" ", _INLINE_TAG.sub("", text))) if "<" in text or "&" in text else text
    text = _LINK.sub(r"\1", text) if "](" in text else text
    return clip(_SPACE.sub(" ", INVISIBLE.sub("", text)).strip(), limit)


def clip(text: str, limit: int) -> str:
    """Return ``text`` cut at a word where it is longer than ``limit``, with an ellipsis."""
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    at_word = head.rsplit(" ", 1)[0]
    return (at_word if len(at_word) > limit // 2 else head).rstrip(" ,;:") + "…"


def first_sentence(text: str) -> str:
    """Return the first sentence of a cleaned text."""
    return _SENTENCE.split(_LEADING_MARKUP.sub("", text), maxsplit=1)[0]


def clean_schema(schema: Any) -> Any:
    """Return ``schema`` with invisible characters removed from its texts (not from names or values)."""
    if not isinstance(schema, Mapping):
        return schema
    return {key: _clean_keyword(key, value) for key, value in schema.items()}


def _clean_keyword(key: str, value: Any) -> Any:
    if key in {"title", "description", "$comment"}:
        return INVISIBLE.sub("", value) if isinstance(value, str) else value
    return map_subschemas(key, value, clean_schema)
