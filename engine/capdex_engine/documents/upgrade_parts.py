"""The parts of a Swagger 2.0 document that change shape: servers, parameters, bodies, responses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from capdex_engine.documents.values import text_of

METHODS: Final = frozenset({"get", "put", "post", "delete", "options", "head", "patch"})
DELIMITER: Final = "x-capdex-delimiter"
"""On a parameter or encoding: the text between an array's items, where no style of 3.0 has it."""

INNER_FORMAT: Final = "x-capdex-inner-format"
"""On a parameter or encoding whose array holds arrays: their ``collectionFormat``, which is not applied."""

_FORM: Final = "application/x-www-form-urlencoded"
_MULTIPART: Final = "multipart/form-data"
_SCHEMES: Final = ("https", "http")
_SEPARATORS: Final = {"ssv": " ", "tsv": "\t", "pipes": "|"}
_QUERY_STYLES: Final = {"ssv": "spaceDelimited", "pipes": "pipeDelimited"}
_NOT_SCHEMA: Final = frozenset(
    {"name", "in", "required", "description", "collectionFormat", "allowEmptyValue", "schema"}
)
_FLOWS: Final = {
    "implicit": "implicit",
    "password": "password",
    "application": "clientCredentials",
    "accessCode": "authorizationCode",
}

ChangeSchema = Callable[[Any], Any]


def words(value: Any) -> list[str]:
    """Return the strings of a list; nothing for anything else."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def servers(tree: dict[str, Any], holder: dict[str, Any]) -> list[dict[str, str]]:
    """Return 3.0's servers, https first; without a host a relative one.

    Args:
        tree: The document, for host and basePath.
        holder: Whose ``schemes`` count: the document or one operation.
    """
    host, base_path = tree.get("host"), tree.get("basePath")
    path = "/" + base_path.strip("/") if isinstance(base_path, str) and base_path.strip("/") else ""
    if not isinstance(host, str) or not host.strip():
        return [{"url": path or "/"}]
    host = host.strip().rstrip("/")
    if "://" in host:
        return [{"url": host + path}]
    named = words(holder.get("schemes")) or words(tree.get("schemes"))
    schemes = [scheme for scheme in _SCHEMES if scheme in map(str.lower, named)] or ["https"]
    return [{"url": f"{scheme}://{host}{path}"} for scheme in schemes]


def is_body_part(parameter: Any) -> bool:
    """Return whether a parameter is (part of) the request body."""
    return isinstance(parameter, dict) and parameter.get("in") in ("body", "formData")


def plain_parameter(parameter: dict[str, Any], schema: ChangeSchema) -> dict[str, Any]:
    """Return a path, query or header parameter with its schema and style in 3.0's places."""
    kept = {
        key: value
        for key, value in parameter.items()
        if key in {"name", "in", "required", "description", "allowEmptyValue", "deprecated"}
        or key.startswith("x-")
    }
    return {
        **kept,
        **_style(parameter, str(parameter.get("in"))),
        "schema": schema(_schema_of(parameter)),
    }


def body_of(
    parameters: list[dict[str, Any]], consumes: list[str], schema: ChangeSchema
) -> dict[str, Any] | None:
    """Return the request body that ``body`` or ``formData`` parameters make; ``None`` without any."""
    if not parameters:
        return None
    for parameter in parameters:
        if parameter.get("in") == "body":
            return _json_body(parameter, consumes, schema)
    return _form_body(parameters, consumes, schema)


def _json_body(parameter: dict[str, Any], consumes: list[str], schema: ChangeSchema) -> dict[str, Any]:
    media = {"schema": schema(parameter.get("schema", {}))}
    body: dict[str, Any] = {
        key: value for key, value in parameter.items() if key == "description" or key.startswith("x-")
    }
    body["required"] = parameter.get("required") is True
    body["content"] = dict.fromkeys(consumes or ["application/json"], media)
    return body


