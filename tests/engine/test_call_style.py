from __future__ import annotations

from urllib.parse import parse_qsl, unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from call_support import parameter
from capdex_engine.call.style import (
    StyleError,
    cookie_pairs,
    encode,
    header_value,
    path_value,
    query_pairs,
)

COLORS = ["blue", "black", "brown"]
RGB = {"R": 100, "G": 200, "B": 150}


@pytest.mark.parametrize(
    ("style", "explode", "value", "text"),
    [
        ("simple", False, "blue", "blue"),
        ("simple", False, COLORS, "blue,black,brown"),
        ("simple", True, COLORS, "blue,black,brown"),
        ("simple", False, RGB, "R,100,G,200,B,150"),
        ("simple", True, RGB, "R=100,G=200,B=150"),
        ("label", False, "blue", ".blue"),
        ("label", False, COLORS, ".blue,black,brown"),
        ("label", True, COLORS, ".blue.black.brown"),
        ("label", False, RGB, ".R,100,G,200,B,150"),
        ("label", True, RGB, ".R=100.G=200.B=150"),
        ("matrix", False, "blue", ";color=blue"),
        ("matrix", False, COLORS, ";color=blue,black,brown"),
        ("matrix", True, COLORS, ";color=blue;color=black;color=brown"),
        ("matrix", False, RGB, ";color=R,100,G,200,B,150"),
        ("matrix", True, RGB, ";R=100;G=200;B=150"),
    ],
)
def test_path_values_follow_style_and_explode(style, explode, value, text):
    assert path_value(parameter("color", "path", style=style, explode=explode), value) == text


@pytest.mark.parametrize(
    ("style", "explode", "value", "text"),
    [
        ("form", True, "blue", "color=blue"),
        ("form", True, "", "color="),
        ("form", True, COLORS, "color=blue&color=black&color=brown"),
        ("form", False, COLORS, "color=blue,black,brown"),
        ("form", False, ["a,b", "c"], "color=a%2Cb,c"),
        ("form", True, RGB, "R=100&G=200&B=150"),
        ("form", False, RGB, "color=R,100,G,200,B,150"),
        ("form", True, [], ""),
        ("form", False, [], ""),
        ("form", False, {}, ""),
        ("form", True, {}, ""),
        ("form", True, ["a", None, "b"], "color=a&color=b"),
        ("form", True, [{"a": 1}], "color=%7B%22a%22%3A1%7D"),
        ("spaceDelimited", False, COLORS, "color=blue%20black%20brown"),
        ("spaceDelimited", True, COLORS, "color=blue&color=black&color=brown"),
        ("spaceDelimited", False, RGB, "color=R%20100%20G%20200%20B%20150"),
        ("pipeDelimited", False, COLORS, "color=blue%7Cblack%7Cbrown"),
        ("pipeDelimited", False, RGB, "color=R%7C100%7CG%7C200%7CB%7C150"),
        ("deepObject", True, RGB, "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"),
        ("deepObject", False, {"a": {"b": 1}}, "color%5Ba%5D%5Bb%5D=1"),
        ("deepObject", True, {"a": ["x", "y"]}, "color%5Ba%5D%5B%5D=x&color%5Ba%5D%5B%5D=y"),
        ("deepObject", True, [{"p": 1}, {"p": 2}], "color%5B0%5D%5Bp%5D=1&color%5B1%5D%5Bp%5D=2"),
        ("deepObject", True, {}, ""),
        ("form", True, True, "color=true"),
        ("form", True, 3.0, "color=3"),
        ("form", True, 0.5, "color=0.5"),
        ("form", True, 12345678901234567890123, "color=12345678901234567890123"),
        ("form", True, "a&b=c+d#e f", "color=a%26b%3Dc%2Bd%23e%20f"),
    ],
)
def test_query_values_follow_style_and_explode(style, explode, value, text):
    assert "&".join(query_pairs(parameter("color", style=style, explode=explode), value)) == text


def test_a_tab_separates_items_where_the_parameter_says_so():
    tabs = parameter("t", explode=False, delimiter="\t")
    assert query_pairs(tabs, [1, 2]) == ["t=1%092"]


