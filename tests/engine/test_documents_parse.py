"""Bytes become one JSON tree, whatever they are written in; bad bytes become a DocumentError."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex_engine.documents import parse_document
from capdex_engine.documents.duplicates import DUPLICATES
from capdex_engine.documents.parse import decode, parse_tree
from capdex_engine.errors import DocumentError

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=20,
)


def yaml(text: str) -> dict:
    return parse_document(text.encode())


def refused(data: bytes) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        parse_document(data, location="x.yaml")
    assert caught.value.details["location"] == "x.yaml"
    return caught.value


@pytest.mark.parametrize("word", ["on", "off", "yes", "no", "NO", "y", "n", "On", "YES"])
def test_words_of_yaml_1_1_stay_text(word):
    assert yaml(f"a: {word}\nb: [{word}]") == {"a": word, "b": [word]}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("true", True),
        ("False", False),
        ("NULL", None),
        ("~", None),
        ("", None),
        ("12", 12),
        ("-3", -3),
        ("+3", 3),
        ("007", 7),
        ("0o17", 15),
        ("0x1F", 31),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-1.5E-2", -0.015),
    ],
)
def test_the_core_schema_reads_these_as_values(written, value):
    found = yaml(f"a: {written}")["a"]
    assert found == value
    assert isinstance(found, type(value))


@pytest.mark.parametrize(
    "text",
    [
        "2022-01-16",
        "2022-01-16T10:00:00Z",
        "12:30:45",
        "1_000",
        "0b11",
        "0o8",
        "1.2.3",
        "+",
        ".",
        "1e",
        "=",
        "<",
        "trUe",
        "nULL",
        "١٢",
    ],
)
def test_everything_else_stays_text_character_for_character(text):
    assert yaml(f"a: {text}\n") == {"a": text}


@pytest.mark.parametrize("written", [".inf", "-.INF", ".nan", "1e999", "-1e999"])
def test_numbers_that_json_cannot_write_stay_text_in_yaml(written):
    assert yaml(f"a: {written}") == {"a": written}


@pytest.mark.parametrize("written", ["NaN", "Infinity", "-Infinity", "1e999", "-1E999"])
def test_numbers_that_json_cannot_write_stay_text_in_json(written):
    assert parse_document(f'{{"a": {written}}}'.encode()) == {"a": written}


@pytest.mark.parametrize("form", ['{{"a": {}, "b": 1}}', "a: {}\nb: 1"])
def test_integers_are_exact_up_to_what_python_can_print(form):
    assert yaml(form.format("9" * 100)) == {"a": int("9" * 100), "b": 1}
    assert yaml(form.format("9" * 5000)) == {"a": "9" * 5000, "b": 1}


def test_quotes_and_tags_decide_over_the_look_of_a_scalar():
    text = (
        "a: '12'\nb: \"true\"\nc: !!str 12\nd: !!int '12'\ne: !custom 12\n"
        "f: !!timestamp 2020-01-01\ng: |\n  12\n"
    )
    expected = {"a": "12", "b": "true", "c": "12", "d": 12, "e": "12", "f": "2020-01-01", "g": "12\n"}
    assert yaml(text) == expected


def test_keys_are_text_as_they_are_written():
    assert list(yaml("200: a\ntrue: b\nnull: c\n1.0: d\n0o17: e\n2020-01-01: f\n'': g\n")) == [
        "200",
        "true",
        "null",
        "1.0",
        "0o17",
        "2020-01-01",
        "",
    ]


def test_a_merge_key_adds_what_the_mapping_has_not():
    text = "x: &x {a: 1, b: 1}\ny: &y {b: 2, c: 2}\nz: {<<: [*x, *y], c: 3, d: 3}\nw:\n  <<: *x\n  <<: *y\n"
    tree = yaml(text)
    assert tree["z"] == {"a": 1, "b": 1, "c": 3, "d": 3}
    assert tree["w"] == {"a": 1, "b": 1, "c": 2}
    assert tree["x"] == {"a": 1, "b": 1}


def test_a_quoted_merge_key_is_a_name():
    assert yaml('a: {"<<": 1}') == {"a": {"<<": 1}}


def test_aliases_are_the_anchored_value():
    tree = yaml("a: &a [1, {b: 2}]\nc: *a\n&k d: 1\ne: {*k : 2}\nf: &n\ng: *n\n")
    assert tree == {
        "a": [1, {"b": 2}],
        "c": [1, {"b": 2}],
        "d": 1,
        "e": {"d": 2},
        "f": None,
        "g": None,
    }


def test_an_alias_bomb_is_refused_before_anyone_walks_it():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    refused("\n".join(lines).encode())


def test_many_aliases_of_one_small_node_are_no_bomb():
    text = "s: &s {type: string}\np:\n" + "".join(f"  p{n}: *s\n" for n in range(5000))
    assert len(yaml(text)["p"]) == 5000


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [*a]",
        "a: &a {b: *a}",
        "a: &a {<<: *a}",
        "a: *nowhere",
        "a: {<<: 1}",
        "? [a, b]\n: c",
        "? {a: b}\n: c",
        "a: 1\n---\nb: 2\n",
        "a: [1, 2",
        "a:\n\t- b\n",
        "a: b: c",
        "{'a': 1,, }",
        "&a [1]: 2",
        "a: &x [1]\n? *x\n: 2\n",
    ],
)
def test_what_no_json_tree_can_hold_is_refused_with_its_place(text):
    assert "line" in refused(text.encode()).message


@pytest.mark.parametrize(
    "text", ["", "  \n\t ", "# only a comment\n", "---\n", "[1, 2]", "- a\n", "text", "12"]
)
def test_a_document_is_a_mapping(text):
    refused(text.encode())


@pytest.mark.parametrize("opening", ['{"a":', "[", '[{"a":'])
@pytest.mark.parametrize("count", [600, 5000, 100_000])
def test_deep_nesting_is_an_error_not_a_crash(opening, count):
    refused(opening.encode() * count)
    closing = {"{": "}", "[": "]"}
    tail = "".join(closing[char] for char in reversed(opening) if char in closing)
    refused(('{"x": ' + opening * count + "1" + tail * count + "}").encode())


def test_deep_nesting_in_block_style_is_an_error_too():
    refused("".join(" " * n + "a:\n" for n in range(600)).encode())
    chain = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [[[[[*a{n - 1}]]]]]" for n in range(1, 120)]
    refused("\n".join(chain).encode())


@pytest.mark.parametrize("form", [("{" + '"a":{' * 499, "}" * 500), ("[" * 500, "]" * 500)])
def test_five_hundred_levels_are_read_in_json_and_in_yaml_alike(form):
    opening, closing = form
    assert parse_tree((opening + closing).encode()) is not None
    assert parse_tree(("# YAML\n" + opening + closing).encode()) is not None
    for head in ("", "# YAML\n"):
        with pytest.raises(DocumentError):
            parse_tree((head + "[" + opening + closing + "]").encode())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("text", ['{"a": "ü😀"}', 'a: "ü😀"\r\n'])
def test_every_unicode_encoding_is_read(encoding, text):
    assert parse_document(text.encode(encoding)) == {"a": "ü😀"}


def test_big_endian_with_its_mark_is_read():
    assert decode(b"\xfe\xff" + "aü".encode("utf-16-be")) == "aü"


def test_invalid_utf_8_names_the_byte():
    assert "byte 5 " in refused(b"a: b\n\xff\xfe: c\n").message
    assert "byte 4 " in refused(b"\xef\xbb\xbfa\x80: 1").message
    assert "UTF-16" in refused(b"\xff\xfea\x00b").message


def test_json_with_tabs_or_control_characters_is_read():
    assert parse_document(b'{\t"a":\t"x\ty\x01"}') == {"a": "x\ty\x01"}


def test_a_flow_mapping_that_is_no_json_is_yaml():
    assert parse_document(b"{a: [on, 1,], # why\n b: 'x'}") == {"a": ["on", 1], "b": "x"}


def test_half_a_surrogate_pair_does_not_survive():
    data = b'{"\\ud83d\\ude00": "\\ud83d", "k\\udead": ["a\\udc00b", {"c": 1}]}'
    tree = parse_document(data)
    assert json.dumps(tree, ensure_ascii=False).encode()
    assert tree["😀"] == "\ufffd"
    assert tree["k\ufffd"][0] == "a\ufffdb"


def test_a_number_remembers_how_yaml_writes_it():
    tree = yaml("a: 1.10\nb: 007\nc: 1.5\n")
    assert (tree["a"].text, tree["b"].text) == ("1.10", "007")
    assert type(tree["c"]) is float
    assert json.dumps(tree) == '{"a": 1.1, "b": 7, "c": 1.5}'


@given(st.dictionaries(st.text().filter(lambda key: key != DUPLICATES), JSON_VALUES))
def test_json_comes_back_as_it_was_written(value):
    tree = parse_document(json.dumps(value).encode())
    assert json.dumps(tree) == json.dumps(value)


@given(st.dictionaries(st.text(alphabet="abc", min_size=1), JSON_VALUES, min_size=1))
def test_json_read_as_yaml_means_the_same(value):
    data = ("# YAML, for JSON has no comments\n" + json.dumps(value)).encode()
    try:
        tree = parse_document(data)
    except DocumentError:
        assert "\\ud" in data.decode() or "\\u0000" in data.decode() or len(data) > 1000
        return
    assert tree == value


@given(st.binary(max_size=200))
def test_any_bytes_make_a_tree_or_a_document_error(data):
    try:
        tree = parse_document(data)
    except DocumentError:
        return
    assert isinstance(tree, dict)


@given(st.text(alphabet="{}[]:,-&*!|>'\"%@`#\n ab1.?<", max_size=60))
def test_any_punctuation_makes_a_json_tree_or_a_document_error(text):
    try:
        tree = parse_document(text.encode())
    except DocumentError:
        return
    json.dumps(tree, allow_nan=False)


@given(st.floats())
def test_no_float_is_ever_infinite(value):
    tree = parse_document(f"a: {value!r}\n".encode())
    assert isinstance(tree["a"], str) or math.isfinite(tree["a"])
