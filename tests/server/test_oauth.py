"""Access tokens: when they are asked for, by whom, and what comes of each answer."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qs

import anyio
import pytest

from capdex_engine.call import Grant, Request, Response
from capdex_engine.errors import (
    AddressRefused,
    CapdexError,
    MissingCredentials,
    UpstreamProtocolError,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from capdex_server.addresses import WrongTarget
from capdex_server.oauth import DEFAULT_LIFE, MAX_ANSWER, MAX_WAIT, PAUSE, OwnedTokens, TokenStore

pytestmark = pytest.mark.anyio
SECRET = "planted secret/1+1"
GRANT = Grant("api", "oauth", "https://login.test/token", "client:1", SECRET, ("read", "write"))


def answer(status: int = 200, body: bytes | None = None, **said: Any) -> Response:
    return Response(status, (), json.dumps(said).encode() if body is None else body, truncated=False)


def token(text: str, **more: Any) -> Response:
    return answer(**{"access_token": text, "token_type": "Bearer", "expires_in": 1000, **more})


@dataclass
class Endpoint:
    """A transport that gives one answer after another, each only when its gate is open."""

    answers: list[Response | CapdexError] = field(default_factory=list)
    gate: anyio.Event | None = None
    requests: list[Request] = field(default_factory=list)
    options: list[dict[str, Any]] = field(default_factory=list)

    async def __call__(self, request: Request, **options: Any) -> Response:
        self.requests.append(request)
        self.options.append(options)
        if self.gate is not None:
            await self.gate.wait()
        found = self.answers.pop(0)
        if isinstance(found, CapdexError):
            raise found
        return found


@dataclass
class Store:
    """A store with its endpoint, and a time that stands still."""

    endpoint: Endpoint
    configured: dict[str, frozenset[tuple[str, int]]] = field(default_factory=dict)
    now: float = 1000.0

    def __post_init__(self) -> None:
        self.tokens = TokenStore(self.endpoint, clock=lambda: self.now, configured=self.configured)

    async def get(self, grant: Grant = GRANT, *, rejected: str | None = None, timeout: float = 5.0) -> str:
        return await self.tokens(grant, timeout=timeout, rejected=rejected)

    async def code(self, grant: Grant = GRANT, **options: Any) -> str:
        with pytest.raises(CapdexError) as caught:
            await self.get(grant, **options)
        assert SECRET not in str(caught.value.payload())
        return caught.value.code

    @property
    def asked(self) -> int:
        return len(self.endpoint.requests)


def store(*answers: Response | CapdexError, **more: Any) -> Store:
    return Store(Endpoint(list(answers)), **more)


async def together(count: int, call: Callable[[], Any], gate: anyio.Event) -> list[Any]:
    """Return what so many calls at once give, an error as its message, once all of them wait."""
    found: list[Any] = []

    async def one() -> None:
        try:
            found.append(await call())
        except CapdexError as error:
            found.append(error)

    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            tasks.start_soon(one)
        await anyio.wait_all_tasks_blocked()
        gate.set()
    return found


async def test_the_request_is_a_form_with_the_client_in_the_authorization_header():
    found = store(token("AT"))
    assert await found.get() == "AT"
    (request,) = found.endpoint.requests
    headers = dict(request.headers)
    assert (request.method, request.url) == ("POST", GRANT.token_url)
    assert headers["Content-Type"] == "application/x-www-form-urlencoded"
    # RFC 6749, section 2.3.1: both are form-encoded before they are joined.
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")) == (
        b"client%3A1:planted+secret%2F1%2B1"
    )
    assert request.body is not None
    assert parse_qs(request.body.decode()) == {"grant_type": ["client_credentials"], "scope": ["read write"]}
    assert found.endpoint.options == [{"source": "api", "timeout": 5.0, "max_bytes": MAX_ANSWER}]


async def test_the_client_may_stand_in_the_form_instead():
    found = store(token("AT"))
    fields = (("audience", "https://api.test"), ("resource", "r"))
    await found.get(replace(GRANT, auth_method="client_secret_post", scopes=(), fields=fields))
    (request,) = found.endpoint.requests
    assert "Authorization" not in dict(request.headers)
    assert request.body is not None
    assert parse_qs(request.body.decode()) == {
        "grant_type": ["client_credentials"],
        "audience": ["https://api.test"],
        "resource": ["r"],
        "client_id": ["client:1"],
        "client_secret": [SECRET],
    }


async def test_an_endpoint_has_no_more_time_than_the_call_and_at_most_its_own():
    found = store(token("A", expires_in=0), token("B"))
    await found.get(timeout=2.0)
    await found.get(timeout=600.0)
    assert [options["timeout"] for options in found.endpoint.options] == [2.0, MAX_WAIT]


async def test_a_token_serves_until_it_is_about_to_end():
    found = store(token("A"), token("B"))
    assert await found.get() == "A"
    found.now += 939
    assert (await found.get(), found.asked) == ("A", 1)
    found.now += 2
    assert (await found.get(), found.asked) == ("B", 2)


@pytest.mark.parametrize(
    ("life", "kept"),
    [
        (1000, 940), ("1000", 940), (10.0, 8), (None, DEFAULT_LIFE * 0.8), ("soon", DEFAULT_LIFE * 0.8),
        (float("nan"), DEFAULT_LIFE * 0.8), ([], DEFAULT_LIFE * 0.8), (1e300, 30 * 86400 - 60),
        (10**400, DEFAULT_LIFE * 0.8),
    ],
)  # fmt: skip
async def test_a_life_that_is_not_told_is_short_and_none_is_endless(life, kept):
    found = store(token("A", expires_in=life), token("B"))
    assert await found.get() == "A"
    found.now += kept - 0.5
    assert await found.get() == "A"
    found.now += 1
    assert await found.get() == "B"


@pytest.mark.parametrize("life", [0, -5])
async def test_a_token_without_a_life_serves_once(life):
    found = store(token("A", expires_in=life), token("B", expires_in=life))
    assert [await found.get(), await found.get()] == ["A", "B"]


async def test_one_gets_a_token_anew_early_while_the_others_use_the_old_one():
    found = store(token("A"), token("B"))
    await found.get()
    found.now += 950
    found.endpoint.gate = anyio.Event()
    got: list[str] = []

    async def first() -> None:
        got.append(await found.get())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(first)
        await anyio.wait_all_tasks_blocked()
        assert [await found.get() for _ in range(9)] == ["A"] * 9
        found.endpoint.gate.set()
    assert (got, await found.get(), found.asked) == (["B"], "B", 2)


async def test_fifty_calls_at_once_share_one_request():
    gate = anyio.Event()
    found = Store(Endpoint([token("A")], gate))
    assert await together(50, found.get, gate) == ["A"] * 50
    assert found.asked == 1


@pytest.mark.parametrize(
    "failure", [answer(401, error="invalid_client"), answer(503), UpstreamTimeout("no answer")]
)
async def test_fifty_calls_at_once_share_one_failure_each_with_an_error_of_its_own(failure):
    gate = anyio.Event()
    found = Store(Endpoint([failure], gate))
    errors = await together(50, found.get, gate)
    assert found.asked == 1
    assert len({id(error) for error in errors}) == 50
    assert len({(type(error), str(error), str(error.payload())) for error in errors}) == 1


async def test_fifty_calls_whose_token_was_rejected_share_one_new_one_even_if_it_is_the_same():
    found = store(token("A"), token("A"))
    await found.get()
    found.endpoint.gate = anyio.Event()
    again = await together(50, lambda: found.get(rejected="A"), found.endpoint.gate)
    assert (again, found.asked) == (["A"] * 50, 2)


async def test_a_caller_that_goes_away_leaves_the_request_to_the_next():
    gate = anyio.Event()
    found = Store(Endpoint([token("A")], gate))
    got: list[str] = []

    async def second() -> None:
        got.append(await found.get())

    async with anyio.create_task_group() as tasks, anyio.create_task_group() as gone:
        gone.start_soon(found.get)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(second)
        await anyio.wait_all_tasks_blocked()
        gone.cancel_scope.cancel()
        gate.set()
    assert (got, found.asked) == (["A"], 2)


async def test_a_refused_client_is_not_shown_to_the_endpoint_again_for_a_while():
    found = store(answer(401, error="invalid_client"), token("A"))
    assert await found.code() == "missing_credentials"
    found.now += PAUSE - 1
    assert (await found.code(), found.asked) == ("missing_credentials", 1)
    found.now += 2
    assert (await found.get(), found.asked) == ("A", 2)


async def test_a_new_secret_is_not_kept_waiting_by_the_old_ones_refusal():
    found = store(answer(401), token("A"))
    await found.code()
    assert await found.get(replace(GRANT, client_secret="rotated")) == "A"


async def test_an_endpoint_that_is_down_is_asked_by_the_next_call():
    found = store(answer(503), token("A"))
    assert await found.code() == "upstream_unreachable"
    assert await found.get() == "A"


async def test_while_an_endpoint_is_down_the_old_token_serves_to_its_end_without_a_request_each():
    found = store(token("A"), answer(503), answer(503), answer(503), token("B"))
    await found.get()
    found.now += 950
    assert [await found.get() for _ in range(5)] == ["A"] * 5
    assert found.asked == 2
    found.now += PAUSE + 1
    assert (await found.get(), found.asked) == ("A", 3)
    found.now += 45
    assert (await found.code(), found.asked) == ("upstream_unreachable", 4)
    assert await found.get() == "B"


async def test_a_rejected_token_is_given_to_nobody_who_says_so():
    found = store(token("A"), token("B"), answer(503))
    await found.get()
    assert await found.get(rejected="A") == "B"
    assert (await found.get(rejected="A"), found.asked) == ("B", 2)
    assert await found.code(rejected="B") == "upstream_unreachable"


@pytest.mark.parametrize(
    "change",
    [
        {"source": "other"}, {"scheme": "other"}, {"token_url": "https://login.test/other"},
        {"client_id": "other"}, {"client_secret": "other"}, {"auth_method": "client_secret_post"},
        {"scopes": ("read",)}, {"fields": (("audience", "x"),)},
    ],
)  # fmt: skip
async def test_a_token_serves_only_the_very_same_grant(change):
    found = store(token("A"), token("B"))
    assert [await found.get(), await found.get(replace(GRANT, **change))] == ["A", "B"]
    assert (await found.get(), found.asked) == ("A", 2)


async def test_the_order_of_scopes_makes_no_other_token():
    found = store(token("A"))
    assert await found.get() == await found.get(replace(GRANT, scopes=("write", "read")))


async def test_what_is_kept_is_bounded():
    found = store(*(token(f"T{index}") for index in range(1025)), token("again"))
    for index in range(1025):
        await found.get(replace(GRANT, client_id=f"c{index}"))
    assert await found.get(replace(GRANT, client_id="c1024")) == "T1024"
    assert await found.get(replace(GRANT, client_id="c0")) == "again"


@pytest.mark.parametrize(
    "given",
    [
        answer(body=b"<html>planted secret/1+1</html>"), answer(body=b""), answer(body=b"[1]"),
        answer(body=b"[" * 50_000), answer(body=b'{"access_token": "cut of'), answer(body=b"\xff\xfe"),
        token(""), token("a b"), token("a\r\nX: y"), token("grün"), answer(access_token=7),
        token("AT", token_type="mac"), token("AT", token_type=None),
        answer(302), answer(307), answer(404), answer(204), answer(100),
    ],
)  # fmt: skip
async def test_what_is_no_bearer_token_is_a_protocol_error_that_shows_nothing_of_it(given):
    found = store(given)
    with pytest.raises(UpstreamProtocolError) as caught:
        await found.get()
    assert "token_url" in caught.value.message
    assert "html" not in caught.value.message
    assert not caught.value.retryable


@pytest.mark.parametrize("kind", ["Bearer", "bearer", "BEARER"])
async def test_the_type_of_a_token_knows_no_case_and_may_be_missing(kind):
    assert await store(token("AT", token_type=kind)).get() == "AT"
    assert await store(answer(access_token="AT")).get() == "AT"


@pytest.mark.parametrize("status", [400, 401, 403])
@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ({"error": "invalid_client", "error_description": f"{SECRET} is wrong"}, "(invalid_client)"),
        ({"error": "invalid_scope"}, "(invalid_scope)"),
        ({"error": SECRET}, None),
        ({"error": ["invalid_client"]}, None),
        ({}, None),
    ],
)
async def test_a_refusal_says_what_to_check_and_only_a_code_of_the_standard(status, said, shown):
    with pytest.raises(MissingCredentials) as caught:
        await store(answer(status, **said)).get()
    message = caught.value.message
    assert ("(" in message) is (shown is not None)
    assert shown is None or shown in message
    assert "client id, secret and scopes" in message
    assert SECRET not in message
    assert caught.value.details["scheme"] == "oauth"


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_an_endpoint_in_trouble_may_be_asked_again(status):
    with pytest.raises(UpstreamUnreachable) as caught:
        await store(answer(status)).get()
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("failure", "kind", "retryable"),
    [
        (UpstreamTimeout("x"), UpstreamTimeout, True),
        (UpstreamUnreachable("x"), UpstreamUnreachable, True),
        (UpstreamProtocolError("x"), UpstreamProtocolError, True),
        (WrongTarget("x"), UpstreamUnreachable, False),
        (AddressRefused("x"), AddressRefused, False),
    ],
)
async def test_a_failure_of_the_network_is_told_as_the_token_endpoints(failure, kind, retryable):
    with pytest.raises(kind) as caught:
        await store(failure).get()
    assert "token endpoint" in caught.value.message
    assert caught.value.retryable is retryable


@pytest.mark.parametrize("url", ["/token", "ftp://login.test/t", "https://", "https://a:b@login.test/t"])
async def test_what_is_no_url_is_not_asked(url):
    found = store()
    assert await found.code(replace(GRANT, token_url=url)) == "upstream_unreachable"
    assert found.asked == 0


async def test_a_secret_goes_out_in_clear_only_where_the_configuration_says_so():
    plain = replace(GRANT, token_url="http://login.test:81/token")
    found = store(configured={"other": frozenset({("login.test", 81)})})
    assert (await found.code(plain), found.asked) == ("address_refused", 0)
    assert await store(token("A"), configured={"api": frozenset({("login.test", 81)})}).get(plain) == "A"


async def test_tokens_of_a_folders_documents_are_those_of_its_configured_source():
    found = store(token("A"))
    owned = OwnedTokens(found.tokens, {"api.a": "api", "api.b": "api"})
    for source in ("api.a", "api.b", "api"):
        assert await owned(replace(GRANT, source=source), timeout=5.0) == "A"
    assert found.endpoint.options[0]["source"] == "api"
