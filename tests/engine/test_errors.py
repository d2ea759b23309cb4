"""What errors show of where a document lies."""

from __future__ import annotations

import pytest

from capdex_engine.errors import DocumentError, shown_location


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("/home/x/api.yaml", "/home/x/api.yaml"),
        ("api.yaml?x=1", "api.yaml?x=1"),
        ("https://a.test:8443/v1/api.yaml#/paths", "https://a.test:8443/v1/api.yaml#/paths"),
        ("http://user:hunter2@a.test/x.yaml?api_key=topsecret", "http://***@a.test/x.yaml?***"),
        ("http://[::1", "http://***"),
    ],
)
def test_a_url_is_shown_without_its_secrets(location: str, shown: str) -> None:
    assert shown_location(location) == shown
    assert DocumentError("gone", location=location).details["location"] == shown
