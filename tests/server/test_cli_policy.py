"""``capdex policy``: which rule decides, and what a caller may call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from capdex_engine.operation import Availability, Operation
from capdex_server.aliases import Aliases
from capdex_server.cli import app
from capdex_server.policy import Policy
from capdex_server.verdict import judge
from server.policy_support import Row, caller, documents_of

ROWS = [
    Row("shop", "GET", "/orders", "listOrders", "List orders", "public"),
    Row("shop", "DELETE", "/orders", "dropOrders", "Drop all orders", "admin"),
    Row("shop", "POST", "/refunds", "refundPayment", "Refund a payment", "money"),
    Row("shop", "GET", "/odd", "oddOne", "Broken", "public", broken=True),
    Row("mail", "GET", "/orders", "mailOrders", "Orders by mail", "public"),
]
CONFIG = """
[sources.shop]
location = "shop.json"
exclude = ["name:hidden*"]

[sources.mail]
location = "mail.json"

[[callers]]
name = "agent"
tenant = "support"
token_sha256 = "{0}"
allow = [{{ source = "shop", readOnly = true }}, {{ name = "refund*", method = "PUT" }}, {{ tag = "admin" }}]
deny = [{{ path = "/nothing" }}, {{ method = "delete", tag = "admin" }}]

[[callers]]
name = "nobody"
tenant = "support"
scopes = ["search"]
token_sha256 = "{1}"
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CAPDEX_CACHE", str(tmp_path / "cache"))
    hidden = Row("shop", "GET", "/hidden", "hiddenOne", "Hidden", "public")
    for source in documents_of([*ROWS, hidden]):
        (tmp_path / source.location).write_bytes(source.data)
    (tmp_path / "capdex.toml").write_text(CONFIG.format("0" * 64, "1" * 64))
    return tmp_path


def policy(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["policy", *arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def explained(*arguments: str) -> dict[str, Any]:
    code, stdout, _ = policy("explain", *arguments, "--json")
    assert code == 0
    answer: dict[str, Any] = json.loads(stdout)
    return answer


@pytest.mark.parametrize(
    ("arguments", "allowed", "reason", "rule"),
    [
        (("agent", "listOrders"), True, "allow", ("allow", 1)),
        (("agent", "DELETE /orders"), False, "deny", ("deny", 2)),
        (("agent", "refundPayment"), False, "no_allow_rule", ("allow", 2)),
        (("agent", "mailOrders"), False, "no_allow_rule", ("allow", 1)),
        (("agent", "oddOne"), True, "allow", ("allow", 1)),
        (("agent", "hiddenOne"), False, "left_out", None),
        (("agent", "get /hidden"), False, "left_out", None),
        (("agent", "dropOrders", "--read-only"), False, "read_only", None),
        (("nobody", "listOrders"), False, "no_allow_rule", None),
    ],
)
def test_the_rule_that_decides_is_named(
    arguments: tuple[str, ...], allowed: bool, reason: str, rule: tuple[str, int] | None
) -> None:
    answer = explained(*arguments)
    assert (answer["allowed"], answer["reason"]) == (allowed, reason)
    assert (answer["rule"] and (answer["rule"]["kind"], answer["rule"]["number"])) == rule


def test_a_rule_is_explained_field_by_field() -> None:
    near = explained("agent", "refundPayment")["rule"]
    assert near["rule"] == {"name": ["refund*"], "method": ["PUT"]}
    assert {one["field"]: (one["values"], one["fits"]) for one in near["fields"]} == {
        "method": (["POST"], False),
        "name": (["refundPayment"], True),
    }


def test_a_person_reads_lines() -> None:
    code, stdout, _ = policy("explain", "agent", "dropOrders")
    lines = stdout.splitlines()
    assert code == 0
    assert lines[0] == "agent may not call dropOrders (DELETE /orders)."
    assert [line.split() for line in lines[2:]] == [
        ["fits", "method:", "DELETE", "(it", "has:", "DELETE)"],
        ["fits", "tag:", "admin", "(it", "has:", "admin)"],
    ]
    assert "scope execute" in policy("explain", "nobody", "listOrders")[1]
    assert "not callable" in policy("explain", "agent", "oddOne")[1]


def test_an_unknown_capability_ends_with_1_and_near_names() -> None:
    code, stdout, _ = policy("explain", "agent", "listOrder", "--json")
    error = json.loads(stdout)["error"]
    assert (code, error["code"]) == (1, "unknown_capability")
    assert "listOrders" in error["suggestions"]


@pytest.mark.parametrize("command", [("explain", "agnt", "listOrders"), ("list", "agnt")])
def test_an_unknown_caller_is_wrong_usage_and_the_known_ones_are_named(command: tuple[str, ...]) -> None:
    code, _, stderr = policy(*command)
    assert code == 2
    assert "agent" in stderr and "nobody" in stderr


def test_what_a_caller_may_call_is_counted_and_listed() -> None:
    code, stdout, _ = policy("list", "agent")
    assert code == 0 and "1 of 4" in stdout
    assert [one["name"] for one in json.loads(policy("list", "agent", "--json")[1])] == ["listOrders"]
    assert json.loads(policy("list", "nobody", "--json")[1]) == []


def test_without_callers_the_local_one_may_call_everything(home: Path) -> None:
    (home / "capdex.toml").unlink()
    assert explained("local", "dropOrders", "--spec", "shop.json")["allowed"]


globs = st.sampled_from(["*", "shop", "list*", "DELETE", "GET", "admin", "/orders", "no"])
rules = st.lists(
    st.one_of(
        st.dictionaries(st.sampled_from(["source", "name", "method", "tag", "path"]), globs, max_size=3),
        st.fixed_dictionaries({"readOnly": st.booleans()}),
    ),
    max_size=3,
)


@given(allow=rules, deny=rules, read_only=st.booleans())
def test_the_explanation_is_the_decision(allow: list[Any], deny: list[Any], read_only: bool) -> None:
    server, who = Policy(read_only=read_only), caller(allow, deny)
    for row in ROWS:
        operation = Operation(row.name, row.source, row.method, row.path, tags=(row.tag,))
        verdict = judge(server, who, operation, Aliases())
        assert verdict.allowed == server.allows(who, operation)
        assert verdict.rule is None or verdict.rule.fits == (verdict.reason in {"allow", "deny"})


def test_what_the_settings_leave_out_is_nobodys() -> None:
    gone = Operation("gone", "shop", "GET", "/gone", availability=Availability.LEFT_OUT)
    assert judge(Policy(), caller([{}]), gone, Aliases()).reason == "left_out"