def _form_body(parameters: list[dict[str, Any]], consumes: list[str], schema: ChangeSchema) -> dict[str, Any]:
    named = {
        text_of(parameter["name"]): parameter
        for parameter in parameters
        if isinstance(parameter.get("name"), str | int | float)
    }
    properties = {name: schema(_form_schema(parameter)) for name, parameter in named.items()}
    required = [name for name, parameter in named.items() if parameter.get("required") is True]
    encoding = {name: style for name, parameter in named.items() if (style := _style(parameter, "query"))}
    media: dict[str, Any] = {"schema": {"type": "object", "properties": properties}}
    if required:
        media["schema"]["required"] = required
    if encoding:
        media["encoding"] = encoding
    return {
        "required": bool(required),
        "content": dict.fromkeys(_form_types(parameters, consumes), media),
    }


def _form_types(parameters: list[dict[str, Any]], consumes: list[str]) -> list[str]:
    has_file = any(parameter.get("type") == "file" for parameter in parameters)
    fitting = [
        name
        for name in consumes
        if name.lower().startswith(_MULTIPART) or (name.lower().startswith(_FORM) and not has_file)
    ]
    return fitting or [_MULTIPART if has_file else _FORM]


def _form_schema(parameter: dict[str, Any]) -> Any:
    found = _schema_of(parameter)
    description = parameter.get("description")
    return {"description": description, **found} if description and isinstance(found, dict) else found


def _schema_of(parameter: dict[str, Any]) -> Any:
    """Return the parameter's schema, whose keywords stand on the parameter itself."""
    if isinstance(parameter.get("schema"), dict):
        return parameter["schema"]
    return {key: value for key, value in parameter.items() if key not in _NOT_SCHEMA}


def _style(parameter: dict[str, Any], place: str) -> dict[str, Any]:
    """Return style and explode of an array parameter by its ``collectionFormat`` (default csv)."""
    if parameter.get("type") != "array":
        return {}
    items = parameter.get("items")
    if isinstance(items, dict) and items.get("type") == "array":
        return {**_own_style(parameter, place), INNER_FORMAT: str(items.get("collectionFormat", "csv"))}
    return _own_style(parameter, place)


def _own_style(parameter: dict[str, Any], place: str) -> dict[str, Any]:
    kind = str(parameter.get("collectionFormat", "csv"))
    base = "form" if place == "query" else "simple"
    if kind == "multi":
        return {"style": base, "explode": place == "query"}
    if place == "query" and kind in _QUERY_STYLES:
        return {"style": _QUERY_STYLES[kind], "explode": False}
    delimiter = _SEPARATORS.get(kind)
    return {"style": base, "explode": False, **({DELIMITER: delimiter} if delimiter else {})}


def response_of(response: dict[str, Any], produces: list[str], schema: ChangeSchema) -> dict[str, Any]:
    """Return a response with ``content`` and with header schemas in their own key."""
    result = {key: value for key, value in response.items() if key not in {"schema", "examples", "headers"}}
    if isinstance(response.get("headers"), dict):
        result["headers"] = {
            name: {"description": value.get("description", ""), "schema": schema(_schema_of(value))}
            for name, value in response["headers"].items()
            if isinstance(value, dict)
        }
    if "schema" in response:
        found = schema(response["schema"])
        given = response.get("examples")
        examples = given if isinstance(given, dict) else {}
        result["content"] = {
            name: {"schema": found, **({"example": examples[name]} if name in examples else {})}
            for name in produces or ["application/json"]
        }
    return result


def security_scheme(scheme: Any) -> Any:
    """Return a security scheme in 3.0's terms."""
    if not isinstance(scheme, dict):
        return scheme
    if scheme.get("type") == "basic":
        return {**scheme, "type": "http", "scheme": "basic"}
    if scheme.get("type") != "oauth2":
        return scheme
    moved = {"flow", "authorizationUrl", "tokenUrl", "scopes"}
    flow = {key: scheme[key] for key in ("authorizationUrl", "tokenUrl") if key in scheme}
    name = _FLOWS.get(str(scheme.get("flow")))
    rest = {key: value for key, value in scheme.items() if key not in moved}
    return {**rest, "flows": {name: {**flow, "scopes": scheme.get("scopes", {})}} if name else {}}
