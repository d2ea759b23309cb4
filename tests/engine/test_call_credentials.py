from __future__ import annotations

from typing import Any

import pytest

from call_support import details, executor, operation, parameter
from capdex_engine.errors import MissingCredentials
from capdex_engine.operation import OperationDetails, SecurityScheme

SCHEMES = {
    each.name: each
    for each in (
        SecurityScheme("kh", "apiKey", "header", "X-Key"),
        SecurityScheme("kq", "apiKey", "query", "api_key"),
        SecurityScheme("kc", "apiKey", "cookie", "sid"),
        SecurityScheme("basic", "basic"),
        SecurityScheme("bearer", "bearer"),
        SecurityScheme("oauth", "oauth2", token_url="https://api.test/token"),
        SecurityScheme("oidc", "openIdConnect"),
        SecurityScheme("mtls", "unsupported"),
    )
}
HELD: dict[str, Any] = {
    "kh": "KEY-ONE",
    "kq": "K2&x",
    "kc": "K3 ;",
    "basic": ("u", "p:w"),
    "bearer": "TOK",
    "oauth": {"client_id": "i", "client_secret": "s", "token": "AT"},
    "oidc": {"token": "OT"},
}


def secured(*alternatives: tuple[str, ...], **more: Any) -> OperationDetails:
    more.setdefault("parameters", (parameter("a"), parameter("o", "cookie")))
    parameters = more.pop("parameters")
    security = tuple({name: () for name in names} for names in alternatives)
    return details(*parameters, security=security, security_schemes=SCHEMES, **more)


def sent(found: OperationDetails, held: Any = HELD, **call: Any) -> dict[str, Any]:
    caller = executor(found, credentials={"src": held})
    return caller.prepare({"name": "op", **call}, show_credentials=True)


def masked(found: OperationDetails, held: Any = HELD, **call: Any) -> dict[str, Any]:
    return executor(found, credentials={"src": held}).prepare({"name": "op", **call})


def test_an_api_key_goes_to_its_place():
    assert sent(secured(("kh",)))["headers"]["X-Key"] == "KEY-ONE"
    assert sent(secured(("kq",)), queryParams={"a": "1"})["url"] == "https://api.test/x?a=1&api_key=K2%26x"
    assert sent(secured(("kc",)), cookieParams={"o": "1"})["headers"]["Cookie"] == "o=1; sid=K3%20%3B"


@pytest.mark.parametrize(
    ("scheme", "value"),
    [("basic", "Basic dTpwOnc="), ("bearer", "Bearer TOK"), ("oauth", "Bearer AT"), ("oidc", "Bearer OT")],
)
def test_the_other_kinds_go_to_the_authorization_header(scheme, value):
    assert sent(secured((scheme,)))["headers"]["Authorization"] == value


@pytest.mark.parametrize("pair", [("u", "p:w"), ["u", "p:w"], "u:p:w", {"username": "u", "password": "p:w"}])
def test_a_user_and_password_may_be_written_in_several_ways(pair):
    assert sent(secured(("basic",)), {"basic": pair})["headers"]["Authorization"] == "Basic dTpwOnc="


def test_all_schemes_of_one_alternative_are_sent_together():
    shown = sent(secured(("kh", "kq", "bearer")))
    assert shown["headers"]["X-Key"] == "KEY-ONE"
    assert shown["headers"]["Authorization"] == "Bearer TOK"
    assert "api_key=" in shown["url"]


def test_the_first_alternative_that_is_held_whole_is_used():
    shown = sent(
        secured(("mtls",), ("kh", "bearer"), ("kq",), ("kc",)), {"kh": "KEY-ONE", "kq": "q", "kc": "c"}
    )
    assert shown["url"].endswith("?api_key=q")
    assert "X-Key" not in shown["headers"]
    assert "Cookie" not in shown["headers"]


def test_an_optional_credential_is_sent_if_held_and_not_missed_otherwise():
    assert "X-Key" in sent(secured((), ("kh",)))["headers"]
    assert "X-Key" not in sent(secured((), ("kh",)), {})["headers"]


def test_a_public_operation_carries_no_credential():
    assert sent(secured()).keys() == {"method", "url", "headers", "body"}
    assert "KEY-ONE" not in str(sent(secured()))


def test_the_caller_cannot_set_what_carries_a_credential():
    found = secured(("kq",), parameters=(parameter("api_key"), parameter("a")))
    assert sent(found, queryParams={"api_key": "mine"})["url"].endswith("?api_key=K2%26x")
    assert sent(secured(("kq",)), queryParams={"api_key": "mine"})["url"].endswith("?api_key=K2%26x")
    cookie = secured(("kc",), parameters=(parameter("Cookie", "header"),))
    shown = sent(cookie, headerParams={"Cookie": "sid=mine; x=1"})
    assert shown["headers"]["Cookie"] == "x=1; sid=K3%20%3B"


def test_an_exploded_object_cannot_smuggle_a_credential_parameter():
    found = secured(("kq",), parameters=(parameter("filter"),))
    shown = sent(found, queryParams={"filter": {"api_key": "mine", "b": 1}})
    assert shown["url"].endswith("?b=1&api_key=K2%26x")


def test_a_dry_run_masks_every_credential():
    shown = masked(secured(("kh", "kq", "kc", "basic")), cookieParams={"o": "1"})
    assert shown["headers"]["X-Key"] == "***"
    assert shown["headers"]["Authorization"] == "Basic ***"
    assert shown["headers"]["Cookie"] == "o=1; sid=***"
    assert shown["url"].endswith("?api_key=***")
    assert not any(secret in str(shown) for secret in ("KEY-ONE", "K2", "K3", "dTpwOnc", "p:w"))


@pytest.mark.parametrize(
    ("scheme", "place"),
    [("kh", "X-Key"), ("basic", "Authorization"), ("oauth", "Authorization"), ("kc", "Cookie")],
)
def test_a_dry_run_needs_no_credential(scheme, place):
    assert "***" in masked(secured((scheme,)), {})["headers"][place]


@pytest.mark.parametrize(
    ("scheme", "held"),
    [
        ("kh", {}),
        ("kh", {"kh": ""}),
        ("kh", {"kh": "with\r\nbreak"}),
        ("basic", {"basic": "no-colon"}),
        ("basic", {"basic": {"username": "u"}}),
        ("oauth", {"oauth": {"client_id": "i", "client_secret": "hush"}}),
        ("mtls", {"mtls": "hush"}),
        ("undeclared", {"undeclared": "hush"}),
    ],
)
@pytest.mark.anyio
async def test_a_call_without_its_credential_is_refused_before_anything_is_sent(scheme, held):
    caller = executor(secured((scheme,)), credentials={"src": held})
    with pytest.raises(MissingCredentials) as caught:
        await caller.execute({"name": "op"})
    assert caught.value.details["scheme"] == scheme
    assert "hush" not in str(caught.value.payload())


def test_credentials_of_another_source_are_not_used():
    caller = executor(secured(("kh",)), operation(source="src"), credentials={"other": HELD})
    assert caller.prepare({"name": "op"}, show_credentials=True)["headers"]["X-Key"] == "***"
