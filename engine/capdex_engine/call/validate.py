"""Arguments against their schemas: every issue at once.

Choices where the specifications leave room:

- ``null`` for an optional parameter counts as not given; for a required one it is an issue.
- A default is the receiver's business: it is never filled in, also not for a required parameter.
- ``null`` and ``{}`` as the body of an operation without a body count as not given, and so does ``null``
  as an optional body whose schema does not admit it.
- Headers that are not the caller's (Accept, Content-Type, Authorization, Host, ...) and parameters that
  carry a credential of the operation are ignored: never an issue, never sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from capdex_engine.call.body import BodyError, file_bytes, is_file_for
from capdex_engine.call.explain import did_you_mean, explain
from capdex_engine.call.issues import MAX_ISSUES, Issue, issue
from capdex_engine.call.lenient import repair
from capdex_engine.call.media import Choice, Kind, NoChoice, choose, has_base64, is_file
from capdex_engine.call.patterns import StepBudget
from capdex_engine.call.schema import SchemaChecker, TooDeep
from capdex_engine.call.tool import MISSING, Call
from capdex_engine.operation import SLOTS, Location, MediaType, OperationDetails, Parameter, Schema

IGNORED_HEADERS: Final = frozenset(
    {
        "accept",
        "content-type",
        "authorization",
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "proxy-authorization",
        "proxy-connection",
        "accept-encoding",
    }
)
"""Lower case. The first three by OpenAPI's rule, the others belong to the connection."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """What fits, by the documented names; a body that fits has its media type."""

    values: Mapping[Location, Mapping[str, Any]]
    body: Any = MISSING
    choice: Choice | None = None


def check(details: OperationDetails, call: Call, checker: SchemaChecker) -> tuple[Arguments, list[Issue]]:
    """Check a call's arguments; return those that fit, and the issues of the others.

    Raises:
        UnusableSchema: A schema refers to something that does not exist.
    """
    issues: list[Issue] = []
    with StepBudget():
        values = {location: _slot(location, details, call, checker, issues) for location in SLOTS}
        body, choice = _body(details, call, checker, issues)
    return Arguments(values, body, choice), issues


def ignored(details: OperationDetails, location: Location, name: str) -> bool:
    """Tell whether a parameter is not the caller's to set."""
    if location == "header" and name.lower() in IGNORED_HEADERS:
        return True
    schemes = {scheme for requirement in details.security for scheme in requirement}
    return any(
        scheme.location == location and _same_name(location, scheme.parameter_name or "", name)
        for key, scheme in details.security_schemes.items()
        if key in schemes and scheme.kind == "apiKey"
    )


def _same_name(location: Location, known: str, given: str) -> bool:
    return known.lower() == given.lower() if location == "header" else known == given


def _slot(
    location: Location, details: OperationDetails, call: Call, checker: SchemaChecker, issues: list[Issue]
) -> dict[str, Any]:
    parameters = [each for each in details.parameters if each.location == location]
    given = _by_documented_name(location, parameters, call.values.get(location, {}), issues)
    known = {each.name for each in parameters}
    for name in given:
        if name not in known and not ignored(details, location, name):
            issues.append(_unknown(location, name, details, suggest=len(issues) < MAX_ISSUES))
    fitting: dict[str, Any] = {}
    for parameter in parameters:
        if ignored(details, location, parameter.name):
            continue
        value = given.get(parameter.name)
        if value is not None:
            _value(parameter, value, checker, fitting, issues)
        elif parameter.required or location == "path":
            issues.append(issue(location, (parameter.name,), "required", "is required"))
    return fitting


def _by_documented_name(
    location: Location, parameters: list[Parameter], given: Mapping[str, Any], issues: list[Issue]
) -> dict[str, Any]:
    """Header names are matched in any casing; one that is there twice so is an issue."""
    if location != "header":
        return dict(given)
    documented = {each.name.lower(): each.name for each in parameters}
    named: dict[str, Any] = {}
    for name, value in given.items():
        known = documented.get(name.lower(), name)
        if known in named and name.lower() not in IGNORED_HEADERS:
            issues.append(issue(location, (name,), "additionalProperties", f"is {known}, which is given too"))
        named[known] = value
    return named


