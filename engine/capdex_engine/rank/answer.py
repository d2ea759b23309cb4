"""Hits -> the result of ``search_capabilities``, under its byte budget (SPEC section 2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from capdex_engine.catalog.schemas import size
from capdex_engine.operation import SLOTS, Location, Operation
from capdex_engine.rank.searcher import Hit, SearchResult

MATCHES_BYTES: Final = 48 * 1024
"""Default budget of a result, in bytes of its UTF-8 JSON."""
EXACT_BYTES: Final = 512 * 1024
"""Budget of a search for an exact name with ``limit`` 1; the caller decides which holds."""

_SUMMARY_CHARACTERS: Final = 300
_SCHEMAS: Final = ("argumentsSchema", "bodySchema")
_MARK: Final = "schemaTruncated"
_MARK_BYTES: Final = len(',"schemaTruncated":true')
_NULL: Final = len("null")
_ALWAYS: Final[tuple[Location, ...]] = ("path", "query")
_WHEN_SOME: Final[tuple[Location, ...]] = ("header", "cookie")


class Schemas(Protocol):
    """What an answer needs of a :class:`~capdex_engine.catalog.Catalog`."""

    @property
    def revision(self) -> str:
        """Identity of the catalog's contents."""

    def body_schema(self, operation: Operation) -> dict[str, Any] | None:
        """Return the self-contained schema of the body; ``None`` without one."""

    def arguments_schema(self, operation: Operation) -> dict[str, Any]:
        """Return the schema of the argument object without the body."""

    def schema_bytes(self, operation: Operation) -> tuple[int, int]:
        """Return the bytes of both, arguments first, as :func:`size` counts them."""


def build_answer(result: SearchResult, catalog: Schemas, *, max_bytes: int = MATCHES_BYTES) -> dict[str, Any]:
    """Return ``{"matches", "hint"?, "revision"}``; its compact UTF-8 JSON takes at most ``max_bytes``.

    Over the budget, schemas of the lowest matches are cut first, the body's before the arguments',
    and marked ``schemaTruncated``; one that fits after a larger one was cut stays whole. Then whole
    matches are dropped from the bottom, which the hint says.
    """
    answer: dict[str, Any] = {"matches": [_match(hit, catalog) for hit in result.hits]}
    if result.hint is not None:
        answer["hint"] = result.hint
    answer["revision"] = catalog.revision
    return _within(answer, [_weights(hit.operation, catalog) for hit in result.hits], max_bytes)


def _match(hit: Hit, catalog: Schemas) -> dict[str, Any]:
    op = hit.operation
    return {
        "name": op.name,
        "method": op.method,
        "path": op.path,
        "summary": _shortened(op.summary or op.description),
        "source": op.source,
        "score": round(hit.score, 4),
        "deprecated": op.deprecated,
        "readOnly": op.read_only,
        "executable": op.executable,
        **({"reason": op.reason} if op.reason else {}),
        **{SLOTS[where]: list(op.params(where)) for where in _ALWAYS},
        **{SLOTS[where]: list(op.params(where)) for where in _WHEN_SOME if op.params(where)},
        "hasBody": op.has_body,
        "required": _required(op),
        "argumentsSchema": catalog.arguments_schema(op),
        "bodySchema": catalog.body_schema(op) if op.has_body else None,
        "schemaDigest": op.schema_digest,
    }


def _weights(op: Operation, catalog: Schemas) -> tuple[int, int]:
    arguments, body = catalog.schema_bytes(op)
    return arguments, body if op.has_body else _NULL


def _required(op: Operation) -> dict[str, Any]:
    """Return the required names of each slot, and whether a body is."""

    def names(where: Location) -> list[str]:
        return [name for location, name in op.required_params if location == where]

    return {
        **{SLOTS[where]: names(where) for where in _ALWAYS},
        **{SLOTS[where]: names(where) for where in _WHEN_SOME if names(where)},
        "body": op.body_required,
    }


def _shortened(text: str) -> str:
    if len(text) <= _SUMMARY_CHARACTERS:
        return text
    return text[: _SUMMARY_CHARACTERS - 1].rsplit(" ", 1)[0] + "…"


@dataclass(frozen=True, slots=True)
class _Cut:
    """A schema of a match that may give way to its outline."""

    match: dict[str, Any]
    key: str
    whole: Any
    outline: Any
    saved: int
    """Bytes."""


def _within(answer: dict[str, Any], weights: Sequence[tuple[int, int]], max_bytes: int) -> dict[str, Any]:
    """Cut schemas until the answer fits, then put back what there is room for, the best match's first.

    The schemas' bytes are known, and only the rest is counted: an answer may hold hundreds of kilobytes.
    """
    bare = [dict.fromkeys(_SCHEMAS) for _ in weights]
    rest = {
        **answer,
        "matches": [{**match, **none} for match, none in zip(answer["matches"], bare, strict=True)],
    }
    room = max_bytes - size(rest) - sum(weight - _NULL for pair in weights for weight in pair)
    done: list[_Cut] = []
    for cut in _cuts(answer["matches"], weights):
        if room >= 0:
            break
        room += cut.saved - (0 if _MARK in cut.match else _MARK_BYTES)
        cut.match[cut.key], cut.match[_MARK] = cut.outline, True
        done.append(cut)
    _restore(done, room)
    return answer if room >= 0 else _with_fewer(answer, max_bytes)


def _restore(cuts: Sequence[_Cut], room: int) -> None:
    still_cut = set()
    for cut in reversed(cuts):
        if cut.saved <= room:
            cut.match[cut.key], room = cut.whole, room - cut.saved
        else:
            still_cut.add(id(cut.match))
    for cut in cuts:
        if id(cut.match) not in still_cut:
            cut.match.pop(_MARK, None)


def _cuts(matches: Sequence[dict[str, Any]], weights: Sequence[tuple[int, int]]) -> Iterator[_Cut]:
    """Yield what to cut, in order. The first match keeps its arguments longest: it is the likeliest call."""
    for place in (*reversed(range(1, len(matches))), *range(min(len(matches), 1))):
        match = matches[place]
        for key, weight in reversed(list(zip(_SCHEMAS, weights[place], strict=True))):
            if match[key] is not None:
                outline = _outline(match[key], match["required"] if key == _SCHEMAS[0] else {})
                saved = weight - size(outline)
                if saved > 0:
                    yield _Cut(match, key, match[key], outline, saved)


def _outline(schema: Mapping[str, Any], required: Mapping[str, Any]) -> dict[str, Any]:
    """Return the least that is still true of the schema: its type, and the names it requires."""
    slots = [slot for slot, names in required.items() if isinstance(names, list) and names]
    inner = {slot: {"type": "object", "required": list(required[slot])} for slot in slots}
    outline: dict[str, Any] = {key: schema[key] for key in ("type",) if key in schema}
    needed = schema.get("required")
    if isinstance(needed, list) and needed:
        outline["required"] = needed
    if inner:
        outline["properties"] = inner
    return outline


def _with_fewer(answer: dict[str, Any], max_bytes: int) -> dict[str, Any]:
    dropped = 0
    while answer["matches"] and size(answer) > max_bytes:
        answer["matches"].pop()
        dropped += 1
        answer["hint"] = (
            f"{dropped} lower matches did not fit the answer. Ask for one by its exact name with limit 1."
        )
    return answer
