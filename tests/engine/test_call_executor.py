from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from call_support import (
    Clock,
    FakeCatalog,
    Upstream,
    details,
    executor,
    json_body,
    operation,
    parameter,
    prepared,
)
from capdex_engine.call import EXECUTE_INPUT, Executor, Response
from capdex_engine.call.tool import MISSING, read_call
from capdex_engine.errors import (
    AddressRefused,
    CapdexError,
    InvalidArguments,
    InvalidRequest,
    MissingCredentials,
    NotExecutable,
    RateLimited,
    UnknownCapability,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from capdex_engine.operation import SLOTS, Availability, Body, MediaType, SecurityScheme

NAMES = ["path", "form", "pipe", "deep", "X-Head", "cookie", "json", "int", "base64", "text"]
TYPES = [
    "application/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "text/plain; charset=ascii",
    "application/xml",
    "image/*",
]
EVERYTHING = details(
    parameter("path", "path"),
    parameter("form"),
    parameter("pipe", style="pipeDelimited", explode=False),
    parameter("deep", style="deepObject"),
    parameter("json", content_type="application/json"),
    parameter("int", schema={"type": ["integer", "object"]}),
    parameter("X-Head", "header"),
    parameter("cookie", "cookie"),
    body=Body(required=False, media_types=tuple(MediaType(name, True) for name in TYPES)),
)
SECURED: dict[str, Any] = {
    "security": ({"k": ()},),
    "security_schemes": {"k": SecurityScheme("k", "apiKey", "header", "X-Key")},
}


def code_of(error: pytest.ExceptionInfo[CapdexError]) -> str:
    return error.value.code


@pytest.mark.parametrize(
    ("call", "pointers"),
    [
        ({}, ["/name"]),
        ({"name": ""}, ["/name"]),
        ({"name": 5}, ["/name"]),
        ({"name": "op", "queryParams": [1], "dryRun": "yes"}, ["/queryParams", "/dryRun"]),
        ({"name": "op", "queryParams": "not json"}, ["/queryParams"]),
        ({"name": "op", "path_params": {}}, ["/path_params"]),
        ({"name": "op", "maxBytes": 0}, ["/maxBytes"]),
        ({"name": "op", "maxBytes": 1 << 40}, ["/maxBytes"]),
    ],
)
def test_wrong_input_of_the_tool_is_told_before_anything_else(call, pointers):
    with pytest.raises(InvalidRequest) as caught:
        read_call(call)
    assert [each["pointer"] for each in caught.value.details["issues"]] == pointers


def test_an_unknown_field_names_the_nearest_one():
    with pytest.raises(InvalidRequest) as caught:
        read_call({"name": "op", "path_params": {}})
    assert "pathParams" in caught.value.details["issues"][0]["message"]


def test_input_that_is_no_object_is_refused():
    with pytest.raises(InvalidRequest):
        read_call([1])  # type: ignore[arg-type]


@pytest.mark.parametrize("call", [{"name": "\ud800"}, {"name": "op", "\ud800": 1}])
def test_input_that_is_no_unicode_is_refused_without_repeating_it(call):
    with pytest.raises(InvalidRequest) as caught:
        read_call(call)
    str(caught.value.payload()).encode()


def test_null_fields_count_as_not_given_but_for_the_body():
    call = read_call({"name": "op", "pathParams": None, "contentType": None, "dryRun": None, "body": None})
    assert (call.values["path"], call.content_type, call.dry_run, call.body) == ({}, None, False, None)
    assert read_call({"name": "op"}).body is MISSING


def test_parameter_objects_may_be_sent_as_json_text():
    assert read_call({"name": "op", "queryParams": '{"a": 1}'}).values["query"] == {"a": 1}


def test_the_input_schema_is_closed_and_lists_every_field():
    assert EXECUTE_INPUT["additionalProperties"] is False
    assert set(EXECUTE_INPUT["properties"]) == {
        "name", "pathParams", "queryParams", "headerParams", "cookieParams", "body", "contentType",
        "schemaDigest", "dryRun", "maxBytes",
    }  # fmt: skip


@pytest.mark.anyio
async def test_a_call_is_sent_and_its_answer_comes_back_in_the_envelope():
    upstream = Upstream(Response(201, (("Content-Type", "application/json"),), b'{"id": 7}', False))
    caller = executor(
        details(parameter("id", "path"), body=json_body()),
        operation("POST", "/x/{id}"),
        upstream=upstream,
        timeout=5.0,
        max_response_bytes=1000,
    )
    found = await caller.execute({"name": "op", "pathParams": {"id": "a"}, "body": {"t": 1}})
    assert found == {
        "status": 201,
        "contentType": "application/json",
        "headers": {"content-type": "application/json"},
        "body": {"id": 7},
        "bytes": 9,
        "truncated": False,
        "elapsedMs": 250,
        "revision": "r1",
    }
    (request,) = upstream.requests
    assert (request.method, request.url, request.body) == ("POST", "https://api.test/x/a", b'{"t":1}')
    assert upstream.options == [{"source": "src", "timeout": 5.0, "max_bytes": 1000}]


@pytest.mark.anyio
async def test_a_dry_run_sends_nothing_asks_nobody_and_masks():
    async def never(_: object) -> None:
        raise AssertionError

    upstream = Upstream()
    caller = executor(details(**SECURED), upstream=upstream, credentials={"src": {"k": "sesame"}})
    shown = await caller.execute({"name": "op", "dryRun": True}, before_send=never)
    assert shown["headers"]["X-Key"] == "***"
    assert upstream.requests == []


@pytest.mark.anyio
async def test_input_that_has_been_read_is_not_read_again():
    upstream = Upstream()
    result = await executor(details(), upstream=upstream).execute(read_call({"name": "op"}))
    assert result["status"] == 200
    assert len(upstream.requests) == 1


def test_a_name_that_is_unknown_and_one_that_is_not_permitted_look_the_same():
    one, two = operation(name="one"), operation(name="two")
    kept = operation(name="kept", availability=Availability.KEPT_OUT, reason="a webhook")
    caller = Executor(
        FakeCatalog({one: details(), two: details(), kept: details()}), transport=Upstream(), clock=Clock()
    )
    payloads = []
    for name in ("nope", "two", "kept"):
        with pytest.raises(UnknownCapability) as caught:
            caller.prepare({"name": name}, allows=lambda each: each.name == "one")
        payloads.append(str(caught.value.payload()).replace(name, "NAME"))
        assert caught.value.details["suggestions"] == ["one"]
    assert len(set(payloads)) == 1


@pytest.mark.parametrize("availability", [Availability.KEPT_OUT, Availability.NO_SERVER])
def test_what_is_not_callable_says_why(availability):
    of = operation(availability=availability, reason="because")
    with pytest.raises(NotExecutable) as caught:
        prepared(details(), of)
    assert caught.value.details["reason"] == "because"


def test_a_capability_without_a_server_is_not_executable():
    with pytest.raises(NotExecutable):
        prepared(details(base_url=None))


class Order:
    """Records which of the later checks were reached."""

    def __init__(self) -> None:
        self.reached: list[str] = []

    async def quota(self, _: object) -> None:
        self.reached.append("quota")
        raise RateLimited("Wait.", retry_after=1, scope="capability")


@pytest.mark.parametrize(
    ("change", "code", "reached"),
    [
        ({"bogus": 1, "name": "nope"}, "invalid_request", []),
        ({"name": "nope", "queryParams": {"n": "x"}}, "unknown_capability", []),
        ({"name": "off", "queryParams": {"n": "x"}}, "not_executable", []),
        ({"name": "bare", "queryParams": {"n": "x"}}, "invalid_capability_arguments", []),
        ({"name": "bare"}, "missing_credentials", []),
        ({"name": "held"}, "rate_limited", ["quota"]),
    ],
)
@pytest.mark.anyio
async def test_checks_come_in_the_documented_order(change, code, reached):
    found = details(parameter("n", schema={"type": "integer"}), **SECURED)
    catalog = FakeCatalog(
        {
            operation(name="off", availability=Availability.NO_SERVER): found,
            operation(name="bare", availability=Availability.NO_CREDENTIAL, source="other"): found,
            operation(name="held"): found,
        }
    )
    order, upstream = Order(), Upstream()
    caller = Executor(catalog, transport=upstream, clock=Clock(), credentials={"src": {"k": "sesame"}})
    with pytest.raises(CapdexError) as caught:
        await caller.execute(change, before_send=order.quota)
    assert (code_of(caught), order.reached, upstream.requests) == (code, reached, [])


@pytest.mark.anyio
async def test_a_digest_of_old_with_arguments_that_still_fit_goes_on_and_says_so():
    caller = executor(details())
    found = await caller.execute({"name": "op", "schemaDigest": "sha256:old"})
    assert (found["drift"], found["schemaDigest"]) == (True, "sha256:new")
    assert "drift" not in await caller.execute({"name": "op", "schemaDigest": "sha256:new"})
    assert caller.prepare({"name": "op", "schemaDigest": "sha256:old"})["drift"] is True


def test_a_digest_of_old_with_arguments_that_do_not_fit_says_what_changed():
    found = details(parameter("new", required=True), parameter("n", schema={"type": "integer"}))
    with pytest.raises(InvalidArguments) as caught:
        prepared(found, queryParams={"gone": 1, "n": "x"}, schemaDigest="sha256:old")
    error = caught.value.payload()["error"]
    assert (error["drift"], error["schemaDigest"]) == (True, "sha256:new")
    assert error["argumentsSchema"]["type"] == "object"
    assert error["changes"] == {
        "nowRequired": ["query/new"],
        "noLongerKnown": ["query/gone"],
        "otherwise": ["query/n"],
    }


def test_arguments_that_do_not_fit_carry_the_whole_schema_and_no_drift():
    with pytest.raises(InvalidArguments) as caught:
        prepared(details(), queryParams={"gone": 1})
    error = caught.value.payload()["error"]
    assert error["drift"] is False
    assert "changes" not in error
    assert error["capability"] == "op"


@pytest.mark.parametrize(
    ("method", "retryable"),
    [("GET", True), ("PUT", True), ("DELETE", True), ("POST", False), ("PATCH", False)],
)
@pytest.mark.anyio
async def test_a_failed_call_is_retryable_only_where_repeating_it_is_safe(method, retryable):
    slow = UpstreamTimeout("No answer from https://api.test/x?k=sesame in time.", retryable=True)
    upstream = Upstream(slow)
    caller = executor(
        details(**SECURED), operation(method), upstream=upstream, credentials={"src": {"k": "sesame"}}
    )
    with pytest.raises(UpstreamTimeout) as caught:
        await caller.execute({"name": "op"})
    error = caught.value.payload()["error"]
    assert (error["retryable"], error["capability"]) == (retryable, "op")
    assert "sesame" not in str(error) + str(caught.value)


@pytest.mark.anyio
async def test_a_failure_that_repeating_cannot_cure_is_not_retryable():
    caller = executor(details(), upstream=Upstream(UpstreamUnreachable("The certificate is not accepted.")))
    with pytest.raises(UpstreamUnreachable) as caught:
        await caller.execute({"name": "op"})
    assert caught.value.retryable is False


@pytest.mark.anyio
async def test_a_refused_address_is_never_retryable():
    caller = executor(details(), upstream=Upstream(AddressRefused("The address is not allowed.")))
    with pytest.raises(AddressRefused) as caught:
        await caller.execute({"name": "op"})
    assert caught.value.retryable is False


@pytest.mark.anyio
async def test_unexpected_faults_are_not_hidden():
    with pytest.raises(ZeroDivisionError):
        await executor(details(), upstream=Upstream(ZeroDivisionError())).execute({"name": "op"})


@pytest.mark.anyio
async def test_a_credential_that_the_upstream_echoes_is_masked():
    upstream = Upstream(Response(401, (("X-Echo", "sesame"),), b'{"key": "sesame"}', False))
    caller = executor(details(**SECURED), upstream=upstream, credentials={"src": {"k": "sesame"}})
    found = await caller.execute({"name": "op"})
    assert found["masked"] is True
    assert (found["body"], found["headers"]) == ({"key": "***"}, {"x-echo": "***"})


@pytest.mark.anyio
async def test_a_missing_credential_is_told_by_its_scheme():
    with pytest.raises(MissingCredentials) as caught:
        await executor(details(**SECURED)).execute({"name": "op"})
    assert caught.value.details["scheme"] == "k"


@pytest.mark.anyio
async def test_max_bytes_of_the_call_counts_before_the_setting():
    rows = b"[" + b",".join([b'"xxxxxxxxxx"'] * 1000) + b"]"
    upstream = Upstream(Response(200, (("Content-Type", "application/json"),), rows, False))
    caller = executor(details(), upstream=upstream, max_answer_bytes=2000)
    small = await caller.execute({"name": "op"})
    large = await caller.execute({"name": "op", "maxBytes": 100_000})
    assert small["omitted"][0]["total"] == 1000
    assert len(large["body"]) == 1000


names = st.sampled_from(NAMES)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names | st.text(), inner, max_size=3),
    max_leaves=8,
)
slots = st.dictionaries(names, json_values, max_size=4) | json_values
calls = st.fixed_dictionaries(
    {"name": st.just("op")},
    optional={
        **dict.fromkeys(list(SLOTS.values())[1:], slots),
        "body": json_values,
        "contentType": st.sampled_from(TYPES) | st.text(),
        "schemaDigest": st.text(),
        "maxBytes": st.integers(),
    },
)


