"""Secrets of the sources, read from environment variables and files.

They are read once per build and handed to the engine; nothing here logs or prints a value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
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
    """``CAPDEX_CREDENTIAL_<SOURCE>_<SCHEME>`` variables.

    Scheme names are known only to the documents, and a variable's name has lost case and
    punctuation; so the spellings that a document holds are looked up in its bytes.
    """

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

    def found_in(self, source: str, data: bytes, schemes: Iterable[str] = ()) -> dict[str, Credential]:
        """Return scheme -> credential for every spelling that the document or configuration uses.

        Args:
            source: Name of the source.
            data: The document's bytes.
            schemes: Names of the schemes that the configuration adds.
        """
        found: dict[str, Credential] = {}
        for suffix, value in self._values.get(source, {}).items():
            found |= {scheme: value for scheme in schemes if variable_part(scheme) == suffix}
            found |= {match.group().decode("ascii"): value for match in _spellings(suffix).finditer(data)}
        return found


def _spellings(suffix: str) -> re.Pattern[bytes]:
    body = "".join("[^A-Za-z0-9\"'\\s]" if char == "_" else char for char in suffix)
    return re.compile(rf"(?<![A-Za-z0-9_.-])(?i:{body})(?![A-Za-z0-9_.-])".encode("ascii"))


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
