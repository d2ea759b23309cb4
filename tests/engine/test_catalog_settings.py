"""What an operator can choose and cure."""

from __future__ import annotations

from typing import Any

import pytest

from catalog_support import catalog_of, document

TREE = document(
    {
        "/users": {
            "get": {"operationId": "users/list", "tags": ["users"]},
            "delete": {"operationId": "users/purge", "tags": ["admin-users"]},
        },
        "/admin/keys": {"get": {"operationId": "keys/list", "tags": ["admin"], "deprecated": True}},
    }
)


def offered(**settings: Any) -> list[str]:
    return [operation.name for operation in catalog_of(TREE, **settings).operations]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("tag:admin*", ["keys_list", "users_purge"]),
        ("path:/admin/*", ["keys_list"]),
        ("method:delete", ["users_purge"]),
        ("method:*", ["keys_list", "users_list", "users_purge"]),
        ("name:users*", ["users_list", "users_purge"]),
        ("users/*", ["users_list", "users_purge"]),
        ("*_list", ["keys_list", "users_list"]),
        ("tag:admin", ["keys_list"]),
        ("none", []),
    ],
)
def test_patterns_choose_by_name_tag_method_and_path(pattern: str, names: list[str]) -> None:
    everything = offered()
    assert offered(include=(pattern,)) == names
    assert offered(exclude=(pattern,)) == [name for name in everything if name not in names]


def test_exclusion_wins_over_inclusion() -> None:
    assert offered(include=("tag:*",), exclude=("method:DELETE",)) == ["keys_list", "users_list"]


def test_what_is_left_out_is_kept_out_with_the_setting_as_reason() -> None:
    catalog = catalog_of(TREE, exclude=("tag:admin*",), hide_deprecated=True)
    assert [operation.name for operation in catalog.kept_out] == ["keys_list", "users_purge"]
    assert all("exclude" in str(operation.reason) for operation in catalog.kept_out)
    assert "include" in str(catalog_of(TREE, include=("x",)).kept_out[0].reason)


def test_deprecated_operations_can_be_hidden() -> None:
    catalog = catalog_of(TREE, hide_deprecated=True)
    assert [operation.name for operation in catalog.kept_out] == ["keys_list"]
    assert "hide_deprecated" in str(catalog.kept_out[0].reason)


def test_leaving_something_out_renames_nothing() -> None:
    tree = document({"/a": {"get": {"operationId": "x"}}, "/b": {"get": {"operationId": "x"}}})
    before = {operation.path: operation.name for operation in catalog_of(tree).operations}
    (left,) = catalog_of(tree, exclude=("path:/b",)).operations
    assert left.name == before["/a"]


def test_an_override_cures_the_summary_and_adds_keywords() -> None:
    overrides = {
        "users/list": {"summary": "By id", "keywords": ["people"]},
        "GET /users": {"summary": "Find\u202e people", "keywords": ["staff", ""]},
        "users/purge": {"keywords": "wipe"},
    }
    catalog = catalog_of(TREE, overrides=overrides)
    listed, purged = catalog.get("users_list"), catalog.get("users_purge")
    assert listed is not None and (listed.summary, listed.keywords) == ("Find people", ("staff",))
    assert purged is not None and (purged.summary, purged.keywords) == ("", ("wipe",))


def test_an_override_changes_the_revision_and_no_digest() -> None:
    plain, cured = catalog_of(TREE), catalog_of(TREE, overrides={"GET /users": {"summary": "Other"}})
    assert plain.revision != cured.revision
    assert [op.schema_digest for op in plain.operations] == [op.schema_digest for op in cured.operations]


def test_settings_that_meet_nothing_are_remarked() -> None:
    catalog = catalog_of(TREE, include=("*",), exclude=("tag:nope",), overrides={"GET /nope": {}})
    messages = " ".join(remark.message for remark in catalog.report.sources[0].warnings)
    assert "tag:nope" in messages and "GET /nope" in messages and "'*'" not in messages


def test_what_is_left_out_is_unknown_by_its_name_and_its_path() -> None:
    catalog = catalog_of(TREE, exclude=("tag:*", "name:*"))
    assert catalog.kept_out
    assert not any(
        catalog.get(operation.name) or catalog.get(operation.key) for operation in catalog.kept_out
    )
