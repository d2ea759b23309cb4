"""Media types: what they are, and which one a call uses."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, Final

from capdex_engine.operation import MediaType

_MEDIA_TYPE: Final = re.compile(r"[\w!#$%&'*+.^`|~-]+/[\w!#$%&'*+.^`|~-]+(?:\s*;[ -~]*)?", re.ASCII)
_CHARSET: Final = re.compile(r";\s*charset\s*=\s*\"?([\w.:-]+)", re.IGNORECASE | re.ASCII)
_NO_CHARSETS: Final = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape"})
"""Codecs of Python's that are for host names and source code; the first two take minutes for 100 KB."""


class Kind(StrEnum):
    """How bodies of a media type are written and read."""

    JSON = "json"
    LINES = "lines"
    """One JSON text a line."""
    FORM = "form"
    MULTIPART = "multipart"
    XML = "xml"
    YAML = "yaml"
    TEXT = "text"
    BINARY = "binary"


_KINDS: Final[tuple[tuple[str, Kind], ...]] = (
    ("*/json", Kind.JSON),
    ("*+json", Kind.JSON),
    ("application/*ndjson", Kind.LINES),
    ("application/*jsonl", Kind.LINES),
    ("application/jsonlines", Kind.LINES),
    ("application/x-www-form-urlencoded", Kind.FORM),
    ("multipart/*", Kind.MULTIPART),
    ("*/xml", Kind.XML),
    ("*+xml", Kind.XML),
    ("*/*yaml", Kind.YAML),
    ("text/*", Kind.TEXT),
    ("application/*javascript", Kind.TEXT),
    ("application/graphql", Kind.TEXT),
    ("application/sql", Kind.TEXT),
    ("application/jwt", Kind.TEXT),
    ("*", Kind.BINARY),
)


def essence(content_type: str) -> str:
    """Return ``type/subtype`` in lower case, without parameters."""
    return content_type.partition(";")[0].strip().lower()


def kind_of(content_type: str) -> Kind:
    """Return how bodies of this media type are written and read."""
    name = essence(content_type)
    return next(kind for pattern, kind in _KINDS if fnmatchcase(name, pattern))


def charset_of(content_type: str) -> str | None:
    """Return the charset parameter, if it names one that Python knows."""
    found = _CHARSET.search(content_type)
    if found is None:
        return None
    try:
        "".encode(found[1])
    except (LookupError, ValueError):
        return None
    return None if codecs.lookup(found[1]).name in _NO_CHARSETS else found[1]


@dataclass(frozen=True, slots=True)
class Choice:
    """The media type that a body is sent by."""

    media: MediaType
    content_type: str
    """What goes on the wire, wildcards replaced."""

    @property
    def kind(self) -> Kind:
        """How the body is written."""
        return kind_of(self.content_type)


class NoChoice(ValueError):
    """The wanted content type is not the document's; the text completes "contentType ..."."""


def choose(media_types: Sequence[MediaType], wanted: str | None, body: Any) -> Choice:
    """Choose the media type of a body: the wanted one, else the document's preferred one.

    A wildcard of the document takes any content type that it covers; without a wanted one, ``*/*`` and
    ``application/*`` mean JSON (octet-stream for a file), ``text/*`` plain text.

    Raises:
        NoChoice: The wanted one is none of the document's, or a wildcard needs one and there is none.
    """
    if wanted is None:
        media = media_types[0]
        return Choice(media, _concrete(media.content_type, body))
    if not _MEDIA_TYPE.fullmatch(wanted) or "*" in essence(wanted):
        raise NoChoice(f"must be a media type; known are {_names(media_types)}")
    if _misleads(wanted):
        raise NoChoice("must name a charset that the body can be written in; leave it out for UTF-8")
    for media in sorted(media_types, key=lambda each: "*" in essence(each.content_type)):
        if fnmatchcase(essence(wanted), essence(media.content_type)):
            return Choice(media, _spelled(media.content_type, wanted))
    raise NoChoice(f"must be one of {_names(media_types)}")


def _misleads(wanted: str) -> bool:
    """Tell whether a caller's charset is not the one that the body would be written in."""
    if not re.search(r";\s*charset\s*=", wanted, re.IGNORECASE):
        return False
    charset = charset_of(wanted)
    if kind_of(wanted) in {Kind.TEXT, Kind.XML, Kind.YAML}:
        return charset is None
    return charset is None or codecs.lookup(charset).name not in {"utf-8", "ascii"}


def _spelled(documented: str, wanted: str) -> str:
    """Keep the document's spelling, with its parameters, unless the caller adds own parameters."""
    return wanted if "*" in documented or ";" in wanted else documented


def _concrete(content_type: str, body: Any) -> str:
    name = essence(content_type)
    if "*" not in name:
        return content_type
    if name in {"*/*", "*", "application/*"}:
        return "application/octet-stream" if has_base64(body) else "application/json"
    if name == "text/*":
        return "text/plain"
    if name.endswith("+json"):
        return "application/json"
    raise NoChoice(f"is needed here: one of the kind {content_type}")


def _names(media_types: Sequence[MediaType]) -> str:
    return ", ".join(media.content_type for media in media_types[:10])


_FILE_MEMBERS: Final = {"base64", "text", "filename", "contentType"}


def has_base64(value: Any) -> bool:
    """Tell whether a value is a file by its looks alone: ``{"base64": str, "filename"?, "contentType"?}``."""
    return is_file(value) and "base64" in value


def is_file(value: Any) -> bool:
    """Tell whether a value is a file where one is expected: ``text`` may stand for ``base64``."""
    return (
        isinstance(value, dict)
        and value.keys() <= _FILE_MEMBERS
        and ("base64" in value) != ("text" in value)
        and all(isinstance(member, str) for member in value.values())
    )
