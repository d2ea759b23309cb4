"""Exact names, operationIds and endpoints in a query."""

from __future__ import annotations

import pytest

from capdex_engine.operation import Operation
from capdex_engine.rank.exact import ExactNames


def op(name: str, method: str = "", path: str = "", operation_id: str | None = None) -> Operation:
    return Operation(name=name, source="s", method=method, path=path, operation_id=operation_id)


OPERATIONS = [
    op("issues_list-for-repo", "GET", "/repos/{owner}/{repo}/issues", "issues/list-for-repo"),
    op("issues_create", "POST", "/repos/{owner}/{repo}/issues"),
    op("plan", "GET", "/plan"),
    op("searchFiles", "GET", "/files/search"),
    op("getFile", "GET", "/files/{id}"),
    op("github.createIssue", "POST", "/issues", "createIssue"),
    op("gitlab.createIssue", "POST", "/issues", "createIssue"),
]
NAMES = ExactNames(OPERATIONS)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("issues_list-for-repo", (0,)),
        ("issues/list-for-repo", (0,)),
        ("IssuesListForRepo", (0,)),
        ("issues list for repo", (0,)),
        ("`plan`", (2,)),
        ("PLAN", (2,)),
        ("GET /plan", (2,)),
        ("get /repos/{o}/{r}/issues/", (0,)),
        ("POST /repos/acme/shop/issues", (1,)),
        ("GET /files/search", (3,)),
        ("GET /files/77?fields=name", (4,)),
        ("/plan", (2,)),
        ("/repos/{owner}/{repo}/issues", (0, 1)),
        ("createIssue", (5, 6)),
        ("gitlab.createIssue", (6,)),
        ("DELETE /plan", ()),
        ("no such name", ()),
        ("???", ()),
    ],
)
def test_a_query_that_is_a_name_finds_its_operations(query: str, rows: tuple[int, ...]) -> None:
    assert sorted(NAMES.find(query).whole) == list(rows)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("please call issues_create and then getFile for me", (1, 4)),
        ("what does `searchFiles` do?", (3,)),
        ("use searchFiles, issues_list-for-repo, getFile", (3, 0, 4)),
        ("plan and searchFiles", (2, 3)),
        ("is GET /files/{id}, or GET /plan the right one", (4, 2)),
        ("I plan a trip", ()),
        ("make a plan for searching files", ()),
    ],
)
def test_names_among_other_words_are_found_in_their_order(query: str, rows: tuple[int, ...]) -> None:
    named = NAMES.find(query)
    assert named.whole == ()
    assert list(dict.fromkeys(named.among)) == list(rows)


def test_a_literal_path_goes_before_a_template_that_it_fits() -> None:
    assert NAMES.find("GET /files/search").whole == (3,)


def test_operations_without_a_path_are_found_by_name_only() -> None:
    names = ExactNames([op("tool")])
    assert names.find("tool").whole == (0,)
    assert names.find("/").whole == ()


VARIANTS = ExactNames(
    [
        op("getUser", "GET", "/a"),
        op("getuser", "GET", "/a/"),
        op("get_user", "GET", "/b?action=list"),
        op("get_1f3a", "GET", "/b?action=del", "😀"),
        op("byId", "GET", "/contacts/{id}"),
        op("byNumber", "GET", "/contacts/{number}"),
    ]
)


@pytest.mark.parametrize(
    ("query", "row"),
    [
        ("getuser", 1),
        ("get_user", 2),
        ("GET /a", 0),
        ("GET /a/", 1),
        ("GET /b?action=del", 3),
        ("GET /contacts/{number}", 5),
        ("/contacts/{id}", 4),
        ("😀", 3),
    ],
)
def test_of_names_that_differ_in_their_writing_the_literal_one_counts(query: str, row: int) -> None:
    assert VARIANTS.find(query).whole == (row,)


def test_the_other_writings_of_a_name_keep_a_place() -> None:
    assert VARIANTS.find("getuser").among == (0, 2)
