from __future__ import annotations

import base64
import email.parser
import email.policy
import json
from typing import Any

import pytest

from call_support import details, json_body, operation, prepared
from capdex_engine.call.body import BodyError, file_bytes, write_body
from capdex_engine.call.media import Choice, Kind, NoChoice, choose, kind_of
from capdex_engine.call.multipart import Part, write_multipart
from capdex_engine.call.schema import SchemaChecker
from capdex_engine.documents import DELIMITER
from capdex_engine.errors import InvalidArguments
from capdex_engine.operation import Body, MediaType

FILE = {"type": "string", "format": "binary"}


def sent(
    content_type: str, body: Any, schema: Any = True, encoding: Any = None, **call: Any
) -> dict[str, Any]:
    media = MediaType(content_type, schema, encoding or {})
    found = details(body=Body(required=True, media_types=(media,)))
    return prepared(found, operation("POST"), body=body, **call)


def refused(content_type: str, body: Any, schema: Any = True, encoding: Any = None) -> list[dict[str, Any]]:
    with pytest.raises(InvalidArguments) as caught:
        sent(content_type, body, schema, encoding)
    issues: list[dict[str, Any]] = caught.value.details["issues"]
    return issues


def raw(shown: dict[str, Any]) -> bytes:
    if "bodyBase64" in shown:
        return base64.b64decode(shown["bodyBase64"])
    return str(shown["body"]).encode()


def parts(shown: dict[str, Any]) -> list[tuple[str, str | None, str, bytes]]:
    """Return (name, file name, content type, content) of each part."""
    head = f"Content-Type: {shown['headers']['Content-Type']}\r\n\r\n".encode()
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + raw(shown))
    return [
        (
            part.get_param("name", header="content-disposition"),
            part.get_filename(),
            part.get_content_type(),
            part.get_payload(decode=True),
        )
        for part in message.iter_parts()
    ]


@pytest.mark.parametrize(
    "value", [[1, 2], [], {}, {"a": None}, "true", 0, 1.5, False, None, "é 😀", 12345678901234567890123]
)
def test_any_json_value_is_sent_as_json(value):
    shown = sent("application/json", value)
    assert json.loads(shown["body"]) == value
    assert shown["headers"]["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    "content_type",
    ["application/merge-patch+json", "application/json;version=2018-01-01", "Application/JSON"],
)
def test_a_json_type_is_kept_on_the_wire_as_documented(content_type):
    shown = sent(content_type, {"k": None})
    assert shown["headers"]["Content-Type"] == content_type
    assert json.loads(shown["body"]) == {"k": None}


@pytest.mark.parametrize(
    ("content_type", "kind"),
    [
        ("application/json", Kind.JSON),
        ("text/json; charset=utf-8", Kind.JSON),
        ("application/problem+json", Kind.JSON),
        ("application/x-ndjson", Kind.LINES),
        ("APPLICATION/X-WWW-FORM-URLENCODED", Kind.FORM),
        ("multipart/form-data", Kind.MULTIPART),
        ("application/soap+xml", Kind.XML),
        ("text/xml", Kind.XML),
        ("application/x-yaml", Kind.YAML),
        ("text/csv", Kind.TEXT),
        ("image/png", Kind.BINARY),
        ("nonsense", Kind.BINARY),
    ],
)
def test_media_types_are_told_apart_by_their_bare_name(content_type, kind):
    assert kind_of(content_type) is kind


def media(*names: str) -> list[MediaType]:
    return [MediaType(name, True) for name in names]


@pytest.mark.parametrize(
    ("documented", "wanted", "body", "chosen"),
    [
        (["application/json", "text/csv"], None, {}, "application/json"),
        (["application/json", "text/csv"], "TEXT/CSV", "a", "text/csv"),
        (["application/json;v=1"], "application/json", {}, "application/json;v=1"),
        (["application/json"], "application/json; v=2", {}, "application/json; v=2"),
        (["*/*"], None, {}, "application/json"),
        (["*/*"], None, {"base64": "AA=="}, "application/octet-stream"),
        (["text/*"], None, "a", "text/plain"),
        (["image/*"], "image/png", "a", "image/png"),
        (["*/*", "text/csv; header=present"], "text/csv", "a", "text/csv; header=present"),
        (["application/*+json"], None, {}, "application/json"),
    ],
)
def test_the_content_type_is_the_wanted_one_or_the_preferred_one(documented, wanted, body, chosen):
    assert choose(media(*documented), wanted, body).content_type == chosen


@pytest.mark.parametrize("wanted", ["text/html", "*/*", "no type", "text/csv\r\nX-Evil: 1", "image/*"])
def test_a_content_type_that_the_document_does_not_offer_is_refused(wanted):
    with pytest.raises(NoChoice):
        choose(media("application/json", "text/csv"), wanted, {})


