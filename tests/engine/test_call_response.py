from __future__ import annotations

import base64
import copy
import json
from typing import Any
from urllib.parse import quote, unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from call_support import operation
from capdex_engine.call.budget import cut, cut_text, size
from capdex_engine.call.masking import Masker
from capdex_engine.call.response import envelope, paging_hint, shown_headers
from capdex_engine.call.transport import Response

LISTING = operation(query_params=("q", "per_page", "page", "filter[limit]"))


def answered(
    body: bytes, content_type: str | None = "application/json", *, secrets: tuple[str, ...] = (), **more: Any
) -> dict[str, Any]:
    headers = more.pop("headers", ())
    if content_type is not None:
        headers = (("Content-Type", content_type), *headers)
    response = Response(more.pop("status", 200), headers, body, more.pop("truncated", False))
    return envelope(
        response,
        Masker(secrets),
        operation=LISTING,
        max_bytes=more.pop("max_bytes", 65536),
        extra={"elapsedMs": 7},
    )


def test_the_envelope_holds_what_came_back():
    assert answered(b'{"a": 1}', headers=(("X-A", "1"),)) == {
        "status": 200,
        "contentType": "application/json",
        "headers": {"content-type": "application/json", "x-a": "1"},
        "body": {"a": 1},
        "bytes": 8,
        "truncated": False,
        "elapsedMs": 7,
    }


@pytest.mark.parametrize(
    ("body", "content_type", "shown"),
    [
        (b"", "application/json", None),
        (b"null", "application/json", None),
        (b"[1, 12345678901234567890123]", "application/json", [1, 12345678901234567890123]),
        (b"1e308", "application/json", 1e308),
        (b"1e400", "application/json", "1e400"),
        (b"[NaN]", "application/json", "[NaN]"),
        (b"{broken", "application/problem+json", "{broken"),
        (b"[" * 100_000, "application/json", "[" * 100_000),
        (b"\xef\xbb\xbf{}", "application/json", {}),
        ('{"a":"é"}'.encode("utf-16"), "application/json", {"a": "é"}),
        (b'["\\ud800"]', "application/json", '["\\ud800"]'),
        (b'["\\ud83d\\ude00"]', "application/json", ["😀"]),
        (b'"\xe9"', "application/json; charset=latin-1", "é"),
        (b"1", "text/plain", "1"),
        (b"x", "text/plain; charset=idna", "x"),
        (b"xn--4ca", "text/plain; charset=idna", "xn--4ca"),
        (b"\\x41", "text/plain; charset=unicode_escape", "\\x41"),
        (b'"a-4ca"', "application/json; charset=punycode", "a-4ca"),
        ("é".encode(), "text/plain", "é"),
        (b"\xe9", "text/plain; charset=ISO-8859-1", "é"),
        (b"\xe9", "text/html", "é"),
        (b"\xe9", "text/html; charset=nonsense", "é"),
        (b"<a/>", "application/xml", "<a/>"),
        (b"a,b", "text/csv", "a,b"),
        (b"\x00\xff", "image/png", {"base64": "AP8="}),
        (b"abc", "application/octet-stream", {"base64": "YWJj"}),
        (b'{"a": 1}', None, {"a": 1}),
        (b"plain", None, "plain"),
        (b"\x00\xff", None, {"base64": "AP8="}),
    ],
)
def test_a_body_is_json_text_or_base64_by_its_type(body, content_type, shown):
    assert answered(body, content_type, max_bytes=10_000_000)["body"] == shown


def test_every_body_can_be_said_again_as_json():
    for body in (b"1e400", b"[Infinity]", b'["\\uD800"]', b"[" * 500 + b"]" * 500):
        json.dumps(answered(body), allow_nan=False, ensure_ascii=False).encode()


