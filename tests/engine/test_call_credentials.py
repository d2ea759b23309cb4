from __future__ import annotations

from typing import Any

import pytest

from call_support import Upstream, details, executor, operation, parameter
from capdex_engine.call import Executor, Grant, Request, Response
from capdex_engine.errors import CapdexError, MissingCredentials, UpstreamUnreachable
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
    for spelling in ("sid =mine", "sid\t=mine", '"sid"=mine', "s%69d=mine"):
        shown = sent(cookie, headerParams={"Cookie": f"x=1; {spelling}"})
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


class FakeTokens:
    """Gives its tokens one after another; an error is raised instead."""

    def __init__(self, *answers: str | CapdexError) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[Grant, str | None]] = []

    async def __call__(self, grant: Grant, *, timeout: float, rejected: str | None = None) -> str:
        self.asked.append((grant, rejected))
        answer = self.answers.pop(0)
        if isinstance(answer, CapdexError):
            raise answer
        return answer


class Answers(Upstream):
    """Answers with one status after another."""

    def __init__(self, *statuses: int, body: bytes = b"{}") -> None:
        super().__init__()
        self.statuses, self.body = list(statuses), body

    async def __call__(self, request: Request, **options: Any) -> Response:
        await super().__call__(request, **options)
        return Response(self.statuses.pop(0), (("Content-Type", "application/json"),), self.body, False)

    @property
    def authorizations(self) -> list[str | None]:
        return [dict(each.headers).get("Authorization") for each in self.requests]


CLIENT = {"client_id": "the client", "client_secret": "client/secret-77"}
SAFE = {"kh": "KEY-ONE"}


def table() -> list[tuple[list[tuple[str, ...]], set[str], set[str] | None]]:
    """Alternatives, what is held -> what is sent; None where the call is refused."""
    one, both, either = [("kh",)], [("kh", "kq")], [("kh",), ("kq",)]
    optional, mixed = [("kh",), ()], [("kh", "kq"), ("kc",)]
    return [
        ([], {"kh"}, set()),
        ([()], {"kh"}, set()),
        (one, {"kh"}, {"kh"}), (one, set(), None), (one, {"kq"}, None),
        (both, {"kh", "kq"}, {"kh", "kq"}), (both, {"kh"}, None), (both, {"kq"}, None), (both, set(), None),
        (either, {"kh", "kq"}, {"kh"}), (either, {"kq"}, {"kq"}), (either, set(), None),
        (optional, {"kh"}, {"kh"}), (optional, set(), set()),
        ([(), ("kh", "kq")], {"kh"}, set()), ([(), ("kh", "kq")], {"kh", "kq"}, {"kh", "kq"}),
        (mixed, {"kh", "kq", "kc"}, {"kh", "kq"}), (mixed, {"kh", "kc"}, {"kc"}), (mixed, {"kh"}, None),
        ([("mtls",), ("kq",)], {"mtls", "kq"}, {"kq"}), ([("mtls", "kq")], {"mtls", "kq"}, None),
    ]  # fmt: skip


@pytest.mark.parametrize(("alternatives", "names", "expected"), table())
@pytest.mark.anyio
async def test_alternatives_are_or_and_the_schemes_of_one_are_and(alternatives, names, expected):
    upstream = Upstream()
    held = {name: HELD.get(name, "hush") for name in names}
    caller = executor(secured(*alternatives), upstream=upstream, credentials={"src": held})
    if expected is None:
        with pytest.raises(MissingCredentials):
            await caller.execute({"name": "op"})
        assert upstream.requests == []
        return
    await caller.execute({"name": "op"})
    (request,) = upstream.requests
    headers = dict(request.headers)
    sent_names = {"kh": "X-Key" in headers, "kq": "api_key=" in request.url, "kc": "Cookie" in headers}
    assert {name for name, there in sent_names.items() if there} == expected


@pytest.mark.parametrize(
    ("scheme", "held", "word"),
    [
        ("mtls", {"mtls": "x"}, "mutualTLS"),
        ("undeclared", {}, "declare"),
        ("kh", {"kh": ""}, "empty"),
        ("oidc", {"oidc": CLIENT}, "token_url"),
        (
            "oauth",
            {"oauth": {**CLIENT, "token_endpoint_auth_method": "private_key_jwt"}},
            "client_secret_post",
        ),
        ("oauth", {"oauth": {**CLIENT, "client_secret": ""}}, "client_secret"),
    ],
)
@pytest.mark.anyio
async def test_what_is_missing_says_what_would_cure_it(scheme, held, word):
    caller = executor(secured((scheme,)), credentials={"src": held}, tokens=FakeTokens())
    with pytest.raises(MissingCredentials) as caught:
        await caller.execute({"name": "op"})
    assert word in caught.value.message


def granted(upstream: Upstream, tokens: FakeTokens, client: Any = CLIENT, method: str = "GET") -> Executor:
    found = details(security=({"oauth": ("read", "write")},), security_schemes=SCHEMES)
    return executor(
        found, operation(method), upstream=upstream, credentials={"src": {"oauth": client}}, tokens=tokens
    )


@pytest.mark.anyio
async def test_a_client_gets_a_token_for_the_scopes_that_the_operation_names():
    upstream, tokens = Answers(200), FakeTokens("AT-1")
    client = {**CLIENT, "audience": "https://api.test", "token_endpoint_auth_method": "client_secret_post"}
    assert (await granted(upstream, tokens, client).execute({"name": "op"}))["status"] == 200
    assert upstream.authorizations == ["Bearer AT-1"]
    ((grant, rejected),) = tokens.asked
    assert grant == Grant(
        "src", "oauth", "https://api.test/token", "the client", "client/secret-77", ("read", "write"),
        "client_secret_post", (("audience", "https://api.test"),),
    )  # fmt: skip
    assert rejected is None
    assert "client/secret-77" not in repr(grant)


