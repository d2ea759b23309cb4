"""Tokens: what a reader of both documents and queries may rely on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex_engine.text import STOP_WORDS, fold, identifier_key, joined_pairs, stem, tokens, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HTTPServer", ["http", "server"]),
        ("parseJSONBody", ["parse", "json", "body"]),
        ("list_workflow-runs", ["list", "workflow", "runs"]),
        ("files.remote.share", ["files", "remote", "share"]),
        ("/repos/{owner}/{repo}", ["repos", "owner", "repo"]),
        ("oauth2Token", ["oauth", "2", "token"]),
        ("v2 k8s s3", ["v2", "k8s", "s3"]),
        ("sha256sum", ["sha", "256", "sum"]),
        ("teamIDs", ["team", "ids"]),
        ("the user's", ["the", "user", "s"]),
        ("ＡＢＣ ﬁle", ["abc", "file"]),
        ("STRASSE Straße", ["strasse", "strasse"]),
    ],
)
def test_identifiers_and_prose_split_into_the_same_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    "family",
    [
        ["create", "creates", "created", "creating"],
        ["query", "queries", "queried"],
        ["category", "categories"],
        ["movie", "movies"],
        ["status", "statuses"],
        ["box", "boxes"],
        ["address", "addresses"],
        ["process", "processes", "processed", "processing"],
        ["branch", "branches"],
        ["file", "files", "filed", "filing"],
        ["run", "runs", "running"],
        ["add", "adds", "added", "adding"],
        ["bill", "billing", "billed"],
        ["archive", "archived", "archiving"],
        ["embed", "embedding"],
        ["alias", "aliases"],
        ["id", "ids"],
        ["use", "used", "using", "uses"],
        ["person", "people"],
        ["employee", "employees"],
    ],
)
def test_forms_of_a_word_share_a_stem(family: list[str]) -> None:
    assert len({stem(word) for word in family}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("news", "new"),
        ("string", "str"),
        ("thing", "th"),
        ("access", "acces"),
        ("feed", "fe"),
        ("post", "pos"),
    ],
)
def test_different_words_keep_different_stems(one: str, other: str) -> None:
    assert stem(one) != stem(other)


def test_words_of_other_scripts_are_not_stemmed() -> None:
    assert stem("créés") == "créés"
    assert stem("задачи") == "задачи"


def test_an_accented_word_is_kept_and_folded() -> None:
    assert tokens("équipe") == ["équipe", "equip"]
    assert tokens("equipe") == ["equip"]


def test_folding_leaves_vowel_signs_of_other_scripts_alone() -> None:
    assert fold("क्या") == "क्या"


def test_unspaced_scripts_become_characters_and_pairs() -> None:
    assert tokens("锁定议题") == ["锁", "定", "议", "题", "锁定", "定议", "议题"]
    assert {"フ", "フォ", "ルダ"} <= set(tokens("フォルダ"))
    assert set(tokens("사용자")) & set(tokens("사용자를"))


def test_a_word_between_unspaced_ones_stands_for_itself() -> None:
    assert stem("image") in tokens("列出image文件")


@pytest.mark.parametrize("text", ["", "   ", "the of and", "what is it?", "…!?", "isn't it"])
def test_stop_words_and_punctuation_give_no_tokens(text: str) -> None:
    assert tokens(text) in ([], ["isn"])


@pytest.mark.parametrize("verb", ["get", "list", "create", "delete", "find", "all", "not", "like", "no"])
def test_words_that_tell_operations_apart_are_no_stop_words(verb: str) -> None:
    assert verb not in STOP_WORDS


def test_a_brand_written_in_two_humps_is_found_in_one_piece() -> None:
    assert "github" in tokens("GitHub")
    assert tokens("github") == ["github"]


def test_joined_pairs_cover_words_that_a_document_writes_as_one() -> None:
    assert joined_pairs(["web", "hooks", "list"]) == ["webhook", "hookslist"]


@pytest.mark.parametrize(
    "name", ["issues/list-for-repo", "issuesListForRepo", "ISSUES_LIST_FOR_REPO", "Issues list for repo"]
)
def test_names_are_equal_under_any_casing_and_separators(name: str) -> None:
    assert identifier_key(name) == "issueslistforrepo"


@given(st.text())
def test_any_text_gives_tokens_without_spaces_and_never_fails(text: str) -> None:
    found = tokens(text)
    assert all(token and not any(c.isspace() for c in token) for token in found)
    assert tokens(text) == found


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=14))
def test_a_stem_is_short_and_begins_like_its_word(word: str) -> None:
    found = stem(word)
    assert found
    assert len(found) <= len(word) + 1


@given(st.lists(st.sampled_from(["list", "issue", "label", "user"]), min_size=1, max_size=5))
def test_camel_snake_and_kebab_are_one(parts: list[str]) -> None:
    camel = parts[0] + "".join(p.capitalize() for p in parts[1:])
    assert words(camel) == words("_".join(parts)) == words("-".join(parts)) == words("/".join(parts)) == parts
