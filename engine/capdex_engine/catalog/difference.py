"""What changed between two catalogs for someone who calls their operations.

Answers are not compared: a caller cannot get them wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from capdex_engine.catalog.schema_changes import Change, Place, schema_changes
from capdex_engine.catalog.snapshot import Catalog
from capdex_engine.operation import (
    Availability,
    Body,
    Operation,
    OperationDetails,
    Parameter,
)

MAX_CHANGES: Final = 100
"""Changes that are told of one operation."""
_VARIABLE: Final = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True, slots=True)
class Changed:
    """One operation that is in both catalogs, and differs."""

    old: Operation
    new: Operation
    changes: tuple[Change, ...]

    @property
    def breaking(self) -> bool:
        """Whether a call that was right may be wrong now."""
        return any(change.breaking for change in self.changes)

    def to_json(self) -> dict[str, Any]:
        """Return the new row with ``was`` (the old name, method and path), ``breaking`` and ``changes``."""
        return {
            **_row(self.new),
            "was": {"name": self.old.name, "method": self.old.method, "path": self.old.path},
            "breaking": self.breaking,
            "changes": [change.to_json() for change in self.changes],
        }


@dataclass(frozen=True, slots=True)
class Difference:
    """What one catalog has and the other has not; operations by name."""

    added: tuple[Operation, ...]
    removed: tuple[Operation, ...]
    changed: tuple[Changed, ...]

    @property
    def equal(self) -> bool:
        """Whether a caller would notice nothing."""
        return not (self.added or self.removed or self.changed)

    @property
    def breaking(self) -> int:
        """Operations that are gone, or changed in a way that may break a call."""
        return len(self.removed) + sum(changed.breaking for changed in self.changed)

    def to_json(self) -> dict[str, Any]:
        """Return ``{"equal", "breaking", "added": [...], "removed": [...], "changed": [...]}``."""
        return {
            "equal": self.equal,
            "breaking": self.breaking,
            "added": [_row(operation) for operation in self.added],
            "removed": [_row(operation) for operation in self.removed],
            "changed": [changed.to_json() for changed in self.changed],
        }


def compare_catalogs(old: Catalog, new: Catalog) -> Difference:
    """Return what changed for a caller.

    An operation is the same in both when its method and path are, else when its name is, else when
    its path is but for the names of its variables; within a source of one name before any other. What
    the settings leave out does not exist.
    """
    pairs, removed, added = _matched(_existing(old), _existing(new))
    told = (Changed(one, other, _changes(old, one, new, other)) for one, other in pairs)
    changed = sorted((each for each in told if each.changes), key=lambda each: each.new.name)
    # What is kept out, and was not there or is gone, is nothing that a caller sees.
    added, removed = (
        [one for one in side if one.availability is not Availability.KEPT_OUT] for side in (added, removed)
    )
    return Difference(_by_name(added), _by_name(removed), tuple(changed))


_Pair = tuple[Operation, Operation]
_KEYS: Final[tuple[Callable[[Operation], tuple[str, ...]], ...]] = (
    lambda operation: (operation.source, operation.key, operation.name),
    lambda operation: (operation.key, operation.name),
    lambda operation: (operation.source, operation.key),
    lambda operation: (operation.key,),
    lambda operation: (operation.source, operation.name),
    lambda operation: (operation.name,),
    lambda operation: (operation.source, _VARIABLE.sub("{}", operation.key)),
    lambda operation: (_VARIABLE.sub("{}", operation.key),),
)
"""What tells that two operations are the same, the surest first."""


def _matched(
    old: list[Operation], new: list[Operation]
) -> tuple[list[_Pair], list[Operation], list[Operation]]:
    """Return the pairs, and what is left over on either side."""
    pairs: list[_Pair] = []
    for key in _KEYS:
        before, after = _unique(old, key), _unique(new, key)
        found = [(before[mark], after[mark]) for mark in before if mark in after]
        pairs += found
        gone = {id(one) for one, _ in found}
        come = {id(other) for _, other in found}
        old = [operation for operation in old if id(operation) not in gone]
        new = [operation for operation in new if id(operation) not in come]
    return pairs, old, new


def _unique(
    operations: Iterable[Operation], key: Callable[[Operation], tuple[str, ...]]
) -> dict[tuple[str, ...], Operation]:
    found: dict[tuple[str, ...], Operation] = {}
    several: set[tuple[str, ...]] = set()
    for operation in operations:
        mark = key(operation)
        if mark in found:
            several.add(mark)
        found[mark] = operation
    return {mark: operation for mark, operation in found.items() if mark not in several}


def _existing(catalog: Catalog) -> list[Operation]:
    everything = (*catalog.operations, *catalog.kept_out)
    return [operation for operation in everything if operation.availability is not Availability.LEFT_OUT]


def _by_name(operations: Iterable[Operation]) -> tuple[Operation, ...]:
    return tuple(sorted(operations, key=lambda operation: operation.name))


def _changes(old: Catalog, one: Operation, new: Catalog, other: Operation) -> tuple[Change, ...]:
    before, after = old.details(one), new.details(other)
    found = [*_identity(one, other), *_availability(one, other)]
    if Availability.KEPT_OUT not in {one.availability, other.availability}:
        arguments = list(_arguments(before, after)) if one.schema_digest != other.schema_digest else []
        if one.schema_digest != other.schema_digest and not arguments and one.key == other.key:
            # Deeper down than is told one by one; nothing that a caller depends on changes unsaid.
            arguments.append(Change("body", "arguments changed in a part of their schemas", breaking=True))
        found += [*arguments, *_surroundings(before, after)]
    found += _texts(one, other)
    unique = list(dict.fromkeys(found))
    if len(unique) > MAX_CHANGES:
        unique.sort(key=lambda change: not change.breaking)
        rest = unique[MAX_CHANGES:]
        more = Change("body", f"{len(rest)} more changes", any(change.breaking for change in rest))
        unique = [*unique[:MAX_CHANGES], more]
    return tuple(unique)


def _identity(one: Operation, other: Operation) -> Iterator[Change]:
    if one.name != other.name:
        yield Change("renamed", f"is named {other.name} instead of {one.name}", breaking=True)
    if one.key != other.key:
        yield Change("moved", f"is {other.key} instead of {one.key}", breaking=True)


def _availability(one: Operation, other: Operation) -> Iterator[Change]:
    if one.availability is other.availability:
        return
    if other.executable:
        yield Change("availability", "can be called now")
    elif one.executable:
        yield Change("availability", f"can no longer be called: {other.reason}", breaking=True)
    else:
        out = other.availability is Availability.KEPT_OUT
        yield Change("availability", f"cannot be called for another reason: {other.reason}", breaking=out)


def _texts(one: Operation, other: Operation) -> Iterator[Change]:
    if one.deprecated != other.deprecated:
        yield Change("deprecated", "is deprecated now" if other.deprecated else "is no longer deprecated")
    if one.summary != other.summary:
        yield Change("summary", f"has the summary {other.summary!r} instead of {one.summary!r}")
    if one.description != other.description:
        yield Change("description", "has another description")
    if (one.tags, one.keywords) != (other.tags, other.keywords):
        yield Change("tags", f"has the tags {_listed(other.tags)} instead of {_listed(one.tags)}")


def _arguments(before: OperationDetails, after: OperationDetails) -> Iterator[Change]:
    yield from _parameters(before, after)
    yield from _body(before, after)


def _parameters(before: OperationDetails, after: OperationDetails) -> Iterator[Change]:
    old, new = _by_place(before.parameters), _by_place(after.parameters)
    for mark, parameter in old.items():
        if mark not in new:
            yield _place(parameter).change("is gone", breaking=True)
        else:
            yield from _parameter(parameter, new[mark], before, after)
    for mark, parameter in new.items():
        if mark not in old:
            said = "is new, and required" if parameter.required else "is new"
            yield _place(parameter).change(said, breaking=parameter.required)


def _parameter(
    one: Parameter, other: Parameter, before: OperationDetails, after: OperationDetails
) -> Iterator[Change]:
    place = _place(other)
    if one.required != other.required:
        said = "became required" if other.required else "is no longer required"
        yield place.change(said, breaking=other.required)
    yield from schema_changes(
        one.schema,
        other.schema,
        place,
        old_definitions=before.definitions,
        new_definitions=after.definitions,
    )
    if _form(one) != _form(other):
        # The server writes it the new way: who gives the value need not care.
        yield place.change("is written in another way into the request", breaking=False)


def _form(parameter: Parameter) -> tuple[Any, ...]:
    return (
        parameter.name,
        parameter.style,
        parameter.explode,
        parameter.allow_reserved,
        parameter.content_type,
        parameter.delimiter,
    )


def _place(parameter: Parameter) -> Place:
    return Place("parameter", f"{parameter.location} parameter {parameter.name}")


def _by_place(parameters: Iterable[Parameter]) -> dict[tuple[str, str], Parameter]:
    return {(each.location, _folded(each)): each for each in parameters}


def _folded(parameter: Parameter) -> str:
    return parameter.name.lower() if parameter.location == "header" else parameter.name


def _body(before: OperationDetails, after: OperationDetails) -> Iterator[Change]:
    old, new = before.body, after.body
    if old is None or new is None:
        if new is not None:
            said = "body is new, and required" if new.required else "body is new"
            yield Change("body", said, new.required)
        elif old is not None:
            yield Change("body", "body is gone", breaking=True)
        return
    if old.required != new.required:
        said = "body became required" if new.required else "body is no longer required"
        yield Change("body", said, new.required)
    yield from _media_types(old, new, before, after)


def _media_types(old: Body, new: Body, before: OperationDetails, after: OperationDetails) -> Iterator[Change]:
    known = {media.content_type.lower(): media for media in old.media_types}
    for media in new.media_types:
        one = known.pop(media.content_type.lower(), None)
        if one is None:
            yield Change("media type", f"body may be {media.content_type} too")
            continue
        yield from schema_changes(
            True if one.schema is None else one.schema,
            True if media.schema is None else media.schema,
            Place("body", "body"),
            old_definitions=before.definitions,
            new_definitions=after.definitions,
        )
        if one.encoding != media.encoding:
            yield Change("media type", f"body as {media.content_type} is written in another way")
    for media in known.values():
        yield Change("media type", f"body can no longer be {media.content_type}", breaking=True)


def _surroundings(before: OperationDetails, after: OperationDetails) -> Iterator[Change]:
    if before.base_url != after.base_url and before.base_url and after.base_url:
        yield Change("server", f"is called at {after.base_url} instead of {before.base_url}")
    old, new = _alternatives(before), _alternatives(after)
    if old != new:
        # An empty list of alternatives needs nothing, as an empty alternative does.
        fewer = not (old or {""}) <= (new or {""}) and "" not in (new or {""})
        yield Change("security", f"needs {_needs(new)} instead of {_needs(old)}", breaking=fewer)


def _alternatives(details: OperationDetails) -> frozenset[str]:
    return frozenset(
        " and ".join(_scheme(name, scopes, details) for name, scopes in sorted(each.items()))
        for each in details.security
    )


def _scheme(name: str, scopes: tuple[str, ...], details: OperationDetails) -> str:
    scheme = details.security_schemes.get(name)
    kind = "unknown" if scheme is None else scheme.kind
    where = f" in {scheme.location} {scheme.parameter_name}" if scheme and scheme.location else ""
    wanted = f" for {', '.join(sorted(scopes))}" if scopes else ""
    return f"{name} ({kind}{where}){wanted}"


def _needs(alternatives: frozenset[str]) -> str:
    return " or ".join(sorted(each or "nothing" for each in alternatives)) or "no credential"


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words) or "none"


def _row(operation: Operation) -> Mapping[str, Any]:
    return {
        "name": operation.name,
        "source": operation.source,
        "method": operation.method,
        "path": operation.path,
        "summary": operation.summary,
    }
