"""Answers of megabytes: masked wherever a secret stands, and read only as far as they are shown."""

from __future__ import annotations

import base64
import json

import pytest

from call_support import operation
from capdex_engine.call import Response, masking
from capdex_engine.call.masking import Masker
from capdex_engine.call.response import envelope
from planted import planted

SECRET = planted("large answers", "/é+")


def answered(body: bytes, content_type: str, *, truncated: bool = False, max_bytes: int = 2000) -> dict:
    response = Response(200, (("Content-Type", content_type),), body, truncated)
    return envelope(response, Masker([SECRET]), operation=operation(), max_bytes=max_bytes, extra={})


@pytest.mark.parametrize("form", [SECRET, base64.b64encode(SECRET.encode()).decode()])
@pytest.mark.parametrize("offset", [-40, -10, -1, 0, 1])
def test_a_secret_across_two_windows_is_masked_once(form: str, offset: int):
    before = b"." * (masking._WINDOW + offset)
    masker = Masker([SECRET])
    assert masker.data(before + form.encode() + b"!") == before + b"***!"
    assert masker.hit


def test_secrets_side_by_side_over_many_windows_are_all_masked():
    count = 4 * masking._WINDOW // len(SECRET)
    assert Masker([SECRET]).data((SECRET + ",").encode() * count) == b"***," * count


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/octet-stream", "text/plain; charset=utf-16"]
)
def test_no_part_of_a_secret_stands_where_the_reading_ends(content_type: str):
    encoding = "utf-16-le" if "16" in content_type else "utf-8"
    for shift in range(0, len(SECRET), 5):
        body = ("." * shift + SECRET * 3000).encode(encoding)
        answer = answered(body, content_type)
        shown = answer["body"]
        text = base64.b64decode(shown["base64"]).decode() if isinstance(shown, dict) else shown
        assert answer["truncated"] and SECRET[:8] not in text


def test_a_text_that_is_cut_says_so_and_its_real_size():
    answer = answered(b"x" * 1_000_000, "text/plain")
    assert (answer["truncated"], answer["bytes"]) == (True, 1_000_000)
    assert 1500 < len(answer["body"]) < 2000


def test_cut_json_of_megabytes_is_text_and_small_cut_json_that_is_whole_stays_json():
    assert isinstance(answered(b"[1]" + b" " * 200_000, "application/json", truncated=True)["body"], str)
    assert answered(b"[1] ", "application/json", truncated=True)["body"] == [1]


def test_large_json_is_cut_by_whole_items():
    body = json.dumps([{"id": number, "key": SECRET} for number in range(20_000)]).encode()
    answer = answered(body, "application/json")
    assert answer["omitted"][0]["total"] == 20_000
    assert answer["body"][0] == {"id": 0, "key": "***"} and answer["masked"]