def test_a_wildcard_that_says_too_little_needs_a_content_type():
    with pytest.raises(NoChoice):
        choose(media("image/*"), None, "x")


def test_form_fields_repeat_arrays_and_write_objects_as_json():
    shown = sent(
        "application/x-www-form-urlencoded",
        {"name": "A & B", "tags": ["x", "y"], "address": {"city": "ü"}, "ok": True, "none": None},
    )
    assert shown["body"] == "name=A%20%26%20B&tags=x&tags=y&address=%7B%22city%22%3A%22%C3%BC%22%7D&ok=true"


def test_the_encoding_object_decides_the_style_of_a_form_field():
    encoding = {
        "address": {"style": "deepObject", "explode": True},
        "tags": {"style": "form", "explode": False},
        "tabs": {"style": "form", "explode": False, DELIMITER: "\t"},
        "list": {"contentType": "application/json"},
    }
    shown = sent(
        "application/x-www-form-urlencoded",
        {"tags": ["x", "y"], "address": {"city": "ü"}, "tabs": [1, 2], "list": [1]},
        encoding=encoding,
    )
    assert shown["body"] == "tags=x,y&address%5Bcity%5D=%C3%BC&tabs=1%092&list=%5B1%5D"


def test_a_fault_of_a_form_field_is_told_by_its_name():
    encoding = {"a": {"style": "pipeDelimited"}}
    body = {"a": ["x|y", "z"], "b": 1}
    assert refused("application/x-www-form-urlencoded", body, encoding=encoding)[0]["pointer"] == "/a"
    assert refused("application/x-www-form-urlencoded", {"f": {"base64": "AP8="}})[0]["pointer"] == "/f"


def test_a_file_of_text_may_be_a_form_field():
    assert sent("application/x-www-form-urlencoded", {"f": {"base64": "w6k="}})["body"] == "f=%C3%A9"


def test_a_body_without_a_documented_media_type_is_json():
    shown = prepared(details(body=Body(required=True, media_types=())), operation("POST"), body=[1])
    assert (shown["body"], shown["headers"]["Content-Type"]) == ("[1]", "application/json")


def test_a_form_is_an_object():
    assert refused("application/x-www-form-urlencoded", [1])[0]["in"] == "body"
    assert refused("multipart/form-data", "x")[0]["in"] == "body"


def test_multipart_writes_each_field_by_its_kind():
    schema = {
        "type": "object",
        "properties": {"file": {"$ref": "#/$defs/F"}, "thumbs": {"type": "array", "items": FILE}},
    }
    found = MediaType("multipart/form-data", schema, {"thumbs": {"contentType": "image/png, image/jpeg"}})
    written = write_body(
        Choice(found, found.content_type),
        {
            "file": {"base64": "AP8=", "filename": "x.bin"},
            "thumbs": ["one", {"text": "two"}],
            "meta": {"t": "é"},
            "tags": ["a", "b"],
            "n": 3,
            "none": None,
        },
        SchemaChecker({"F": FILE}),
        boundary="B",
    )
    shown = {
        "headers": {"Content-Type": written.content_type},
        "bodyBase64": base64.b64encode(written.data).decode(),
    }
    assert written.content_type == "multipart/form-data; boundary=B"
    assert parts(shown) == [
        ("file", "x.bin", "application/octet-stream", b"\x00\xff"),
        ("thumbs", "thumbs", "image/png", b"one"),
        ("thumbs", "thumbs", "image/png", b"two"),
        ("meta", None, "application/json", '{"t":"é"}'.encode()),
        ("tags", None, "text/plain", b"a"),
        ("tags", None, "text/plain", b"b"),
        ("n", None, "text/plain", b"3"),
    ]


def test_multipart_joins_an_array_where_the_encoding_says_so():
    shown = sent(
        "multipart/form-data",
        {"a": [1, 2], "b": [1]},
        encoding={"a": {"style": "form", "explode": False}, "b": {"contentType": "application/json"}},
    )
    assert [part[3] for part in parts(shown)] == [b"1,2", b"[1]"]


@pytest.mark.parametrize("meta", [{"text": "hi"}, {"base64": "AA==", "filename": "x"}])
def test_an_object_that_only_looks_like_a_file_stays_an_object(meta):
    schema = {
        "properties": {"meta": {"type": "object", "properties": {key: {"type": "string"} for key in meta}}}
    }
    ((name, filename, content_type, data),) = parts(sent("multipart/form-data", {"meta": meta}, schema))
    assert (name, filename, content_type, json.loads(data)) == ("meta", None, "application/json", meta)
    assert json.loads(sent("*/*", {"text": "hi"})["body"]) == {"text": "hi"}
    assert json.loads(sent("application/yaml", {"text": "hi"})["body"]) == {"text": "hi"}
    form = sent("application/x-www-form-urlencoded", {"meta": {"text": "hi"}})
    assert form["body"] == "meta=%7B%22text%22%3A%22hi%22%7D"


