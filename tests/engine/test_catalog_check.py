"""The load report of many documents: the catalog's own, with little kept of each document."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from capdex_engine.catalog import Source, SourceReport, SourceSettings, build_catalog
from capdex_engine.catalog.check import check_documents
from capdex_engine.catalog.reasons import generalised, group_reasons
from capdex_engine.errors import ConfigurationError, DocumentError
from capdex_engine.operation import SecurityScheme
from catalog_support import document, source

BROKEN = {"post": {"operationId": "broken", "requestBody": {"$ref": "#/components/nowhere"}}}
KEY = {"components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}}}
TREE = document(
    {
        "/a": {"get": {"operationId": "clash", "tags": ["keep"], "security": [{"key": []}]}},
        "/b": {"get": {"operationId": "other", "deprecated": True}},
        "/c": BROKEN,
        "/d/{x}": {"get": {"operationId": "undeclared"}},
    },
    webhooks={"done": {"post": {}}},
    **KEY,
)


def sources(**settings: Any) -> list[Source]:
    chosen = SourceSettings(**settings)
    return [
        source(TREE, "one", settings=chosen),
        source({"openapi": "4.0"}, "bad"),
        source(TREE, "two", settings=chosen),
    ]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"hide_deprecated": True, "exclude": ("name:two.clash",)},
        {"include": ("tag:keep",), "overrides": {"GET /nope": {}}},
        {"server": "/relative"},
        {"credentials": frozenset({"key"})},
    ],
)
def test_a_check_says_what_the_catalog_itself_would_say(settings: dict[str, Any]) -> None:
    still = {"clock": lambda: 0.0}
    checked = check_documents(sources(**settings), **still)
    assert checked.to_json() == build_catalog(sources(**settings), **still).report.to_json()
    assert checked.sources[0].kept_out


def test_totals_tell_broken_operations_from_what_was_never_offered() -> None:
    totals = check_documents(sources(hide_deprecated=True), clock=lambda: 0.0).totals()
    assert totals == {
        "documents": 3,
        "operations": 2,
        "keptOut": 8,
        "broken": 4,
        "notCallable": 2,
        "warnings": 0,
        "failed": 1,
        "seconds": 0.0,
        "bytes": sum(len(each.data) for each in sources()),
    }


def test_what_the_settings_leave_out_says_so() -> None:
    (report,) = check_documents([sources(hide_deprecated=True)[0]]).sources
    rows = {entry["path"]: entry for entry in report.to_json()["keptOut"]}
    assert rows["/b"]["bySettings"] is True
    assert "bySettings" not in rows["/c"]


def test_sources_are_taken_one_at_a_time() -> None:
    seen: list[str] = []

    def given() -> Any:
        for each in sources():
            assert len(seen) == len(set(seen))
            yield each
            assert seen[-1] == each.name

    check_documents(given(), watch=lambda each, operations: seen.append(each.name))
    assert seen == ["one", "bad", "two"]


def test_a_source_without_a_document_stands_in_the_report_in_its_place() -> None:
    missing = SourceReport("gone", "gone.json", error=DocumentError("It is gone."))
    report = check_documents([source(TREE, "one"), missing, source(TREE, "two")])
    assert [each.source for each in report.sources] == ["one", "gone", "two"]
    assert report.failed == (missing,)


def test_two_sources_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigurationError):
        check_documents([source(TREE, "one"), source(TREE, "one")])


def test_a_failing_document_costs_its_neighbours_nothing() -> None:
    report = check_documents(sources())
    assert [each.operations for each in report.sources] == [2, 0, 2]
    assert [each.source for each in report.failed] == ["bad"]


def large(number: int) -> Source:
    body = {"description": "x" * 20_000, "type": "object"}
    content = {"content": {"application/json": {"schema": body}}}
    return source(document({"/x": {"post": {"requestBody": content}}}), f"api{number}")


def test_little_is_kept_of_each_document() -> None:
    check_documents([large(0)])  # what is loaded once and stays
    kept: list[int] = []
    tracemalloc.start()
    check_documents(map(large, range(40)), watch=lambda *_: kept.append(tracemalloc.get_traced_memory()[0]))
    tracemalloc.stop()
    assert (kept[-1] - kept[9]) / 30 < 10_000


def test_reasons_that_are_alike_are_counted_together() -> None:
    reasons = group_reasons(check_documents(sources(hide_deprecated=True)))
    found = {(reason.what, reason.count, reason.documents) for reason in reasons}
    assert found == {
        ("document unusable", 1, 1),
        ("operation kept out", 2, 2),
        ("not callable yet", 2, 2),
        ("left out by settings", 2, 2),
        ("webhook", 2, 2),
    }
    kinds = [reason.what for reason in reasons]
    assert kinds[0] == "document unusable" and kinds.count("operation kept out") == 2
    assert reasons[1].example.startswith("/documents/one.json#/paths/")


@pytest.mark.parametrize(
    ("texts", "general"),
    [
        (
            ["The path's variables a, b are not declared.", "The path's variables c are not declared."],
            "The path's variables … are not declared.",
        ),
        (["The scheme 'a b' is out.", "The scheme 'c' is out."], "The scheme '…' is out."),
        (["for 'a': /v1 is a relative URL", "for 'b':  is a relative URL"], "for '…': … is a relative URL"),
        (["see https://a.test/x now", "see http://b.test now"], "see … now"),
        (["holds 12 bytes", "holds 1,300 bytes"], "holds … bytes"),
    ],
)
def test_names_numbers_and_places_do_not_keep_reasons_apart(texts: list[str], general: str) -> None:
    assert {generalised(text) for text in texts} == {general}


def test_an_operation_whose_scheme_is_unknown_waits_for_the_scheme() -> None:
    tree = document({"/a": {"get": {"security": [{"mystery": []}]}}})
    (row,) = group_reasons(check_documents([source(tree)]))
    assert row.what == "not callable yet" and "security_schemes" in row.text
    scheme = SecurityScheme("mystery", "bearer")
    cured = SourceSettings(security_schemes={"mystery": scheme}, credentials=frozenset({"mystery"}))
    assert group_reasons(check_documents([source(tree, settings=cured)])) == []