@pytest.mark.parametrize(("scope", "expected"), [("", ()), ("all", ("all",)), ("a b a", ("a", "b"))])
@pytest.mark.anyio
async def test_configured_scopes_stand_for_those_of_the_document(scope, expected):
    tokens = FakeTokens("AT-1")
    await granted(Answers(200), tokens, {**CLIENT, "scope": scope}).execute({"name": "op"})
    assert tokens.asked[0][0].scopes == expected


@pytest.mark.anyio
async def test_a_ready_token_is_used_as_it_is():
    upstream, tokens = Answers(401), FakeTokens()
    await granted(upstream, tokens, {**CLIENT, "token": "READY"}).execute({"name": "op"})
    assert (upstream.authorizations, tokens.asked) == (["Bearer READY"], [])


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("second", [200, 401])
@pytest.mark.anyio
async def test_a_refused_token_is_got_anew_once(method, second):
    upstream, tokens = Answers(401, second), FakeTokens("AT-1", "AT-2")
    answer = await granted(upstream, tokens, method=method).execute({"name": "op"})
    assert answer["status"] == second
    assert upstream.authorizations == ["Bearer AT-1", "Bearer AT-2"]
    assert [rejected for _, rejected in tokens.asked] == [None, "AT-1"]


@pytest.mark.parametrize("again", ["AT-1", MissingCredentials("", "oauth", "refused")])
@pytest.mark.anyio
async def test_without_another_token_the_upstreams_own_refusal_is_the_answer(again):
    upstream = Answers(401)
    answer = await granted(upstream, FakeTokens("AT-1", again)).execute({"name": "op"})
    assert (answer["status"], len(upstream.requests)) == (401, 1)


@pytest.mark.parametrize("status", [400, 403, 500])
@pytest.mark.anyio
async def test_another_status_than_401_is_no_matter_of_the_token(status):
    upstream = Answers(status)
    assert (await granted(upstream, FakeTokens("AT-1")).execute({"name": "op"}))["status"] == status


@pytest.mark.anyio
async def test_no_token_no_call_and_the_error_names_the_capability_but_no_secret():
    refusal = MissingCredentials("", "oauth", "The client with client/secret-77 is refused.")
    upstream = Answers()
    with pytest.raises(MissingCredentials) as caught:
        await granted(upstream, FakeTokens(refusal)).execute({"name": "op"})
    payload = caught.value.payload()["error"]
    assert (payload["capability"], payload["scheme"], upstream.requests) == ("op", "oauth", [])
    assert "secret-77" not in str(payload) + str(caught.value)


@pytest.mark.parametrize(("method", "retryable"), [("GET", True), ("POST", False)])
@pytest.mark.anyio
async def test_an_endpoint_that_is_down_may_be_tried_again_where_the_call_may(method, retryable):
    down = UpstreamUnreachable("down", retryable=True)
    with pytest.raises(UpstreamUnreachable) as caught:
        await granted(Answers(), FakeTokens(down), method=method).execute({"name": "op"})
    assert caught.value.retryable is retryable


@pytest.mark.anyio
async def test_every_token_and_the_clients_secret_are_masked_in_the_answer():
    body = b'{"seen": "AT-first AT-second client/secret-77 client%2Fsecret-77"}'
    upstream = Answers(401, 200, body=body)
    answer = await granted(upstream, FakeTokens("AT-first", "AT-second")).execute({"name": "op"})
    assert answer["body"] == {"seen": "*** *** *** ***"}
    assert answer["masked"] is True


@pytest.mark.anyio
async def test_all_attempts_share_the_time_of_the_call():
    upstream = Answers(401, 200)
    caller = executor(
        details(security=({"oauth": ()},), security_schemes=SCHEMES),
        upstream=upstream,
        credentials={"src": {"oauth": CLIENT}},
        tokens=FakeTokens("AT-1", "AT-2"),
        timeout=0.8,
    )
    await caller.execute({"name": "op"})
    first, second = (options["timeout"] for options in upstream.options)
    assert 0.8 > first > second >= 0.1


@pytest.mark.anyio
async def test_a_dry_run_gets_no_token():
    upstream, tokens = Answers(), FakeTokens()
    shown = await granted(upstream, tokens).execute({"name": "op", "dryRun": True})
    assert shown["headers"]["Authorization"] == "Bearer ***"
    assert (upstream.requests, tokens.asked) == ([], [])


@pytest.mark.anyio
async def test_a_callers_own_credentials_win_scheme_by_scheme():
    upstream = Upstream()
    caller = executor(
        secured(("kh", "kq")), upstream=upstream, credentials={"src": {"kh": "common", "kq": "shared"}}
    )
    await caller.execute({"name": "op"}, credentials={"src": {"kh": "own"}, "other": {"kq": "no"}})
    await caller.execute({"name": "op"})
    assert [dict(each.headers)["X-Key"] for each in upstream.requests] == ["own", "common"]
    assert all(each.url.endswith("?api_key=shared") for each in upstream.requests)


@pytest.mark.anyio
async def test_a_callers_own_empty_credential_is_not_replaced_by_the_common_one():
    upstream = Upstream()
    caller = executor(secured(("kh",)), upstream=upstream, credentials={"src": SAFE})
    with pytest.raises(MissingCredentials):
        await caller.execute({"name": "op"}, credentials={"src": {"kh": ""}})
    assert upstream.requests == []
