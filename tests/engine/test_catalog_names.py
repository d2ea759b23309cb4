"""Names: SPEC section 1, as laws."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex_engine.catalog.names import (
    MAX_LENGTH,
    Nameable,
    assign_names,
    built_name,
    clean_name,
)

PATTERN = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def item(operation_id: str | None, path: str = "/x", source: str = "api", method: str = "GET") -> Nameable:
    return Nameable(source, f"{method} {path}", operation_id, method, path)


def names_of(*items: Nameable) -> list[str]:
    return assign_names(items)


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("list all/items (v2)", "list_all_items_v2"),
        ("créer élément", "creer_element"),
        ("actions/list-jobs", "actions_list-jobs"),
        ("%73elect", "73elect"),
        (" padded ", "padded"),
        ("_search", "_search"),
        ("получить", ""),
    ],
)
def test_an_operation_id_is_cleaned(raw: str, clean: str) -> None:
    assert clean_name(raw) == clean


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("GET", "/workers/{id}/jobs", "getWorkersByIdJobs"),
        ("POST", "/a-b/{some_id}", "postABBySomeId"),
        ("GET", "/", "get"),
        ("DELETE", "/été", "deleteEte"),
        ("GET", "/files/{name}.{ext}", "getFilesByNameByExt"),
        ("", "/list", "pathList"),
    ],
)
def test_a_missing_id_is_built_from_method_and_path(method: str, path: str, name: str) -> None:
    assert built_name(method, path) == name


def test_an_id_without_any_usable_character_is_built_from_method_and_path() -> None:
    assert names_of(item("получить", "/pets")) == ["getPets"]


def test_of_duplicates_none_keeps_the_bare_name() -> None:
    assert names_of(item("list", "/u"), item("list", "/v")) == ["list_getU", "list_getV"]


def test_a_suffixed_name_never_takes_the_name_of_a_real_operation() -> None:
    names = names_of(item("list", "/u"), item("list", "/v"), item("list_getU", "/w"))
    assert len(set(names)) == 3
    assert "list" not in names and "list_getU" not in names


def test_built_names_that_agree_are_told_apart_by_a_hash_of_their_path() -> None:
    names = names_of(item(None, "/a-b"), item(None, "/a_b"), item(None, "/a/b"))
    assert len(set(names)) == 3
    assert all(name.startswith("getAB_") for name in names)


def test_clashing_sources_both_get_their_prefix() -> None:
    names = names_of(item("createIssue", source="github"), item("createIssue", source="gitlab"))
    assert names == ["github.createIssue", "gitlab.createIssue"]


def test_a_third_source_keeps_its_bare_name_out_of_the_clash_it_has_no_part_in() -> None:
    names = names_of(item("a", source="one"), item("a", source="two"), item("b", source="three"))
    assert names == ["one.a", "two.a", "b"]


def test_a_name_given_up_inside_one_source_is_not_taken_by_another() -> None:
    names = names_of(item("list", "/u", "one"), item("list", "/v", "one"), item("list", "/w", "two"))
    assert names == ["list_getU", "list_getV", "two.list"]


def test_a_prefixed_name_never_takes_the_name_of_a_real_operation() -> None:
    names = names_of(
        item("createIssue", source="github"),
        item("createIssue", source="gitlab"),
        item("github.createIssue", source="other"),
    )
    assert len(set(names)) == 3
    assert "createIssue" not in names


def test_long_names_that_share_their_beginning_stay_apart() -> None:
    names = names_of(item("a" * 64 + "A", "/a"), item("a" * 64 + "B", "/b"))
    assert len(set(names)) == 2
    assert all(len(name) == MAX_LENGTH for name in names)


def test_room_is_kept_for_a_long_prefix() -> None:
    names = names_of(item("b" * 70, source="s" * 70), item("b" * 70, source="t" * 70))
    assert len(set(names)) == 2
    assert all(PATTERN.fullmatch(name) and "." in name for name in names)


def test_names_differ_by_case() -> None:
    assert names_of(item("getUser", "/a"), item("getuser", "/b")) == ["getUser", "getuser"]


def test_sources_whose_names_clean_to_the_same_stay_apart() -> None:
    names = names_of(item("a", source="x y"), item("a", source="x_y"), item("a", source="ключ"))
    assert len(set(names)) == 3


def test_the_same_operation_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="share"):
        names_of(item("a"), item("b"))


def a_hundred_thousand() -> list[Nameable]:
    """Operations whose ids are the same, alike, missing, too long, or look like the names of others."""
    ids: list[Callable[[int], str | None]] = [
        lambda index: f"op{index % 50}",
        lambda _: None,
        lambda index: "x" * 70 + str(index),
        lambda index: f"op{index % 50}_getP{index - 1}",
        lambda index: f"s1.op{index % 50}",
        lambda index: "операция" * (index % 3),
        lambda index: f"{index} / é ({index % 7})",
    ]
    return [
        item(
            ids[index % 7](index), f"/{index % 5}/p-{index // 2}", f"s {index % 3}", ("GET", "PUT")[index % 2]
        )
        for index in range(100_000)
    ]


def test_a_hundred_thousand_operations_get_unique_names_whatever_their_order() -> None:
    items = a_hundred_thousand()
    names = assign_names(items)
    assert len(set(names)) == len(items)
    assert all(PATTERN.fullmatch(name) for name in names)
    shuffled = list(items)
    Random(7).shuffle(shuffled)
    assert dict(zip(shuffled, assign_names(shuffled), strict=True)) == dict(zip(items, names, strict=True))


words = st.sampled_from(["a", "b", "list", "list_getA", "s1.a", "a_getA", "é", "x" * 70, "x" * 70 + "y", ""])
operations = st.lists(
    st.tuples(
        st.sampled_from(["s1", "s2", "s 1"]),
        st.sampled_from(["GET", "POST"]),
        st.sampled_from(["/a", "/b", "/a-b", "/a_b", "/{a}", "/"]),
        st.one_of(st.none(), words),
    ),
    unique_by=lambda row: row[:3],
    max_size=24,
)


@given(operations, st.randoms(use_true_random=False))
def test_names_depend_on_no_order(rows: list[tuple[str, str, str, str | None]], random: object) -> None:
    items = [item(name, path, source, method) for source, method, path, name in rows]
    names = dict(zip(items, assign_names(items), strict=True))
    shuffled = list(items)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert dict(zip(shuffled, assign_names(shuffled), strict=True)) == names
    assert len(set(names.values())) == len(items)
    assert all(PATTERN.fullmatch(name) for name in names.values())


@given(operations)
def test_adding_an_operation_never_hands_its_name_to_another(
    rows: list[tuple[str, str, str, str | None]],
) -> None:
    items = [item(name, path, source, method) for source, method, path, name in rows]
    if not items:
        return
    before = {name: held for held, name in zip(items[:-1], assign_names(items[:-1]), strict=True)}
    after = {name: held for held, name in zip(items, assign_names(items), strict=True)}
    assert all(after[name] == before[name] for name in before.keys() & after.keys())


hostile = st.text(alphabet="aA_.-/{} é\0\u202e\ud800ж", max_size=12)


@given(
    st.lists(
        st.tuples(hostile, st.sampled_from(["GET", "", "PURGE"]), hostile, st.one_of(st.none(), hostile)),
        unique_by=lambda row: row[:3],
        max_size=12,
    ),
    st.randoms(use_true_random=False),
)
def test_whatever_sources_and_paths_are_called_names_are_clean_unique_and_free_of_order(
    rows: list[tuple[str, str, str, str | None]], random: Random
) -> None:
    items = [item(name, path, source, method) for source, method, path, name in rows]
    names = dict(zip(items, assign_names(items), strict=True))
    assert len(set(names.values())) == len(items)
    assert all(PATTERN.fullmatch(name) for name in names.values())
    shuffled = list(items)
    random.shuffle(shuffled)
    assert dict(zip(shuffled, assign_names(shuffled), strict=True)) == names