def test_a_file_is_told_by_its_base64_where_the_schema_says_nothing():
    ((_, filename, _, data),) = parts(sent("multipart/form-data", {"f": {"base64": "AP8=", "filename": "x"}}))
    assert (filename, data) == ("x", b"\x00\xff")


def test_equal_parts_give_equal_multipart_bodies():
    one, two = (write_multipart([Part("a", b"1"), Part("b", b"2")]) for _ in range(2))
    assert one == two
    assert write_multipart([Part("a", b"2")])[1] != one[1]


def test_a_file_name_can_neither_end_its_quotes_nor_its_line():
    body = {"f": {"base64": "AA==", "filename": 'a"\r\nX: y.txt'}}
    shown = sent("multipart/form-data", body, {"properties": {"f": FILE}})
    assert b"\r\nX: y" not in raw(shown)
    assert b'filename="a%22%0D%0AX: y.txt"' in raw(shown)


def test_a_file_content_type_cannot_inject_a_header():
    body = {"f": {"base64": "AA==", "contentType": "a/b\r\nX: y"}}
    assert refused("multipart/form-data", body, {"properties": {"f": FILE}})


@pytest.mark.parametrize("path", ["/etc/passwd", "~/x", "./x", "../x", "file:///x", "C:\\x"])
def test_a_path_is_never_opened_and_not_taken_for_a_files_content(path):
    found = refused("multipart/form-data", {"f": path}, {"properties": {"f": FILE}})
    assert [each["pointer"] for each in found] == ["/f"]


@pytest.mark.parametrize(
    ("value", "data"),
    [
        ("plain é", "plain é".encode()),
        ({"text": "/etc/passwd"}, b"/etc/passwd"),
        ({"base64": "AP8="}, b"\x00\xff"),
        ({"base64": "AP8"}, b"\x00\xff"),
        ({"base64": "_-8=\n"}, b"\xff\xef"),
        ("data:image/png;base64,AP8=", b"\x00\xff"),
        ("data:,a%20b", b"a b"),
        ("/two\nlines", b"/two\nlines"),
    ],
)
def test_a_file_is_base64_text_or_a_data_url(value, data):
    assert file_bytes(value) == data


@pytest.mark.parametrize("value", [{"base64": "*"}, {"base64": "AAAAA"}, {}, 5, {"base64": "AA==", "x": "y"}])
def test_what_is_no_file_is_refused(value):
    with pytest.raises(BodyError):
        file_bytes(value)


def test_octets_are_sent_as_bytes():
    shown = sent("application/octet-stream", {"base64": "AP8="}, FILE)
    assert (raw(shown), shown["headers"]["Content-Type"]) == (b"\x00\xff", "application/octet-stream")


def test_a_file_may_say_its_own_content_type():
    shown = sent("application/octet-stream", {"base64": "AP8=", "contentType": "image/png"}, FILE)
    assert shown["headers"]["Content-Type"] == "image/png"


def test_broken_base64_of_a_raw_body_is_an_issue():
    assert refused("application/octet-stream", {"base64": "*"}, FILE)[0]["pointer"] == "/base64"


def test_text_is_sent_without_quotes_in_its_charset():
    assert sent("text/plain", "hi")["headers"]["Content-Type"] == "text/plain"
    shown = sent("text/plain", "hi é")
    assert (shown["body"], shown["headers"]["Content-Type"]) == ("hi é", "text/plain; charset=utf-8")
    assert raw(sent("text/plain; charset=iso-8859-1", "é")) == b"\xe9"
    assert refused("text/plain; charset=iso-8859-1", "日")


def test_text_stands_for_a_structure_that_xml_or_csv_describes():
    assert sent("application/xml", "<a/>", {"type": "object"})["body"] == "<a/>"
    assert sent("text/csv", "a,b", {"type": "array"})["body"] == "a,b"


def test_an_object_is_never_sent_as_xml():
    assert refused("application/xml", {"k": 1}, {"type": "object"})[0]["in"] == "body"


def test_yaml_and_json_lines_take_json_values():
    assert sent("application/yaml", {"a": 1})["body"] == '{"a":1}'
    assert sent("application/x-ndjson", [{"a": 1}, 2])["body"] == '{"a":1}\n2\n'
    assert sent("application/x-ndjson", '{"a":1}\n', {"type": "array"})["body"] == '{"a":1}\n'


def test_an_unknown_multipart_type_is_refused():
    assert refused("multipart/related", {"a": 1})


def test_an_optional_body_that_is_not_given_leaves_no_trace():
    shown = prepared(details(body=json_body(required=False)), operation("POST"))
    assert shown["body"] is None
    assert "Content-Type" not in shown["headers"]


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_body_is_sent_with_any_method_that_documents_one(method):
    shown = prepared(details(body=json_body(required=False)), operation(method), body={"a": 1})
    assert json.loads(shown["body"]) == {"a": 1}
