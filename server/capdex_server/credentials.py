"""Secrets of the sources, read from environment variables and files.

They are read once per build and handed to the engine; files are looked at again with every call, so that a
rotated secret is used from the next call on. Nothing here logs or prints a value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from capdex_engine.errors import ConfigurationError
from capdex_server.config import CredentialConfig, Settings
from capdex_server.logs import get_logger
from capdex_server.pieces import Stamp, stamp_of

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
        source: _values(config.credentials, environ, f"sources.{source}.credentials")
        for source, config in settings.sources.items()
    }


@dataclass(frozen=True, slots=True)
class Secrets:
    """Everything that the configuration names, as it was when it was read; equal ones hold the same."""

    common: Mapping[str, Mapping[str, Credential]] = field(default_factory=dict, repr=False)
    """Configured source -> scheme -> credential."""
    tenants: Mapping[str, Mapping[str, Mapping[str, Credential]]] = field(default_factory=dict, repr=False)
    """Tenant -> configured source -> scheme -> credential."""
    files: Mapping[tuple[str, str], Mapping[str, SecretFile]] = field(
        default_factory=dict, repr=False, compare=False
    )
    """Tenant ("" for all) and configured source -> scheme -> the file that holds its credential."""

    def held(self, tenant: str, source: str, by_variable: Mapping[str, Credential] | None = None) -> Held:
        """Return a source's credentials, of a tenant or ("") of all."""
        named = self.tenants.get(tenant, {}) if tenant else self.common
        return Held(named.get(source, {}), by_variable or {}, self.files.get((tenant, source), {}))

    def schemes(self) -> dict[str, set[str]]:
        """Return configured source -> schemes for which any credential is given."""
        found: dict[str, set[str]] = {}
        for part in (self.common, *self.tenants.values()):
            for source, schemes in part.items():
                found.setdefault(source, set()).update(schemes)
        return found


def read_secrets(
    settings: Settings,
    environ: Mapping[str, str],
    given: Mapping[str, Mapping[str, Credential]] | None = None,
) -> Secrets:
    """Read everything that the configuration names.

    Args:
        settings: The configuration.
        environ: Environment variables.
        given: Source -> scheme -> credential of a command line; they win over those for all tenants.

    Raises:
        ConfigurationError: A credential file cannot be read.
    """
    common: dict[str, Mapping[str, Credential]] = {**explicit_credentials(settings, environ)}
    files: dict[tuple[str, str], dict[str, SecretFile]] = {}
    tenants: dict[str, dict[str, dict[str, Credential]]] = {}
    for source, config in settings.sources.items():
        files["", source] = _files(config.credentials)
        for tenant, own in config.tenant_credentials.items():
            key = f"sources.{source}.tenant_credentials.{tenant}"
            # Empty where it is not set: the tenant's calls must not go out under what is for all.
            tenants.setdefault(tenant, {})[source] = {**dict.fromkeys(own, ""), **_values(own, environ, key)}
            files[tenant, source] = _files(own)
    for source, held in (given or {}).items():
        common[source] = {**common.get(source, {}), **held}
        files["", source] = {
            scheme: file for scheme, file in files.get(("", source), {}).items() if scheme not in held
        }
    return Secrets(common, tenants, files)


class SecretFile:
    """A credential in a file: read again when the file has changed; what was last good stays."""

    def __init__(self, where: CredentialConfig) -> None:
        self._where = where
        self._stamp: Stamp | None = None
        self._value: Credential | None = None

    def __call__(self) -> Credential | None:
        """Return the credential, None where there has been none."""
        assert self._where.file is not None  # noqa: S101 - the only maker has checked it
        stamp = stamp_of(self._where.file)
        if stamp is not None and stamp != self._stamp:
            try:
                value = _shaped(self._where, parse_credential(self._where.file.read_text(encoding="utf-8")))
            except (OSError, UnicodeDecodeError):
                return self._value
            self._stamp, self._value = stamp, self._value if value is None else value
        return self._value

    def __repr__(self) -> str:
        return f"SecretFile({str(self._where.file)!r})"


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
        files: Scheme -> the file that holds its credential, which may be newer than in ``named``.
    """

    def __init__(
        self,
        named: Mapping[str, Credential],
        by_variable: Mapping[str, Credential],
        files: Mapping[str, SecretFile] | None = None,
    ) -> None:
        self._named = named
        self._by_variable = by_variable
        self._files = files or {}

    def __getitem__(self, scheme: str) -> Credential:
        if scheme in self._files and (value := self._files[scheme]()) is not None:
            return value
        if scheme in self._named:
            return self._named[scheme]
        return self._by_variable[variable_part(scheme)]

    def __iter__(self) -> Iterator[str]:
        found = (scheme for scheme, file in self._files.items() if file() is not None)
        return iter({*self._named, *self._by_variable, *found})

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"Held({sorted(self)})"


class HeldByAny(Container[str]):
    """The schemes for which one of several has a credential that is not empty."""

    def __init__(self, several: Sequence[Mapping[str, Credential]]) -> None:
        self._several = several

    def __contains__(self, scheme: object) -> bool:
        return isinstance(scheme, str) and any(held.get(scheme) for held in self._several)


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


def _values(
    credentials: Mapping[str, CredentialConfig], environ: Mapping[str, str], key: str
) -> dict[str, Credential]:
    return {
        scheme: value
        for scheme, where in credentials.items()
        if (value := _shaped(where, _read(where, environ, f"{key}.{scheme}"))) is not None
    }


def _files(credentials: Mapping[str, CredentialConfig]) -> dict[str, SecretFile]:
    return {scheme: SecretFile(where) for scheme, where in credentials.items() if where.file}


def _shaped(where: CredentialConfig, value: Credential | None) -> Credential | None:
    """Return an OAuth2 client's credential with what is configured beside its secret."""
    if where.client_id is not None and isinstance(value, str):
        value = {"client_id": where.client_id, "client_secret": value}
    return {**where.token_fields, **value} if isinstance(value, Mapping) else value


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
