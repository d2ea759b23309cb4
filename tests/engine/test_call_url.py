from __future__ import annotations

from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from call_support import details, operation, parameter, prepared
from capdex_engine.call.url import Target, join, variable
from capdex_engine.errors import InvalidArguments, NotExecutable

ID = parameter("id", "path", {"type": "string"})


def url(path: str, *parameters, base: str = "https://api.test", **values: object) -> str:
    found = details(*parameters, base_url=base)
    return str(prepared(found, operation(path=path), pathParams=values)["url"])


@pytest.mark.parametrize(
    ("value", "segment"),
    [
        ("a/b", "a%2Fb"),
        ("../../admin", "..%2F..%2Fadmin"),
        ("%2e%2e%2f", "%252e%252e%252f"),
        ("é 日", "%C3%A9%20%E6%97%A5"),
        ("😀", "%F0%9F%98%80"),
        ("100%", "100%25"),
        ("a?x=1#f", "a%3Fx%3D1%23f"),
        ("a+b c", "a%2Bb%20c"),
        ("A-z_0.~", "A-z_0.~"),
        ("v1.2..3", "v1.2..3"),
        ("a\\..\\b", "a%5C..%5Cb"),
        ("{id}", "%7Bid%7D"),
        ("...", "..."),
    ],
)
def test_a_path_value_stays_inside_its_segment(value, segment):
    assert url("/files/{id}/meta", ID, id=value) == f"https://api.test/files/{segment}/meta"


@pytest.mark.parametrize(
    "value",
    ["..", ".", "%2e%2e", "%2E", ".%2e", "%252e%252e", "", "\ud800", "a\x00", "\n", "..;a=b", "..%3B", ".?x"],
)
def test_a_value_that_changes_the_route_is_refused(value):
    with pytest.raises(InvalidArguments):
        url("/files/{id}/meta", ID, id=value)


def test_values_that_together_make_a_dot_segment_are_refused():
    two = [parameter("a", "path"), parameter("b", "path")]
    with pytest.raises(InvalidArguments) as caught:
        url("/x/{a}{b}", *two, a=".", b=".")
    assert {each["pointer"] for each in caught.value.details["issues"]} == {"/a", "/b"}


def test_a_value_that_ends_in_dots_before_a_semicolon_is_refused():
    with pytest.raises(InvalidArguments):
        url("/x/{id};v=1", ID, id="..")


def test_a_label_of_nothing_but_a_dot_is_refused():
    with pytest.raises(InvalidArguments):
        url("/x/{id}", parameter("id", "path", style="label"), id=".")


def test_partial_segments_and_repeated_variables_are_filled():
    two = [parameter("name", "path"), parameter("ext", "path")]
    assert url("/f/{name}.{ext}", *two, name="a/b.tar", ext="gz") == "https://api.test/f/a%2Fb.tar.gz"
    assert url("/r/{id}/{id}", ID, id="1") == "https://api.test/r/1/1"
    assert url("/v1/{id}:cancel", ID, id="op1") == "https://api.test/v1/op1:cancel"
    assert url("/range(from='{id}')", ID, id="x'y") == "https://api.test/range(from='x%27y')"


@pytest.mark.parametrize("template", ["/u/{+id}", "/u/{id*}", "/u/{id+}"])
def test_a_catch_all_variable_keeps_slashes_but_never_dot_segments(template):
    assert url(template, ID, id="a/b?c") == "https://api.test/u/a/b%3Fc"
    for climbing in ("a/../b", "..", "a/.", "%2e%2e/x"):
        with pytest.raises(InvalidArguments):
            url(template, ID, id=climbing)


def test_an_expression_that_is_a_parameters_name_is_that_parameter():
    assert variable("id+", ["id+"]) == ("id+", False)
    assert variable("id:8", ["id"]) == ("id", False)
    assert variable("+id", ["id"]) == ("id", True)


def test_a_variable_that_no_parameter_declares_is_never_sent_as_it_stands():
    with pytest.raises(NotExecutable):
        url("/undeclared/{v}", v="1")


@pytest.mark.parametrize(
    ("base", "path", "whole"),
    [
        ("https://h.test/api", "/ping", "https://h.test/api/ping"),
        ("https://h.test/api/", "/ping/", "https://h.test/api/ping/"),
        ("https://h.test", "/", "https://h.test/"),
        ("https://h.test", "noslash", "https://h.test/noslash"),
        ("https://h.test:8443/a?k=v", "/p", "https://h.test:8443/a/p?k=v"),
        ("https://h.test", "/p?action=list", "https://h.test/p?action=list"),
        ("https://h.test", "/p?a=1#frag", "https://h.test/p?a=1"),
        ("https://h.test", "/p#frag", "https://h.test/p"),
        ("https://h.test", "/été/a b/100%/%41", "https://h.test/%C3%A9t%C3%A9/a%20b/100%25/%41"),
    ],
)
def test_the_path_is_appended_to_the_base(base, path, whole):
    assert url(path, base=base) == whole


def test_query_parameters_come_after_the_queries_of_server_and_path():
    found = details(parameter("q"), base_url="https://h.test/a?k=v")
    shown = prepared(found, operation(path="/p?x=1"), queryParams={"q": "z"})
    assert shown["url"] == "https://h.test/a/p?k=v&x=1&q=z"


def test_a_variable_in_the_query_of_a_path_is_encoded():
    assert url("/p?x={id}&y=1", ID, id="a&b") == "https://api.test/p?x=a%26b&y=1"


def test_joining_keeps_a_trailing_slash():
    assert join("https://h.test", Target("/a/", ""), []) == "https://h.test/a/"


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
@settings(max_examples=200, deadline=None)
def test_no_value_ever_leaves_its_segment(value):
    try:
        sent = url("/files/{id}/meta", ID, id=value)
    except InvalidArguments:
        return
    before, files, segment, meta = urlsplit(sent).path.split("/")
    assert (before, files, meta) == ("", "files", "meta")
    assert unquote(segment) == value
    assert urlsplit(sent).query == urlsplit(sent).fragment == ""
