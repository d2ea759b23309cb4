"""Compares a request with what a trap's ``expected.json`` says of it."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Iterator
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any
from urllib.parse import parse_qsl, urlsplit

_ESCAPE = re.compile(r"%[0-9a-fA-F]{2}")


def compare(case: dict[str, Any], actual: dict[str, Any]) -> list[str]:
    """Return the differences; none where the request is right.

    Args:
        case: One of ``cases``.
        actual: ``{"url", "headers", "body": bytes | None}``, or ``{"error": code}``.
    """
    if "error" in case:
        wanted = case["error"] if isinstance(case["error"], list) else [case["error"]]
        if actual.get("error") in wanted:
            return []
        return [f"expected the error {case['error']}, got {actual.get('error') or actual.get('url')}"]
    if "request" not in case:
        return []
    if "error" in actual:
        return [f"expected a request, got the error {actual['error']}"]
    want, free = case["request"], case.get("compare", "")
    return [
        *_url_faults(case, want, actual, free),
        *_header_faults(want, actual, free),
        *_body_faults(case, want, actual.get("body"), free),
        *_part_faults(want, actual),
    ]


def _normal(text: str) -> str:
    return _ESCAPE.sub(lambda match: match.group().upper(), text)


def _url_faults(
    case: dict[str, Any], want: dict[str, Any], actual: dict[str, Any], free: str
) -> Iterator[str]:
    # Where the body is text, `accept` lists bodies.
    right = [want["url"], *(() if "body_sent" in want else case.get("accept", ()))]
    if not any(_same_url(url, actual["url"], free) for url in right):
        yield f"the URL {actual['url']} is none of {right}"


def _same_url(wanted: str, got: str, free: str) -> bool:
    first, second = urlsplit(_normal(wanted)), urlsplit(_normal(got))
    if first._replace(query="") != second._replace(query=""):
        return False
    if "JSON" in free:
        return _decoded(first.query) == _decoded(second.query)
    if "order" in free:
        return sorted(first.query.split("&")) == sorted(second.query.split("&"))
    return first.query == second.query


def _decoded(query: str) -> list[tuple[str, str]]:
    return sorted((name, _canonical(value)) for name, value in parse_qsl(query, keep_blank_values=True))


def _canonical(value: str) -> str:
    try:
        return json.dumps(json.loads(value), sort_keys=True)
    except ValueError:
        return value


def _header_faults(want: dict[str, Any], actual: dict[str, Any], free: str) -> Iterator[str]:
    sent = {name.lower(): value for name, value in actual.get("headers", {}).items()}
    for name, value in want.get("headers", {}).items():
        got = sent.get(name.lower(), "")
        if not _same_header(name.lower(), value, got, free):
            yield f"the header {name}: {got!r} is not {value!r}"
    for line in want.get("no_headers", ()):
        name, _, value = line.partition(": ")
        if name.lower() in sent and value in ("", sent[name.lower()]):
            yield f"the header {line} must not be sent"


def _same_header(name: str, wanted: str, got: str, free: str) -> bool:
    if name == "cookie" and "order" in free:
        return sorted(got.split("; ")) == sorted(wanted.split("; "))
    if name == "content-type":
        return fnmatch.fnmatchcase(got.lower().replace("; ", ";"), wanted.lower().replace("; ", ";"))
    return got == wanted


def _body_faults(case: dict[str, Any], want: dict[str, Any], body: bytes | None, free: str) -> Iterator[str]:
    if want.get("no_body") and body:
        yield f"the body {body[:80]!r} must not be sent"
    if "body_json" in want and not _is_json(body, want["body_json"]):
        yield f"the body {body!r} is not the JSON {want['body_json']!r}"
    if "body_sent" in want:
        text = (body or b"").decode("utf-8", "replace")
        right = [want["body_sent"], *case.get("accept", ())]
        if not any(_same_text(each, text, free) for each in right):
            yield f"the body {text!r} is none of {right}"


def _is_json(body: bytes | None, wanted: Any) -> bool:
    try:
        return bool(json.loads(body or b"") == wanted)
    except ValueError:
        return False


def _same_text(wanted: str, got: str, free: str) -> bool:
    if "order" in free:
        return _same_url("http://x/?" + wanted, "http://x/?" + got, free)
    return _normal(wanted) == _normal(got)


def _part_faults(want: dict[str, Any], actual: dict[str, Any]) -> Iterator[str]:
    if "parts" not in want:
        return
    left = _parts(actual)
    for wanted in want["parts"]:
        found = next((part for part in left if _is_part(wanted, part)), None)
        if found is None:
            yield f"there is no part like {wanted}"
        else:
            left.remove(found)
    if left:
        yield f"the parts {[part['name'] for part in left]} are too many"


def _parts(actual: dict[str, Any]) -> list[dict[str, Any]]:
    sent = {name.lower(): value for name, value in actual.get("headers", {}).items()}
    head = f"Content-Type: {sent.get('content-type', '')}\r\n\r\n".encode()
    message = BytesParser(policy=HTTP).parsebytes(head + (actual.get("body") or b""))
    return [
        {
            "name": part.get_param("name", header="content-disposition"),
            "filename": part.get_filename(),
            "content_type": part.get_content_type(),
            "data": part.get_payload(decode=True),
        }
        for part in (message.iter_parts() if message.is_multipart() else ())
    ]


def _is_part(wanted: dict[str, Any], part: dict[str, Any]) -> bool:
    data = part["data"]
    return (
        part["name"] == wanted["name"]
        and ("filename" not in wanted or bool(part["filename"]))
        and part["content_type"] == wanted.get("content_type", part["content_type"])
        and ("text" not in wanted or data.decode("utf-8", "replace") == wanted["text"])
        and ("json" not in wanted or _is_json(data, wanted["json"]))
        and ("bytes_hex" not in wanted or data.hex() == wanted["bytes_hex"])
    )
