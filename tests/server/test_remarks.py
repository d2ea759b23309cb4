from __future__ import annotations

from capdex_engine.catalog import build_catalog
from capdex_engine.operation import SecurityScheme
from capdex_server.remarks import remarks_on
from catalog_support import SourceSettings, document, source

SCHEMES = {"key": SecurityScheme("key", "apiKey", "header", "X-Key")}
SETTINGS = {"security_schemes": SCHEMES, "security": ({"key": ()},)}


def catalog_of(*paths: str, **settings):
    chosen = SourceSettings(**SETTINGS, **settings)
    return build_catalog(
        [source(document({path: {"get": {}}}), f"team.{path[1:]}", settings=chosen) for path in paths]
    )


OWNERS = {"team.a": "team", "team.b": "team"}


def test_settings_without_a_use_are_told():
    catalog = catalog_of(
        "/a", exclude=("path:/zzz",), overrides={"GET /zz": {}}, server_variables={"zone": "eu"}
    )
    texts = [text for source, text in remarks_on(catalog, OWNERS, {}) if source == "team"]
    assert len(texts) == 3
    assert all(any(word in text for text in texts) for word in ("path:/zzz", "GET /zz", "zone"))


def test_what_one_document_of_a_folder_has_a_use_for_is_no_slip():
    catalog = catalog_of("/a", "/b", include=("path:/a", "path:/b"), exclude=("path:/zzz",))
    assert [text for _, text in remarks_on(catalog, OWNERS, {})] == [
        "The pattern 'path:/zzz' matches no operation."
    ]


def test_a_credential_for_no_scheme_is_told_with_those_there_are():
    ((owner, text),) = remarks_on(catalog_of("/a"), OWNERS, {"team": {"key": "x", "nope": "y"}})
    assert owner == "team"
    assert "nope" in text and text.endswith(": key")
    assert remarks_on(catalog_of("/a"), OWNERS, {"team": ["key"], "gone": ["key"]}) == ()
