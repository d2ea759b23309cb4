"""Operation + arguments -> a request, first without and then with its credentials."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from capdex_engine.call.body import BodyError, Written, write_body
from capdex_engine.call.credentials import Placement
from capdex_engine.call.issues import Issue, issue
from capdex_engine.call.schema import SchemaChecker
from capdex_engine.call.style import StyleError, cookie_pairs, encode, header_value, path_value, query_pairs
from capdex_engine.call.tool import MISSING
from capdex_engine.call.transport import Request
from capdex_engine.call.url import Target, expand, join, variable
from capdex_engine.call.validate import Arguments
from capdex_engine.operation import Location, Operation, OperationDetails, Parameter


class UndeclaredVariable(ValueError):
    """The path template holds a variable that no parameter declares."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A request but for its credentials; all texts are as on the wire."""

    method: str
    base_url: str
    target: Target
    query: tuple[str, ...]
    headers: tuple[tuple[str, str], ...]
    cookies: tuple[str, ...]
    body: Written | None


def draft(
    operation: Operation, details: OperationDetails, arguments: Arguments, checker: SchemaChecker
) -> tuple[Draft, list[Issue]]:
    """Write the arguments; return the draft, and an issue for each that cannot be written.

    The draft is good for sending only if ``arguments`` are complete and there are no issues.

    Raises:
        UndeclaredVariable: The path cannot be filled, whatever the arguments.
    """
    issues: list[Issue] = []
    target = _target(operation.path, details, arguments, issues)
    given = _unshadowed(details, arguments, checker, issues)
    query = _each("query", details, given, issues, query_pairs)
    headers = _each("header", details, given, issues, _header)
    cookies = _each("cookie", details, given, issues, cookie_pairs)
    cookies += [pair for name, value in headers if name.lower() == "cookie" for pair in _split_cookie(value)]
    drafted = Draft(
        method=operation.method,
        base_url=details.base_url or "",
        target=target,
        query=tuple(query),
        headers=(
            ("Accept", _accept(details)),
            *((name, value) for name, value in headers if name.lower() != "cookie"),
        ),
        cookies=tuple(cookies),
        body=_body(arguments, checker, issues),
    )
    return drafted, issues


def complete(drafted: Draft, placements: Sequence[Placement], *, masked: bool = False) -> Request:
    """Add credentials to a draft; what the caller gave under their names gives way.

    Args:
        drafted: A draft without issues.
        placements: The credentials.
        masked: Write ``***`` for each instead.
    """
    query = _without(drafted.query, placements, "query")
    cookies = _without(drafted.cookies, placements, "cookie")
    headers = {name.lower(): (name, value) for name, value in drafted.headers}
    for each in placements:
        value = each.masked if masked else each.value
        if each.location == "header":
            headers[each.name.lower()] = (each.name, value)
        else:
            (query if each.location == "query" else cookies).append(f"{_pair_name(each)}={value}")
    if drafted.body is not None:
        headers["content-type"] = ("Content-Type", drafted.body.content_type)
    if cookies:
        headers["cookie"] = ("Cookie", "; ".join(cookies))
    return Request(
        method=drafted.method,
        url=join(drafted.base_url, drafted.target, query),
        headers=tuple(headers.values()),
        body=None if drafted.body is None else drafted.body.data,
    )


def show(request: Request) -> dict[str, Any]:
    """Return a request as JSON: ``{method, url, headers, body}``, or ``bodyBase64`` for what is no text."""
    shown: dict[str, Any] = {
        "method": request.method,
        "url": request.url,
        "headers": dict(request.headers),
    }
    if request.body is None:
        return {**shown, "body": None}
    try:
        return {**shown, "body": request.body.decode()}
    except UnicodeDecodeError:
        return {**shown, "bodyBase64": base64.b64encode(request.body).decode()}


def _pair_name(placement: Placement) -> str:
    return encode(placement.name) if placement.location == "query" else placement.name


def _without(pairs: Iterable[str], placements: Sequence[Placement], location: str) -> list[str]:
    names = {each.name for each in placements if each.location == location}
    # Servers read names without the blanks and quotes around them.
    return [pair for pair in pairs if unquote(pair.partition("=")[0]).strip(' \t"') not in names]


