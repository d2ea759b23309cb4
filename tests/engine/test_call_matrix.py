"""Every style, explode and location by OpenAPI 3.1 and RFC 6570, worked out by hand.

One row a value; ``None`` is "not sent", ``REFUSED`` an argument that cannot be written there.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from call_support import details, operation, parameter, prepared
from capdex_engine.errors import InvalidArguments

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
