"""Every style, explode and location by OpenAPI 3.1 and RFC 6570, worked out by hand.

One row a value; ``None`` is "not sent", ``REFUSED`` an argument that cannot be written there.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from call_support import details, json_body, operation, parameter, prepared
from capdex_engine.errors import InvalidArguments
from capdex_engine.operation import Body, MediaType

REFUSED: Final = "refused"
NESTED_LIST: Final = [[1, 2], ["a,b"]]
NESTED_OBJECT: Final = {"a": {"b": 1}, "c": [True, None]}
VALUES: Final[dict[str, Any]] = {
    "text": "blue",
    "reserved": "a/b?c&d=e+f#g h",
    "unicode": "é日😀",
    "percent": "100%25",
    "true": True,
    "integer": -7,
    "zero": 0,
    "whole float": 3.0,
    "float": 0.25,
    "minus zero": -0.0,
    "empty text": "",
    "empty list": [],
    "list of null": [None],
    "list": ["blue", "black"],
    "odd list": ["a,b", "c;d", ""],
    "list with null": [1, None, False],
    "empty object": {},
    "object of null": {"R": None},
    "object": {"R": 100, "G": 200},
    "odd object": {"a b": "é", "n": "", "z": None},
    "nested list": NESTED_LIST,
    "nested object": NESTED_OBJECT,
}
SCALARS: Final = {
    "text": "blue",
    "reserved": "a%2Fb%3Fc%26d%3De%2Bf%23g%20h",
    "unicode": "%C3%A9%E6%97%A5%F0%9F%98%80",
    "percent": "100%2525",
    "true": "true",
    "integer": "-7",
    "zero": "0",
    "whole float": "3",
    "float": "0.25",
    "minus zero": "0",
}
"""What a scalar is, percent-encoded, in every place that encodes."""
NOTHING: Final = ("empty list", "list of null", "empty object", "object of null")
"""Values without any defined member."""

_12: Final = "%5B1%2C2%5D"  # [1,2]
_AB: Final = "%5B%22a%2Cb%22%5D"  # ["a,b"]
_B1: Final = "%7B%22b%22%3A1%7D"  # {"b":1}
_TN: Final = "%5Btrue%2Cnull%5D"  # [true,null]

PATH: Final[dict[tuple[str, bool], dict[str, str]]] = {
    ("simple", False): {
        **SCALARS,
        "list": "blue,black",
        "odd list": "a%2Cb,c%3Bd,",
        "list with null": "1,false",
        "object": "R,100,G,200",
        "odd object": "a%20b,%C3%A9,n,",
        "nested list": f"{_12},{_AB}",
        "nested object": f"a,{_B1},c,{_TN}",
    },
    ("simple", True): {
        **SCALARS,
        "list": "blue,black",
        "odd list": "a%2Cb,c%3Bd,",
        "list with null": "1,false",
        "object": "R=100,G=200",
        "odd object": "a%20b=%C3%A9,n=",
        "nested list": f"{_12},{_AB}",
        "nested object": f"a={_B1},c={_TN}",
    },
    ("label", False): {
        **{name: f".{text}" for name, text in SCALARS.items()},
        "list": ".blue,black",
        "odd list": ".a%2Cb,c%3Bd,",
        "list with null": ".1,false",
        "object": ".R,100,G,200",
        "odd object": ".a%20b,%C3%A9,n,",
        "nested list": f".{_12},{_AB}",
        "nested object": f".a,{_B1},c,{_TN}",
    },
    ("label", True): {
        **{name: f".{text}" for name, text in SCALARS.items()},
        "list": ".blue.black",
        "odd list": ".a%2Cb.c%3Bd.",
        "list with null": ".1.false",
        "object": ".R=100.G=200",
        "odd object": ".a%20b=%C3%A9.n=",
        "nested list": f".{_12}.{_AB}",
        "nested object": f".a={_B1}.c={_TN}",
    },
    ("matrix", False): {
        **{name: f";p={text}" for name, text in SCALARS.items()},
        "list": ";p=blue,black",
        "odd list": ";p=a%2Cb,c%3Bd,",
        "list with null": ";p=1,false",
        "object": ";p=R,100,G,200",
        "odd object": ";p=a%20b,%C3%A9,n,",
        "nested list": f";p={_12},{_AB}",
        "nested object": f";p=a,{_B1},c,{_TN}",
    },
    ("matrix", True): {
        **{name: f";p={text}" for name, text in SCALARS.items()},
        "list": ";p=blue;p=black",
        # RFC 6570, 3.2.7: no "=" where the value is empty.
        "odd list": ";p=a%2Cb;p=c%3Bd;p",
        "list with null": ";p=1;p=false",
        "object": ";R=100;G=200",
        "odd object": ";a%20b=%C3%A9;n",
        "nested list": f";p={_12};p={_AB}",
        "nested object": f";a={_B1};c={_TN}",
    },
}
"""(style, explode) -> value -> what stands in the path; what has no row is refused."""

QUERY: Final[dict[tuple[str, bool], dict[str, str]]] = {
    ("form", True): {
        "list": "p=blue&p=black",
        "odd list": "p=a%2Cb&p=c%3Bd&p=",
        "list with null": "p=1&p=false",
        "object": "R=100&G=200",
        "odd object": "a%20b=%C3%A9&n=",
        "nested list": f"p={_12}&p={_AB}",
        "nested object": f"a={_B1}&c={_TN}",
    },
    ("form", False): {
        "list": "p=blue,black",
        "odd list": "p=a%2Cb,c%3Bd,",
        "list with null": "p=1,false",
        "object": "p=R,100,G,200",
        "odd object": "p=a%20b,%C3%A9,n,",
        "nested list": f"p={_12},{_AB}",
        "nested object": f"p=a,{_B1},c,{_TN}",
    },
    ("spaceDelimited", False): {
        "list": "p=blue%20black",
        "odd list": "p=a%2Cb%20c%3Bd%20",
        "list with null": "p=1%20false",
        "object": "p=R%20100%20G%20200",
        "odd object": REFUSED,
        "nested list": f"p={_12}%20{_AB}",
        "nested object": f"p=a%20{_B1}%20c%20{_TN}",
    },
    ("pipeDelimited", False): {
        "list": "p=blue%7Cblack",
        "odd list": "p=a%2Cb%7Cc%3Bd%7C",
        "list with null": "p=1%7Cfalse",
        "object": "p=R%7C100%7CG%7C200",
        "odd object": "p=a%20b%7C%C3%A9%7Cn%7C",
        "nested list": f"p={_12}%7C{_AB}",
        "nested object": f"p=a%7C{_B1}%7Cc%7C{_TN}",
    },
    ("deepObject", True): {
        "list": "p%5B%5D=blue&p%5B%5D=black",
        "odd list": "p%5B%5D=a%2Cb&p%5B%5D=c%3Bd&p%5B%5D=",
        "list with null": "p%5B%5D=1&p%5B%5D=false",
        "object": "p%5BR%5D=100&p%5BG%5D=200",
        "odd object": "p%5Ba%20b%5D=%C3%A9&p%5Bn%5D=",
        "nested list": "p%5B0%5D%5B%5D=1&p%5B0%5D%5B%5D=2&p%5B1%5D%5B%5D=a%2Cb",
        "nested object": "p%5Ba%5D%5Bb%5D=1&p%5Bc%5D%5B%5D=true",
    },
}
"""(style, explode) -> value -> the query; scalars are alike in all, and what has no row is not sent."""

HEADER: Final[dict[bool, dict[str, str]]] = {
    False: {
        "list": "blue,black",
        "odd list": "a,b,c;d,",
        "list with null": "1,false",
        "object": "R,100,G,200",
        "odd object": "a b,é,n,",
        "nested list": '[1,2],["a,b"]',
        "nested object": 'a,{"b":1},c,[true,null]',
    },
    True: {
        "list": "blue,black",
        "odd list": "a,b,c;d,",
        "list with null": "1,false",
        "object": "R=100,G=200",
        "odd object": "a b=é,n=",
        "nested list": '[1,2],["a,b"]',
        "nested object": 'a={"b":1},c=[true,null]',
    },
}
COOKIE: Final[dict[bool, dict[str, str]]] = {
    True: {
        "list": "p=blue; p=black",
        "odd list": "p=a%2Cb; p=c%3Bd; p=",
        "list with null": "p=1; p=false",
        "object": "R=100; G=200",
        "odd object": "a%20b=%C3%A9; n=",
        "nested list": "p=[1%2C2]; p=[%22a%2Cb%22]",
        "nested object": "a={%22b%22:1}; c=[true%2Cnull]",
    },
    False: {
        "list": "p=blue,black",
        "odd list": "p=a%2Cb,c%3Bd,",
        "list with null": "p=1,false",
        "object": "p=R,100,G,200",
        "odd object": "p=a%20b,%C3%A9,n,",
        "nested list": "p=[1%2C2],[%22a%2Cb%22]",
        "nested object": "p=a,{%22b%22:1},c,[true%2Cnull]",
    },
}
COOKIE_SCALARS: Final = {
    "text": "blue",
    "reserved": "a/b?c&d=e+f#g%20h",
    "unicode": "%C3%A9%E6%97%A5%F0%9F%98%80",
    "percent": "100%2525",
    "true": "true",
    "integer": "-7",
    "zero": "0",
    "whole float": "3",
    "float": "0.25",
    "minus zero": "0",
    "empty text": "",
}
HEADER_SCALARS: Final = {
    **COOKIE_SCALARS,
    "reserved": "a/b?c&d=e+f#g h",
    "unicode": "é日😀",
    "percent": "100%25",
}


def rows(table: dict[Any, dict[str, str]]) -> list[tuple[Any, str]]:
    return [(key, name) for key in table for name in VALUES]


def shown(one: Any, value: Any, path: str = "/x") -> dict[str, Any]:
    slot = {"path": "pathParams", "query": "queryParams", "header": "headerParams", "cookie": "cookieParams"}
    return prepared(details(one), operation(path=path), **{slot[one.location]: {one.name: value}})


def answer(one: Any, value: Any, part: str) -> str | None:
    """Return what is sent in one part of the request, without what stands there anyway."""
    try:
        request = shown(one, value, "/x/{p}/y" if one.location == "path" else "/x")
    except InvalidArguments as error:
        assert {each["in"] for each in error.details["issues"]} == {one.location}
        return REFUSED
    if part == "path":
        return str(request["url"]).removeprefix("https://api.test/x/").removesuffix("/y")
    if part == "query":
        return str(request["url"]).removeprefix("https://api.test/x").removeprefix("?") or None
    found = request["headers"].get(part)
    return None if found is None else str(found)


@pytest.mark.parametrize(("how", "name"), rows(PATH))
def test_a_path_value(how: tuple[str, bool], name: str) -> None:
    one = parameter("p", "path", style=how[0], explode=how[1])
    assert answer(one, VALUES[name], "path") == PATH[how].get(name, REFUSED)


@pytest.mark.parametrize(("how", "name"), rows(QUERY))
def test_a_query_value(how: tuple[str, bool], name: str) -> None:
    scalars = {key: f"p={text}" for key, text in {**SCALARS, "empty text": ""}.items()}
    one = parameter("p", style=how[0], explode=how[1])
    assert answer(one, VALUES[name], "query") == {**scalars, **QUERY[how]}.get(name)


@pytest.mark.parametrize(("explode", "name"), rows(HEADER))
def test_a_header_value(explode: bool, name: str) -> None:
    one = parameter("X-P", "header", explode=explode)
    assert answer(one, VALUES[name], "X-P") == {**HEADER_SCALARS, **HEADER[explode]}.get(name)


@pytest.mark.parametrize(("explode", "name"), rows(COOKIE))
def test_a_cookie_value(explode: bool, name: str) -> None:
    scalars = {key: f"p={text}" for key, text in COOKIE_SCALARS.items()}
    one = parameter("p", "cookie", explode=explode)
    assert answer(one, VALUES[name], "Cookie") == {**scalars, **COOKIE[explode]}.get(name)


@pytest.mark.parametrize("style", ["spaceDelimited", "pipeDelimited"])
@pytest.mark.parametrize("name", ["list", "object"])
def test_an_exploded_space_or_pipe_is_an_exploded_form(style: str, name: str) -> None:
    one = parameter("p", style=style, explode=True)
    assert answer(one, VALUES[name], "query") == QUERY["form", True][name]


@pytest.mark.parametrize("name", sorted(VALUES))
def test_deep_object_is_the_same_with_and_without_explode(name: str) -> None:
    exploded, plain = (parameter("p", style="deepObject", explode=each) for each in (True, False))
    assert answer(exploded, VALUES[name], "query") == answer(plain, VALUES[name], "query")


def test_what_has_no_defined_member_has_no_row_in_any_table() -> None:
    tables = [*PATH.values(), *QUERY.values(), *HEADER.values(), *COOKIE.values()]
    assert not any(name in table for table in tables for name in NOTHING)


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ("a b,c;d=e", REFUSED),
        ('"q"', REFUSED),
        ("é", REFUSED),
        ("a%20b=/+", "p=a%20b=/+"),
        (["a", "b"], "p=a; p=b"),
        ({"R": 1, "G": 2}, "R=1; G=2"),
        ({"k": "x;y"}, REFUSED),
        (True, "p=true"),
    ],
)
def test_style_cookie_of_3_2_is_sent_without_any_encoding(value: Any, sent: str) -> None:
    assert answer(parameter("p", "cookie", style="cookie", explode=True), value, "Cookie") == sent


RESERVED: Final = ":/?#[]@!$&'()*+,;="


@pytest.mark.parametrize(
    ("style", "explode", "value", "sent"),
    [
        ("form", True, RESERVED, "p=:/?%23%5B%5D@!$%26'()*%2B,;%3D"),
        ("form", True, "%2F %zz é", "p=%2F%20%25zz%20%C3%A9"),
        ("form", True, ["a/b", "c,d"], "p=a/b&p=c,d"),
        ("form", False, ["a/b", "c,d"], "p=a/b,c%2Cd"),
        ("form", True, {"k/l": "a/b", "m": "x&y"}, "k/l=a/b&m=x%26y"),
        ("form", False, {"k/l": "a,b"}, "p=k/l,a%2Cb"),
        ("spaceDelimited", False, ["a/b", "c+d"], "p=a/b%20c%2Bd"),
        ("pipeDelimited", False, ["a/b", "c:d"], "p=a/b%7Cc:d"),
        ("deepObject", True, {"u": "http://h/?a=b"}, "p%5Bu%5D=http://h/?a%3Db"),
    ],
)
def test_allow_reserved_keeps_what_cannot_end_a_value(style: str, explode: bool, value: Any, sent: str):
    one = parameter("p", style=style, explode=explode, allow_reserved=True)
    assert answer(one, value, "query") == sent


@pytest.mark.parametrize(
    ("location", "part", "value", "sent"),
    [
        ("path", "path", {"a": [1, None]}, "%7B%22a%22%3A%5B1%2Cnull%5D%7D"),
        ("path", "path", "a/b", "%22a%2Fb%22"),
        ("path", "path", {}, "%7B%7D"),
        ("path", "path", "", "%22%22"),
        ("query", "query", {"a": [1, None]}, "p=%7B%22a%22%3A%5B1%2Cnull%5D%7D"),
        ("query", "query", [], "p=%5B%5D"),
        ("query", "query", "é", "p=%22%C3%A9%22"),
        ("query", "query", True, "p=true"),
        ("header", "X-P", {"é": "\x7f\n"}, '{"\\u00e9":"\\u007f\\n"}'),
        ("header", "X-P", {}, "{}"),
        ("cookie", "Cookie", {"a": "x y"}, "p={%22a%22:%22x%20y%22}"),
        ("cookie", "Cookie", {}, "p={}"),
    ],
)
def test_a_value_with_json_content_is_json_whatever_its_style(location: str, part: str, value, sent):
    name = "X-P" if location == "header" else "p"
    one = parameter(name, location, content_type="application/json", explode=True)
    assert answer(one, value, part) == sent


@pytest.mark.parametrize(
    ("content_type", "value", "sent"),
    [
        ("application/vnd.x+json; v=1", "a", "p=%22a%22"),
        ("text/plain", "a b", "p=a%20b"),
        ("application/xml", "<a/>", "p=%3Ca%2F%3E"),
        ("text/plain", {"a": 1}, "p=%7B%22a%22%3A1%7D"),
    ],
)
def test_content_of_other_types_is_bare_text(content_type: str, value: Any, sent: str) -> None:
    assert answer(parameter("p", content_type=content_type), value, "query") == sent


def test_a_member_of_an_empty_name_keeps_its_empty_name() -> None:
    assert answer(parameter("p"), {"": 1}, "query") == "=1"
    assert answer(parameter("p", "cookie"), {"": 1}, "Cookie") == REFUSED


@pytest.mark.parametrize("name", ["a]", "[b", "a][b"])
def test_a_name_with_brackets_cannot_climb_out_of_deep_object(name: str) -> None:
    assert answer(parameter("p", style="deepObject"), {"a": {name: 1}}, "query") == REFUSED


@pytest.mark.parametrize("name", ["x; key", "x=1; key", "a\r\nb", "é", "a,b"])
def test_a_members_name_stays_one_cookies_name(name: str) -> None:
    sent = answer(parameter("p", "cookie"), {name: "v"}, "Cookie")
    assert sent is not None
    assert sent.count("=") == 1 and sent.isascii() and ";" not in sent and sent.isprintable()


@pytest.mark.parametrize("location", ["query", "cookie"])
def test_an_exploded_object_cannot_bring_another_parameter_past_its_schema(location: str) -> None:
    limit = parameter("limit", location, {"type": "integer", "maximum": 10})
    free = parameter("f", location, {"type": "object"})
    listed = parameter("f", location, {"type": "object", "properties": {"limit": {"maximum": 10}}})
    slot = f"{location}Params"
    with pytest.raises(InvalidArguments) as caught:
        prepared(details(limit, free), operation(), **{slot: {"f": {"limit": 1000, "own": 1}}})
    (issue,) = caught.value.details["issues"]
    assert (issue["in"], issue["pointer"]) == (location, "/f/limit")
    assert prepared(details(limit, listed), operation(), **{slot: {"f": {"limit": 9}}})
    assert prepared(details(limit, free), operation(), **{slot: {"f": {"f": 9}}})


def test_a_member_of_a_deep_object_cannot_pass_for_a_parameter_with_brackets_in_its_name() -> None:
    whole = parameter("f", style="deepObject", schema={"type": "object"})
    single = parameter("f[limit]", schema={"type": "integer", "maximum": 10})
    with pytest.raises(InvalidArguments) as caught:
        prepared(details(whole, single), operation(), queryParams={"f": {"limit": 1000}})
    assert caught.value.details["issues"][0]["pointer"] == "/f/limit"


@pytest.mark.parametrize(
    ("base", "path", "values", "url"),
    [
        ("https://h.test/a?k=v", "/p", {"p": ["x", "y"]}, "https://h.test/a/p?k=v&p=x&p=y"),
        ("https://h.test/a?", "/p", {"p": "x"}, "https://h.test/a/p?p=x"),
        ("https://h.test", "/p?x=1&", {"p": "y"}, "https://h.test/p?x=1&&p=y"),
        ("https://h.test", "/p?x", {"p": ""}, "https://h.test/p?x&p="),
        ("https://h.test", "/p?x=1#f", {"p": "#"}, "https://h.test/p?x=1&p=%23"),
        ("https://h.test", "/p?p=1", {"p": 2}, "https://h.test/p?p=1&p=2"),
        ("https://h.test", "/p?x=1", {"p": []}, "https://h.test/p?x=1"),
        ("https://h.test/?k=v", "/", {}, "https://h.test/?k=v"),
    ],
)
def test_a_url_that_holds_a_query_keeps_it(base: str, path: str, values: dict[str, Any], url: str) -> None:
    found = details(parameter("p"), base_url=base)
    assert prepared(found, operation(path=path), queryParams=values)["url"] == url


FORM: Final = "application/x-www-form-urlencoded"
DEEP: Final = {"style": "deepObject", "explode": True}


@pytest.mark.parametrize(
    ("encoding", "value", "sent"),
    [
        ({}, "a b&c", "f=a%20b%26c"),
        ({}, "", "f="),
        ({}, True, "f=true"),
        ({}, 2.0, "f=2"),
        ({}, None, ""),
        ({}, [], ""),
        ({}, [1, None, "x"], "f=1&f=x"),
        ({}, {}, "f=%7B%7D"),
        ({}, {"a": None}, "f=%7B%22a%22%3Anull%7D"),
        ({}, [[1, 2], {"k": "é"}], f"f={_12}&f=%7B%22k%22%3A%22%C3%A9%22%7D"),
        ({"contentType": "application/json"}, "x", "f=%22x%22"),
        ({"contentType": "application/json; charset=utf-8"}, [1], "f=%5B1%5D"),
        ({"contentType": "text/plain"}, ["x", "y"], "f=x&f=y"),
        ({"style": "form", "explode": True}, {"a": 1, "b": [2]}, "a=1&b=%5B2%5D"),
        ({"style": "form", "explode": False}, {"a": 1, "b": 2}, "f=a,1,b,2"),
        ({"explode": False}, ["x,y", "z"], "f=x%2Cy,z"),
        ({"explode": False}, [], ""),
        ({"style": "spaceDelimited"}, ["x", "y"], "f=x%20y"),
        ({"style": "pipeDelimited", "explode": True}, ["x", "y"], "f=x&f=y"),
        (DEEP, {"a": {"b": [1, 2]}}, "f%5Ba%5D%5Bb%5D%5B%5D=1&f%5Ba%5D%5Bb%5D%5B%5D=2"),
        (DEEP, [{"k": 1}, {"k": 2}], "f%5B0%5D%5Bk%5D=1&f%5B1%5D%5Bk%5D=2"),
        (DEEP, {}, ""),
        (DEEP, "x", "f=x"),
        (DEEP, {"a][b": 1}, REFUSED),
        ({"allowReserved": True}, "a/b?c&d+e é", "f=a/b?c%26d%2Be%20%C3%A9"),
        ({"style": "form", "contentType": "application/json"}, {"a": 1}, "a=1"),
    ],
)
def test_a_form_field(encoding: dict[str, Any], value: Any, sent: str) -> None:
    media = MediaType(FORM, {"type": "object"}, {"f": encoding})
    found = details(body=Body(required=True, media_types=(media,)))
    try:
        request = prepared(found, operation("POST"), body={"f": value})
    except InvalidArguments as error:
        assert (error.details["issues"][0]["pointer"], sent) == ("/f", REFUSED)
    else:
        assert (request["body"], request["headers"]["Content-Type"]) == (sent, FORM)


BINARY: Final = {"type": "string", "format": "binary"}
Parts = list[tuple[str, str | None, str]]


def written(schema: Any, encoding: dict[str, Any], value: Any) -> Parts:
    """Return (name, documented content type, content) of each part, read from the wire by hand."""
    whole = {"type": "object", "properties": {"f": schema}}
    media = MediaType("multipart/form-data", whole, {"f": encoding})
    found = details(body=Body(required=True, media_types=(media,)))
    request = prepared(found, operation("POST"), body={"f": value})
    boundary = request["headers"]["Content-Type"].partition("boundary=")[2]
    parts: Parts = []
    for block in str(request["body"]).split(f"--{boundary}")[1:-1]:
        head, _, content = block.strip("\r\n").partition("\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.split("\r\n"))
        name = fields["Content-Disposition"].partition('name="')[2].partition('"')[0]
        parts.append((name, fields.get("Content-Type"), content))
    return parts


@pytest.mark.parametrize(
    ("schema", "encoding", "value", "parts"),
    [
        (True, {}, "é", [("f", None, "é")]),
        (True, {}, 2.0, [("f", None, "2")]),
        (True, {}, {"a": None}, [("f", "application/json", '{"a":null}')]),
        (True, {}, [1, None, "x"], [("f", None, "1"), ("f", None, "x")]),
        (
            True,
            {},
            [[1, 2], {"k": 1}],
            [("f", "application/json", "[1,2]"), ("f", "application/json", '{"k":1}')],
        ),
        (
            True,
            {"contentType": "application/json; charset=utf-8"},
            "x",
            [("f", "application/json; charset=utf-8", '"x"')],
        ),
        (True, {"contentType": "application/json"}, [1, 2], [("f", "application/json", "[1,2]")]),
        (True, {"contentType": "text/csv"}, ["a", "b"], [("f", "text/csv", "a"), ("f", "text/csv", "b")]),
        (True, {"contentType": "application/xml"}, "<a/>", [("f", "application/xml", "<a/>")]),
        (True, {"explode": False}, ["a b", "c"], [("f", None, "a b,c")]),
        (True, {"style": "pipeDelimited"}, ["a", "b"], [("f", None, "a|b")]),
        (True, {"style": "spaceDelimited"}, [1, 2], [("f", None, "1 2")]),
        (True, DEEP, {"a": {"b": "é/"}, "c": [1]}, [("f[a][b]", None, "é/"), ("f[c][]", None, "1")]),
        (True, {"style": "form", "explode": True}, {"a": 1, "b": 2}, [("a", None, "1"), ("b", None, "2")]),
        (BINARY, {}, "data", [("f", "application/octet-stream", "data")]),
        (BINARY, {"contentType": "image/png, image/*"}, "data", [("f", "image/png", "data")]),
        (
            BINARY,
            {"contentType": "image/*"},
            {"text": "d", "contentType": "image/gif"},
            [("f", "image/gif", "d")],
        ),
        (BINARY, {}, {"text": "d", "contentType": "text/csv"}, [("f", "text/csv", "d")]),
        (BINARY, {"contentType": "image/png"}, "data:image/gif;base64,AA==", [("f", "image/png", "\0")]),
    ],
)
def test_a_multipart_field(schema: Any, encoding: dict[str, Any], value: Any, parts: Parts) -> None:
    assert written(schema, encoding, value) == parts


@pytest.mark.parametrize(
    ("schema", "encoding", "value", "pointer"),
    [
        (True, {"contentType": "application/xml"}, {"a": 1}, "/f"),
        (True, {"style": "pipeDelimited"}, ["a|b", "c"], "/f"),
        (BINARY, {"contentType": "image/png"}, {"text": "d", "contentType": "text/html"}, "/f/contentType"),
        (BINARY, {}, {"text": "d", "contentType": "a/b\r\nX: y"}, "/f/contentType"),
        (BINARY, {}, {"text": "d", "filename": "n" * 256}, "/f/filename"),
        (BINARY, {}, {"base64": "*"}, "/f/base64"),
    ],
)
def test_a_multipart_field_that_cannot_be_written(schema: Any, encoding: Any, value: Any, pointer: str):
    with pytest.raises(InvalidArguments) as caught:
        written(schema, encoding, value)
    assert [each["pointer"] for each in caught.value.details["issues"]] == [pointer]


@pytest.mark.parametrize(
    ("documented", "given", "sent"),
    [
        ("application/octet-stream", "image/png", "image/png"),
        ("application/octet-stream", "application/json", REFUSED),
        ("application/octet-stream", FORM, REFUSED),
        ("application/octet-stream", "text/html", REFUSED),
        ("image/png", "image/jpeg", REFUSED),
        ("image/*", "image/jpeg", "image/jpeg"),
        ("image/*", "text/html", REFUSED),
        ("*/*", "text/csv", "text/csv"),
        ("text/csv", "application/json", REFUSED),
        ("text/csv", "text/csv", "text/csv"),
    ],
)
def test_a_files_own_type_counts_where_the_document_leaves_it_open(documented: str, given: str, sent: str):
    found = details(body=Body(required=True, media_types=(MediaType(documented, True),)))
    call = {"contentType": "image/png"} if documented == "image/*" else {}
    try:
        request = prepared(found, operation("POST"), body={"base64": "AAAA", "contentType": given}, **call)
    except InvalidArguments as error:
        assert (error.details["issues"][0]["pointer"], sent) == ("/contentType", REFUSED)
    else:
        assert request["headers"]["Content-Type"] == sent


@pytest.mark.parametrize(
    ("wanted", "sent"),
    [
        ("application/json; charset=utf-8", "application/json; charset=utf-8"),
        ('application/json; charset="UTF8"', 'application/json; charset="UTF8"'),
        ("application/json; charset=utf-16", REFUSED),
        ("application/json; charset=utf-7", REFUSED),
        ("application/json; charset=nonsense", REFUSED),
        ("application/json; v=2", "application/json; v=2"),
        (f"{FORM}; charset=iso-8859-1", REFUSED),
        ("text/plain; charset=iso-8859-1", "text/plain; charset=iso-8859-1"),
        ("text/plain; charset=nonsense", REFUSED),
        ("text/plain; charset=base64", REFUSED),
    ],
)
def test_a_callers_charset_is_the_one_that_is_written(wanted: str, sent: str) -> None:
    media = tuple(MediaType(each, True) for each in ("application/json", FORM, "text/plain"))
    found = details(body=Body(required=True, media_types=media))
    body: Any = "é" if wanted.startswith("text") else {"a": "é"}
    try:
        request = prepared(found, operation("POST"), body=body, contentType=wanted)
    except InvalidArguments as error:
        assert (error.details["issues"][0]["in"], sent) == ("contentType", REFUSED)
    else:
        assert request["headers"]["Content-Type"] == sent


@pytest.mark.parametrize("method", ["GET", "DELETE", "HEAD", "OPTIONS", "POST"])
@pytest.mark.parametrize("required", [True, False])
def test_a_body_is_sent_with_any_method_and_left_out_only_where_it_is_optional(method: str, required: bool):
    found = details(body=json_body({"type": "object"}, required=required))
    assert json.loads(prepared(found, operation(method), body={"a": None})["body"]) == {"a": None}
    assert prepared(found, operation(method), body={})["body"] == "{}"
    for absent in ({}, {"body": None}):
        if required:
            with pytest.raises(InvalidArguments):
                prepared(found, operation(method), **absent)
        else:
            request = prepared(found, operation(method), **absent)
            assert request["body"] is None and "Content-Type" not in request["headers"]


@pytest.mark.parametrize(
    ("content_type", "text", "sent", "documented"),
    [
        ("application/xml", "<a>é</a>", "<a>é</a>".encode(), "application/xml"),
        ("text/xml; charset=iso-8859-1", "<a>é</a>", b"<a>\xe9</a>", "text/xml; charset=iso-8859-1"),
        ("application/atom+xml", "", b"", "application/atom+xml"),
    ],
)
def test_xml_is_sent_as_the_text_it_is(content_type: str, text: str, sent: bytes, documented: str) -> None:
    from base64 import b64decode

    found = details(body=Body(required=True, media_types=(MediaType(content_type, {"type": "object"}),)))
    request = prepared(found, operation("POST"), body=text)
    body = b64decode(request["bodyBase64"]) if "bodyBase64" in request else request["body"].encode()
    assert (body, request["headers"]["Content-Type"]) == (sent, documented)
