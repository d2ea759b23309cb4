"""An HTTP request -> a :class:`Call` that fits the document, or the problem that lists every fault."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl

from jsonschema import ValidationError
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from capdex_server.demo.contract import Endpoint, Input
from capdex_server.demo.problems import Issue, Problem, invalid, invalid_field

MAX_FILE: Final = 4 * 1024 * 1024
"""Bytes of the largest document that can be uploaded."""
MAX_BODY: Final = MAX_FILE + 64 * 1024
"""Bytes of the largest request body, the form around a document included."""
INTEGER: Final = re.compile(r"-?[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Upload:
    """A file of a multipart form."""

    content: bytes
    file_name: str
    content_type: str


@dataclass(frozen=True, slots=True)
class Call:
    """One checked call of an operation."""

    values: Mapping[str, Any] = field(default_factory=dict)
    """Every parameter of the operation by name; defaults filled in, ``None`` where absent."""
    body: dict[str, Any] = field(default_factory=dict)
    """Top-level defaults filled in; empty without a body."""

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


async def read_call(endpoint: Endpoint, request: Request) -> Call:
    """Read and check parameters and body.

    Raises:
        Problem: 422 with every issue, 413 for too large a body, 415 for a foreign media type.
    """
    issues: list[Issue] = list(_unknown_parameters(endpoint, request))
    values = {spec.name: _parameter(spec, request, issues) for spec in endpoint.parameters}
    body = await _body(endpoint, request, issues)
    if issues:
        raise invalid(issues)
    return Call(values, body)


def _unknown_parameters(endpoint: Endpoint, request: Request) -> Iterator[Issue]:
    known = {spec.name for spec in endpoint.parameters if spec.location == "query"}
    for name in request.query_params:
        # An operation without query parameters ignores them, as most servers do.
        if known and name not in known:
            yield _issue("query", f"/{name}", f"{name!r} is no parameter of {endpoint.operation_id}")


def _parameter(spec: Input, request: Request, issues: list[Issue]) -> Any:
    sources: dict[str, Mapping[str, str]] = {
        "path": request.path_params,
        "query": request.query_params,
        "header": request.headers,
    }
    text = sources[spec.location].get(spec.name)
    if text is None:
        if spec.required:
            issues.append(_issue(spec.location, f"/{spec.name}", f"{spec.name} is required"))
        return spec.schema.get("default")
    value = from_text(text, spec.schema)
    issues.extend(_faults(spec, value, prefix=f"/{spec.name}"))
    return value


def from_text(text: str, schema: Mapping[str, Any]) -> Any:
    """Return the value that a text stands for; the text itself when it stands for none of its type."""
    match schema.get("type"):
        case "array":
            return [from_text(part, schema["items"]) for part in text.split(",")]
        case "integer":
            return int(text) if INTEGER.fullmatch(text) else text
        case "boolean":
            return {"true": True, "false": False}.get(text, text)
        case _:
            return text


async def _body(endpoint: Endpoint, request: Request, issues: list[Issue]) -> dict[str, Any]:
    if not endpoint.bodies:
        return {}
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    spec = endpoint.bodies.get(media_type)
    if spec is None:
        return await _without_media_type(endpoint, media_type, request, issues)
    if media_type == "multipart/form-data":
        return await _multipart(spec, request, issues)
    data = b"".join([chunk async for chunk in _limited(request)])
    return _form(spec, data, issues) if media_type.endswith("form-urlencoded") else _json(spec, data, issues)


async def _without_media_type(
    endpoint: Endpoint, media_type: str, request: Request, issues: list[Issue]
) -> dict[str, Any]:
    accepted, spec = next(iter(endpoint.bodies.items()))
    empty = not [chunk async for chunk in _limited(request) if chunk]
    if not empty:
        raise Problem(
            415, "unsupported-media-type", f"Send the body as {accepted}, not {media_type or 'nothing'}."
        )
    if spec.required:
        issues.append(_issue("body", "", f"a body of {accepted} is required"))
    return _with_defaults(spec, {})


def _json(spec: Input, data: bytes, issues: list[Issue]) -> dict[str, Any]:
    if not data and not spec.required:
        return _with_defaults(spec, {})
    try:
        # NaN and Infinity are no JSON, and SQLite would store them as null.
        value = json.loads(data, parse_constant=_refuse_constant)
        # Half a surrogate pair passes as JSON, and no database or answer can hold it.
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise invalid_field("", f"the body is no JSON: {error}") from None
    return _checked(spec, value, issues)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _form(spec: Input, data: bytes, issues: list[Issue]) -> dict[str, Any]:
    pairs = parse_qsl(data.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=100)
    return _checked(spec, _gathered(spec, pairs), issues)


def _gathered(spec: Input, pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for name, text in pairs:
        schema = spec.property(name)
        if schema.get("type") == "array":
            value.setdefault(name, []).append(from_text(text, schema["items"]))
        else:
            value[name] = from_text(text, schema)
    return value


async def _multipart(spec: Input, request: Request, issues: list[Issue]) -> dict[str, Any]:
    parser = MultiPartParser(request.headers, _limited(request), max_part_size=MAX_BODY)
    try:
        form = await parser.parse()
    except (MultiPartException, KeyError) as error:
        raise invalid_field("", f"the body is no multipart form: {error}") from None
    files = {name: await _upload(part) for name, part in form.multi_items() if _is_file(spec, name, part)}
    pairs = [(name, part) for name, part in form.multi_items() if isinstance(part, str) and name not in files]
    await form.close()
    # The validator sees an empty text where a file stands: its schema is about presence only.
    body = _checked(spec, {**_gathered(spec, pairs), **dict.fromkeys(files, "")}, issues)
    return {**body, **files}


def _is_file(spec: Input, name: str, part: UploadFile | str) -> bool:
    return isinstance(part, UploadFile) or spec.property(name).get("format") == "binary"


async def _upload(part: UploadFile | str) -> Upload:
    # A form may send a text file as a plain field.
    if isinstance(part, str):
        return Upload(part.encode(), "document.txt", "text/plain")
    content = await part.read()
    return Upload(content, part.filename or "document", part.content_type or "application/octet-stream")


async def _limited(request: Request) -> AsyncGenerator[bytes, None]:
    total = 0
    async for chunk in request.stream():
        total += len(chunk)
        if total > MAX_BODY:
            raise Problem(413, "too-large", f"A request body may have {MAX_BODY} bytes at most.")
        yield chunk


def _checked(spec: Input, value: Any, issues: list[Issue]) -> dict[str, Any]:
    issues.extend(_faults(spec, value))
    return _with_defaults(spec, value) if isinstance(value, dict) else {}


def _with_defaults(spec: Input, value: dict[str, Any]) -> dict[str, Any]:
    defaults = {
        name: schema["default"] for name, schema in spec.schema["properties"].items() if "default" in schema
    }
    return {**defaults, **value}


def _faults(spec: Input, value: Any, *, prefix: str = "") -> Iterator[Issue]:
    for error in spec.validator.iter_errors(value):
        yield _issue(spec.location, prefix + _pointer(error), error.message[:300])


def _pointer(error: ValidationError) -> str:
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in error.absolute_path)


def _issue(where: str, pointer: str, message: str) -> Issue:
    return {"in": where, "pointer": pointer, "message": message}
