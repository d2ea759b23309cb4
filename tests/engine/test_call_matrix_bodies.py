"""Bodies by OpenAPI 3.1: encoding objects, files, content types and charsets, worked out by hand."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any, Final

import pytest

from call_support import details, json_body, operation, prepared
from capdex_engine.errors import InvalidArguments
from capdex_engine.operation import Body, MediaType

REFUSED: Final = "refused"
_12: Final = "%5B1%2C2%5D"  # [1,2]
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
        ("text/plain; charset=punycode", REFUSED),
        ("text/plain; charset=IDNA", REFUSED),
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
    found = details(body=Body(required=True, media_types=(MediaType(content_type, {"type": "object"}),)))
    request = prepared(found, operation("POST"), body=text)
    body = b64decode(request["bodyBase64"]) if "bodyBase64" in request else request["body"].encode()
    assert (body, request["headers"]["Content-Type"]) == (sent, documented)