@pytest.mark.parametrize(("style", "item"), [("spaceDelimited", "a b"), ("pipeDelimited", "a|b")])
def test_an_item_that_holds_its_delimiter_is_refused(style, item):
    with pytest.raises(StyleError):
        query_pairs(parameter("p", style=style, explode=False), [item, "c"])


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("a/b?c:d@e", "a/b?c:d@e"),
        ("x&y=z#k+[]", "x%26y%3Dz%23k%2B%5B%5D"),
        ("%41% b", "%41%25%20b"),
    ],
)
def test_allow_reserved_keeps_what_cannot_end_the_value(text, sent):
    assert query_pairs(parameter("q", allow_reserved=True), text) == [f"q={sent}"]


def test_allow_reserved_still_encodes_a_comma_inside_a_joined_item():
    joined = parameter("q", allow_reserved=True, explode=False)
    assert query_pairs(joined, ["a,b", "c/d"]) == ["q=a%2Cb,c/d"]


def test_allow_reserved_does_not_count_in_a_path():
    assert path_value(parameter("k", "path", allow_reserved=True), "a/b") == "a%2Fb"


def test_query_names_are_encoded_but_for_what_odata_needs():
    assert query_pairs(parameter("$filter"), "x") == ["$filter=x"]
    assert query_pairs(parameter("ids[]"), ["x"]) == ["ids%5B%5D=x"]


def test_a_parameter_with_content_is_json_and_keeps_the_quotes_of_text():
    pet = parameter("pet", content_type="application/json")
    assert query_pairs(pet, "cat") == ["pet=%22cat%22"]
    assert query_pairs(pet, {"a": [1, None]}) == ["pet=%7B%22a%22%3A%5B1%2Cnull%5D%7D"]
    assert header_value(parameter("X-P", "header", content_type="application/json"), {"a": 1}) == '{"a":1}'


def test_a_parameter_with_text_content_is_bare_text():
    assert query_pairs(parameter("pet", content_type="text/plain"), "cat") == ["pet=cat"]


@pytest.mark.parametrize(
    ("explode", "value", "text"),
    [
        (False, [1, 2, 3], "1,2,3"),
        (True, {"R": 1, "G": 2}, "R=1,G=2"),
        (False, {"R": 1, "G": 2}, "R,1,G,2"),
        (False, "a b/é", "a b/é"),
        (False, "  trimmed ", "trimmed"),
        (False, True, "true"),
        (False, [], None),
    ],
)
def test_header_values_are_simple_and_not_percent_encoded(explode, value, text):
    assert header_value(parameter("X-A", "header", explode=explode), value) == text


@pytest.mark.parametrize("text", ["1\r\nX-Evil: 1", "a\x00b", "a\nb", "a\x7fb"])
def test_control_characters_never_reach_a_header(text):
    with pytest.raises(StyleError):
        header_value(parameter("X-A", "header"), [text])


@pytest.mark.parametrize(
    ("explode", "value", "pairs"),
    [
        (True, 0, ["c=0"]),
        (False, ["a", "b"], ["c=a,b"]),
        (True, ["a", "b"], ["c=a", "c=b"]),
        (False, {"R": 1}, ["c=R,1"]),
        (True, {"R": 1}, ["R=1"]),
        (True, "a b;c,é%", ["c=a%20b%3Bc%2C%C3%A9%25"]),
        (True, "dG9r==/+", ["c=dG9r==/+"]),
    ],
)
def test_cookie_values_are_form_and_encode_only_what_a_cookie_cannot_hold(explode, value, pairs):
    assert cookie_pairs(parameter("c", "cookie", explode=explode), value) == pairs


@pytest.mark.parametrize("value", ["", [], {}, [None]])
def test_an_empty_path_value_is_refused(value):
    with pytest.raises(StyleError):
        path_value(parameter("id", "path"), value)


def test_control_characters_in_a_path_are_refused():
    with pytest.raises(StyleError):
        path_value(parameter("id", "path"), "a\x00b\n")


@given(st.text(st.characters(exclude_categories=["Cs"])))
@settings(max_examples=100, deadline=None)
def test_encoding_can_be_undone(text):
    assert unquote(encode(text)) == text
    assert encode(text).isascii()


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1))
@settings(max_examples=100, deadline=None)
def test_an_exploded_array_can_be_read_back(items):
    query = "&".join(query_pairs(parameter("a"), items))
    assert parse_qsl(query, keep_blank_values=True) == [("a", item) for item in items]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1))
@settings(max_examples=100, deadline=None)
def test_a_joined_array_can_be_read_back(items):
    (pair,) = query_pairs(parameter("a", explode=False), items)
    assert [unquote(item) for item in pair.partition("=")[2].split(",")] == items
