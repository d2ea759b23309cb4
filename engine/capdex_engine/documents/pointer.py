"""JSON pointers (RFC 6901), as they stand in the fragment of a reference."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote


def tokens_of(pointer: str) -> list[str]:
    """Return the unescaped tokens of a pointer such as ``/paths/~1a``; ``""`` has none."""
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def pointer_of(tokens: Iterable[str]) -> str:
    """Return the pointer made of unescaped tokens; the inverse of :func:`tokens_of`."""
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)


def fragment_tokens(fragment: str) -> list[str]:
    """Return the tokens of a URI fragment: percent-decoded first, then unescaped."""
    return tokens_of(unquote(fragment))


def step(node: Any, token: str) -> Any:
    """Return the child of ``node`` that ``token`` names.

    Raises:
        LookupError: There is none.
    """
    if isinstance(node, dict):
        return node[token]
    if isinstance(node, list) and token.isascii() and token.isdigit() and len(token) < 10:
        return node[int(token)]
    raise LookupError(token)


def look_up(node: Any, tokens: Iterable[str]) -> Any:
    """Return what ``tokens`` lead to from ``node``.

    Raises:
        LookupError: Nothing stands there.
    """
    for token in tokens:
        node = step(node, token)
    return node