@given(calls)
@settings(max_examples=300, deadline=None)
def test_whatever_is_given_there_is_a_request_or_an_error_of_ours(call):
    try:
        shown = prepared(
            EVERYTHING, operation("POST", "/x/{path}/y"), **{"pathParams": {"path": "a"}, **call}
        )
    except CapdexError as error:
        shown = error.payload()
        assert error.http_status < 500
    json.dumps(shown, ensure_ascii=False, allow_nan=False).encode()


@pytest.mark.anyio
async def test_a_very_large_answer_is_read_like_a_small_one():
    rows = json.dumps({"rows": ["x" * 100] * 5000}).encode()
    upstream = Upstream(Response(200, (("Content-Type", "application/json"),), rows, False))
    found = await executor(details(), upstream=upstream).execute({"name": "op"})
    assert found["bytes"] == len(rows)
    assert found["omitted"][0]["pointer"] == "/rows"


def test_a_dry_run_shows_bytes_that_are_no_text_as_base64():
    found = details(body=json_body(content_type="application/octet-stream"))
    shown = prepared(found, operation("POST"), body={"base64": "AP8="})
    assert shown["bodyBase64"] == "AP8="
    assert "body" not in shown


def test_the_accept_header_asks_for_the_documented_type_of_success():
    assert prepared(details())["headers"]["Accept"] == "application/json, */*;q=0.5"
    responses = {"200": {"contentType": "text/csv"}, "404": {"contentType": "application/problem+json"}}
    assert prepared(details(responses=responses))["headers"]["Accept"] == "text/csv, */*;q=0.5"


def test_compiled_schemas_are_kept_for_few_capabilities_only():
    many = {operation(name=f"op{index}", path=f"/{index}"): details(parameter("q")) for index in range(300)}
    caller = Executor(FakeCatalog(many), transport=Upstream(), clock=Clock())
    for each in many:
        caller.prepare({"name": each.name, "queryParams": {"q": 1}})
    assert len(caller._checkers) == 256
