"""The parameters of one operation: merged, resolved, with OpenAPI's defaults filled in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from capdex_engine.catalog.context import Reading, flaw, plain_child
from capdex_engine.catalog.definitions import Translated
from capdex_engine.catalog.texts import clean_text, clip
from capdex_engine.documents import DELIMITER, INNER_FORMAT, Resolved, text_of
from capdex_engine.operation import Location, Parameter

MAX_PARAMETER_TEXT: Final = 1000
"""Characters of a parameter's description that are kept."""
MAX_NAME: Final = 1000
"""Characters of a parameter's name."""
MAX_TOLD: Final = 300
"""Characters of names in a reason."""
LOCATIONS: Final = frozenset({"path", "query", "header", "cookie"})
IGNORED_HEADERS: Final = frozenset({"accept", "content-type", "authorization"})
"""Header parameters of these names are ignored by OpenAPI's rule."""
TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
"""What RFC 9110 allows as a method or a header's name, and RFC 6265 as a cookie's."""
STYLES: Final[Mapping[str, frozenset[str]]] = {
    "path": frozenset({"simple", "label", "matrix"}),
    "query": frozenset({"form", "spaceDelimited", "pipeDelimited", "deepObject"}),
    "header": frozenset({"simple"}),
    "cookie": frozenset({"form", "cookie"}),
}
"""Location -> the styles it may have."""

INNER_FORMAT_REMARK: Final = "The collectionFormat of the arrays inside this array is not supported."

_DEFAULT_STYLE: Final = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}
_VARIABLE = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class ReadParameter:
    """A parameter and the definitions that its schema refers to."""

    parameter: Parameter
    keys: frozenset[str]


def read_parameters(reading: Reading, item: Resolved, operation: Resolved, path: str) -> list[ReadParameter]:
    """Return the parameters of an operation in the document's order, the path item's first.

    Raises:
        DocumentError: One cannot be read, or the path's variables and the parameters do not agree.
    """
    merged: dict[tuple[str, str], Resolved] = {}
    for owner in (item, operation):
        merged.update(_level(reading, owner))
    found = [_parameter(reading, declared) for declared in merged.values()]
    _check_variables(path, (read.parameter for read in found), operation)
    return found


def variables_of(path: str) -> list[str]:
    """Return the names of a path template's variables, RFC 6570 operators removed."""
    return [re.sub(r"^[+#./;?&]|(?:[*+]|:\d+)$", "", name) for name in _VARIABLE.findall(path)]


def parameter_fields(parameter: Parameter) -> list[Any]:
    """Return the parameter as JSON values for the store."""
    return [getattr(parameter, name) for name in Parameter.__slots__]


def digest_fields(parameter: Parameter, schema_digest: str) -> list[Any]:
    """Return what a caller depends on, as JSON values."""
    return [
        parameter.name,
        parameter.location,
        parameter.required,
        parameter.style,
        parameter.explode,
        parameter.allow_reserved,
        parameter.content_type,
        parameter.delimiter,
        schema_digest,
    ]


def _level(reading: Reading, owner: Resolved) -> dict[tuple[str, str], Resolved]:
    declared = plain_child(owner, "parameters")
    if declared.value is None:
        return {}
    if not isinstance(declared.value, list):
        raise flaw("The parameters are not a list.", declared)
    found: dict[tuple[str, str], Resolved] = {}
    for index in range(len(declared.value)):
        parameter = reading.child(declared, index)
        key = _identity(parameter)
        if key is None or not _is_wanted(reading, key, parameter):
            continue
        if key in found:
            reading.warn(f"The parameter {key[0]} ({key[1]}) is declared twice; the first counts.", parameter)
        else:
            found[key] = parameter
    return found


def _identity(parameter: Resolved) -> tuple[str, str] | None:
    value = parameter.value
    if value is None:
        return None
    if not isinstance(value, dict) or value.get("name") is None:
        raise flaw("A parameter has no name.", parameter)
    return text_of(value["name"]), str(value.get("in"))


def _is_wanted(reading: Reading, key: tuple[str, str], parameter: Resolved) -> bool:
    name, location = key
    if location == "header" and name.lower() in IGNORED_HEADERS:
        return False
    if location not in LOCATIONS:
        name, fault = clip(name, 60), f"is in {clip(location, 60)!r}, which is not supported"
    elif len(name) > MAX_NAME:
        name, fault = clip(name, 60), f"has a name of more than {MAX_NAME} characters"
    elif location in {"header", "cookie"} and not TOKEN.fullmatch(name):
        name, fault = clip(name, 60), f"has a name that no {location} can have"
    else:
        return True
    if parameter.value.get("required") is True:
        raise flaw(f"The required parameter {name} {fault}.", parameter)
    reading.warn(f"The parameter {name} {fault}; it is left out.", parameter)
    return False


def _parameter(reading: Reading, declared: Resolved) -> ReadParameter:
    value: dict[str, Any] = declared.value
    location = cast(Location, value["in"])
    content_type, place = _schema_place(reading, declared)
    translated = (
        Translated(True)
        if place is None
        else reading.definitions.translate(place.value, place.base, "request")
    )
    style = _style(reading, declared, location)
    explode = value.get("explode")
    delimiter = value.get(DELIMITER)
    if INNER_FORMAT in value:
        reading.warn(INNER_FORMAT_REMARK, declared)
    parameter = Parameter(
        name=text_of(value["name"]),
        location=location,
        required=location == "path" or value.get("required") is True,
        schema=translated.schema,
        style=style,
        explode=explode if isinstance(explode, bool) else style in {"form", "cookie"},
        allow_reserved=value.get("allowReserved") is True,
        content_type=content_type,
        description=clean_text(value.get("description"), MAX_PARAMETER_TEXT),
        delimiter=delimiter if isinstance(delimiter, str) else None,
    )
    return ReadParameter(parameter, translated.keys)


def _schema_place(reading: Reading, declared: Resolved) -> tuple[str | None, Resolved | None]:
    """Return the media type of a ``content`` parameter, and where its schema stands."""
    schema = plain_child(declared, "schema")
    content = plain_child(declared, "content")
    if schema.value is None and isinstance(content.value, dict) and content.value:
        content_type = next(iter(content.value))
        media = reading.child(content, content_type)
        inner = plain_child(media, "schema")
        return content_type, None if inner.value is None else inner
    return None, None if schema.value is None else schema


def _style(reading: Reading, declared: Resolved, location: Location) -> str:
    style = declared.value.get("style")
    if style is None:
        return _DEFAULT_STYLE[location]
    if isinstance(style, str) and style in STYLES[location]:
        return style
    default = _DEFAULT_STYLE[location]
    reading.warn(f"The style {style!r} is none of a {location} parameter; {default} is used.", declared)
    return default


def _check_variables(path: str, parameters: Iterable[Parameter], operation: Resolved) -> None:
    declared = dict.fromkeys(parameter.name for parameter in parameters if parameter.location == "path")
    variables = dict.fromkeys(variables_of(path))
    missing = [name for name in variables if name not in declared]
    if missing:
        raise flaw(
            f"The path's variables {clip(', '.join(missing), MAX_TOLD)} are not declared as parameters.",
            operation,
        )
    ghosts = [name for name in declared if name not in variables]
    if ghosts:
        raise flaw(
            f"The path parameters {clip(', '.join(ghosts), MAX_TOLD)} do not occur in the path.", operation
        )
