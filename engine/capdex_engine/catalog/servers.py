"""Where an operation is called: the document's servers, made absolute, or the operator's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urljoin, urlsplit, urlunsplit

from capdex_engine.catalog.source import Source
from capdex_engine.documents import text_of

MAX_URL: Final = 8000
"""Characters of a server's URL, before its variables are filled in."""

_VARIABLE = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Base:
    """Where operations are called.

    Args:
        url: Absolute, without a trailing slash; ``None`` when there is no usable server.
        reason: Why there is none, and which setting would cure it.
    """

    url: str | None
    reason: str | None = None


class _Unusable(Exception):
    """A server cannot be used; the text says why."""


class _Misfit(_Unusable):
    """A setting does not fit the server that it is for: no other server may take its place."""


def read_servers(value: Any) -> list[Any]:
    """Return a servers list as plain rows: ``[[url, {variable: [default, [allowed, ...]]}], ...]``.

    An empty list, or one without any server, is OpenAPI's default: one server ``/``.
    """
    servers = value if isinstance(value, list) else []
    rows = [_row(server) for server in servers if isinstance(server, dict) and server.get("url") is not None]
    return rows or [["/", {}]]


def choose_base(servers: Sequence[Any], source: Source) -> Base:
    """Return the first usable server of ``servers`` (rows of :func:`read_servers`) for a source.

    The source's ``server`` setting replaces them all. A server that ``server_variables`` are meant for
    is never replaced by one that has no use for them: a call would go elsewhere.
    """
    settings = source.settings
    if source.kind != "openapi":
        return Base(None, settings.unavailable) if settings.unavailable else Base(source.location)
    rows: Sequence[Any] = servers if settings.server is None else [[settings.server, {}]]
    reasons: list[str] = []
    meant: set[str] = set()
    for url, variables in rows:
        own = settings.server_variables.keys() & set(_VARIABLE.findall(str(url)))
        try:
            filled = _absolute(_fill(str(url), variables, settings.server_variables), source)
            _check_meant(str(url), meant - own)
            return Base(filled)
        except _Misfit as error:
            return Base(None, _reason(source, [str(error)]))
        except _Unusable as error:
            reasons.append(str(error))
            meant |= own
    return Base(None, _reason(source, reasons))


def _check_meant(url: str, missing: set[str]) -> None:
    if missing:
        names = ", ".join(sorted(missing))
        raise _Unusable(f"the server {url} has no use for `server_variables` {names}, set for another")


def variables_in(servers: Sequence[Any], setting: str | None) -> set[str]:
    """Return the names of the variables that ``server_variables`` may fill in."""
    urls = [row[0] for row in servers] if setting is None else [setting]
    return {name for url in urls for name in _VARIABLE.findall(str(url))}


def _reason(source: Source, reasons: Sequence[str]) -> str:
    return (
        f"There is no usable server for the source {source.name!r}: {'; '.join(dict.fromkeys(reasons))}. "
        f"Set `server` for this source in capdex.toml, or use --server URL."
    )


def _row(server: Mapping[str, Any]) -> list[Any]:
    variables = server.get("variables")
    declared = variables.items() if isinstance(variables, dict) else ()
    url = str(server["url"]).strip()
    if len(url) > MAX_URL:
        return [f"{url[:100]}…{{the URL is longer than {MAX_URL} characters}}", {}]
    used = set(_VARIABLE.findall(url))
    return [
        url,
        {name: _variable(value) for name, value in declared if isinstance(value, dict) and name in used},
    ]


def _variable(value: Mapping[str, Any]) -> list[Any]:
    allowed = value.get("enum")
    default = value.get("default")
    return [
        None if default is None else _text(default),
        [_text(choice) for choice in allowed] if isinstance(allowed, list) else [],
    ]


def _text(value: Any) -> str:
    return text_of(value)


def _fill(url: str, variables: Mapping[str, Any], given: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        name = match[1]
        default, allowed = variables.get(name, (None, []))
        chosen = given.get(name, default)
        if chosen is None or "{" in str(chosen):  # a default such as "{your-host}" asks for a value too
            raise _Unusable(f"the server {url} needs a value for {name!r} (setting `server_variables`)")
        if name in given and allowed and chosen not in allowed:
            raise _Misfit(f"`server_variables.{name}` is not one of {', '.join(allowed)}")
        if allowed and chosen not in allowed:
            raise _Unusable(
                f"the server {url} has a default for {name!r} that is not one of its values "
                f"{', '.join(allowed)} (setting `server_variables`)"
            )
        return str(chosen)

    return _VARIABLE.sub(value, url)


def _absolute(url: str, source: Source) -> str:
    whole = url if _has_scheme(url) else _joined(url, source)
    try:
        parts = urlsplit(whole)
        _ = parts.port
    except ValueError as error:
        raise _Unusable(f"{whole} is no URL") from error
    if parts.scheme.lower() not in {"http", "https"} or not parts.hostname:
        raise _Unusable(f"{whole} is no http or https URL with a host")
    if "@" in parts.netloc or re.search(r"[\s\\{}]", whole):
        raise _Unusable("the URL holds user information, spaces, backslashes or braces")
    return urlunsplit((parts.scheme.lower(), parts.netloc, parts.path.rstrip("/"), parts.query, ""))


def _joined(url: str, source: Source) -> str:
    document = source.document_url or ""
    if source.settings.server is not None:
        raise _Unusable(f"the setting `server` must be an absolute URL, not {url}")
    if not document.lower().startswith(("http://", "https://")):
        raise _Unusable(f"{url} is a relative URL, and the document was not fetched from a URL")
    return urljoin(document, url)


def _has_scheme(url: str) -> bool:
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*:(?!\d)", url) is not None
