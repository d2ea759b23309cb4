"""One document -> its record and its store of schemas. Nothing here depends on settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from capdex_engine.catalog.bodies import ReadBody, read_body
from capdex_engine.catalog.context import Reading
from capdex_engine.catalog.definitions import Mode, own_shape
from capdex_engine.catalog.digest import canonical, digest
from capdex_engine.catalog.interning import Table
from capdex_engine.catalog.parameters import (
    ReadParameter,
    digest_fields,
    parameter_fields,
    read_parameters,
)
from capdex_engine.catalog.paths import Found, find_operations, find_outside
from capdex_engine.catalog.records import DocumentRecord, OperationRecord, ParameterRecord
from capdex_engine.catalog.report import KeptOut
from capdex_engine.catalog.responses import read_responses
from capdex_engine.catalog.security import read_schemes, read_security, scheme_fields
from capdex_engine.catalog.servers import read_servers
from capdex_engine.catalog.store import Store, StoreWriter
from capdex_engine.catalog.texts import (
    INVISIBLE,
    MAX_DESCRIPTION,
    MAX_SUMMARY,
    MAX_TAG,
    clean_text,
    clip,
    first_sentence,
)
from capdex_engine.documents import References, Resolved, text_of
from capdex_engine.errors import DocumentError
from capdex_engine.operation import Schema

MAX_TAGS: Final = 20
MAX_TITLE: Final = 200
MAX_IDENTIFIER: Final = 1000
"""Characters of an operationId."""


Finders = tuple[Callable[[Reading], Iterable[Found]], Callable[[Reading, list[Found]], Iterable[KeptOut]]]
"""What finds a document's operations, and what stays outside."""
_Fields = tuple[list[Any], tuple[str, ...]]
"""What a caller depends on, and the definitions that its schema refers to, in order."""


@dataclass(frozen=True, slots=True)
class _Draft:
    """An operation whose definitions are not all read yet."""

    record: OperationRecord
    parameters: tuple[tuple[ReadParameter, _Fields], ...] = ()
    body: ReadBody | None = None
    body_fields: tuple[_Fields, ...] = ()


def read_document(
    tree: dict[str, Any],
    references: References,
    base: str,
    *,
    extra: dict[str, Any],
    path: Path | None,
    finders: Finders = (find_operations, find_outside),
) -> Store:
    """Read a document into a store, whose meta is ``{"document", "definitions", **extra}``.

    Args:
        tree: The document, upgraded.
        references: Its references.
        base: Its identity.
        extra: Further meta, read after everything else was read.
        path: File to keep the store in; ``None`` keeps it in memory.
        finders: By default those of an API description.
    """
    return _Reader(Reading(tree, references, base)).read(extra, path, finders)


