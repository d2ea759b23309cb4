"""The whole Searcher with an encoder that knows no meaning but shared words."""

from __future__ import annotations

import random

import faiss
import numpy as np
import pytest

from capdex_engine.encode.testing import HashEncoder
from capdex_engine.operation import Operation
from capdex_engine.rank import Searcher


def op(name: str, method: str, path: str, summary: str, **fields: object) -> Operation:
    return Operation(
        name=name, source="hub", method=method, path=path, summary=summary, key=f"{method} {path}", **fields
    )  # type: ignore[arg-type]


OPERATIONS = [
    op("createIssue", "POST", "/issues", "Create an issue"),
    op("listIssues", "GET", "/issues", "List issues"),
    op("getIssue", "GET", "/issues/{id}", "Get an issue"),
    op("updateIssue", "PATCH", "/issues/{id}", "Update an issue"),
    op("deleteIssue", "DELETE", "/issues/{id}", "Delete an issue"),
    op("addLabel", "POST", "/issues/{id}/labels", "Add a label to an issue"),
    op("mergePullRequest", "PUT", "/pulls/{id}/merge", "Merge a pull request"),
    op("starRepository", "PUT", "/starred/{repo}", "Star a repository"),
    op("listWebhooks", "GET", "/hooks", "List webhooks"),
    op("legacyListWebhooks", "GET", "/v1/hooks", "List webhooks", deprecated=True),
    op("uploadFile", "POST", "/files", "Upload a file"),
]
SEARCHER = Searcher.build(OPERATIONS, HashEncoder())


def names(query: str, **options: object) -> list[str]:
    return [hit.operation.name for hit in SEARCHER.search(query, **options).hits]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("create an issue", "createIssue"),
        ("open issues: list all", "listIssues"),
        ("add a label", "addLabel"),
        ("merge a pull request", "mergePullRequest"),
        ("star a repository", "starRepository"),
        ("delete issue 17", "deleteIssue"),
        ("file upload", "uploadFile"),
        ("web hooks", "listWebhooks"),
        ("upload", "uploadFile"),
    ],
)
def test_verb_and_noun_find_their_operation(query: str, name: str) -> None:
    assert names(query)[0] == name


@pytest.mark.parametrize(
    "query", ["createIssue", "create_issue", "CREATE-ISSUE", "POST /issues", "post /issues/", "`createIssue`"]
)
def test_an_exact_name_is_first_with_full_score(query: str) -> None:
    first, *rest = SEARCHER.search(query, limit=5).hits
    assert first.operation.name == "createIssue"
    assert first.score == 1.0
    assert all(hit.score < 0.97 for hit in rest)


def test_a_request_in_the_very_words_of_a_name_goes_before_longer_names() -> None:
    decoys = [
        op(f"createIssue{kind}", "POST", f"/{kind}", f"Create an issue {kind}") for kind in ("Type", "Field")
    ]
    hub = op(
        "issues_create",
        "POST",
        "/repos/{repo}/issues",
        "Create one",
        description="By anybody with pull access.",
    )
    searcher = Searcher.build([*decoys, hub], HashEncoder())
    assert searcher.search("create an issue").hits[0].operation.name == "issues_create"


def test_names_among_other_words_all_get_a_place() -> None:
    found = names("use starRepository, uploadFile and getIssue to list webhooks", limit=3)
    assert set(found) == {"starRepository", "uploadFile", "getIssue"}


def test_each_of_several_needs_is_represented() -> None:
    found = names("create an issue, then merge the pull request and star the repository", limit=3)
    assert set(found) == {"createIssue", "mergePullRequest", "starRepository"}


def test_hits_are_sorted_by_score_then_name() -> None:
    hits = SEARCHER.search("issue labels and webhooks", limit=20).hits
    order = [(-hit.score, hit.operation.name) for hit in hits]
    assert order == sorted(order)
    assert all(0.0 <= hit.score <= 1.0 for hit in hits)


