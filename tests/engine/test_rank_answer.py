"""SPEC section 2: the fields of a match, and the byte budget."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capdex_engine.operation import Availability, Operation
from capdex_engine.rank.answer import MATCHES_BYTES, build_answer, size
from capdex_engine.rank.searcher import Hit, SearchResult


class StubCatalog:
    """Serves schemas of a chosen size."""

    revision = "r1"

    def __init__(self, body_characters: int = 0, argument_characters: int = 0) -> None:
        self._body, self._arguments = body_characters, argument_characters

    def body_schema(self, operation: Operation) -> dict[str, Any] | None:
        inner = {"title": {"type": "string", "description": "ü" * self._body}}
        return {"type": "object", "properties": inner, "required": ["title"]}

    def arguments_schema(self, operation: Operation) -> dict[str, Any]:
        note = {"description": "d" * self._arguments} if self._arguments else {}
        return {"type": "object", "properties": {}, "additionalProperties": False, **note}

    def schema_bytes(self, operation: Operation) -> tuple[int, int]:
        return size(self.arguments_schema(operation)), size(self.body_schema(operation))


def operation(name: str, **fields: Any) -> Operation:
    return Operation(name=name, source="shop", method="POST", path=f"/{name}", summary=name, **fields)


def result(*operations: Operation, hint: str | None = None) -> SearchResult:
    scored = (Hit(o, 0.91234567 - i / 100, {}) for i, o in enumerate(operations))
    return SearchResult(tuple(scored), hint)


FULL = operation(
    "createOrder",
    path_params=("shop",),
    query_params=("dry", "trace"),
    header_params=("X-Key",),
    required_params=(("path", "shop"), ("query", "dry"), ("header", "X-Key")),
    has_body=True,
    body_required=True,
    schema_digest="sha256:ab",
    availability=Availability.NO_CREDENTIAL,
    reason="set credentials.shop",
)


def test_a_match_holds_what_the_specification_lists() -> None:
    (match,) = build_answer(result(FULL), StubCatalog())["matches"]
    assert match == {
        "name": "createOrder",
        "method": "POST",
        "path": "/createOrder",
        "summary": "createOrder",
        "source": "shop",
        "score": 0.9123,
        "deprecated": False,
        "readOnly": False,
        "executable": False,
        "reason": "set credentials.shop",
        "pathParams": ["shop"],
        "queryParams": ["dry", "trace"],
        "headerParams": ["X-Key"],
        "hasBody": True,
        "required": {
            "pathParams": ["shop"],
            "queryParams": ["dry"],
            "headerParams": ["X-Key"],
            "body": True,
        },
        "argumentsSchema": {"type": "object", "properties": {}, "additionalProperties": False},
        "bodySchema": StubCatalog().body_schema(FULL),
        "schemaDigest": "sha256:ab",
    }


def test_optional_fields_are_left_out_where_there_is_nothing_to_say() -> None:
    (match,) = build_answer(result(operation("ping")), StubCatalog())["matches"]
    assert match["bodySchema"] is None
    assert match["hasBody"] is False
    assert match["required"] == {"pathParams": [], "queryParams": [], "body": False}
    assert not {"headerParams", "cookieParams", "reason", "schemaTruncated"} & set(match)


def test_a_missing_summary_is_made_from_the_description() -> None:
    bare = Operation(name="x", source="s", description="Does a thing. " * 60)
    (match,) = build_answer(result(bare), StubCatalog())["matches"]
    assert match["summary"].startswith("Does a thing.")
    assert len(match["summary"]) <= 300


def test_no_match_gives_an_empty_list_with_its_hint() -> None:
    assert build_answer(result(hint="try this"), StubCatalog()) == {
        "matches": [],
        "hint": "try this",
        "revision": "r1",
    }


def test_a_small_answer_is_left_whole() -> None:
    answer = build_answer(result(*(operation(f"o{i}", has_body=True) for i in range(5))), StubCatalog(40))
    assert not any("schemaTruncated" in m for m in answer["matches"])


def test_lower_matches_are_cut_first_and_marked() -> None:
    many = [operation(f"o{i}", has_body=True, body_required=True) for i in range(5)]
    answer = build_answer(result(*many), StubCatalog(body_characters=8000))
    cut = [m.get("schemaTruncated", False) for m in answer["matches"]]
    assert size(answer) <= MATCHES_BYTES
    assert cut == sorted(cut)
    assert not cut[0]
    assert answer["matches"][-1]["bodySchema"] == {"type": "object", "required": ["title"]}


class OneLarge(StubCatalog):
    """Serves one body schema that no budget holds."""

    def body_schema(self, operation: Operation) -> dict[str, Any] | None:
        return StubCatalog(80_000 if operation.name == "large" else 40).body_schema(operation)


@pytest.mark.parametrize("place", [0, 1, 4])
def test_one_schema_that_is_too_large_does_not_cost_the_others(place: int) -> None:
    names = [f"o{i}" for i in range(4)]
    names.insert(place, "large")
    answer = build_answer(result(*(operation(name, has_body=True) for name in names)), OneLarge())
    assert [m["name"] for m in answer["matches"] if m.get("schemaTruncated")] == ["large"]
    assert size(answer) <= MATCHES_BYTES


def test_argument_schemas_are_cut_to_the_required_names() -> None:
    needing = [operation(f"o{i}", path_params=("id",), required_params=(("path", "id"),)) for i in range(6)]
    answer = build_answer(result(*needing), StubCatalog(argument_characters=12_000))
    last = answer["matches"][-1]
    assert last["schemaTruncated"] is True
    assert last["argumentsSchema"]["properties"] == {"pathParams": {"type": "object", "required": ["id"]}}
    assert last["pathParams"] == ["id"]


def test_a_larger_budget_keeps_the_whole_schema() -> None:
    one = result(operation("big", has_body=True))
    catalog = StubCatalog(body_characters=60_000)
    assert build_answer(one, catalog)["matches"][0]["schemaTruncated"] is True
    assert "schemaTruncated" not in build_answer(one, catalog, max_bytes=512 * 1024)["matches"][0]


def test_matches_are_dropped_from_the_bottom_where_bare_ones_do_not_fit() -> None:
    answer = build_answer(result(*(operation(f"o{i}") for i in range(20))), StubCatalog(), max_bytes=3000)
    names = [m["name"] for m in answer["matches"]]
    assert size(answer) <= 3000
    assert 0 < len(names) < 20
    assert names == [f"o{i}" for i in range(len(names))]
    assert "hint" in answer


@pytest.mark.parametrize("text", ["日本語", "emoji 🎈", 'quote " and \\'])
def test_the_budget_counts_bytes_of_utf8(text: str) -> None:
    value = {"a": text}
    assert size(value) == len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


@settings(deadline=None, max_examples=40)
@given(
    st.integers(0, 20),
    st.integers(0, 9000),
    st.integers(0, 9000),
    st.integers(400, 60_000),
)
def test_no_answer_exceeds_its_budget(count: int, body: int, arguments: int, budget: int) -> None:
    many = [operation(f"o{i}", has_body=i % 2 == 0) for i in range(count)]
    answer = build_answer(result(*many), StubCatalog(body, arguments), max_bytes=budget)
    assert size(answer) <= budget
    marks = [m.get("schemaTruncated", False) for m in answer["matches"]]
    assert len(marks) == count or all(marks)
