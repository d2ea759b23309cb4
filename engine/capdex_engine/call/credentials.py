"""Which credentials a call carries, and where.

Alternatives of ``security`` are tried in order, and the first whose schemes are all held is used. One that
needs nothing (``{}``) is the last resort wherever it stands: who configures a credential wants it used.
An OAuth2 client's id and secret are held as well: they become a :class:`Grant`, for which whoever owns the
network gets an access token.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol
from urllib.parse import quote_plus

from capdex_engine.call.style import cookie_text, encode
from capdex_engine.errors import MissingCredentials
from capdex_engine.operation import Operation, OperationDetails, SecurityRequirement, SecurityScheme

Credential = str | tuple[str, str] | Mapping[str, str]
"""API key or bearer token; ``(user, password)``; ``{"token"}``; or what an OAuth2 client asks for a token
with: ``{"client_id", "client_secret"}`` and, where the token endpoint wants them, ``"audience"``,
``"resource"``, ``"scope"`` (instead of the document's scopes) and ``"token_endpoint_auth_method"``
(``client_secret_basic``, the default, or ``client_secret_post``)."""

Credentials = Mapping[str, Mapping[str, Credential]]
"""Source -> security scheme -> credential."""

MASK: Final = "***"
AUTH_METHODS: Final = ("client_secret_basic", "client_secret_post")
"""How an OAuth2 client may show its secret to the token endpoint."""
_TOKEN_FIELDS: Final = ("audience", "resource")
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


@dataclass(frozen=True, slots=True)
class Grant:
    """An OAuth2 client-credentials grant: whoever owns the network gets an access token for it."""

    source: str
    scheme: str
    token_url: str
    """As the document or the configuration says; nothing of it has been checked."""
    client_id: str
    client_secret: str = field(repr=False)
    scopes: tuple[str, ...] = ()
    auth_method: str = AUTH_METHODS[0]
    """One of :data:`AUTH_METHODS`."""
    fields: tuple[tuple[str, str], ...] = ()
    """Further fields of the token request."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The texts to mask in what comes back."""
        return _secrets(self.client_secret, ":".join(map(quote_plus, (self.client_id, self.client_secret))))

    def placed(self, token: str) -> Placement:
        """Return an access token in its place."""
        placement = _bearer(token)
        assert placement is not None  # noqa: S101 - the token is a text
        return placement


class Tokens(Protocol):
    """Gets access tokens; may answer from a cache."""

    async def __call__(self, grant: Grant, *, timeout: float, rejected: str | None = None) -> str:
        """Return an access token, fit for a header.

        Args:
            grant: What it is for.
            timeout: Seconds for asking the token endpoint.
            rejected: A token that the upstream has refused: not this one again from a cache.

        Raises:
            MissingCredentials: The token endpoint refuses the client.
            UpstreamError, AddressRefused: The token endpoint gives no token.
        """
        ...


def place(
    operation: Operation, details: OperationDetails, held: Mapping[str, Credential], *, grants: bool
) -> tuple[Placement | Grant, ...]:
    """Return the credentials of a call.

    Args:
        operation: What is called.
        details: Its security.
        held: Scheme -> credential, of its source.
        grants: Whether tokens can be got; else an OAuth2 client's id and secret are no credential.

    Raises:
        MissingCredentials: No alternative is satisfied.
    """
    chosen = _chosen(operation, details, held, grants)
    if chosen is None:
        requirement = next(each for each in details.security if each)
        raise _missing(operation, requirement, details, held, grants)
    return chosen


def preview(
    operation: Operation, details: OperationDetails, held: Mapping[str, Credential]
) -> tuple[Placement, ...]:
    """Return the credentials of a dry run: placeholders for what is not held, or is yet to be got."""
    chosen = _chosen(operation, details, held, grants=True)
    if chosen is None:
        requirement = next(each for each in details.security if each)
        return tuple(_placeholder(details.security_schemes.get(name)) for name in requirement)
    return tuple(_placeholder(None) if isinstance(each, Grant) else each for each in chosen)


def _chosen(
    operation: Operation, details: OperationDetails, held: Mapping[str, Credential], grants: bool
) -> tuple[Placement | Grant, ...] | None:
    """Return the credentials of the first alternative that is held whole; None where one is missing."""
    for requirement in filter(None, details.security):
        placed = [
            _placed(operation, details.security_schemes.get(name), held.get(name), scopes, grants)
            for name, scopes in requirement.items()
        ]
        if None not in placed:
            return tuple(each for each in placed if each is not None)
    return None if details.security and all(details.security) else ()


def _placed(
    operation: Operation,
    scheme: SecurityScheme | None,
    credential: Credential | None,
    scopes: Sequence[str],
    grants: bool,
) -> Placement | Grant | None:
    if scheme is None or credential is None:
        return None
    if grants and (grant := _grant(operation.source, scheme, credential, scopes)) is not None:
        return grant
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
    return Placement("header", "Authorization", value, f"Basic {MASK}", (text, pair[1], value[6:]))


def _bearer(token: str | None) -> Placement | None:
    if token is None:
        return None
    return Placement("header", "Authorization", f"Bearer {token}", f"Bearer {MASK}", (token,))


def _grant(
    source: str, scheme: SecurityScheme, credential: Credential, scopes: Sequence[str]
) -> Grant | None:
    """Return the grant of an OAuth2 client; None where the credential is something else."""
    if scheme.kind != "oauth2" or not isinstance(credential, Mapping) or "token" in credential:
        return None
    client, secret = credential.get("client_id", ""), credential.get("client_secret", "")
    method = credential.get("token_endpoint_auth_method") or AUTH_METHODS[0]
    if scheme.token_url is None or not _usable(client) or not _usable(secret) or method not in AUTH_METHODS:
        return None
    own = credential.get("scope")
    return Grant(
        source,
        scheme.name,
        scheme.token_url,
        client,
        secret,
        tuple(dict.fromkeys(scopes if own is None else own.split())),
        method,
        tuple((name, credential[name]) for name in _TOKEN_FIELDS if credential.get(name)),
    )


def _secrets(*texts: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*texts, *map(quote_plus, texts))))


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