def test_a_deprecated_twin_comes_after_the_current_one() -> None:
    found = names("list webhooks", limit=5)
    assert found.index("listWebhooks") < found.index("legacyListWebhooks")


@pytest.mark.parametrize("query", ["the of and", "...", "what is it", "?!", " "])
def test_stop_words_alone_match_nothing_and_say_what_to_do(query: str) -> None:
    result = SEARCHER.search(query)
    assert result.hits == ()
    assert result.hint


def test_nothing_outside_the_mask_is_found_or_counted() -> None:
    allowed = np.array([o.method == "GET" for o in OPERATIONS])
    found = names("create an issue", limit=20, allowed=allowed)
    assert found
    assert set(found) <= {o.name for o in OPERATIONS if o.method == "GET"}
    assert "createIssue" not in names("createIssue", limit=20, allowed=allowed)


def test_nothing_allowed_is_an_empty_result() -> None:
    result = SEARCHER.search("create an issue", allowed=np.zeros(len(OPERATIONS), dtype=bool))
    assert (result.hits, bool(result.hint)) == ((), True)


def test_an_empty_catalog_answers_with_a_hint() -> None:
    result = Searcher.build([], HashEncoder()).search("anything")
    assert (result.hits, bool(result.hint)) == ((), True)


@pytest.mark.parametrize("limit", [1, 2, 5, 11, 20])
def test_the_limit_is_kept_and_a_longer_list_begins_alike(limit: int) -> None:
    found = names("issue", limit=limit)
    assert len(found) <= limit
    assert found == names("issue", limit=20)[: len(found)]


@pytest.mark.parametrize(
    "query", ["создать задачу issue", "创建 issue", "課題を作成", "crear una incidencia"]
)
def test_requests_in_other_languages_give_results(query: str) -> None:
    languages = Searcher.build(
        [
            *OPERATIONS,
            op("kadai", "POST", "/kadai", "課題を作成する"),
            op("inc", "POST", "/inc", "Crear incidencia"),
        ],
        HashEncoder(),
    )
    assert languages.search(query).hits


def test_the_result_does_not_depend_on_the_order_of_operations() -> None:
    queries = ["create an issue", "webhooks", "list all the issues and merge a pull request", "label"]
    expected = [[(h.operation.name, h.score) for h in SEARCHER.search(q, limit=10).hits] for q in queries]
    for seed in range(5):
        shuffled = random.Random(seed).sample(OPERATIONS, len(OPERATIONS))
        searcher = Searcher.build(shuffled, HashEncoder())
        assert expected == [
            [(h.operation.name, h.score) for h in searcher.search(q, limit=10).hits] for q in queries
        ]


def test_the_mask_follows_the_callers_order_of_operations() -> None:
    backwards = OPERATIONS[::-1]
    searcher = Searcher.build(backwards, HashEncoder())
    allowed = np.array([o.name == "uploadFile" for o in backwards])
    assert [h.operation.name for h in searcher.search("issue file", allowed=allowed).hits] == ["uploadFile"]


def test_the_result_does_not_depend_on_the_number_of_threads() -> None:
    before = faiss.omp_get_max_threads()
    results = []
    for threads in (1, 4):
        faiss.omp_set_num_threads(threads)
        results.append(
            [(h.operation.name, h.score) for h in SEARCHER.search("list issue labels", limit=10).hits]
        )
    faiss.omp_set_num_threads(before)
    assert results[0] == results[1]


def test_vectors_and_operations_must_be_as_many() -> None:
    with pytest.raises(ValueError):
        Searcher(OPERATIONS, HashEncoder(), vectors=np.zeros((1, 256), dtype=np.float32))


def test_parts_say_what_a_score_is_made_of() -> None:
    hit = SEARCHER.search("create an issue").hits[0]
    assert {"meaning", "words", "name_fill"} <= set(hit.parts)
