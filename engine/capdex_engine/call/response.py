"""The upstream's response -> the result of execute_capability (SPEC section 3)."""

from __future__ import annotations

import base64
import codecs
import contextlib
import json
import re
from collections.abc import Sequence
from typing import Any, Final

from capdex_engine.call.budget import cut, size
from capdex_engine.call.masking import Masker
from capdex_engine.call.media import Kind, charset_of, kind_of
from capdex_engine.call.schema import depth
from capdex_engine.call.transport import Response
from capdex_engine.operation import Operation

_DROPPED: Final = frozenset(
    {
        "set-cookie",
        "set-cookie2",
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "trailers",
        "transfer-encoding",
        "upgrade",
    }
)
MAX_DEPTH: Final = 100
"""Levels of a JSON answer; what is nested deeper is passed on as text."""
_LARGE: Final = 128 * 1024
"""Bytes of a truncated answer that is not tried as JSON."""
_MOST: Final = 4
"""Bytes of a character, of which each takes at least one byte of an answer."""
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_PAGING: Final = re.compile(
    r"\$?(?:page|per_?page|page_?(?:size|number|no|token|limit|index)|limit|offset|cursor|next_?(?:page|token|cursor)"
    r"|page_?cursor|starting_after|ending_before|after|before|since|start|start_?(?:at|index|key)|skip(?:token)?|top|take"
    r"|count|first|last|size|rows|max_?(?:results|items|keys)|continue|continuation_?token|marker)",
    re.IGNORECASE,
)


def envelope(
    response: Response, masker: Masker, *, operation: Operation, max_bytes: int, extra: dict[str, Any]
) -> dict[str, Any]:
    """Return the result of a call.

    Args:
        response: What came back, content coding undone.
        masker: Holds the credentials of the call.
        operation: What was called, for the paging hint.
        max_bytes: Budget of the result, in bytes of JSON; headers count, and are never cut.
        extra: Further fields: ``elapsedMs``, ``revision``, ``drift``.
    """
    content_type = _content_type(response)
    result: dict[str, Any] = {
        "status": response.status,
        "contentType": content_type and masker.text(content_type),
        "headers": {name: masker.text(value) for name, value in shown_headers(response.headers).items()},
        "body": None,
        "bytes": len(response.body),
        "truncated": response.truncated,
        **extra,
    }
    body, cut_short = read_body(response, content_type, masker, max_bytes)
    result["truncated"] = result["truncated"] or cut_short
    if masker.hit:
        result["masked"] = True
    return _fitted(result, body, operation, max_bytes)


def shown_headers(headers: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return headers by lower-case name, repeated ones joined, without cookies and hop-by-hop ones."""
    named = [(name.lower(), value) for name, value in headers]
    hops = {hop.strip().lower() for name, value in named if name == "connection" for hop in value.split(",")}
    shown: dict[str, str] = {}
    for name, value in named:
        if name not in _DROPPED and name not in hops:
            shown[name] = f"{shown[name]}, {value}" if name in shown else value
    return shown


def read_body(
    response: Response, content_type: str | None, masker: Masker, max_bytes: int
) -> tuple[Any, bool]:
    """Return the body as JSON, text, ``{"base64"}`` or None, credentials masked, and whether it is cut.

    Of text and bytes only what may fit ``max_bytes`` is read, so that megabytes hold up no other call.

    JSON that is broken, nested beyond :data:`MAX_DEPTH`, or holds what cannot be said again in JSON over
    UTF-8 (NaN, numbers beyond all range, lone surrogates) is text.
    Without a content type the content decides. A content coding that was not undone leaves bytes.
    """
    data = response.body
    if not data:
        return None, False
    kind = Kind.JSON if content_type is None else kind_of(content_type)
    if _is_coded(response):
        kind = Kind.BINARY
    # What was cut at megabytes is no JSON any more, and finding that out holds up every other thread.
    if kind is Kind.JSON and not (response.truncated and len(data) > _LARGE):
        found, value = read_json(data, charset_of(content_type or ""))
        if found:
            return masker.json(value), False
    shown = data[: _MOST * max_bytes]
    cut_short = len(shown) < len(data)
    ragged = response.truncated or cut_short
    # What the cut left of a secret is in none of its forms.
    end = -masker.longest if cut_short and masker.longest else None
    if kind is Kind.BINARY or (content_type is None and not _is_utf8(shown, ragged)):
        return {"base64": base64.b64encode(masker.data(shown)[:end]).decode()}, cut_short
    return masker.text(read_text(shown, content_type, truncated=ragged))[:end], cut_short


def read_json(data: bytes, charset: str | None = None) -> tuple[bool, Any]:
    """Return whether ``data`` is JSON that can be passed on, and its value, integers of any size intact."""
    try:
        text: str | bytes = data.removeprefix(codecs.BOM_UTF8)
        if charset is not None and not charset.lower().startswith("utf"):
            text = data.decode(charset)
        value = json.loads(text, parse_float=_finite, parse_constant=_finite)
        if _SURROGATE.search(data):
            json.dumps(value, ensure_ascii=False).encode()
        return depth(value) <= MAX_DEPTH, value
    except (ValueError, RecursionError):
        return False, None


def read_text(data: bytes, content_type: str | None, *, truncated: bool = False) -> str:
    """Return text by its charset; without one UTF-8, or Latin-1 for what is not UTF-8.

    Args:
        data: The bytes.
        content_type: May name a charset.
        truncated: Whether the last character may be cut in two.
    """
    charset = charset_of(content_type or "")
    if charset is not None:
        with contextlib.suppress(ValueError):
            return data.decode(charset, "replace")
    if _is_utf8(data, truncated):
        return data.decode("utf-8-sig", "replace")
    return data.decode("latin-1")


def paging_hint(operation: Operation) -> str:
    """Say how to get what was left out, by the operation's own paging parameters."""
    paging = [name for name in operation.query_params if _PAGING.fullmatch(name.split("[")[-1].rstrip("]"))]
    if paging:
        names = ", ".join(paging[:6])
        return f"Only part of the answer is shown. Page through it with {names}, or raise maxBytes."
    return "Only part of the answer is shown. Ask for less, or raise maxBytes."


def _content_type(response: Response) -> str | None:
    return next((value for name, value in response.headers if name.lower() == "content-type" and value), None)


def _is_coded(response: Response) -> bool:
    codings = [
        value.strip().lower() for name, value in response.headers if name.lower() == "content-encoding"
    ]
    return any(coding not in {"", "identity"} for coding in codings)


def _finite(text: str) -> float:
    number = float(text)
    if number - number != 0:
        raise ValueError("not finite")
    return number


def _is_utf8(data: bytes, truncated: bool) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data, final=not truncated)
    except UnicodeDecodeError:
        return False
    return True


def _fitted(result: dict[str, Any], body: Any, operation: Operation, max_bytes: int) -> dict[str, Any]:
    whole = {**result, "body": body}
    if size(whole) <= max_bytes:
        return whole
    hint = paging_hint(operation)
    fitted = cut(body, max_bytes - size({**result, "hint": hint, "omitted": []}))
    result = {**result, "body": fitted.body, "hint": hint}
    if fitted.truncated:
        result["truncated"] = True
    elif fitted.omitted:
        result["omitted"] = list(fitted.omitted)
    return result
