"""search_capabilities' own input, checked by one precompiled validator: every issue at once.

execute_capability's is read by the engine, which needs it decoded (``capdex_engine.call``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from jsonschema import Draft202012Validator

from capdex_engine.call.explain import explain
from capdex_engine.call.issues import bounded, issue
from capdex_engine.errors import InvalidRequest
from capdex_engine.rank.tool import SEARCH_INPUT

_VALIDATOR: Final = Draft202012Validator(SEARCH_INPUT)
DEFAULT_LIMIT: Final = 5


@dataclass(frozen=True, slots=True)
class Search:
    """The tool's input, read."""

    query: str
    """With at least one character that is no space."""
    limit: int = DEFAULT_LIMIT
    source: str | None = None
    read_only: bool = False

    @property
    def filters(self) -> list[str]:
        """The names of the filters that the search gives."""
        return ["source"] * (self.source is not None) + ["readOnly"] * self.read_only


def read_search(arguments: object) -> Search:
    """Read the tool's input; ``null`` counts as not given.

    Raises:
        InvalidRequest: With every issue.
    """
    if not isinstance(arguments, Mapping):
        raise InvalidRequest("The input of search_capabilities must be an object with a query.")
    given = {key: value for key, value in arguments.items() if value is not None}
    found = explain(_VALIDATOR.iter_errors(given), "input")
    if not found and not given["query"].strip():
        found = [issue("input", ("query",), "minLength", "must say what is looked for")]
    if found:
        texts = "; ".join(each["message"] for each in found[:3])
        raise InvalidRequest(f"The input does not fit search_capabilities: {texts}.", issues=bounded(found))
    return _search(given)


def _search(given: Mapping[str, Any]) -> Search:
    return Search(
        query=_sound(given["query"]),
        limit=int(given.get("limit", DEFAULT_LIMIT)),
        source=given.get("source"),
        read_only=given.get("readOnly", False),
    )


def _sound(query: str) -> str:
    """Replace halves of surrogate pairs, which JSON can carry and no encoder can read."""
    return query.encode("utf-8", "replace").decode("utf-8")
