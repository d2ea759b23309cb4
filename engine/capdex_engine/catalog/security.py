"""Which credentials an operation needs: lists are OR, objects are AND, ``{}`` needs none."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final, Literal
from urllib.parse import urljoin, urlsplit

from capdex_engine.catalog.context import Reading, plain_child
from capdex_engine.errors import DocumentError
from capdex_engine.operation import SecurityRequirement, SecurityScheme

Kind = Literal["apiKey", "basic", "bearer", "oauth2", "openIdConnect", "unsupported"]

_KEY_LOCATIONS: Final[tuple[Literal["header", "query", "cookie"], ...]] = ("header", "query", "cookie")
_HTTP_KINDS: Final[Mapping[str, Kind]] = {"basic": "basic", "bearer": "bearer"}


def read_schemes(reading: Reading) -> dict[str, SecurityScheme]:
    """Return the schemes that the document declares, by name."""
    declared = plain_child(reading.root("components"), "securitySchemes")
    if not isinstance(declared.value, dict):
        return {}
    found: dict[str, SecurityScheme] = {}
    for name in declared.value:
        try:
            found[name] = _scheme(name, reading.child(declared, name).value)
        except DocumentError as error:
            reading.warn(f"The security scheme {name!r} is left out: {error.message}", declared)
    return found


def read_security(value: Any) -> list[dict[str, list[str]]] | None:
    """Return a ``security`` value as plain alternatives; ``None`` where it is missing or no list."""
    if not isinstance(value, list):
        return None
    return [
        {name: _scopes(scopes) for name, scopes in alternative.items()}
        for alternative in value
        if isinstance(alternative, dict)
    ]


def preferred(alternatives: Iterable[Mapping[str, Sequence[str]]]) -> tuple[SecurityRequirement, ...]:
    """Return the alternatives in the document's order, the one that needs nothing last."""
    found = [{name: tuple(scopes) for name, scopes in each.items()} for each in alternatives]
    return tuple(sorted(found, key=lambda alternative: not alternative))


def scheme_fields(scheme: SecurityScheme) -> dict[str, Any]:
    """Return the scheme as JSON values for the store."""
    return asdict(scheme)


def locate_token_url(scheme: SecurityScheme, base_url: str | None) -> SecurityScheme:
    """Return the scheme with its token URL made absolute against the operation's server."""
    if scheme.token_url is None or base_url is None or urlsplit(scheme.token_url).scheme:
        return scheme
    return replace(scheme, token_url=urljoin(f"{base_url}/", scheme.token_url))


def own_parameters(
    alternatives: Iterable[SecurityRequirement], schemes: Mapping[str, SecurityScheme]
) -> set[tuple[str, str]]:
    """Return the places (see :func:`parameter_place`) of the alternatives' API keys."""
    used = [schemes[name] for alternative in alternatives for name in alternative if name in schemes]
    return {
        parameter_place(scheme.location, scheme.parameter_name)
        for scheme in used
        if scheme.location and scheme.parameter_name and scheme.kind == "apiKey"
    }


def parameter_place(location: str, name: str) -> tuple[str, str]:
    """Return location and name such that equal parameters have equal places: headers know no case."""
    return location, name.lower() if location == "header" else name


def missing_credential(
    alternatives: Sequence[SecurityRequirement],
    schemes: Mapping[str, SecurityScheme],
    held: Container[str],
    source: str,
) -> str | None:
    """Return why no alternative is satisfied by the credentials held; ``None`` when one is."""
    lacks = [_lacking(alternative, schemes, held) for alternative in alternatives]
    if not lacks or not all(lacks):
        return None
    shortest = min(lacks, key=len)
    name = shortest[0]
    if name not in schemes or schemes[name].kind == "unsupported":
        what = "is not declared"
        if name in schemes:
            what = "is of a kind that is not supported, such as mutualTLS or HTTP digest"
        return (
            f"The security scheme {name!r} of the source {source!r} {what}. "
            f"Define it under `security_schemes` for this source in capdex.toml."
        )
    several = f" (and for {', '.join(map(repr, shortest[1:]))})" if len(shortest) > 1 else ""
    return (
        f"The source {source!r} needs a credential for the security scheme {name!r}{several}. "
        f"Set `credentials` for this source in capdex.toml, the environment variable "
        f"{credential_variable(source, name)}, or use --credential {name}=VALUE."
    )


def credential_variable(source: str, scheme: str) -> str:
    """Return the environment variable that may hold a credential."""
    words = (re.sub(r"[^A-Za-z0-9]+", "_", word).strip("_").upper() for word in (source, scheme))
    return "CAPDEX_CREDENTIAL_" + "_".join(words)


def _lacking(
    alternative: SecurityRequirement, schemes: Mapping[str, SecurityScheme], held: Container[str]
) -> list[str]:
    usable = {name for name, scheme in schemes.items() if scheme.kind != "unsupported" and name in held}
    return [name for name in alternative if name not in usable]


def _scheme(name: str, value: Any) -> SecurityScheme:
    if not isinstance(value, dict):
        return SecurityScheme(name, "unsupported")
    kind = str(value.get("type"))
    if kind == "apiKey":
        return _api_key(name, value)
    if kind == "http":
        return SecurityScheme(name, _HTTP_KINDS.get(str(value.get("scheme")).lower(), "unsupported"))
    if kind == "oauth2":
        return SecurityScheme(name, "oauth2", token_url=_token_url(value.get("flows")))
    return SecurityScheme(name, "openIdConnect" if kind == "openIdConnect" else "unsupported")


def _api_key(name: str, value: Mapping[str, Any]) -> SecurityScheme:
    location, parameter = value.get("in"), value.get("name")
    if not isinstance(parameter, str) or not parameter:
        return SecurityScheme(name, "unsupported")
    for known in _KEY_LOCATIONS:
        if location == known:
            return SecurityScheme(name, "apiKey", location=known, parameter_name=parameter)
    return SecurityScheme(name, "unsupported")


def _token_url(flows: Any) -> str | None:
    flow = flows.get("clientCredentials") if isinstance(flows, dict) else None
    url = flow.get("tokenUrl") if isinstance(flow, dict) else None
    return url if isinstance(url, str) and url else None


def _scopes(value: Any) -> list[str]:
    return [str(scope) for scope in value] if isinstance(value, list) else []
