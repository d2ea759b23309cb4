from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import anyio
import pytest

from capdex_engine.call import Response
from capdex_engine.errors import CapdexError, ConfigurationError, InvalidArguments, UpstreamTimeout
from capdex_server.audit import Audit, stamp
from capdex_server.callers import Caller
from capdex_server.config import RuleConfig
from capdex_server.config_trails import AuditConfig
from capdex_server.lines import line_of
from capdex_server.service import Service
from capdex_server.trails import Trails, open_trails

pytestmark = pytest.mark.anyio
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
CALLER = Caller("bot", "acme", frozenset({"execute"}), allow=(RuleConfig(),))
READER = Caller("reader", "acme", frozenset({"execute"}), allow=(RuleConfig(read_only=True),))
ORDER = {"name": "getOrder", "pathParams": {"id": 7}}


class Trail:
    """Where lines go; ``broken`` refuses them."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.broken = False

    def append(self, lines) -> None:
        if self.broken:
            raise OSError(28, "No space left on device")
        self.lines += lines

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]

    @property
    def events(self) -> list[str]:
        return [row["event"] for row in self.rows]


@pytest.fixture
def trail() -> Trail:
    return Trail()


@pytest.fixture
async def service(make_settings, make_live, trail) -> Service:
    settings, ticks = make_settings(), iter(range(1000))
    live = make_live(settings)
    await live.reload()
    audit = Audit(trail.append, now=lambda: NOON, clock=lambda: next(ticks) / 8)
    return Service(live, settings, trails=Trails(audit))


async def outcome(
    service: Service, trail: Trail, arguments: object, caller: Caller = CALLER
) -> dict[str, Any]:
    """Return the one line of an execute that is refused."""
    with pytest.raises(CapdexError):
        await service.execute(caller, arguments)
    (row,) = trail.rows
    assert row["event"] == "refused"
    return row


async def test_a_call_has_two_lines_that_say_all_and_nothing_of_what_was_sent(service, trail, upstream):
    result = await service.execute(CALLER, {**ORDER, "headerParams": None})
    started, ended = trail.rows
    who = {
        "time": "2026-01-31T12:00:00.000Z",
        "id": started["id"],
        "tenant": "acme",
        "caller": "bot",
        "capability": "getOrder",
        "digest": service.live.current.catalog.get("getOrder").schema_digest,
    }
    assert started == {**who, "event": "started"}
    end = {"event": "ended", "outcome": "ok", "status": 200, "ms": 125, "bytes": result["bytes"]}
    assert ended == {**who, **end}


async def test_the_first_line_is_written_before_anything_is_sent(service, trail, upstream):
    seen = []

    async def answer(request) -> Response:
        seen.append(trail.events)
        return Response(500, (), b"", truncated=False)

    upstream.answer = answer
    await service.execute(CALLER, ORDER)
    assert seen == [["started"]]
    assert (trail.rows[1]["outcome"], trail.rows[1]["status"]) == ("error_status", 500)


async def test_what_fails_on_its_way_has_its_end_too(service, trail, upstream):
    async def answer(request) -> Response:
        raise UpstreamTimeout("too late")

    upstream.answer = answer
    with pytest.raises(UpstreamTimeout):
        await service.execute(CALLER, ORDER)
    assert trail.events == ["started", "ended"]
    assert trail.rows[1]["outcome"] == "upstream_timeout" and "status" not in trail.rows[1]


async def test_a_bug_has_its_end_too(service, trail, upstream):
    async def answer(request) -> Response:
        raise ZeroDivisionError

    upstream.answer = answer
    with pytest.raises(CapdexError):
        await service.execute(CALLER, ORDER)
    assert trail.rows[1]["outcome"] == "internal_error"


async def test_a_client_that_goes_away_leaves_an_end(service, trail, upstream):
    async with anyio.create_task_group() as tasks:

        async def answer(request) -> Response:
            tasks.cancel_scope.cancel()
            await anyio.sleep_forever()
            raise AssertionError

        upstream.answer = answer
        tasks.start_soon(service.execute, CALLER, ORDER)
    assert [row.get("outcome") for row in trail.rows] == [None, "cancelled"]


@pytest.mark.parametrize(
    ("arguments", "expected", "capability"),
    [
        (None, "invalid_request", ""),
        ([], "invalid_request", ""),
        ({}, "invalid_request", ""),
        ({"name": 7}, "invalid_request", ""),
        ({**ORDER, "other": 1}, "invalid_request", "getOrder"),
        ({"name": "nope"}, "unknown_capability", "nope"),
        ({"name": "getOrder"}, "invalid_capability_arguments", "getOrder"),
        ({"name": "GET /orders/{id}"}, "invalid_capability_arguments", "getOrder"),
        ({"name": "getOrder", "schemaDigest": "sha256:0"}, "drift", "getOrder"),
    ],
)
async def test_what_is_refused_has_one_line(service, trail, arguments, expected, capability, upstream):
    row = await outcome(service, trail, arguments)
    assert (row["outcome"], row["capability"]) == (expected, capability)
    assert ("digest" in row) != (capability != "getOrder")
    assert upstream.requests == []


async def test_the_trail_tells_forbidden_from_unknown_where_the_caller_is_not_told(service, trail):
    row = await outcome(service, trail, {"name": "deleteOrder", "pathParams": {"id": 1}}, READER)
    assert (row["outcome"], row["capability"]) == ("forbidden", "deleteOrder")


async def test_a_credential_that_is_missing_is_refused(make_settings, make_live, trail):
    live = make_live(make_settings(), environ={})
    await live.reload()
    service = Service(live, make_settings(), trails=Trails(Audit(trail.append)))
    row = await outcome(service, trail, {"name": "createOrder", "body": {"item": "x"}})
    assert row["outcome"] == "missing_credentials"


async def test_a_dry_run_has_one_line_of_its_own(service, trail, upstream):
    await service.execute(CALLER, {**ORDER, "dryRun": True})
    (row,) = trail.rows
    assert (row["event"], row["outcome"]) == ("dry_run", "dry_run")


@pytest.mark.parametrize(
    "text",
    [
        "\n\x1b]0;x\x07",
        '","outcome":"ok","x":"',
        "\u2028" * 2048,
        "n" * 2048,
        '{"event":"started"}',
        "\U000e0041" * 90,
    ],
    ids=lambda text: ascii(text)[:20],
)
async def test_no_name_forges_a_line(service, trail, text):
    tricky = Caller(text[:100], text[:100], frozenset({"execute"}), allow=(RuleConfig(),))
    row = await outcome(service, trail, {"name": text}, tricky)
    (line,) = trail.lines
    assert line.isascii() and len(line) <= 4096 and line.count(b"\n") == 1 and b"\x1b" not in line
    assert row["outcome"] == "unknown_capability" and row["event"] == "refused"
    for key in ("tenant", "caller", "capability"):
        assert row[key].isprintable() and len(row[key]) <= 100


async def test_the_longest_line_is_short_enough_to_stay_whole_in_a_pipe(trail):
    far = "\U00020000" * 100
    caller = Caller(far, far, frozenset(), allow=())
    entry = Audit(trail.append).entry(caller, {"name": far})
    await entry.close("invalid_capability_arguments", status=200, bytes=2**31)
    assert 3600 < len(trail.lines[0]) <= 4096


async def test_where_the_trail_cannot_be_written_nothing_is_sent_until_it_can(service, trail, upstream):
    trail.broken = True
    with pytest.raises(CapdexError) as caught:
        await service.execute(CALLER, ORDER)
    error = caught.value.payload()["error"]
    assert (error["code"], error["retryable"]) == ("internal_error", True)
    assert error["referenceId"] in error["message"]
    assert upstream.requests == [] and service.trails.audit.problem
    trail.broken = False
    await service.execute(CALLER, ORDER)
    assert len(upstream.requests) == 1 and service.trails.audit.problem is None
    assert trail.events == ["started", "ended"]


async def test_a_call_that_succeeded_is_told_though_its_end_cannot_be_written(service, trail, upstream):
    async def answer(request) -> Response:
        trail.broken = True
        return Response(200, (), b"", truncated=False)

    upstream.answer = answer
    assert (await service.execute(CALLER, ORDER))["status"] == 200
    assert trail.events == ["started"] and service.trails.audit.problem


async def test_a_refusal_stays_what_it_is_where_the_trail_cannot_be_written(service, trail):
    trail.broken = True
    with pytest.raises(InvalidArguments):
        await service.execute(CALLER, {"name": "getOrder"})


async def test_without_a_trail_calls_are_sent(make_settings, make_live, upstream):
    live = make_live(make_settings())
    await live.reload()
    await Service(live, make_settings()).execute(CALLER, ORDER)
    assert len(upstream.requests) == 1


async def test_a_file_that_the_settings_name_is_written(make_settings, make_live, tmp_path):
    settings = make_settings(audit={"to": str(tmp_path / "audit.jsonl")})
    live = make_live(settings)
    await live.reload()
    await Service(live, settings, trails=open_trails(settings)).execute(CALLER, ORDER)
    rows = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert [row["event"] for row in rows] == ["started", "ended"]


def test_a_file_that_cannot_be_written_ends_the_start(make_settings, tmp_path):
    for key, table in (
        ("audit", {"to": str(tmp_path / "no" / "audit.jsonl")}),
        ("audit", {"to": str(tmp_path)}),
        ("query_log", {"path": str(tmp_path / "no" / "log.jsonl")}),
    ):
        with pytest.raises(ConfigurationError, match=rf"{key}\."):
            open_trails(make_settings(**{key: table}))


def test_stdio_keeps_standard_output_to_itself(make_settings):
    assert open_trails(make_settings(), stdout=False).audit._writer is None
    with pytest.raises(ConfigurationError):
        open_trails(make_settings(audit={"to": "stdout"}), stdout=False)


async def test_by_default_serving_writes_to_standard_output(make_settings, capfd):
    audit = open_trails(make_settings()).audit
    await audit.refused(CALLER, "invalid_request")
    assert json.loads(capfd.readouterr().out)["outcome"] == "invalid_request"


@pytest.mark.parametrize("to", ["off", "OFF"])
async def test_off_writes_nothing(make_settings, capfd, to):
    await open_trails(make_settings(audit={"to": to})).audit.refused(CALLER, "x")
    assert capfd.readouterr().out == ""


def test_times_are_utc_with_milliseconds():
    assert stamp(NOON) == "2026-01-31T12:00:00.000Z"


def test_a_path_of_the_file_is_its_folders(tmp_path):
    assert AuditConfig(to="logs/a").anchored(tmp_path).file == tmp_path / "logs/a"
    assert AuditConfig().anchored(tmp_path).file is None


def test_a_line_of_unknown_numbers_is_no_json():
    with pytest.raises(ValueError):
        line_of({"n": float("nan")})
