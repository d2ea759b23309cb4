"""Path template + base -> URL. The value of a path parameter stays inside its segment."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from capdex_engine.call.style import StyleError

_SLASH: Final = re.compile(r"/(?![^{}]*\})")
_EXPRESSION: Final = re.compile(r"\{([^{}]*)\}")
_LITERAL_KEPT: Final = "/:@!$&'()*+,;=?-._~"
_LENGTH: Final = re.compile(r":\d+$")
_AFTER_DOTS: Final = re.compile(r"[;?]")
"""What some servers cut a segment at before they look for dots."""
_LONE_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes, before its query parameters."""

    path: str
    """Absolute path, percent-encoded."""
    query: str
    """What the path template itself holds after ``?``."""


def variable(expression: str, known: Sequence[str]) -> tuple[str, bool]:
    """Return the parameter that a template expression names, and whether its value keeps slashes.

    ``{+name}``, ``{name*}`` and ``{name+}`` (RFC 6570, Google, AWS) are no OpenAPI, but published: where
    no parameter is called exactly so, they mean ``name`` with its slashes. ``{name:8}`` means ``name``.
    """
    if expression in known:
        return expression, False
    name = _LENGTH.sub("", expression)
    bare = name.removeprefix("+").rstrip("*+")
    return bare, bare != name


def expand(template: str, write: Callable[[str], str]) -> Target:
    """Fill a path template.

    Args:
        template: The key of ``paths``; a ``?query`` in it is kept, a ``#fragment`` is not sent.
        write: Expression -> percent-encoded text.

    Raises:
        StyleError: A value makes its segment ``.`` or ``..``, however encoded.
    """
    whole = "/".join(_segment(segment, write) for segment in _SLASH.split(template))
    path, _, query = whole.partition("#")[0].partition("?")
    return Target(path if path.startswith("/") else "/" + path, query)


def join(base: str, target: Target, pairs: Sequence[str]) -> str:
    """Return the URL: the path appended to the base's, queries after each other.

    Args:
        base: Absolute server URL; its path and query are kept, slashes at the joint made one.
        target: What :func:`expand` gave.
        pairs: Further ``name=value`` texts, percent-encoded.
    """
    split = urlsplit(base)
    path = literal(split.path.rstrip("/")) + target.path
    query = "&".join(part for part in (literal(split.query), target.query, *pairs) if part)
    return f"{split.scheme}://{split.netloc}{path}" + (f"?{query}" if query else "")


def literal(text: str) -> str:
    """Encode what a document wrote into a path or query: only what a URL cannot hold."""
    return _LONE_PERCENT.sub("%25", quote(text, safe=_LITERAL_KEPT + "%"))


def _segment(segment: str, write: Callable[[str], str]) -> str:
    if "{" not in segment:
        return _literal_with_fragment(segment)
    pieces = _EXPRESSION.split(segment)
    text = "".join(
        write(piece) if index % 2 else _literal_with_fragment(piece) for index, piece in enumerate(pieces)
    )
    if _is_dots(text):
        raise StyleError("must not make a path segment . or ..", *pieces[1::2])
    return text


def _literal_with_fragment(text: str) -> str:
    return "#".join(map(literal, text.split("#")))


def _is_dots(text: str) -> bool:
    """Tell whether a server, decoding once or often, could read a segment of ``text`` as dots."""
    return any(_AFTER_DOTS.split(_decoded(piece))[0] in {".", ".."} for piece in text.split("/"))


def _decoded(text: str) -> str:
    while (further := unquote(text)) != text:
        text = further
    return text