def _placeholder(scheme: SecurityScheme | None) -> Placement:
    if scheme is not None and scheme.kind == "apiKey":
        return _api_key(scheme, MASK) or Placement("header", "Authorization", MASK, MASK)
    kind = "Basic" if scheme is not None and scheme.kind == "basic" else "Bearer"
    return Placement("header", "Authorization", f"{kind} {MASK}", f"{kind} {MASK}")


def _missing(
    operation: Operation,
    requirement: SecurityRequirement,
    details: OperationDetails,
    held: Mapping[str, Credential],
    grants: bool,
) -> MissingCredentials:
    schemes = details.security_schemes
    name = next(
        name
        for name, scopes in requirement.items()
        if _placed(operation, schemes.get(name), held.get(name), scopes, grants) is None
    )
    return MissingCredentials(
        operation.name, name, _reason(name, operation.source, schemes.get(name), held.get(name))
    )


def _reason(name: str, source: str, scheme: SecurityScheme | None, held: Credential | None) -> str:
    where = f"source {source!r}, security scheme {name!r}"
    if scheme is None:
        return f"There is no {where}: the document does not declare it, nor does the configuration."
    if scheme.kind == "unsupported":
        return (
            f"capdex cannot send the credential of {where}: its kind (such as mutualTLS or HTTP digest) is "
            "not supported. Its operator can define a scheme of another kind in the configuration."
        )
    if isinstance(held, Mapping) and "client_id" in held and "token" not in held:
        return _no_grant(where, scheme, held)
    if held == "":
        return f"The credential configured for {where} is empty: a variable is not set, or a file is empty."
    if held is not None:
        return f"The credential configured for {where} does not fit a scheme of kind {scheme.kind}."
    return f"The server holds no credential for {where}. Its operator can add one to the configuration."


def _no_grant(where: str, scheme: SecurityScheme, held: Mapping[str, str]) -> str:
    """Return why a client id and secret give no access token."""
    if scheme.kind != "oauth2":
        why = (
            "a client id and secret need a scheme of type oauth2. Define one, with a token_url, in the "
            "source's security_schemes"
        )
    elif scheme.token_url is None:
        why = "the document has no client-credentials flow. Name a token_url in the source's security_schemes"
    elif (held.get("token_endpoint_auth_method") or AUTH_METHODS[0]) not in AUTH_METHODS:
        why = f"token_endpoint_auth_method must be {' or '.join(AUTH_METHODS)}"
    elif not held.get("client_id") or not held.get("client_secret"):
        why = "client_id or client_secret is empty"
    else:
        why = "only a client id and secret are configured, and a token cannot be asked for with them here"
    return f"There is no access token for {where}: {why}."
