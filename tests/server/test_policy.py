from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex_engine.operation import Operation
from capdex_server.aliases import Aliases
from capdex_server.callers import LOCAL, Caller
from capdex_server.config import CallerConfig, CapabilityQuota, RuleConfig
from capdex_server.policy import Policy, fits, idle_rules

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
        ([{"source": ["billing", "x"], "readOnly": True}], [], True),
        ([{"tag": "x"}], [], False),
        ([{"source": "bill*", "tag": "x"}], [], False),
        ([{"source": "mail"}], [], False),
        ([{}], [{"source": "billing"}], False),
        ([{}], [{"source": "billing", "tag": "admin"}], True),
        ([], [], False),
    ],
)
def test_a_failed_source_is_known_to_those_who_could_use_it(allow, deny, known):
    assert Policy().may_know_source(caller(allow, deny), ["billing"]) is known


FOLDER = (
    Operation("team.odd.get_page", "team.odd", "GET", "/page", operation_id="get_page", key="GET /page"),
    Operation("team.pets.get_page", "team.pets", "GET", "/page", operation_id="get_page", key="GET /page"),
    Operation("putAB", "team.pets", "PUT", "/a/b", key="PUT /a/b"),
)
ALIASES = Aliases({"team.odd": ("team.odd", "team"), "team.pets": ("team.pets", "team")}, FOLDER)


@pytest.mark.parametrize(
    ("allow", "deny", "expected"),
    [
        ([{"source": "team"}], [], [True, True, True]),
        ([{"source": "team.odd"}], [], [True, False, False]),
        ([{}], [{"source": "team"}], [False, False, False]),
        ([{}], [{"source": "team.pets"}], [True, False, False]),
        ([{}], [{"name": "get_page"}], [False, False, True]),
        ([{}], [{"name": "get_*", "source": "team.odd"}], [False, True, True]),
        ([{"name": "get_page"}], [], [False, False, False]),
        ([{"name": "team.odd.*"}], [], [True, False, False]),
        ([{}], [{"name": "team.odd.*"}], [False, True, True]),
    ],
)
def test_rules_know_the_configured_names_and_denials_the_former_ones(allow, deny, expected):
    assert Policy().mask(caller(allow, deny), FOLDER, ALIASES).tolist() == expected


def test_a_denied_name_that_was_built_or_cleaned_stays_denied_under_a_prefix():
    twins = [
        Operation(f"{source}.{name}", source, "GET", "/a b", operation_id=identity, key=f"GET {name}")
        for source in ("one", "two")
        for name, identity in (("get_it_now", "get it (now)"), ("getAB", None))
    ]
    denied = caller([{}], [{"name": ["get_it_now", "getAB"]}])
    assert not Policy().mask(denied, twins, Aliases({}, twins)).any()


def test_a_denied_name_with_a_prefix_stays_denied_when_the_other_source_goes():
    alone = [Operation("get_page", "team", "GET", "/page", operation_id="get_page", key="GET /page")]
    aliases = Aliases({"team": ("team", "team.odd")}, alone)
    for name in ("team.get_page", "team.odd.get_page"):
        assert not Policy().mask(caller([{}], [{"name": name}]), alone, aliases).any()
        assert not Policy().mask(caller([{"name": name}]), alone, aliases).any()
    assert Policy().mask(caller([{}], [{"name": "mail.get_page"}]), alone, aliases).all()


@pytest.mark.parametrize("method", ["get", "Get", "g*"])
def test_methods_of_rules_know_no_case(method):
    assert fits(RuleConfig(method=method), LIST) and not fits(RuleConfig(method=method), DROP)


def configured(**rules) -> CallerConfig:
    return CallerConfig(name="bot", tenant="t", token_sha256="0" * 64, **rules)


def test_rules_that_fit_nothing_are_found_with_their_caller():
    rules = {"allow": [{"source": "billing"}, {"source": "biling"}], "deny": [{"method": "PATCH"}]}
    found = list(idle_rules([configured(**rules)], ALL, Aliases()))
    assert found == [("bot", 'allow {"source": ["biling"]}'), ("bot", 'deny {"method": ["PATCH"]}')]


def test_a_quota_that_fits_nothing_is_idle_too():
    quotas = [CapabilityQuota(name=glob, limit="1/hour") for glob in ("*", "misspelt*")]
    found = list(idle_rules([], ALL, ALIASES, quotas=quotas))
    assert found == [("quotas", 'capability {"name": ["misspelt*"], "limit": "1/hour"}')]


def test_a_rule_for_a_source_that_failed_is_not_idle():
    rules = {"allow": [{"source": "team", "tag": "x"}, {"source": "other"}]}
    found = list(idle_rules([configured(**rules)], ALL, ALIASES, ["team.odd"]))
    assert found == [("bot", 'allow {"source": ["other"]}')]


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
