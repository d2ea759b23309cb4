from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex_engine.operation import Operation
from capdex_server.callers import LOCAL, Caller
from capdex_server.config import RuleConfig
from capdex_server.policy import Policy, fits

LIST = Operation("listInvoices", "billing", "GET", "/invoices", tags=("invoices", "public"))
DROP = Operation("dropInvoice", "billing", "DELETE", "/invoices/{id}", tags=("admin",))
MAIL = Operation("sendMail", "mail", "POST", "/mail/send")
ALL = (LIST, DROP, MAIL)


def caller(allow=(), deny=()) -> Caller:
    rules = tuple(RuleConfig(**rule) for rule in allow), tuple(RuleConfig(**rule) for rule in deny)
    return Caller("c", "t", frozenset({"search", "execute"}), *rules)


def names(policy: Policy, who: Caller) -> list[str]:
    return [one.name for one, allowed in zip(ALL, policy.mask(who, ALL), strict=True) if allowed]


@pytest.mark.parametrize(
    ("allow", "deny", "expected"),
    [
        ([], [], []),
        ([{}], [], ["listInvoices", "dropInvoice", "sendMail"]),
        ([{"source": "bill*"}], [], ["listInvoices", "dropInvoice"]),
        ([{"source": "billing", "method": ["GET", "PUT"]}], [], ["listInvoices"]),
        ([{"readOnly": True}], [], ["listInvoices"]),
        ([{"readOnly": False}], [], ["dropInvoice", "sendMail"]),
        ([{"tag": "admin"}, {"name": "send*"}], [], ["dropInvoice", "sendMail"]),
        ([{"path": "/invoices*"}], [], ["listInvoices", "dropInvoice"]),
        ([{}], [{"tag": "*"}], ["sendMail"]),
        ([{}], [{"source": "billing", "readOnly": False}], ["listInvoices", "sendMail"]),
        ([{}], [{}], []),
    ],
)
def test_deny_wins_and_without_a_rule_there_is_no_access(allow, deny, expected):
    assert names(Policy(), caller(allow, deny)) == expected


def test_a_read_only_server_denies_what_can_change_something():
    assert names(Policy(read_only=True), LOCAL) == ["listInvoices"]


def test_a_glob_is_a_glob_and_no_regular_expression():
    assert not fits(RuleConfig(name="list.nvoices"), LIST)
    assert not fits(RuleConfig(name="list"), LIST)


@pytest.mark.parametrize(
    ("allow", "deny", "known"),
    [
        ([{"source": "bill*"}], [], True),
        ([{"tag": "x"}], [], True),
        ([{"source": "mail"}], [], False),
        ([{}], [{"source": "billing"}], False),
        ([{}], [{"source": "billing", "tag": "admin"}], True),
        ([], [], False),
    ],
)
def test_a_failed_source_is_known_to_those_who_could_use_it(allow, deny, known):
    assert Policy().may_know_source(caller(allow, deny), "billing") is known


globs = st.sampled_from(["*", "billing", "mail", "list*", "GET", "DELETE", "admin", "/invoices*", "nothing"])
rules = st.lists(
    st.dictionaries(st.sampled_from(["source", "name", "method", "tag", "path"]), globs), max_size=3
)


@given(allow=rules, deny=rules, read_only=st.booleans())
def test_the_mask_agrees_with_the_single_decision_and_a_deny_only_takes_away(allow, deny, read_only):
    policy, who = Policy(read_only=read_only), caller(allow, deny)
    mask = policy.mask(who, ALL)
    assert [policy.allows(who, one) for one in ALL] == mask.tolist()
    assert not (mask & ~policy.mask(caller(allow), ALL)).any()