def test_what_the_upstream_cut_is_marked_and_not_taken_for_whole():
    found = answered(b'{"a": "\xc3', truncated=True, status=201)
    assert (found["status"], found["truncated"], found["bytes"]) == (201, True, 8)
    assert found["body"].startswith('{"a": "')


def test_cookies_and_hop_by_hop_headers_are_dropped_and_repeated_ones_joined():
    found = shown_headers(
        [
            ("Set-Cookie", "sid=1"),
            ("Connection", "close, X-Hop"),
            ("X-Hop", "1"),
            ("Transfer-Encoding", "chunked"),
            ("Link", "<1>"),
            ("link", "<2>"),
        ]
    )
    assert found == {"link": "<1>, <2>"}


@given(
    st.binary(max_size=60) | st.text(max_size=60).map(str.encode),
    st.sampled_from(["application/json", "text/plain", "text/html; charset=utf-16", "image/png", None]),
    st.booleans(),
    st.integers(1, 400),
)
@settings(max_examples=200, deadline=None)
def test_whatever_comes_back_can_be_passed_on(body, content_type, truncated, max_bytes):
    found = answered(body, content_type, truncated=truncated, max_bytes=max_bytes, secrets=("sesame",))
    json.dumps(found, ensure_ascii=False, allow_nan=False).encode()
    assert found["bytes"] == len(body)


SECRET = 'se/cr"et é+'


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        base64.b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(SECRET.encode()).decode(),
        "se%2Fcr%22et%20%C3%A9%2B",
        "se%2fcr%22et%20%c3%a9%2b",
        "se/cr%22et+%C3%A9%2B",
    ],
)
def test_a_credential_is_masked_in_every_usual_form(form):
    found = answered(
        json.dumps({"a": [f"x{form}y"], form: 1}).encode(), secrets=(SECRET,), headers=(("X-E", form),)
    )
    assert found["masked"] is True
    assert form not in json.dumps(found, ensure_ascii=False)
    assert found["body"]["a"] == ["x***y"]


def test_a_credential_beyond_ascii_is_masked_where_its_bytes_were_read_as_latin_1():
    echo = SECRET.encode().decode("latin-1")
    found = answered(json.dumps({"seen": echo}).encode(), secrets=(SECRET,), headers=(("X-E", echo),))
    assert (found["body"], found["headers"]["x-e"]) == ({"seen": "***"}, "***")


