"""Which credentials a call carries, and where.

Alternatives of ``security`` are tried in order, and the first whose schemes are all held is used. One that
needs nothing (``{}``) is the last resort wherever it stands: who configures a credential wants it used.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from capdex_engine.call.style import cookie_text, encode
from capdex_engine.errors import MissingCredentials
from capdex_engine.operation import Operation, OperationDetails, SecurityRequirement, SecurityScheme

Credential = str | tuple[str, str] | Mapping[str, str]
"""API key or bearer token; ``(user, password)``; ``{"token"}`` or ``{"client_id", "client_secret"}``."""

Credentials = Mapping[str, Mapping[str, Credential]]
"""Source -> security scheme -> credential."""

MASK: Final = "***"
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Placement:
    """One credential in its place."""

    location: Literal["header", "query", "cookie"]
    name: str
    value: str
    """As it goes on the wire: percent-encoded in a query or cookie."""
    masked: str
    """What a dry run shows instead."""
    secrets: tuple[str, ...] = ()
    """The texts to mask in what comes back."""


def place(
    operation: Operation, details: OperationDetails, held: Mapping[str, Credential], *, dry_run: bool = False
) -> tuple[Placement, ...]:
    """Return the credentials of a call.

    Args:
        operation: What is called.
        details: Its security.
        held: Scheme -> credential, of its source.
        dry_run: A placeholder stands for a credential that is not held.

    Raises:
        MissingCredentials: No alternative is satisfied.
    """
    needed = [each for each in details.security if each]
    if not needed:
        return ()
    for requirement in needed:
        placed = _requirement(requirement, details, held)
        if all(each is not None for each in placed.values()):
            return tuple(each for each in placed.values() if each is not None)
    if len(needed) < len(details.security):
        return ()
    if dry_run:
        return tuple(_placeholder(details.security_schemes.get(name), name) for name in needed[0])
    raise _missing(operation, needed[0], details, held)


def _requirement(
    requirement: SecurityRequirement, details: OperationDetails, held: Mapping[str, Credential]
) -> dict[str, Placement | None]:
    return {name: _placed(details.security_schemes.get(name), held.get(name)) for name in requirement}


def _placed(scheme: SecurityScheme | None, credential: Credential | None) -> Placement | None:
    if scheme is None or credential is None:
        return None
    match scheme.kind:
        case "apiKey":
            return _api_key(scheme, _token(credential))
        case "basic":
            return _basic(_user_and_password(credential))
        case "bearer" | "oauth2" | "openIdConnect":
            return _bearer(_token(credential))
    return None


def _api_key(scheme: SecurityScheme, key: str | None) -> Placement | None:
    if key is None or scheme.location is None or scheme.parameter_name is None:
        return None
    return Placement(scheme.location, scheme.parameter_name, _on_the_wire(scheme.location, key), MASK, (key,))


def _on_the_wire(location: str, key: str) -> str:
    if location == "query":
        return encode(key)
    return cookie_text(key) if location == "cookie" else key


def _basic(pair: tuple[str, str] | None) -> Placement | None:
    if pair is None:
        return None
    text = ":".join(pair)
    value = "Basic " + base64.b64encode(text.encode()).decode()
    return Placement("header", "Authorization", value, f"Basic {MASK}", (text, pair[1]))


def _bearer(token: str | None) -> Placement | None:
    if token is None:
        return None
    return Placement("header", "Authorization", f"Bearer {token}", f"Bearer {MASK}", (token,))


def _token(credential: Credential) -> str | None:
    if isinstance(credential, Mapping):
        credential = credential.get("token", "")
    return credential if isinstance(credential, str) and _usable(credential) else None


def _user_and_password(credential: Credential) -> tuple[str, str] | None:
    if isinstance(credential, str):
        user, colon, password = credential.partition(":")
        pair: Sequence[Any] = (user, password) if colon else ()
    elif isinstance(credential, Mapping):
        pair = (credential.get("username"), credential.get("password"))
    else:
        pair = credential
    if len(pair) != 2 or not all(isinstance(part, str) and not _CONTROL.search(part) for part in pair):
        return None
    return pair[0], pair[1]


def _usable(text: str) -> bool:
    return bool(text) and not _CONTROL.search(text)


def _placeholder(scheme: SecurityScheme | None, name: str) -> Placement:
    if scheme is not None and scheme.kind == "apiKey":
        return _api_key(scheme, MASK) or Placement("header", "Authorization", MASK, MASK)
    kind = "Basic" if scheme is not None and scheme.kind == "basic" else "Bearer"
    return Placement("header", "Authorization", f"{kind} {MASK}", f"{kind} {MASK}")


def _missing(
    operation: Operation,
    requirement: SecurityRequirement,
    details: OperationDetails,
    held: Mapping[str, Credential],
) -> MissingCredentials:
    name = next(
        name for name in requirement if _placed(details.security_schemes.get(name), held.get(name)) is None
    )
    source = operation.source
    return MissingCredentials(
        operation.name, name, _reason(name, source, details.security_schemes.get(name), held.get(name))
    )


def _reason(name: str, source: str, scheme: SecurityScheme | None, held: Credential | None) -> str:
    where = f"source {source!r}, security scheme {name!r}"
    if scheme is None or scheme.kind == "unsupported":
        return f"capdex cannot send the credential of {where}: it is of a kind that is not supported."
    if isinstance(held, Mapping) and "client_id" in held and "token" not in held:
        return f"There is no access token for {where}: only a client id and secret are configured."
    if held is not None:
        return f"The credential configured for {where} does not fit a scheme of kind {scheme.kind}."
    return f"The server holds no credential for {where}. Its operator can add one to the configuration."
