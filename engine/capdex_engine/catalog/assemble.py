"""Records of a document + settings + names -> operations."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from capdex_engine.catalog.digest import digest
from capdex_engine.catalog.document import Document
from capdex_engine.catalog.names import Nameable
from capdex_engine.catalog.records import OperationRecord, ParameterRecord, interned
from capdex_engine.catalog.report import Remark
from capdex_engine.catalog.security import (
    locate_token_url,
    missing_credential,
    own_parameters,
    parameter_place,
    preferred,
)
from capdex_engine.catalog.servers import Base, choose_base, variables_in
from capdex_engine.catalog.settings import Choice, Overrides
from capdex_engine.catalog.source import Source
from capdex_engine.operation import (
    Availability,
    Location,
    Operation,
    OperationDetails,
    Parameter,
    SecurityRequirement,
    SecurityScheme,
)

_Hidden = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class _Access:
    """What operations with the same ``security`` share."""

    alternatives: tuple[SecurityRequirement, ...]
    hidden: _Hidden
    """Places of the parameters that hold the API keys."""
    reason: str | None


class Shelf:
    """One source with its document: makes its operations, and their details on demand.

    Args:
        source: With the settings to apply.
        document: Its document, read.
    """

    def __init__(self, source: Source, document: Document) -> None:
        self._source = source
        self._document = document
        record = document.record
        self._schemes = {**_schemes(record.schemes), **source.settings.security_schemes}
        self._bases = [choose_base(servers, source) for servers in record.servers]
        self._access = [self._access_for(alternatives) for alternatives in record.security]
        self._numbers = array("q", (row.details for row in record.operations))
        self._base_of = array("l", (row.servers for row in record.operations))
        self._access_of = array("l", (row.security for row in record.operations))
        self._title = sys.intern(record.title)

    def nameables(self) -> list[Nameable]:
        """Return what the names are made from, in the document's order."""
        name = self._source.name
        return [
            Nameable(name, row.key, row.operation_id, row.method, row.path)
            for row in self._document.record.operations
        ]

    def own_names(self) -> list[str] | None:
        """Return the names that the entries bring with them, skills' capability strings; else ``None``."""
        if self._source.kind != "skills":
            return None
        return [row.operation_id or row.key for row in self._document.record.operations]

    def operations(self, names: Sequence[str]) -> tuple[list[Operation], list[Remark]]:
        """Return the operations under their names, and remarks on the settings."""
        choice = Choice(self._source.settings)
        overrides = Overrides(self._source.settings.overrides)
        rows = self._document.record.operations
        made = [
            self._operation(index, row, name, choice, overrides)
            for index, (row, name) in enumerate(zip(rows, names, strict=True))
        ]
        remarks = (*choice.remarks(), *overrides.remarks(), *self._unknown_variables())
        return made, [Remark(text) for text in remarks]

    def let_go(self) -> None:
        """Drop the rows that operations were made from; their details stay."""
        self._document.record = replace(self._document.record, operations=())

    def details(self, details_id: int) -> OperationDetails:
        """Return the details of the operation with this ``details_id``."""
        if details_id < 0 or self._numbers[details_id] < 0:
            return OperationDetails()
        parameters, body, responses = self._document.details(self._numbers[details_id])
        access = self._access[self._access_of[details_id]]
        base = self._bases[self._base_of[details_id]]
        shown = tuple(parameter for parameter in parameters if not _is_hidden(parameter, access.hidden))
        schemas: list[Any] = [parameter.schema for parameter in shown]
        if body is not None:
            schemas += [media.schema for media in body.media_types if media.schema is not None]
        return OperationDetails(
            parameters=shown,
            body=body,
            definitions=self._document.definitions(schemas),
            base_url=base.url,
            security=access.alternatives,
            security_schemes=self._used_schemes(access, base),
            responses=responses,
        )

    def _unknown_variables(self) -> list[str]:
        settings = self._source.settings
        known = {
            name
            for servers in self._document.record.servers
            for name in variables_in(servers, settings.server)
        }
        unknown = sorted(set(settings.server_variables) - known)
        return [f"`server_variables` sets {name!r}, which no server has." for name in unknown]

    def _used_schemes(self, access: _Access, base: Base) -> dict[str, SecurityScheme]:
        used = dict.fromkeys(name for alternative in access.alternatives for name in alternative)
        return {
            name: locate_token_url(self._schemes[name], base.url) for name in used if name in self._schemes
        }

    def _access_for(self, declared: Any) -> _Access:
        settings = self._source.settings
        alternatives = preferred(declared if settings.security is None else settings.security)
        hidden = frozenset(own_parameters(alternatives, self._schemes))
        reason = missing_credential(alternatives, self._schemes, settings.credentials, self._source.name)
        return _Access(alternatives, hidden, reason)

    def _operation(
        self, index: int, row: OperationRecord, name: str, choice: Choice, overrides: Overrides
    ) -> Operation:
        own = overrides.of(row)
        left_out = choice.refusal(row, name)
        access = self._access[row.security] if row.details >= 0 else _NO_ACCESS
        shown = [parameter for parameter in row.parameters if not _is_hidden(parameter, access.hidden)]
        shown.sort(key=lambda parameter: not parameter.required)
        availability, reason = self._availability(row, access, left_out)
        return Operation(
            name=name,
            source=self._source.name,
            method=sys.intern(row.method),
            path=row.path,
            operation_id=row.operation_id,
            summary=own.summary or row.summary,
            description=row.description,
            tags=row.tags,
            keywords=own.keywords,
            api_title=self._title,
            path_params=_names(shown, "path"),
            query_params=_names(shown, "query"),
            header_params=_names(shown, "header"),
            cookie_params=_names(shown, "cookie"),
            required_params=tuple(
                (parameter.location, parameter.name) for parameter in shown if parameter.required
            ),
            has_body=row.has_body,
            body_required=row.body_required,
            body_properties=row.body_properties,
            deprecated=row.deprecated,
            schema_digest=_digest(row, shown),
            availability=availability,
            reason=reason,
            key=row.key,
            details_id=index,
            harmless=row.read_only_hint and self._source.settings.trusted,
        )

    def _availability(
        self, row: OperationRecord, access: _Access, left_out: str | None
    ) -> tuple[Availability, str | None]:
        if left_out is not None:
            return Availability.LEFT_OUT, left_out
        if row.problem is not None:
            return Availability.KEPT_OUT, row.problem
        base = self._bases[row.servers]
        if base.url is None:
            return Availability.NO_SERVER, " ".join(filter(None, (base.reason, access.reason)))
        if access.reason is not None:
            return Availability.NO_CREDENTIAL, access.reason
        return Availability.READY, None


_NO_ACCESS = _Access((), frozenset(), None)


def _digest(row: OperationRecord, shown: Sequence[ParameterRecord]) -> str:
    parameters = sorted(
        [parameter.location, parameter.name, parameter.required, parameter.digest] for parameter in shown
    )
    return "sha256:" + digest([row.method, row.path, parameters, row.has_body, row.body_digest])


def _names(parameters: Sequence[ParameterRecord], location: Location) -> tuple[str, ...]:
    return interned(parameter.name for parameter in parameters if parameter.location == location)


def _is_hidden(parameter: Parameter | ParameterRecord, hidden: _Hidden) -> bool:
    return bool(hidden) and parameter_place(parameter.location, parameter.name) in hidden


def _schemes(stored: Mapping[str, Any]) -> dict[str, SecurityScheme]:
    return {name: SecurityScheme(**fields) for name, fields in stored.items()}
