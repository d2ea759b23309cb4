"""Hits -> the result of ``search_capabilities``, under its byte budget (SPEC section 2)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from capdex_engine.operation import SLOTS, Location, Operation
from capdex_engine.rank.searcher import Hit, SearchResult

MATCHES_BYTES: Final = 48 * 1024
"""Default budget of a result, in bytes of its UTF-8 JSON."""
EXACT_BYTES: Final = 512 * 1024
"""Budget of a search for an exact name with ``limit`` 1; the caller decides which holds."""

_SUMMARY_CHARACTERS: Final = 300
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
    return _within(answer, max_bytes)


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


def size(value: Any) -> int:
    """Return the bytes of ``value`` as compact UTF-8 JSON."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))


def _within(answer: dict[str, Any], max_bytes: int) -> dict[str, Any]:
    """Cut schemas until the answer fits, then put back what there is room for, the best match's first."""
    room = max_bytes - size(answer)
    cuts: list[tuple[dict[str, Any], str, Any]] = []
    for match, key in _cuts(answer["matches"]):
        if room >= 0:
            break
        before, whole = size(match), match[key]
        match[key] = _outline(whole, match["required"] if key == "argumentsSchema" else {})
        match["schemaTruncated"] = True
        room += before - size(match)
        cuts.append((match, key, whole))
    _restore(cuts, room)
    return answer if room >= 0 else _with_fewer(answer, max_bytes)


def _restore(cuts: Sequence[tuple[dict[str, Any], str, Any]], room: int) -> None:
    still_cut = set()
    for match, key, whole in reversed(cuts):
        more = size(whole) - size(match[key])
        if more <= room:
            match[key], room = whole, room - more
        else:
            still_cut.add(id(match))
    for match, _, _ in cuts:
        if id(match) not in still_cut:
            match.pop("schemaTruncated", None)


def _cuts(matches: Sequence[dict[str, Any]]) -> Iterable[tuple[dict[str, Any], str]]:
    """Yield what to cut, in order. The first match keeps its arguments longest: it is the likeliest call."""
    lower = [(match, key) for match in reversed(matches[1:]) for key in ("bodySchema", "argumentsSchema")]
    first = [(match, key) for match in matches[:1] for key in ("bodySchema", "argumentsSchema")]
    return (cut for cut in (*lower, *first) if _outlined_pays(*cut))


def _outlined_pays(match: Mapping[str, Any], key: str) -> bool:
    return match[key] is not None and size(_outline(match[key], match["required"])) < size(match[key])


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