def _unknown(location: Location, name: str, details: OperationDetails, *, suggest: bool) -> Issue:
    """Say that a name is unknown, and in which slot it would be right or which other is near."""
    if not suggest:
        return issue(location, (name,), "additionalProperties", "is not known")
    for other in details.parameters:
        if other.name == name and other.location != location:
            problem = f"is not known here; it belongs in {SLOTS[other.location]}"
            return issue(location, (name,), "additionalProperties", problem)
    known = [each.name for each in details.parameters if each.location == location]
    return issue(location, (name,), "additionalProperties", "is not known" + did_you_mean(name, known))


def _value(
    parameter: Parameter, value: Any, checker: SchemaChecker, fitting: dict[str, Any], issues: list[Issue]
) -> None:
    try:
        value, errors = repair(value, lambda each: checker.errors(parameter.schema, each), scalars=True)
    except TooDeep as error:
        issues.append(issue(parameter.location, (parameter.name,), "maxDepth", str(error)))
        return
    if errors:
        issues += explain(errors, parameter.location, (parameter.name,))
    else:
        fitting[parameter.name] = value


def _body(
    details: OperationDetails, call: Call, checker: SchemaChecker, issues: list[Issue]
) -> tuple[Any, Choice | None]:
    body = details.body
    if body is None:
        if call.body is not MISSING and call.body not in (None, {}):
            issues.append(issue("body", (), "additionalProperties", "is not taken by this capability"))
        return MISSING, None
    if call.body is MISSING:
        if body.required:
            issues.append(issue("body", (), "required", "is required"))
        return MISSING, None
    try:
        choice = choose(body.media_types or (_UNSAID,), call.content_type, call.body)
    except NoChoice as error:
        issues.append(issue("contentType", (), "enum", str(error)))
        return MISSING, None
    return _checked_body(body.required, choice, call.body, checker, issues), choice


_UNSAID: Final = MediaType("application/json", None)
"""What a body without any documented media type is sent as."""


def _checked_body(
    required: bool, choice: Choice, value: Any, checker: SchemaChecker, issues: list[Issue]
) -> Any:
    try:
        fitted, errors = repair(
            value, lambda each: checker.errors(*_for_schema(choice, each, checker)), scalars=False
        )
    except (TooDeep, BodyError) as error:
        path = error.path if isinstance(error, BodyError) else ()
        issues.append(issue("body", path, "maxDepth" if isinstance(error, TooDeep) else "format", str(error)))
        return MISSING
    if errors and value is None and not required:
        return MISSING
    if errors and isinstance(fitted, str) and choice.kind in _FREE_TEXT and _only_type(errors):
        return fitted
    issues += explain(errors, "body")
    return MISSING if errors else fitted


_FREE_TEXT: Final = {Kind.XML, Kind.TEXT, Kind.YAML, Kind.LINES, Kind.BINARY}
"""Text in these stands for a structure that the schema describes."""


def _only_type(errors: list[Any]) -> bool:
    return any(not error.absolute_path and error.validator in {"type", "anyOf", "oneOf"} for error in errors)


def _for_schema(choice: Choice, value: Any, checker: SchemaChecker) -> tuple[Schema, Any]:
    """Return the schema of a body, and the value with files as the text that schemas know them by."""
    schema = True if choice.media.schema is None else choice.media.schema
    if choice.kind in _FREE_TEXT and (is_file(value) if choice.kind is Kind.BINARY else has_base64(value)):
        file_bytes(value)
        return True, value
    if choice.kind in {Kind.FORM, Kind.MULTIPART} and isinstance(value, dict):
        fields = {name: checker.property_schema(schema, name) for name in value}
        return schema, {name: _file_as_text(value[name], fields[name], checker) for name in value}
    return schema, value


def _file_as_text(member: Any, schema: Schema, checker: SchemaChecker) -> Any:
    merged = checker.merged(schema)
    if isinstance(member, list):
        items = merged.get("items", True)
        return [_file_as_text(item, items, checker) for item in member]
    if not is_file_for(member, merged):
        return member
    return member["text"] if "text" in member else member["base64"]