@pytest.mark.parametrize("secret", ["sesame", 'se/cr"et é+', "\xff\xfe\xfd\xff?>~~", "x" * 41])
@pytest.mark.parametrize("alphabet", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("before", ["", "a", "ab", "Bearer ", "user:", "Authorization: Bearer "])
def test_base64_of_a_text_around_a_credential_does_not_give_it_away(secret, alphabet, before):
    for after in ("", "b", "bc", "\r\nHost: api.test"):
        encoded = alphabet(f"{before}{secret}{after}".encode()).decode()
        for form in (encoded, quote(encoded, safe=""), encoded.replace("/", "\\/")):
            found = answered(form.encode(), "text/plain", secrets=(secret,))
            assert found["masked"] is True
            left = unquote(found["body"].replace("***", "")).replace("\\/", "/").rstrip("=")
            # What stood beside the secret may be left, and a part of a byte of it at each end.
            assert len(left) * 6 <= (len(f"{before}{after}".encode()) + 2) * 8


def test_innocent_base64_is_left_alone():
    text = base64.b64encode(b"open this door, please").decode()
    assert answered(json.dumps([text]).encode(), secrets=("sesame",))["body"] == [text]


def test_a_credential_is_masked_in_text_binary_and_broken_json():
    assert answered(b"my sesame!", "text/plain", secrets=("sesame",))["body"] == "my ***!"
    assert (
        base64.b64decode(answered(b"\x00sesame", "image/png", secrets=("sesame",))["body"]["base64"])
        == b"\x00***"
    )
    assert answered(b'{"se\\"same', secrets=('se"same',))["body"] == '{"***'
    assert answered(b"[1234567, 12345678]", secrets=("1234567",))["body"] == ["***", 12345678]


def test_short_credentials_are_not_masked():
    found = answered(b'"abcde"', secrets=("abcde",))
    assert found["body"] == "abcde"
    assert "masked" not in found


def test_a_large_answer_loses_whole_items_of_its_largest_array():
    rows = [{"id": index, "text": "x" * 90} for index in range(2000)]
    found = answered(json.dumps({"total": 2000, "few": [1, 2], "rows": rows}).encode())
    (omitted,) = found["omitted"]
    assert omitted == {"pointer": "/rows", "kept": len(found["body"]["rows"]), "total": 2000}
    assert found["body"]["rows"] == rows[: omitted["kept"]]
    assert found["body"]["few"] == [1, 2]
    assert found["truncated"] is False
    assert 60_000 < size(found) <= 65536
    assert "per_page" in found["hint"] and "page" in found["hint"] and "filter[limit]" in found["hint"]
    assert "q," not in found["hint"]


def test_an_answer_within_its_budget_is_left_alone():
    found = answered(json.dumps(["x" * 10] * 100).encode())
    assert "omitted" not in found and "hint" not in found


def test_a_hint_without_paging_parameters_still_says_what_to_do():
    assert "maxBytes" in paging_hint(operation(query_params=("q",)))


def test_nested_arrays_are_cut_when_their_only_item_is_still_too_large():
    found = cut({"data": [{"rows": ["x" * 100] * 1000}, ["y" * 100]]}, 5000)
    assert [each["pointer"] for each in found.omitted] == ["/data", "/data/0/rows"]
    found = cut({"data": [{"rows": ["x" * 100] * 1000}, 1]}, 5000)
    assert [each["pointer"] for each in found.omitted] == ["/data/0/rows"]
    assert found.body["data"][1] == 1
    assert size(found.body) <= 5000
    assert not found.truncated


def test_many_small_arrays_are_cut_in_one_go():
    found = cut({str(index): ["x" * 100, "y" * 100] for index in range(2000)}, 350_000)
    assert len(found.omitted) > 500
    assert size(found.body) <= 350_000


def test_an_answer_that_arrays_cannot_save_is_cut_as_text():
    found = answered(json.dumps({"a": "é" * 100_000}).encode())
    assert found["truncated"] is True
    assert found["body"].startswith('{"a":"éé')
    assert size(found) <= 65536


def test_text_and_base64_are_cut_to_the_budget():
    text = answered(b'"\n' * 100_000, "text/plain", max_bytes=5000)
    assert text["truncated"] is True
    assert 4900 < size(text) <= 5000
    binary = answered(b"\x00" * 100_000, "image/png", max_bytes=5000)
    assert binary["truncated"] is True
    assert len(base64.b64decode(binary["body"]["base64"])) > 3000
    assert size(binary) <= 5000


def test_a_budget_below_everything_still_gives_an_answer():
    assert answered(b'{"a": [1, 2, 3]}', max_bytes=1)["status"] == 200


@given(st.text(), st.integers(0, 200))
@settings(max_examples=200, deadline=None)
def test_cut_text_is_the_longest_beginning_that_fits(text, limit):
    kept = cut_text(text, limit)
    assert text.startswith(kept)
    assert kept == "" or size(kept) <= limit
    if kept != text:
        assert size(text[: len(kept) + 1]) > limit


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=40,
)


@given(json_values, st.integers(20, 300))
@settings(max_examples=60, deadline=None)
def test_a_cut_body_fits_and_says_what_it_lost(value, limit):
    found = cut(copy.deepcopy(value), limit)
    assert size(found.body) + sum(size(each) + 1 for each in found.omitted) <= limit
    for each in found.omitted:
        assert 1 <= each["kept"] < each["total"]
    if not found.omitted and not found.truncated:
        assert found.body == value
