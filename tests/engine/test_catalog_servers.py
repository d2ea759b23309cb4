"""Where operations are called."""

from __future__ import annotations

from typing import Any

import pytest

from capdex_engine.catalog import Catalog, SourceSettings, build_catalog
from capdex_engine.operation import Availability
from catalog_support import catalog_of, document, only, source


def served(servers: Any, url: str | None = None, **settings: Any) -> Catalog:
    tree = document({"/x": {"get": {"operationId": "x"}}}, servers=servers)
    return build_catalog([source(tree, settings=SourceSettings(**settings), url=url)])


def base_of(catalog: Catalog) -> str | None:
    return catalog.details(only(catalog)).base_url


@pytest.mark.parametrize(
    ("servers", "url", "base"),
    [
        ([{"url": "https://api.test"}], None, "https://api.test"),
        ([{"url": "https://api.test/v1/"}], None, "https://api.test/v1"),
        ([{"url": "https://api.test:8443/v1/?x=1#y"}], None, "https://api.test:8443/v1?x=1"),
        ([{"url": "HTTPS://api.test"}], None, "https://api.test"),
        ([{"url": " https://api.test "}], None, "https://api.test"),
        ([{"url": "/v3"}], "https://host.test/specs/openapi.yaml", "https://host.test/v3"),
        ([{"url": "v3"}], "https://host.test/specs/openapi.yaml", "https://host.test/specs/v3"),
        ([{"url": "//other.test/x"}], "https://host.test/a", "https://other.test/x"),
        ([], "https://host.test/specs/openapi.yaml", "https://host.test"),
        (None, "https://host.test/specs/openapi.yaml", "https://host.test"),
        ("wrong", "https://host.test/specs/openapi.yaml", "https://host.test"),
        ([7, {"url": "https://api.test"}], None, "https://api.test"),
        ([{"url": "ftp://a.test"}, {"url": "/b"}, {"url": "https://c.test"}], None, "https://c.test"),
    ],
)
def test_the_first_usable_server_counts(servers: Any, url: str | None, base: str) -> None:
    catalog = served(servers, url)
    assert base_of(catalog) == base
    assert only(catalog).executable


@pytest.mark.parametrize(
    "servers",
    [
        [{"url": "/v3"}],
        None,
        [{"url": "ftp://api.test"}],
        [{"url": "https://"}],
        [{"url": "https://user:pass@api.test"}],
        [{"url": "https://api.test:port"}],
        [{"url": "https://{host}/v1"}],
        [{"url": "https://{host}/v1", "variables": {"host": {"default": "{your-host}"}}}],
        [{"url": "https://api .test"}],
        [{"url": "https://[bad"}],
    ],
)
def test_without_a_usable_server_the_reason_names_the_setting(servers: Any) -> None:
    catalog = served(servers)
    operation = only(catalog)
    assert operation.availability is Availability.NO_SERVER
    assert operation in catalog.operations
    assert base_of(catalog) is None
    assert operation.reason is not None and "`server`" in operation.reason and "--server" in operation.reason


VARIABLES = [
    {
        "url": "https://{region}.test:{port}/{version}/",
        "variables": {
            "region": {"default": "eu", "enum": ["eu", "us"]},
            "port": {"default": 8443},
            "version": {"default": "v2"},
        },
    }
]


def test_variables_have_their_defaults() -> None:
    assert base_of(served(VARIABLES)) == "https://eu.test:8443/v2"


def test_settings_fill_in_variables() -> None:
    catalog = served(VARIABLES, server_variables={"region": "us", "version": "v3"})
    assert base_of(catalog) == "https://us.test:8443/v3"


def test_a_value_outside_the_enum_rewrites_no_host() -> None:
    catalog = served(VARIABLES, server_variables={"region": "evil.test/#"})
    assert only(catalog).availability is Availability.NO_SERVER
    assert "server_variables.region" in str(only(catalog).reason)


def test_a_default_outside_its_enum_is_not_used_silently() -> None:
    odd = {"url": "https://{region}.test", "variables": {"region": {"default": "moon", "enum": ["eu", "us"]}}}
    alone = only(served([odd]))
    assert alone.availability is Availability.NO_SERVER
    assert alone.reason is not None and "'region'" in alone.reason and "server_variables" in alone.reason
    assert base_of(served([odd, {"url": "https://next.test"}])) == "https://next.test"
    assert base_of(served([odd], server_variables={"region": "us"})) == "https://us.test"


def test_a_value_outside_the_enum_sends_no_call_to_the_next_server() -> None:
    catalog = served([*VARIABLES, {"url": "https://other.test"}], server_variables={"region": "asia"})
    assert only(catalog).availability is Availability.NO_SERVER
    assert "server_variables.region" in str(only(catalog).reason)
    assert base_of(catalog) is None


@pytest.mark.parametrize(
    ("servers", "base"),
    [
        (["https://{host}.{tenant}.test", "https://other.test"], None),
        (["https://a@{host}", "https://other.test"], None),
        (["https://{host}.{tenant}.test", "https://{host}.test"], "https://own.test"),
        (["/{host}", "https://other.test/{host}"], "https://other.test/own"),
        (["/v1", "https://other.test"], "https://other.test"),
    ],
)
def test_a_server_that_a_setting_is_meant_for_gives_way_only_to_one_that_takes_it(
    servers: list[str], base: str | None
) -> None:
    catalog = served([{"url": url} for url in servers], server_variables={"host": "own"})
    assert base_of(catalog) == base
    assert only(catalog).executable is (base is not None)


def test_a_default_keeps_how_it_is_written_in_yaml() -> None:
    text = b"""
openapi: 3.0.3
info: {title: T}
servers: [{url: "https://a.test/{v}", variables: {v: {default: 1.10}}}]
paths: {/x: {get: {}}}
"""
    assert base_of(build_catalog([source(text)])) == "https://a.test/1.10"


def test_a_value_that_breaks_the_url_is_refused() -> None:
    servers = [{"url": "https://{host}/v1", "variables": {"host": {"default": "a.test"}}}]
    assert base_of(served(servers, server_variables={"host": "user@evil.test"})) is None


def test_a_variable_that_no_server_has_is_remarked() -> None:
    catalog = served(VARIABLES, server_variables={"zone": "x"})
    assert any("zone" in remark.message for remark in catalog.report.sources[0].warnings)


def test_the_setting_replaces_every_server() -> None:
    catalog = served(VARIABLES, server="https://{where}.test/x/", server_variables={"where": "own"})
    assert base_of(catalog) == "https://own.test/x"
    assert not catalog.report.sources[0].warnings


def test_a_relative_setting_is_refused() -> None:
    assert only(served(VARIABLES, "https://host.test/a", server="/x")).availability is Availability.NO_SERVER


def test_the_operation_s_servers_win_over_the_path_item_s_and_those_over_the_document_s() -> None:
    own, item = [{"url": "https://operation.test"}], [{"url": "https://item.test"}]
    tree = document(
        {
            "/a": {"servers": item, "get": {"operationId": "a", "servers": own}},
            "/b": {"servers": item, "get": {"operationId": "b", "servers": []}},
            "/c": {"get": {"operationId": "c"}},
        }
    )
    catalog = catalog_of(tree)
    bases = [catalog.details(operation).base_url for operation in catalog.operations]
    assert bases == ["https://operation.test", "https://item.test", "https://api.test"]
