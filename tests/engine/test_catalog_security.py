"""Which credentials operations need."""

from __future__ import annotations

from typing import Any

import pytest

from capdex_engine.catalog import Catalog
from capdex_engine.catalog.security import credential_variable
from capdex_engine.operation import Availability, SecurityScheme
from catalog_support import catalog_of, document, only

SCHEMES = {
    "key": {"type": "apiKey", "in": "query", "name": "api_key"},
    "header": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "basic": {"type": "http", "scheme": "Basic"},
    "bearer": {"type": "http", "scheme": "BEARER"},
    "digest": {"type": "http", "scheme": "digest"},
    "mutual": {"type": "mutualTLS"},
    "connect": {"type": "openIdConnect", "openIdConnectUrl": "https://id.test"},
    "client": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "/oauth/token"}}},
    "implicit": {"type": "oauth2", "flows": {"implicit": {"authorizationUrl": "https://id.test"}}},
    "alias": {"$ref": "#/components/securitySchemes/basic"},
    "nowhere": {"type": "apiKey", "in": ["query"], "name": "x"},
    "nothing": None,
}


def secured(
    declared: Any, *, root: Any = None, parameters: Any = (), schemes: Any = SCHEMES, **settings: Any
) -> Catalog:
    operation = {"operationId": "x", "parameters": list(parameters)}
    operation |= {} if declared is None else {"security": declared}
    extra = {} if root is None else {"security": root}
    tree = document({"/x": {"get": operation}}, components={"securitySchemes": schemes}, **extra)
    return catalog_of(tree, **settings)


def held(*names: str) -> frozenset[str]:
    return frozenset(names)


@pytest.mark.parametrize(
    ("security", "credentials", "ready"),
    [
        (None, held(), True),
        ([], held(), True),
        ([{}], held(), True),
        ([{"key": []}], held(), False),
        ([{"key": []}], held("key"), True),
        ([{"key": []}, {}], held(), True),
        ([{"key": []}, {"basic": []}], held("basic"), True),
        ([{"key": [], "basic": []}], held("basic"), False),
        ([{"key": [], "basic": []}], held("basic", "key"), True),
        ([{"unknown": []}], held("unknown"), False),
        ([{"digest": []}], held("digest"), False),
        ([{"mutual": []}], held("mutual"), False),
        ([{"client": ["r"]}], held("client"), True),
        ("wrong", held(), True),
    ],
)
def test_lists_are_or_and_objects_are_and(security: Any, credentials: frozenset[str], ready: bool) -> None:
    operation = only(secured(security, credentials=credentials))
    expected = Availability.READY if ready else Availability.NO_CREDENTIAL
    assert operation.availability is expected


def test_the_reason_says_how_to_give_the_credential() -> None:
    reason = only(secured([{"key": []}])).reason
    assert reason is not None
    for hint in ("'key'", "'api'", "capdex.toml", "CAPDEX_CREDENTIAL_API_KEY", "--credential key=VALUE"):
        assert hint in reason


def test_a_scheme_that_is_not_declared_points_to_the_setting() -> None:
    assert "`security_schemes`" in str(only(secured([{"unknown": []}])).reason)


def test_the_operation_s_security_wins_over_the_document_s() -> None:
    assert only(secured([], root=[{"key": []}])).executable
    assert not only(secured(None, root=[{"key": []}])).executable


def test_settings_replace_the_document_s_security() -> None:
    assert only(secured([{"key": []}], security=())).executable
    catalog = secured(None, security=({"basic": ()},))
    assert only(catalog).availability is Availability.NO_CREDENTIAL


def test_a_scheme_of_the_settings_counts_over_the_document_s() -> None:
    own = SecurityScheme("digest", "apiKey", location="header", parameter_name="X-Own")
    catalog = secured([{"digest": []}], security_schemes={"digest": own}, credentials=held("digest"))
    assert only(catalog).executable
    assert catalog.details(only(catalog)).security_schemes == {"digest": own}


def test_the_alternative_that_needs_nothing_comes_last() -> None:
    catalog = secured([{}, {"basic": []}, {"key": ["a"]}])
    assert catalog.details(only(catalog)).security == ({"basic": ()}, {"key": ("a",)}, {})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("key", SecurityScheme("key", "apiKey", "query", "api_key")),
        ("basic", SecurityScheme("basic", "basic")),
        ("bearer", SecurityScheme("bearer", "bearer")),
        ("connect", SecurityScheme("connect", "openIdConnect")),
        ("client", SecurityScheme("client", "oauth2", token_url="https://api.test/oauth/token")),
        ("implicit", SecurityScheme("implicit", "oauth2")),
        ("alias", SecurityScheme("alias", "basic")),
        ("nowhere", SecurityScheme("nowhere", "unsupported")),
        ("nothing", SecurityScheme("nothing", "unsupported")),
    ],
)
def test_schemes_are_read(name: str, expected: SecurityScheme) -> None:
    catalog = secured([{name: []}])
    assert catalog.details(only(catalog)).security_schemes == {name: expected}


PARAMETERS = [
    {"name": "api_key", "in": "query", "required": True, "schema": {"type": "string"}},
    {"name": "x-key", "in": "header", "schema": {"type": "string"}},
    {"name": "API_KEY", "in": "query", "schema": {"type": "string"}},
    {"name": "page", "in": "query", "schema": {"type": "integer"}},
]


def test_the_parameter_that_holds_the_key_is_not_the_agent_s() -> None:
    catalog = secured([{"key": [], "header": []}], parameters=PARAMETERS)
    operation = only(catalog)
    assert operation.query_params == ("API_KEY", "page")
    assert operation.header_params == ()
    assert operation.required_params == ()
    assert [parameter.name for parameter in catalog.details(operation).parameters] == ["API_KEY", "page"]


def test_where_the_scheme_is_not_asked_for_the_parameter_stays() -> None:
    assert "api_key" in only(secured([], parameters=PARAMETERS)).query_params


def test_a_scheme_of_the_settings_takes_its_parameter_too() -> None:
    own = SecurityScheme("own", "apiKey", location="query", parameter_name="page")
    catalog = secured(None, parameters=PARAMETERS, security_schemes={"own": own}, security=({"own": ()},))
    assert "page" not in only(catalog).query_params
    without = secured(None, parameters=PARAMETERS[:3], security=({"own": ()},))
    assert only(catalog).schema_digest == only(without).schema_digest


def test_a_dangling_scheme_is_remarked() -> None:
    catalog = secured([{"a": []}], schemes={"a": {"$ref": "#/components/securitySchemes/none"}})
    assert not only(catalog).executable
    assert catalog.report.sources[0].warnings


def test_an_environment_variable_has_no_odd_characters() -> None:
    assert credential_variable("my-api.v2", "api key") == "CAPDEX_CREDENTIAL_MY_API_V2_API_KEY"
