"""Secrets of the sources, read from environment variables and files.

They are read once per build and handed to the engine; nothing here logs or prints a value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from capdex_engine.errors import ConfigurationError
from capdex_server.config import CredentialConfig, Settings
from capdex_server.logs import get_logger

Credential = str | tuple[str, str] | Mapping[str, str]
PREFIX: Final = "CAPDEX_CREDENTIAL_"
_log = get_logger(__name__)


def variable_part(name: str) -> str:
    """Return a source's or scheme's name as it stands in a variable: upper case, others ``_``."""
    return re.sub(r"[^A-Za-z0-9]", "_", name).upper()


def parse_credential(text: str) -> Credential | None:
    """Return the credential that a variable or file holds; None when it is empty.

    JSON ``["user", "password"]`` and objects of strings are taken as such; anything else is the
    key or token itself.
    """
    text = text.strip()
    if text.startswith(("[", "{")):
        parsed = _parsed(text)
        if parsed is not None:
            return parsed
    return text or None


def explicit_credentials(settings: Settings, environ: Mapping[str, str]) -> dict[str, dict[str, Credential]]:
    """Return source -> scheme -> credential for everything that the configuration names.

    A variable that is not set leaves the credential out (the capability then says what is missing).

    Raises:
        ConfigurationError: A credential file cannot be read.
    """
    return {
        source: {
            scheme: value
            for scheme, where in config.credentials.items()
            if (value := _read(where, environ, f"sources.{source}.credentials.{scheme}")) is not None
        }
        for source, config in settings.sources.items()
    }


class DefaultCredentials:
    """``CAPDEX_CREDENTIAL_<SOURCE>_<SCHEME>`` variables."""

    def __init__(self, sources: Iterable[str], environ: Mapping[str, str]) -> None:
        self._values: dict[str, dict[str, Credential]] = {name: {} for name in sources}
        for variable, text in environ.items():
            value = parse_credential(text)
            if variable.startswith(PREFIX) and value is not None:
                self._assign(variable.removeprefix(PREFIX), value)

    def _assign(self, rest: str, value: Credential) -> None:
        owners = [name for name in self._values if rest.startswith(variable_part(name) + "_")]
        longest = max((len(name) for name in owners), default=0)
        owners = [name for name in owners if len(name) == longest]
        if len(owners) > 1:
            raise ConfigurationError(
                f"environment: {PREFIX}{rest} fits the sources {' and '.join(sorted(owners))}; "
                "name the variable in capdex.toml: [sources.NAME.credentials.SCHEME] env = …"
            )
        for name in owners:
            self._values[name][rest[len(name) + 1 :]] = value

    def of(self, source: str, document: str | None = None) -> Mapping[str, Credential]:
        """Return variable part of a scheme's name -> credential.

        Args:
            source: As it is configured.
            document: ``SOURCE.FILE`` of one in its folder; variables that name it are for it alone.
        """
        values = self._values.get(source, {})
        file = f"{variable_part(document or '')[len(source) + 1 :]}_"
        own = {rest[len(file) :]: value for rest, value in values.items() if rest.startswith(file)}
        return {**values, **own} if len(file) > 1 else values


class Held(Mapping[str, Credential]):
    """The credentials of one source, by the scheme names that its document uses.

    A variable's name has lost case and punctuation, so it fits every scheme that is written like it.

    Args:
        named: Scheme -> credential, of the configuration; it wins.
        by_variable: Variable part of a scheme's name -> credential.
    """

    def __init__(self, named: Mapping[str, Credential], by_variable: Mapping[str, Credential]) -> None:
        self._named = named
        self._by_variable = by_variable

    def __getitem__(self, scheme: str) -> Credential:
        if scheme in self._named:
            return self._named[scheme]
        return self._by_variable[variable_part(scheme)]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._named, **self._by_variable})

    def __len__(self) -> int:
        return len({**self._named, **self._by_variable})

    def __repr__(self) -> str:
        return f"Held({sorted(self)})"


def _parsed(text: str) -> Credential | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    if isinstance(value, list) and len(value) == 2 and all(isinstance(part, str) for part in value):
        return (value[0], value[1])
    if isinstance(value, dict) and all(isinstance(part, str) for part in value.values()):
        return value
    return None


def _read(where: CredentialConfig, environ: Mapping[str, str], key: str) -> Credential | None:
    if where.file:
        return _read_file(where, key)
    names = [name for name in (where.env, where.user_env, where.password_env) if name]
    values = [environ[name] for name in names if environ.get(name)]
    if len(values) < len(names):
        _log.warning(
            "credential.not_set", key=key, variables=[name for name in names if not environ.get(name)]
        )
        return None
    return parse_credential(values[0]) if where.env else (values[0], values[1])


def _read_file(where: CredentialConfig, key: str) -> Credential | None:
    assert where.file is not None  # noqa: S101 - the only caller has checked it
    try:
        return parse_credential(where.file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        raise ConfigurationError(f"{key}.file: {where.file} cannot be read as UTF-8 text.") from None