class _Reader:
    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._writer = StoreWriter()
        self._servers = Table()
        self._security = Table()

    def read(self, extra: dict[str, Any], path: Path | None, finders: Finders) -> Store:
        reading = self._reading
        root_security = read_security(reading.tree.get("security")) or []
        self._warn_of_duplicates(root=True)
        find, outside = finders
        operations = list(find(reading))
        drafts = [self._draft(found, root_security) for found in operations]
        definitions = {mode: self._definitions(mode) for mode in _MODES}
        self._warn_of_duplicates(root=False)
        records = self._finished(drafts)
        document = DocumentRecord(
            title=_title(reading.tree),
            operations=tuple(records),
            servers=tuple(self._servers.values),
            security=tuple(self._security.values),
            schemes={name: scheme_fields(scheme) for name, scheme in read_schemes(reading).items()},
            outside=tuple(outside(reading, operations)),
            warnings=tuple(reading.warnings),
        )
        meta = {"document": document.to_json(), "definitions": definitions, **extra}
        return self._writer.finish(meta, path)

    def _warn_of_duplicates(self, *, root: bool) -> None:
        """Tell of duplicate keys: the root document's at once, other files' once they have been read."""
        for message, place in self._reading.references.duplicates():
            if (place.base == self._reading.base) is root:
                self._reading.warn(message, place)

    def _definitions(self, mode: Mode) -> dict[str, int]:
        numbers: dict[str, int] = {}

        def keep(key: str, schema: Schema) -> None:
            numbers[key] = self._writer.add(canonical(schema))

        self._reading.definitions.complete(mode, keep)
        return numbers

    def _draft(self, found: Found, root_security: list[dict[str, list[str]]]) -> _Draft:
        record = OperationRecord(found.method, found.path, self._reading.place(found.place))
        if found.read_only_hint:
            record = replace(record, read_only_hint=True)
        if isinstance(found.operation.value, dict) and found.method:
            record = replace(record, **self._texts(found.operation))
        if found.problem is not None:
            return _Draft(replace(record, problem=found.problem))
        try:
            return self._structure(found, record, root_security)
        except DocumentError as error:
            return _Draft(replace(record, problem=error.message))
        except RecursionError:
            return _Draft(replace(record, problem="Its description is nested too deeply."))

    def _texts(self, operation: Resolved) -> dict[str, Any]:
        value = operation.value
        description = clean_text(value.get("description"), MAX_DESCRIPTION)
        summary = clean_text(value.get("summary"), MAX_SUMMARY)
        tags = value.get("tags")
        named = [clean_text(tag, MAX_TAG) for tag in tags if tag] if isinstance(tags, list) else []
        return {
            "operation_id": _identifier(value.get("operationId")),
            "summary": summary or clip(first_sentence(description), MAX_SUMMARY),
            "description": description,
            "tags": tuple(dict.fromkeys(tag for tag in named if tag))[:MAX_TAGS],
            "deprecated": value.get("deprecated") is True,
        }

    def _structure(
        self, found: Found, record: OperationRecord, root_security: list[dict[str, list[str]]]
    ) -> _Draft:
        reading = self._reading
        parameters = read_parameters(reading, found.item, found.operation, found.path)
        body = read_body(reading, found.operation)
        security = read_security(found.operation.value.get("security"))
        record = replace(
            record,
            servers=self._servers.add(read_servers(self._declared_servers(found))),
            security=self._security.add(root_security if security is None else security),
            has_body=body is not None,
            body_required=body is not None and body.body.required,
            body_properties=() if body is None else body.properties,
            details=self._writer.add(canonical(self._details(found, parameters, body))),
        )
        return _Draft(
            record,
            tuple((read, _parameter_fields(read)) for read in parameters),
            body,
            () if body is None else tuple(_media_fields(body)),
        )

    def _declared_servers(self, found: Found) -> Any:
        for holder in (found.operation.value, found.item.value, self._reading.tree):
            if isinstance(holder, dict) and isinstance(holder.get("servers"), list) and holder["servers"]:
                return holder["servers"]
        return None

    def _details(
        self, found: Found, parameters: list[ReadParameter], body: ReadBody | None
    ) -> dict[str, Any]:
        responses = read_responses(self._reading, found.operation)
        return {
            "parameters": [parameter_fields(read.parameter) for read in parameters],
            "body": None if body is None else _body_row(body),
            "responses": self._writer.add(canonical(responses)) if responses else None,
        }

    def _finished(self, drafts: list[_Draft]) -> Iterator[OperationRecord]:
        digests = self._reading.definitions.digests()
        faults = self._reading.definitions.faults("request")
        for draft in drafts:
            used = _keys(draft)
            broken = next((faults[key] for key in sorted(used) if key in faults), None)
            if broken is not None:
                yield replace(draft.record, problem=f"A schema cannot be read: {broken.message}")
            else:
                yield _with_digests(draft, digests)


_MODES: Final[tuple[Mode, ...]] = ("request", "response")


def _keys(draft: _Draft) -> set[str]:
    keys = {key for read, _ in draft.parameters for key in read.keys}
    return keys.union(*draft.body.keys) if draft.body is not None else keys


def _with_digests(draft: _Draft, digests: dict[str, str]) -> OperationRecord:
    parameters = tuple(
        ParameterRecord(
            read.parameter.location,
            read.parameter.name,
            read.parameter.required,
            digest([fields, [digests[key] for key in targets]]),
        )
        for read, (fields, targets) in draft.parameters
    )
    record = replace(draft.record, parameters=parameters)
    if draft.body is None:
        return record
    media = [[fields, [digests[key] for key in targets]] for fields, targets in draft.body_fields]
    return replace(record, body_digest=digest([draft.body.body.required, sorted(media, key=canonical)]))


def _parameter_fields(read: ReadParameter) -> _Fields:
    own, targets = own_shape(read.parameter.schema)
    return digest_fields(read.parameter, own), targets


def _media_fields(body: ReadBody) -> Iterator[_Fields]:
    for media in body.body.media_types:
        own, targets = (None, ()) if media.schema is None else own_shape(media.schema)
        yield [media.content_type, media.encoding, own], targets


def _body_row(body: ReadBody) -> dict[str, Any]:
    return {
        "required": body.body.required,
        "description": body.body.description,
        "content": [[media.content_type, media.schema, media.encoding] for media in body.body.media_types],
    }


def _identifier(value: Any) -> str | None:
    """Return an operationId as it stands, but for invisible characters; a number is text."""
    if value is None or isinstance(value, (dict, list)):
        return None
    return INVISIBLE.sub("", text_of(value)[: MAX_IDENTIFIER * 10])[:MAX_IDENTIFIER] or None


def _title(tree: dict[str, Any]) -> str:
    info = tree.get("info")
    return clean_text(info.get("title"), MAX_TITLE) if isinstance(info, dict) else ""