def _target(template: str, details: OperationDetails, arguments: Arguments, issues: list[Issue]) -> Target:
    parameters = {each.name: each for each in details.parameters if each.location == "path"}
    given = arguments.values.get("path", {})

    def write(expression: str) -> str:
        name, slashes = variable(expression, list(parameters))
        if name not in parameters:
            raise UndeclaredVariable(f"its path has the variable {name!r}, which no parameter declares")
        if name not in given:
            return "-"
        try:
            return path_value(parameters[name], given[name], slashes=slashes)
        except StyleError as error:
            raise StyleError(str(error), expression) from None

    try:
        return expand(template, write)
    except StyleError as error:
        names = dict.fromkeys(variable(each, list(parameters))[0] for each in error.names)
        issues += [issue("path", (name,), "format", str(error)) for name in names]
        return Target("/", "")


_Values = Mapping[Location, Mapping[str, Any]]


def _unshadowed(
    details: OperationDetails, arguments: Arguments, checker: SchemaChecker, issues: list[Issue]
) -> _Values:
    """Return the values but for exploded objects with a member that would pass for another parameter.

    Such a member would reach the upstream under the other's name, past the other's schema.
    """
    kept = {location: dict(values) for location, values in arguments.values.items()}
    for parameter in details.parameters:
        value = kept.get(parameter.location, {}).get(parameter.name)
        for name, sent_as in _stray_names(parameter, value, checker):
            if any(
                each.name == sent_as and each.location == parameter.location for each in details.parameters
            ):
                path = (parameter.name, name)
                issues.append(issue(parameter.location, path, "format", "is the name of another parameter"))
                kept[parameter.location].pop(parameter.name, None)
    return kept


def _stray_names(parameter: Parameter, value: Any, checker: SchemaChecker) -> list[tuple[str, str]]:
    """Return the members that an object brings under names of their own, which its schema does not list.

    Each is its name in the object, and the one that it is sent under.
    """
    deep = parameter.style == "deepObject"
    loose = deep or (parameter.explode and parameter.style in {"form", "cookie"})
    if not (loose and parameter.content_type is None and isinstance(value, dict)):
        return []
    return [
        (name, f"{parameter.name}[{name}]" if deep else name)
        for name in value
        if name != parameter.name and checker.property_schema(parameter.schema, name) is True
    ]


def _each(
    location: Location, details: OperationDetails, values: _Values, issues: list[Issue], write: Any
) -> list[Any]:
    given = values.get(location, {})
    written: list[Any] = []
    for parameter in details.parameters:
        if parameter.location == location and parameter.name in given:
            try:
                written += write(parameter, given[parameter.name])
            except StyleError as error:
                issues.append(issue(location, (parameter.name,), "format", str(error)))
    return written


def _header(parameter: Parameter, value: Any) -> list[tuple[str, str]]:
    text = header_value(parameter, value)
    return [] if text is None else [(parameter.name, text)]


def _split_cookie(value: str) -> list[str]:
    return [pair.strip() for pair in value.split(";") if pair.strip()]


def _body(arguments: Arguments, checker: SchemaChecker, issues: list[Issue]) -> Written | None:
    if arguments.choice is None or arguments.body is MISSING:
        return None
    try:
        return write_body(arguments.choice, arguments.body, checker)
    except BodyError as error:
        issues.append(issue("body", error.path, "format", str(error)))
    return None


def _accept(details: OperationDetails) -> str:
    """Ask for the documented types of success, JSON by default, and take anything."""
    types = [
        answer["contentType"]
        for status, answer in details.responses.items()
        if str(status).startswith("2") and isinstance(answer.get("contentType"), str)
    ]
    plain = [
        each for each in dict.fromkeys(types) if each.isascii() and each.isprintable() and "," not in each
    ]
    wanted = [each for each in plain[:4] if "*" not in each] or ["application/json"]
    return ", ".join([*wanted, "*/*;q=0.5"])
